/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/probe_gpu.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "common/clock.h"
#include "proto/limits.h"
#include "proto/text.h"
#include "worker/gpu_comm.h"
#include "worker/gpu_env.h"
#include "worker/probe_result.h"
#include "worker/probe_work.h"
#include "worker/wait.h"

extern char **environ;

enum {
    /* The coordinator knows who is missing; its word comes first. */
    SLACK_MS = 5000,
    TELL_EVERY_MS = 1000,
    /* A wait for others takes less, as a rule. */
    ASK_AFTER_MS = 500,
    /* How it is, in eighths of a phase's bound: the first, then each. */
    REPORT_FROM = 3,
    REPORT_PARTS = 8,
    /* A thread that was told to stop and is not in a call does so at once. */
    REST_MS = 300,
    DOING_BYTES = WORK_TEXT_BYTES + GPU_WORDS_BYTES + 16,
};

enum outcome {
    GOES_ON,
    IS_DONE,
    IS_STOPPED, /* by the agent */
    IS_ALONE,   /* the agent has gone */
    HAS_FAILED, /* a deadline, or a frame that makes no sense */
};

struct probe {
    struct probe_channel *channel;
    const Gpul__ProbeBegin *begin;
    struct probe_work work;
    pthread_t thread;
    size_t news_told;
    Gpul__ProbePhase__Phase told; /* the last phase that is behind us */
    char doing_told[DOING_BYTES];
    uint64_t tell_ms; /* when to look whether what it does has changed */
    enum work_phase phase;
    uint64_t phase_deadline_ms;
    uint64_t report_ms; /* when to say how it is in any case */
    uint64_t report_every_ms;
};

/* A copy of what the working thread says of itself. */
struct view {
    enum work_phase phase;
    char doing[DOING_BYTES];
    struct gpu_pulse_view pulse;
    size_t news_count;
    bool is_done;
};

/* Of a thread that waits the device is asked whether it is well. */
static void look_at_pulse(struct probe *p, struct gpu_pulse_view *view,
                          uint64_t now_ms)
{
    gpu_pulse_look(&p->work.gpu.pulse, view, now_ms);
    if (view->state != GPUL__PROBE_PHASE__STATE__STATE_WAITS) {
        return;
    }
    if (gpu_echo_is_due(&p->work.echo, now_ms)) {
        view->state = GPUL__PROBE_PHASE__STATE__STATE_DEAF;
    } else if (view->since_ms >= ASK_AFTER_MS) {
        gpu_echo_ask(&p->work.echo, now_ms);
    }
}

static void look(struct probe *p, struct view *view)
{
    pthread_mutex_lock(&p->work.lock);
    view->phase = p->work.phase;
    snprintf(view->doing, sizeof(view->doing), "%s%s%s", p->work.doing,
             p->work.words[0] != 0 ? "; NCCL: " : "", p->work.words);
    view->news_count = p->work.news_count; /* told ones do not change */
    view->is_done = p->work.is_done;
    pthread_mutex_unlock(&p->work.lock);
    look_at_pulse(p, &view->pulse, gpul_clock_ms());
}

/* ---- to the agent -------------------------------------------------------- */

static int tell_phase(struct probe *p, Gpul__ProbePhase__Phase phase,
                      const struct view *view, struct gpul_error *err)
{
    char call[GPUL_CALL_BYTES_MAX + 1];
    p->told = phase;
    snprintf(p->doing_told, sizeof(p->doing_told), "%s", view->doing);
    snprintf(call, sizeof(call), "%s", view->pulse.call);
    Gpul__ProbePhase message = GPUL__PROBE_PHASE__INIT;
    message.probe_rank = p->begin->first_rank;
    message.phase = phase;
    message.text = p->doing_told;
    message.state = view->pulse.state;
    message.call = call;
    message.since_ms = view->pulse.since_ms;
    message.progress = view->pulse.progress;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_PROBE_PHASE;
    frame.probe_phase = &message;
    return probe_channel_write(p->channel, &frame, err);
}

static int tell_id(struct probe *p, struct work_news *news,
                   struct gpul_error *err)
{
    Gpul__ProbeId message = GPUL__PROBE_ID__INIT;
    message.index = news->id_index;
    message.id.data = (uint8_t *)news->id.internal;
    message.id.len = sizeof(news->id.internal);
    message.address = news->address;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_PROBE_ID;
    frame.probe_id = &message;
    return probe_channel_write(p->channel, &frame, err);
}

