/* SPDX-License-Identifier: Apache-2.0
 *
 * Children and deadlines of a session: what ending.h decides is done here.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "launcher/session.h"
#include "launcher/session_internal.h"

enum { WORDS_BYTES_MAX = 1024 };

void session_end_by_ourselves(struct session *s, uint32_t exit_code,
                              const char *reason, const char *text)
{
    char reason_copy[32], text_copy[WORDS_BYTES_MAX];
    Gpul__JobEnd end = GPUL__JOB_END__INIT;
    snprintf(reason_copy, sizeof(reason_copy), "%s", reason);
    snprintf(text_copy, sizeof(text_copy), "%s", text);
    end.exit_code = exit_code;
    end.reason = reason_copy;
    end.text = text_copy;
    record_end(&s->record, &end, gpul_clock_ms());
}

/* ---- closing ------------------------------------------------------------- */

static void arm(struct session *s);

static void close_everything(struct session *s)
{
    s->is_closing = true;
    session_send_credits(s);
    if (s->desk != NULL) {
        gpul_transport_close(s->desk, 0);
    }
    session_close_signals(s);
    inlet_close(s->inlet);
    reach_close(&s->reach);
    uv_close((uv_handle_t *)&s->timer, NULL);
    uv_close((uv_handle_t *)&s->prepare, NULL);
    console_close(s->console);
}

/* Over when nothing of the job is left and all output is written. A reader
 * that is slow may take its time (see session_wait.c); a signal cuts the wait
 * short. */
static void close_if_over(struct session *s)
{
    if (s->is_closing || s->ending.phase != ENDING_GONE) {
        return;
    }
    if (!s->is_reported) {
        session_report(s);
        s->is_reported = true;
        session_look_at_readers(s);
        arm(s);
    }
    if (console_is_drained(s->console) || s->is_drain_cut) {
        close_everything(s);
    }
}

void session_output_moved(struct session *s)
{
    session_check_output(s);
    close_if_over(s);
}

/* ---- deadlines ----------------------------------------------------------- */

static void on_timer(uv_timer_t *timer);

/* Is the coordinator still at it? */
static bool has_job(const struct session *s)
{
    return s->ending.phase == ENDING_WORKING ||
           s->ending.phase == ENDING_STOPPING;
}

static void arm(struct session *s)
{
    uint64_t next_ms = s->ending.deadline_ms;
    if (has_job(s) && progress_next_ms(&s->progress) < next_ms) {
        next_ms = progress_next_ms(&s->progress);
    }
    for (size_t i = 0; i < SESSION_READERS; i++) {
        if (s->readers[i].deadline_ms < next_ms) {
            next_ms = s->readers[i].deadline_ms;
        }
    }
    if (next_ms == UINT64_MAX) {
        uv_timer_stop(&s->timer);
        return;
    }
    uint64_t now_ms = gpul_clock_ms();
    uv_timer_start(&s->timer, on_timer, next_ms > now_ms ? next_ms - now_ms : 0,
                   0);
}

static void on_timer(uv_timer_t *timer)
{
    struct session *s = timer->data;
    if (has_job(s)) {
        progress_tick(&s->progress, gpul_clock_ms());
    }
    session_step(s, ENDING_TICK);
}

/* ---- the end game -------------------------------------------------------- */

static void lose_desk(struct session *s)
{
    session_end_by_ourselves(s, SESSION_EXIT_LOST, "coordinator_lost",
                             "the coordinator did not end the job in time");
}

static void dismiss_absent(struct session *s)
{
    for (uint32_t i = 0; i < s->reach.worker_count; i++) {
        if (!status_has_joined(&s->progress.status, i)) {
            reach_signal_worker(&s->reach, i, SIGTERM);
        }
    }
}

void session_step(struct session *s, enum ending_event event)
{
    unsigned due = ending_step(&s->ending, event, gpul_clock_ms());
    int number = s->stop_signal != 0 ? s->stop_signal : SIGTERM;
    if ((due & ENDING_CANCEL) != 0) {
        session_cancel(s, number, false);
    }
    if ((due & ENDING_CANCEL_NOW) != 0) {
        session_cancel(s, number, true);
    }
    if ((due & ENDING_LOSE_DESK) != 0) {
        lose_desk(s);
    }
    if ((due & ENDING_TERM_ABSENT) != 0) {
        dismiss_absent(s);
    }
    if ((due & ENDING_TERM_WORKERS) != 0) {
        reach_signal_workers(&s->reach, SIGTERM);
    }
    if ((due & ENDING_TERM_COORDINATOR) != 0) {
        reach_signal_coordinator(&s->reach, SIGTERM);
    }
    if ((due & ENDING_KILL_ALL) != 0) {
        reach_signal_workers(&s->reach, SIGKILL);
        reach_signal_coordinator(&s->reach, SIGKILL);
    }
    if (s->reach.alive == 0 && !has_job(s)) {
        ending_step(&s->ending, ENDING_ALL_GONE, gpul_clock_ms());
    }
    session_look_at_readers(s);
    arm(s);
    close_if_over(s);
}

