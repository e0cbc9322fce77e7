/* SPDX-License-Identifier: Apache-2.0
 *
 * The last words of a session: asked-for data, the result file, and on
 * failure one line that names what failed, where, and where to read on.
 */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "launcher/report.h"
#include "launcher/result.h"
#include "launcher/savefile.h"
#include "launcher/session.h"
#include "launcher/session_internal.h"

enum {
    SENTENCE_BYTES_MAX = 16 << 10,
    DATA_BYTES_MAX = 1 << 30,
    EXIT_PIPE = 128 + SIGPIPE,
};

int session_exit_code(const struct session *s)
{
    int code = (int)s->record.end->exit_code;
    if (s->is_pipe_closed)
        return EXIT_PIPE;
    if (s->is_drain_cut)
        return 128 + s->stop_signal;
    if (s->is_output_lost && code == 0)
        return SESSION_EXIT_INTERNAL;
    return code;
}

/* The user would not wait, or nobody told how the job ended. */
static void ensure_end(struct session *s)
{
    if (s->stop_signal != 0)
        session_end_by_ourselves(s, (uint32_t)(128 + s->stop_signal),
                                 "canceled", "canceled; everything was killed");
    session_end_by_ourselves(s, SESSION_EXIT_LOST, "coordinator_lost",
                             "the coordinator was lost");
}

static void report_environments(struct session *s)
{
    struct gpul_buf out;
    gpul_buf_init(&out, DATA_BYTES_MAX);
    if (envbook_print(&out, &s->envbook, s->plan, &s->record, s->job_id) == 0)
        console_data(s->console, out.data, out.used);
    else
        progress_fault(&s->progress, "no memory to print the environments");
    gpul_buf_release(&out);
}

/* A result that cannot be saved is at least printed. */
static void save_result(struct session *s, const struct gpul_buf *out)
{
    struct gpul_error err = {0};
    if (savefile_write(s->plan->result_path, out->data, out->used, &err) == 0)
        return;
    progress_fault(&s->progress,
                   "the result was not saved: %s; it was:", err.text);
    console_say(s->console, (const char *)out->data, out->used);
}

static void report_result(struct session *s, const char *sentence,
                          bool has_logs)
{
    struct result result = {
        .plan = s->plan,
        .record = &s->record,
        .job_id = s->job_id,
        .log_dir = has_logs ? s->log_dir : NULL,
        .message = sentence,
        .exit_code = session_exit_code(s),
    };
    struct gpul_buf out;
    gpul_buf_init(&out, DATA_BYTES_MAX);
    if (result_print(&out, &result) != 0) {
        progress_fault(&s->progress, "no memory for the result");
    } else {
        if (s->plan->result_path != NULL)
            save_result(s, &out);
        if (s->plan->is_json)
            console_data(s->console, out.data, out.used);
    }
    gpul_buf_release(&out);
}

static void report_unclean(struct session *s)
{
    const Gpul__JobEnd *end = s->record.end;
    if (reach_local_has_casualty(&s->reach) &&
        reach_local_sweep(&s->reach, s->job_id))
        progress_note(&s->progress,
                      "killed the ranks that a lost worker had left");
    for (size_t i = 0; i < end->n_unclean; i++)
        progress_fault(&s->progress, "unclean: %s", end->unclean[i]);
    if (s->reach.alive > 0)
        progress_fault(&s->progress,
                       "%u processes of gpulaunch could not be ended",
                       s->reach.alive);
}

/* What happened to our own output is not known to the coordinator. */
static void append_sentence(struct gpul_buf *out, const struct session *s,
                            bool has_logs)
{
    if (s->is_pipe_closed)
        gpul_buf_append_text(out, "the reader of standard output has gone; "
                                  "the job was stopped");
    else if (s->is_output_lost && s->record.end->exit_code == 0)
        gpul_buf_appendf(out,
                         "the job succeeded, but standard output could not "
                         "be written: %s",
                         strerror(console_stdout_error(s->console)));
    else {
        if (s->record.is_simulated && s->record.launched_ms == 0)
            gpul_buf_append_text(out, "SIMULATED: ");
        report_sentence(out, s->record.end, has_logs ? s->log_dir : NULL);
    }
}

void session_report(struct session *s)
{
    bool is_run = s->plan->verb == PLAN_RUN && !s->plan->is_dry_run;
    ensure_end(s);
    console_live(s->console, NULL, 0);
    rmdir(s->log_dir); /* only if it is empty */
    bool has_logs = access(s->log_dir, F_OK) == 0;
    struct gpul_buf sentence;
    gpul_buf_init(&sentence, SENTENCE_BYTES_MAX);
    append_sentence(&sentence, s, has_logs);
    const char *text = gpul_buf_text(&sentence);
    bool is_good = session_exit_code(s) == 0;
    if (!is_run && is_good)
        report_environments(s);
    if (is_run)
        report_result(s, text, has_logs);
    report_unclean(s);
    if (!is_good)
        progress_fault(&s->progress, "%s", text);
    else if (s->plan->is_verbose)
        progress_note(&s->progress, "%s", text);
    gpul_buf_release(&sentence);
}