static int tell_news(struct probe *p, const struct view *view,
                     struct gpul_error *err)
{
    int status = 0;
    while (p->news_told < view->news_count && status == 0) {
        struct work_news *news = &p->work.news[p->news_told++];
        status = news->is_id ? tell_id(p, news, err)
                             : tell_phase(p, news->done, view, err);
    }
    return status;
}

/* What takes longer than a second is worth a word, and what takes most of its
 * time is worth several. */
static int tell_doing(struct probe *p, const struct view *view, uint64_t now_ms,
                      struct gpul_error *err)
{
    bool is_due = now_ms >= p->report_ms;
    if (is_due) {
        p->report_ms = now_ms + p->report_every_ms;
    }
    if (now_ms >= p->tell_ms) {
        p->tell_ms = now_ms + TELL_EVERY_MS;
        is_due = is_due || strcmp(view->doing, p->doing_told) != 0;
    }
    return is_due ? tell_phase(p, p->told, view, err) : 0;
}

/* ---- from the agent ------------------------------------------------------ */

/* Returns 1 when it said Stop, 0, or a failure. */
static int take_frames(struct probe *p, struct gpul_error *err)
{
    static const uint64_t allowed =
        GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_PROBE_IDS) |
        GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_STOP);
    for (;;) {
        Gpul__Frame *frame;
        int status = probe_channel_take(p->channel, &frame, allowed, err);
        if (status <= 0) {
            return status;
        }
        bool is_stop = frame->body_case == GPUL__FRAME__BODY_STOP;
        status = is_stop;
        if (!is_stop && frame->generation == p->channel->generation) {
            status = probe_work_give_ids(&p->work, frame->probe_ids, err);
        }
        gpul_message_release(frame);
        if (status != 0) {
            return status;
        }
    }
}

/* ---- the deadlines ------------------------------------------------------- */

static void watch_phase(struct probe *p, enum work_phase phase, uint64_t now_ms)
{
    const Gpul__SelfTest *test = p->begin->self_test;
    if (phase == p->phase && p->phase_deadline_ms != 0) {
        return;
    }
    uint64_t bound_ms =
        phase == WORK_COLL ? test->run_deadline_ms : test->listen_deadline_ms;
    p->phase = phase;
    p->report_every_ms = bound_ms / REPORT_PARTS + 1;
    p->report_ms = now_ms + REPORT_FROM * p->report_every_ms;
    /* The last context may be there only when its phase is almost over. */
    p->phase_deadline_ms =
        now_ms + SLACK_MS + (phase == WORK_UID ? 2 * bound_ms : bound_ms);
}

static int wait_event(struct probe *p, uint64_t now_ms, struct gpul_error *err)
{
    struct pollfd fds[] = {
        {.fd = p->channel->fd, .events = POLLIN},
        {.fd = p->work.wake_fd, .events = POLLIN},
    };
    uint64_t until_ms =
        p->tell_ms < p->phase_deadline_ms ? p->tell_ms : p->phase_deadline_ms;
    until_ms = p->report_ms < until_ms ? p->report_ms : until_ms;
    if (until_ms <= now_ms) {
        until_ms = now_ms + 1;
    }
    int status = wait_any(fds, 2, until_ms, err);
    if (fds[1].revents != 0) {
        eventfd_t count;
        (void)!eventfd_read(p->work.wake_fd, &count);
    }
    return status == GPUL_ETIMEOUT ? 0 : status;
}

/* ---- the loop ------------------------------------------------------------ */

/* One round; *err is set where the agent has gone or something failed. */
static enum outcome turn(struct probe *p, struct gpul_error *err)
{
    struct view view;
    look(p, &view);
    uint64_t now_ms = gpul_clock_ms();
    watch_phase(p, view.phase, now_ms);
    int status = tell_news(p, &view, err);
    if (status == 0 && view.is_done) {
        return IS_DONE;
    }
    if (status == 0) {
        status = tell_doing(p, &view, now_ms, err);
    }
    if (status == 0 && now_ms >= p->phase_deadline_ms) {
        status =
            gpul_fail(err, GPUL_ETIMEOUT, "deadline reached: %s", view.doing);
    }
    if (status == 0) {
        status = wait_event(p, now_ms, err);
    }
    if (status == 0) {
        status = take_frames(p, err);
    }
    if (status >= 0) {
        return status == 0 ? GOES_ON : IS_STOPPED;
    }
    return status == GPUL_ECLOSED ? IS_ALONE : HAS_FAILED;
}

static int tell_result(struct probe *p, const struct gpul_error *why,
                       struct gpul_error *err)
{
    struct view view;
    look(p, &view);
    const struct probe_ending ending = {
        .why = why,
        .phase = work_phase_name(view.phase),
        .is_done = view.is_done,
        .has_waited = view.pulse.state == GPUL__PROBE_PHASE__STATE__STATE_WAITS,
    };
    return probe_result_tell(p->channel, p->begin, &p->work, &ending, err);
}

