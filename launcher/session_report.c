/* SPDX-License-Identifier: Apache-2.0
 *
 * The last words of a session: asked-for data, the result file, and on
 * failure one line that names what failed, where, and where to read on.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/exception.h"
#include "launcher/failure_text.h"
#include "launcher/logkeep.h"
#include "launcher/report.h"
#include "launcher/result.h"
#include "launcher/savefile.h"
#include "launcher/session.h"
#include "launcher/session_internal.h"

enum {
    SENTENCE_BYTES_MAX = 16 << 10,
    DATA_BYTES_MAX = 1 << 30,
};

int session_exit_code(const struct session *s)
{
    int code = (int)s->record.end->exit_code;
    bool is_lost =
        s->lost_output != 0 || s->lost_input != 0 || s->has_lost_record;
    bool is_spoilt = is_lost && code == 0;
    if (s->lost_output == EPIPE && (is_spoilt || !s->is_loss_late)) {
        return SESSION_EXIT_PIPE;
    }
    if (s->is_drain_cut) {
        return 128 + s->stop_signal;
    }
    return is_spoilt ? SESSION_EXIT_INTERNAL : code;
}

/* The user would not wait, or nobody told how the job ended. */
static void ensure_end(struct session *s)
{
    if (s->stop_signal != 0) {
        session_end_by_ourselves(s, (uint32_t)(128 + s->stop_signal),
                                 "canceled", "canceled; everything was killed");
    }
    session_end_by_ourselves(s, SESSION_EXIT_LOST, "coordinator_lost",
                             "the coordinator was lost");
}

static void report_environments(struct session *s)
{
    struct gpul_buf out;
    gpul_buf_init(&out, DATA_BYTES_MAX);
    if (envbook_print(&out, &s->envbook, s->plan, &s->record, s->job_id) == 0) {
        console_data(s->console, out.data, out.used);
    } else {
        progress_fault(&s->progress, "no memory to print the environments");
    }
    gpul_buf_release(&out);
}

/* A result that cannot be saved is at least printed. */
static void save_result(struct session *s, const struct gpul_buf *out)
{
    struct gpul_error err = {0};
    if (savefile_write(s->plan->result_path, out->data, out->used, &err) == 0) {
        return;
    }
    progress_fault(&s->progress,
                   "the result was not saved: %s; it was:", err.text);
    console_say(s->console, (const char *)out->data, out->used);
}

/* Or is it a question about a job? */
static bool is_run(const struct session *s)
{
    return s->plan->verb == PLAN_RUN && !s->plan->is_dry_run;
}

static const char *why_lost(const struct session *s)
{
    return s->lost_output == ETIMEDOUT ? "nobody has read it"
                                       : strerror(s->lost_output);
}

static void append_loss(struct gpul_buf *out, const struct session *s)
{
    if (s->is_loss_late || s->lost_output != EPIPE) {
        gpul_buf_append_text(out, is_run(s) ? "the job succeeded, but " : "");
    }
    if (s->lost_output != EPIPE) {
        gpul_buf_appendf(out, "standard output could not be written: %s",
                         why_lost(s));
    } else if (s->is_loss_late) {
        gpul_buf_append_text(out, "the reader of standard output has gone "
                                  "before all was written");
    } else {
        gpul_buf_append_text(out, "the reader of standard output has gone; "
                                  "the job was stopped");
    }
}

/* What happened to our own output is not known to the coordinator. */
static void append_sentence(struct gpul_buf *out, const struct session *s,
                            bool has_logs)
{
    const Gpul__JobEnd *end = s->record.end;
    if (session_exit_code(s) != (int)end->exit_code && s->lost_output != 0) {
        append_loss(out, s);
        return;
    }
    if (s->lost_input != 0 && end->exit_code == 0) {
        gpul_buf_appendf(out,
                         "the job succeeded, but standard input could not be "
                         "read to its end: %s",
                         strerror(s->lost_input));
        return;
    }
    if (s->record.is_simulated && s->record.launched_ms == 0) {
        gpul_buf_append_text(out, "SIMULATED: ");
    }
    report_sentence(out, end, has_logs ? s->log_dir : NULL);
}

/* Standard output was lost when the job had ended, perhaps when its last line
 * had been said. */
void session_say_loss(struct session *s)
{
    if (s->record.end->exit_code != 0) {
        if (s->lost_output != EPIPE) {
            progress_fault(&s->progress, "cannot write to standard output: %s",
                           why_lost(s));
        }
        return;
    }
    if (!s->is_reported) {
        return; /* the last line will say it */
    }
    struct gpul_buf sentence;
    gpul_buf_init(&sentence, SENTENCE_BYTES_MAX);
    append_loss(&sentence, s);
    progress_fault(&s->progress, "%s", gpul_buf_text(&sentence));
    gpul_buf_release(&sentence);
}

static int print_result(struct gpul_buf *out, struct session *s, bool has_logs)
{
    struct gpul_buf sentence;
    gpul_buf_init(&sentence, SENTENCE_BYTES_MAX);
    append_sentence(&sentence, s, has_logs);
    struct result result = {
        .plan = s->plan,
        .record = &s->record,
        .job_id = s->job_id,
        .log_dir = has_logs ? s->log_dir : NULL,
        .message = gpul_buf_text(&sentence),
        .exit_code = session_exit_code(s),
    };
    gpul_buf_init(out, DATA_BYTES_MAX);
    int rc = result_print(out, &result);
    gpul_buf_release(&sentence);
    if (rc != 0) {
        progress_fault(&s->progress, "no memory for the result");
    }
    return rc;
}

/* The file comes second, that it may tell of a standard output that could
 * not be written. */
