/* SPDX-License-Identifier: Apache-2.0
 *
 * The signals of a session: some end the job, others are for the ranks.
 */
#include <signal.h>

#include "launcher/session_internal.h"
#include "launcher/signalplan.h"

static void on_child_signal(uv_signal_t *handle, int number)
{
    (void)number;
    session_reap(handle->data);
}

static void on_stop_signal(uv_signal_t *handle, int number)
{
    struct session *s = handle->data;
    if (s->stop_signal == 0) {
        s->stop_signal = number;
    }
    s->is_drain_cut = s->ending.phase == ENDING_GONE;
    session_step(s, ENDING_SIGNAL);
}

/* To the ranks, by way of the coordinator. */
static void pass_on(struct session *s, int number)
{
    Gpul__Signal signal = GPUL__SIGNAL__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    signal.signal = (uint32_t)number;
    frame.body_case = GPUL__FRAME__BODY_SIGNAL;
    frame.signal = &signal;
    if (s->desk != NULL) {
        gpul_transport_send(s->desk, &frame, NULL);
    }
}

static void on_passed_signal(uv_signal_t *handle, int number)
{
    pass_on(handle->data, number);
}

/* ---- job control --------------------------------------------------------- */

static void on_suspend_signal(uv_signal_t *handle, int number);

static volatile sig_atomic_t was_continued;

static void note_continued(int number)
{
    (void)number;
    was_continued = 1;
}

/* By the signal itself, at its default, as the shell knows it. Where no shell
 * looks after us (an orphaned process group) Linux ignores that one; whoever
 * sent it wants the job to stand still all the same. */
static void stand_still(void)
{
    const struct sigaction note = {.sa_handler = note_continued};
    struct sigaction before;
    was_continued = 0;
    sigaction(SIGCONT, &note, &before);
    signal(SIGTSTP, SIG_DFL);
    raise(SIGTSTP);
    if (!was_continued) {
        raise(SIGSTOP);
    }
    sigaction(SIGCONT, &before, NULL);
}

static void go_on(struct session *s)
{
    s->is_suspending = false;
    pass_on(s, SIGCONT);
    session_input_look_again(s);
    session_step(s, ENDING_TICK);
}

static void stop_ourselves(struct session *s)
{
    console_live(s->console, NULL, 0);
    uv_signal_stop(s->suspend);
    stand_still();
    uv_signal_start(s->suspend, on_suspend_signal, SIGTSTP);
    go_on(s);
}

void session_suspend_if_told(struct session *s)
{
    bool is_told = s->desk == NULL || gpul_transport_queued_bytes(s->desk) == 0;
    if (s->is_suspending && is_told) {
        stop_ourselves(s);
    }
}

/* The ranks first: what waits for the coordinator would wait as long as we.
 * The second time there is no more patience. */
static void on_suspend_signal(uv_signal_t *handle, int number)
{
    struct session *s = handle->data;
    if (s->is_suspending) {
        stop_ourselves(s);
        return;
    }
    pass_on(s, number);
    s->is_suspending = true;
    session_suspend_if_told(s);
}

static void on_continue_signal(uv_signal_t *handle, int number)
{
    (void)number;
    go_on(handle->data);
}

/* ---- watching ------------------------------------------------------------ */

static bool is_ignored(int number)
{
    struct sigaction now;
    return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

/* NULL: not watched. */
static uv_signal_cb handler_of(int number)
{
    static const uv_signal_cb handlers[] = {
        [SIGNAL_USE_STOP] = on_stop_signal,
        [SIGNAL_USE_SUSPEND] = on_suspend_signal,
        [SIGNAL_USE_CONTINUE] = on_continue_signal,
        [SIGNAL_USE_PASS] = on_passed_signal,
        [SIGNAL_USE_NONE] = NULL,
    };
    if (number == SIGCHLD) {
        return on_child_signal;
    }
    /* nohup and a shell's background jobs ignore some of them on purpose. */
    return is_ignored(number) ? NULL : handlers[signalplan_use(number)];
}

int session_watch_signals(struct session *s)
{
    int rc = 0;
    for (int number = 1; number <= SIGNALPLAN_MAX && rc == 0; number++) {
        uv_signal_cb handler = handler_of(number);
        if (handler == NULL) {
            continue;
        }
        uv_signal_t *handle = &s->signals[s->signal_count++];
        uv_signal_init(&s->loop, handle);
        handle->data = s;
        if (number == SIGTSTP) {
            s->suspend = handle;
        }
        rc = uv_signal_start(handle, handler, number);
    }
    return rc;
}

void session_close_signals(struct session *s)
{
    for (size_t i = 0; i < s->signal_count; i++) {
        uv_close((uv_handle_t *)&s->signals[i], NULL);
    }
}