/* ---- the end ------------------------------------------------------------- */

struct abortion {
    struct gpu *gpu;
    int done_fd;
};

static void *run_abort(void *arg)
{
    struct abortion *a = arg;
    gpu_comm_abort(a->gpu);
    (void)!eventfd_write(a->done_fd, 1);
    return NULL;
}

/* Wait for the working thread to come to its end; false at the deadline. */
static bool wait_rest(struct probe *p, uint64_t deadline_ms)
{
    struct view view;
    struct pollfd fd = {.fd = p->work.wake_fd, .events = POLLIN};
    for (look(p, &view); !view.is_done; look(p, &view)) {
        eventfd_t count;
        if (wait_any(&fd, 1, deadline_ms, NULL) != 0) {
            return false;
        }
        (void)!eventfd_read(p->work.wake_fd, &count);
    }
    return true;
}

/* Let go of the other ranks. Whatever still hangs here ends with the process:
 * so nothing that the threads use is given back. */
static void leave(struct probe *p)
{
    static struct abortion abortion; /* outlives this function */
    uint64_t deadline_ms = gpul_clock_ms() + p->begin->abort_deadline_ms;
    uint64_t rest_ms = gpul_clock_ms() + REST_MS;
    pthread_t thread;
    probe_work_stop(&p->work);
    if (wait_rest(p, rest_ms < deadline_ms ? rest_ms : deadline_ms)) {
        pthread_join(p->thread, NULL);
    } else {
        pthread_detach(p->thread);
    }
    abortion.gpu = &p->work.gpu;
    abortion.done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (atomic_load(&p->work.gpu.comm) == NULL || abortion.done_fd < 0 ||
        pthread_create(&thread, NULL, run_abort, &abortion) != 0) {
        return;
    }
    pthread_detach(thread);
    struct pollfd fd = {.fd = abortion.done_fd, .events = POLLIN};
    (void)wait_any(&fd, 1, deadline_ms, NULL);
}

static int finish(struct probe *p, struct gpul_error *err)
{
    pthread_join(p->thread, NULL);
    int status = tell_result(p, NULL, err);
    probe_work_release(&p->work);
    free(p);
    return status;
}

static int run(struct probe *p, struct gpul_error *err)
{
    struct gpul_error why = {0};
    enum outcome outcome;
    int status = 0;
    do {
        outcome = turn(p, &why);
    } while (outcome == GOES_ON);
    if (outcome == IS_DONE && p->work.status == 0) {
        return finish(p, err);
    }
    if (outcome == IS_ALONE) {
        status = gpul_fail(err, why.status, "%s", why.text);
    } else if (outcome != IS_STOPPED) {
        status =
            tell_result(p, outcome == IS_DONE ? &p->work.error : &why, err);
    }
    leave(p);
    return status;
}

/* While there is one thread only. */
static int set_environment(const Gpul__ProbeBegin *begin,
                           struct gpul_error *err)
{
    struct gpu_env_addition additions[GPU_ENV_ADDITIONS_MAX];
    size_t count = gpu_env_additions(additions, (const char *const *)environ,
                                     begin->interface, begin->debug_file);
    for (size_t i = 0; i < count; i++) {
        if (setenv(additions[i].name, additions[i].value, 1) != 0) {
            return gpul_fail_errno(err, errno, "%s", additions[i].name);
        }
    }
    return 0;
}

static int start(struct probe *p, const char *command, struct gpul_error *err)
{
    int status = set_environment(p->begin, err);
    if (status == 0) {
        status = probe_work_init(&p->work, p->begin, command, err);
    }
    if (status != 0) {
        return status;
    }
    status = probe_work_start(&p->work, &p->thread, err);
    if (status != 0) {
        probe_work_release(&p->work);
    }
    return status;
}

int probe_gpu_serve(struct probe_channel *channel,
                    const Gpul__ProbeBegin *begin, const char *command,
                    struct gpul_error *err)
{
    if (begin->self_test == NULL) {
        return gpul_fail(err, GPUL_EPROTO, "ProbeBegin without a self-test");
    }
    struct probe *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "no memory for the probe");
    }
    p->channel = channel;
    p->begin = begin;
    p->tell_ms = gpul_clock_ms() + TELL_EVERY_MS;
    int status = start(p, command, err);
    if (status != 0) {
        free(p);
        return status;
    }
    return run(p, err);
}