/* ---- children ------------------------------------------------------------ */

/* A joined one is no news to the coordinator only if it left when told to. */
static void tell_deaths(struct session *s)
{
    for (uint32_t i = 0; i < s->reach.worker_count; i++) {
        struct reach_child *worker = &s->reach.workers[i];
        if (!worker->has_ended || worker->is_told) {
            continue;
        }
        worker->is_told = true;
        if (s->record.end != NULL) {
            continue;
        }
        struct gpul_buf words;
        gpul_buf_init(&words, WORDS_BYTES_MAX);
        Gpul__NodeGone__Why why = reach_describe_worker(&s->reach, &words, i);
        session_node_gone(s, i, why, gpul_buf_text(&words));
        gpul_buf_release(&words);
    }
}

/* It said itself that it cannot go on: out of memory, say. */
static bool has_given_up(const struct reach_child *coordinator)
{
    return WIFEXITED(coordinator->status) &&
           WEXITSTATUS(coordinator->status) == SESSION_EXIT_INTERNAL;
}

/* Without its JobEnd the coordinator has failed, whatever its status. */
void session_judge_coordinator(struct session *s)
{
    struct reach_child *coordinator = &s->reach.coordinator;
    if (!coordinator->has_ended || s->desk != NULL || s->record.end != NULL) {
        return;
    }
    struct gpul_buf words;
    gpul_buf_init(&words, WORDS_BYTES_MAX);
    gpul_buf_append_text(&words, "the coordinator was lost: it ");
    reach_describe_coordinator(&s->reach, &words);
    bool is_own = has_given_up(coordinator);
    session_end_by_ourselves(
        s, is_own ? SESSION_EXIT_INTERNAL : SESSION_EXIT_LOST,
        is_own ? "internal" : "coordinator_lost", gpul_buf_text(&words));
    gpul_buf_release(&words);
}

/* A session that ends says nothing of a node that lives elsewhere. */
void session_nodes_changed(struct session *s)
{
    tell_deaths(s);
    session_judge_coordinator(s);
    if (s->reach.way->is_node_child && !reach_has_workers(&s->reach)) {
        session_step(s, ENDING_WORKERS_GONE);
    } else if (s->reach.alive == 0) {
        session_step(s, ENDING_TICK);
    }
}

void session_reap(struct session *s)
{
    if (reach_reap(&s->reach)) {
        session_nodes_changed(s);
    }
}

/* ---- output -------------------------------------------------------------- */

/* Lost output stops a job whose reader has gone, as a pipe does everywhere;
 * any other loss, and one after the job's end, only keeps it from counting as
 * a success. To be called after whatever writes. */

void session_check_output(struct session *s)
{
    int why = console_stdout_error(s->console);
    if (why == 0 || s->is_closing || s->lost_output != 0) {
        return;
    }
    s->lost_output = why;
    s->is_loss_late = s->record.end != NULL;
    if (s->is_loss_late) {
        session_say_loss(s);
    } else if (why == EPIPE) {
        session_step(s, ENDING_SIGNAL);
    } else {
        progress_fault(&s->progress,
                       "cannot write to standard output: %s; the job goes on "
                       "without it",
                       strerror(why));
    }
}

/* ---- watching ------------------------------------------------------------ */

static void on_prepare(uv_prepare_t *prepare)
{
    session_send_credits(prepare->data);
    session_suspend_if_told(prepare->data);
}

int session_watch(struct session *s, struct gpul_error *err)
{
    int rc = session_watch_signals(s);
    if (rc != 0) {
        return gpul_fail(err, GPUL_ESYS, "cannot watch signals: %s",
                         uv_strerror(rc));
    }
    uv_timer_init(&s->loop, &s->timer);
    s->timer.data = s;
    uv_prepare_init(&s->loop, &s->prepare);
    s->prepare.data = s;
    uv_prepare_start(&s->prepare, on_prepare);
    uv_unref((uv_handle_t *)&s->prepare);
    arm(s);
    return 0;
}