static void report_result(struct session *s, bool has_logs)
{
    struct gpul_buf out;
    if (s->plan->is_json) {
        if (print_result(&out, s, has_logs) == 0) {
            console_data(s->console, out.data, out.used);
        }
        gpul_buf_release(&out);
        session_check_output(s);
    }
    if (s->plan->result_path != NULL) {
        if (print_result(&out, s, has_logs) == 0) {
            save_result(s, &out);
        }
        gpul_buf_release(&out);
    }
}

/* Whatever the coordinator has not seen to end here is ours to end, and to
 * see. Of other machines we know nothing better. */
static void settle_unclean(struct session *s, struct reach_sweep *sweep)
{
    bool may_be_left = s->reach.adopts && (reach_has_casualty(&s->reach) ||
                                           s->record.end->n_unclean > 0);
    *sweep = (struct reach_sweep){.left = 0};
    if (!may_be_left) {
        return;
    }
    reach_sweep(&s->reach, sweep);
    if (sweep->left == 0 && s->reach.alive == 0) {
        record_clear_unclean(&s->record);
    }
    if (sweep->left > 0) {
        char text[REACH_LEFT_BYTES + 64];
        snprintf(text, sizeof(text), "%u process%s of a node that ended: %s",
                 sweep->left, sweep->left == 1 ? "" : "es", sweep->text);
        record_add_unclean(&s->record, text);
    }
}

static void report_unclean(struct session *s, const struct reach_sweep *sweep)
{
    const Gpul__JobEnd *end = s->record.end;
    if (sweep->has_killed && sweep->left == 0) {
        progress_note(&s->progress, "killed what was left of the ranks; "
                                    "nothing of them is left");
    }
    for (size_t i = 0; i < end->n_unclean; i++) {
        progress_fault(&s->progress, "unclean: %s", end->unclean[i]);
    }
    if (s->reach.alive > 0) {
        progress_fault(&s->progress,
                       "%u process%s of gpulaunch could not be ended",
                       s->reach.alive, s->reach.alive == 1 ? "" : "es");
    }
}

/* The exception of the first failing rank, where torch has written it. */
static const struct exception *first_exception(struct exception *room,
                                               const Gpul__JobEnd *end)
{
    const Gpul__Evidence *e = end->n_exits > 0 ? end->exits[0]->evidence : NULL;
    bool is_there =
        room != NULL && e != NULL &&
        exception_parse(room, e->error_file.data, e->error_file.len);
    return is_there ? room : NULL;
}

static void say_lines(struct session *s, char *text)
{
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        progress_note(&s->progress, "%s", line);
    }
}

static void say_failure(struct session *s)
{
    struct gpul_buf out;
    struct exception *room = malloc(sizeof(*room));
    const struct exception *x = first_exception(room, s->record.end);
    gpul_buf_init(&out, FAILURE_TEXT_BYTES_MAX);
    if (x != NULL) {
        struct failure_exception words = {x->type, x->message, x->first,
                                          x->last};
        failure_text(&out, &s->record, &words);
    } else {
        failure_text(&out, &s->record, NULL);
    }
    if (gpul_buf_append(&out, "", 1) == 0) {
        say_lines(s, (char *)out.data);
    }
    gpul_buf_release(&out);
    free(room);
}

/* Somebody was at the coordinator's port who has no business there, or a node
 * has another secret. */
static void say_strangers(struct session *s)
{
    const Gpul__JobEnd *end = s->record.end;
    uint64_t count = end->stranger_count;
    if (count > 0) {
        progress_note(&s->progress,
                      "%" PRIu64 " connection%s without the job's key %s "
                      "closed: %s",
                      count, count == 1 ? "" : "s", count == 1 ? "was" : "were",
                      end->strangers);
    }
}

static void say_last_line(struct session *s, bool has_logs)
{
    struct gpul_buf sentence;
    gpul_buf_init(&sentence, SENTENCE_BYTES_MAX);
    append_sentence(&sentence, s, has_logs);
    bool is_said = plan_is_check(s->plan) && !s->plan->is_json;
    if (session_exit_code(s) != 0 && !is_said) {
        progress_fault(&s->progress, "%s", gpul_buf_text(&sentence));
    } else if (s->plan->is_verbose && !is_said) {
        progress_note(&s->progress, "%s", gpul_buf_text(&sentence));
    }
    gpul_buf_release(&sentence);
}

/* In the default place, which is ours to tidy up. Logs that could not be
 * marked stay, and that is no news for the user. */
static void keep_newest(const struct session *s)
{
    if (logkeep_mark(s->log_root, s->job_id, NULL) == 0) {
        logkeep_prune(s->log_root, LOGKEEP_JOBS);
    }
}

void session_report(struct session *s)
{
    ensure_end(s);
    console_live(s->console, NULL, 0);
    rmdir(s->log_dir); /* only if it is empty */
    if (!is_run(s)) {
        logdir_unmake(&s->made); /* a question leaves nothing */
    }
    bool has_logs = access(s->log_dir, F_OK) == 0;
    struct reach_sweep sweep;
    settle_unclean(s, &sweep);
    if (plan_is_check(s->plan)) {
        session_report_check(s);
    } else if (!is_run(s) && session_exit_code(s) == 0) {
        report_environments(s);
    }
    if (is_run(s)) {
        report_result(s, has_logs);
    }
    session_check_output(s);
    if (is_run(s)) {
        say_failure(s);
    }
    report_unclean(s, &sweep);
    say_strangers(s);
    say_last_line(s, has_logs);
    if (is_run(s) && has_logs && s->plan->log_dir == NULL) {
        keep_newest(s);
    }
}
