/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/trialrun.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "worker/trialsocket.h"
#include "worker/wait.h"

enum {
    READ_BYTES = 256 << 10,
    /* Who is dialled waits longer than a dial may take, since the two nodes do
     * not begin at the same time. */
    CALL_MARGIN_MS = 1000,
    /* The end of the second way, seen from the first. */
    FLOW_MS = 2000,
    NS_PER_MS = 1000000,
    PERCENT = 100,
};

struct run {
    const struct trialrun_order *order;
    uint64_t deadline_ms; /* of the way under way */
    struct trialrun_way *way;
    uint8_t *bytes; /* READ_BYTES, to receive into */
    struct gpul_error *err;
    /* Of the flow. */
    bool is_flowing;
    bool knows_busy;
    uint64_t busy_ns; /* at its beginning */
    uint64_t flow_ns; /* when that was */
};

/* ---- what a way is judged by --------------------------------------------- */

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
}

static void fail(struct run *r, Gpul__TrialWay__Failure failure,
                 const char *format, ...) __attribute__((format(printf, 3, 4)));

static void fail(struct run *r, Gpul__TrialWay__Failure failure,
                 const char *format, ...)
{
    struct trial *t = &r->way->trial;
    va_list args;
    va_start(args, format);
    vsnprintf(t->text, sizeof(t->text), format, args);
    va_end(args);
    t->state = TRIAL_FAILED;
    t->failure = failure;
}

/* The flow begins, and has ended. */
static void begin_flow(struct run *r, int fd)
{
    Gpul__TrialWay *m = &r->way->message;
    r->is_flowing = true;
    trialsocket_segments(fd, m);
    m->lone_retransmits = m->retransmits;
    r->knows_busy = trialsocket_busy(&r->busy_ns);
    r->flow_ns = gpul_clock_ns();
}

static void end_flow(struct run *r, int fd)
{
    uint64_t busy_ns;
    if (!r->is_flowing) {
        return;
    }
    r->is_flowing = false;
    trialsocket_segments(fd, &r->way->message);
    uint64_t wall_ns = gpul_clock_ns() - r->flow_ns;
    if (r->knows_busy && wall_ns > 0 && trialsocket_busy(&busy_ns)) {
        uint64_t percent = (busy_ns - r->busy_ns) * PERCENT / wall_ns;
        r->way->message.busy_percent =
            percent < PERCENT ? (uint32_t)percent : PERCENT;
    }
}

/* ---- a connection -------------------------------------------------------- */

/* Returns whether anything moved. */
static bool send_some(struct trial *t, int fd)
{
    const uint8_t *bytes;
    size_t n = trial_output(t, &bytes);
    if (n == 0) {
        return false;
    }
    ssize_t sent = send(fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) {
        trial_wrote(t, (size_t)sent, gpul_clock_ns());
        return sent > 0;
    }
    if (errno != EAGAIN && errno != EINTR) {
        trial_closed(t, strerror(errno));
    }
    return false;
}

static bool receive_some(const struct run *r, struct trial *t, int fd)
{
    ssize_t n = recv(fd, r->bytes, READ_BYTES, MSG_DONTWAIT);
    if (n > 0) {
        trial_input(t, r->bytes, (size_t)n, gpul_clock_ns());
        return true;
    }
    if (n == 0) {
        trial_closed(t, "the peer closed the connection");
    } else if (errno != EAGAIN && errno != EINTR) {
        trial_closed(t, strerror(errno));
    }
    return false;
}

/* Neither moves: wait until one can, or the trial's own time has come. */
static int wait_turn(struct run *r, int fd)
{
    struct trial *t = &r->way->trial;
    const uint8_t *bytes;
    bool wants_room = trial_output(t, &bytes) > 0;
    struct pollfd fds[] = {
        {.fd = r->order->watch_fd, .events = POLLIN},
        {.fd = fd, .events = wants_room ? POLLIN | POLLOUT : POLLIN},
    };
    uint64_t until_ms = r->deadline_ms;
    uint64_t next_ns = trial_next_ns(t);
    if (next_ns != UINT64_MAX) {
        uint64_t now_ns = gpul_clock_ns();
        uint64_t left_ns = next_ns > now_ns ? next_ns - now_ns : 0;
        uint64_t next_ms = gpul_clock_ms() + 1 + left_ns / NS_PER_MS;
        until_ms = next_ms < until_ms ? next_ms : until_ms;
    }
    int rc = wait_watched(fds, 2, until_ms, r->err);
    if (rc != GPUL_ETIMEOUT) {
        return rc;
    }
    trial_tick(t, gpul_clock_ns());
    return 0;
}

static int converse(struct run *r, int fd)
{
    struct trial *t = &r->way->trial;
    int rc = 0;
    while (rc == 0 && !trial_is_over(t)) {
        if (!r->is_flowing && t->state == TRIAL_FLOW) {
            begin_flow(r, fd);
        }
        bool has_sent = send_some(t, fd);
        bool has_received = !trial_is_over(t) && receive_some(r, t, fd);
        if (gpul_clock_ms() >= r->deadline_ms) {
            trial_timeout(t);
        } else if (!has_sent && !has_received && !trial_is_over(t)) {
            rc = wait_turn(r, fd);
        }
    }
    end_flow(r, fd);
    return rc;
}

/* ---- the way on which we dial -------------------------------------------- */

static void judge_dial(struct run *r, int errno_value)
{
    const struct trialrun_order *o = r->order;
    fail(r,
         errno_value == ECONNREFUSED ? GPUL__TRIAL_WAY__FAILURE__REFUSED
                                     : GPUL__TRIAL_WAY__FAILURE__UNREACHABLE,
         "dialling %s, port %u: %s", o->peer_address, o->peer_port,
         strerror(errno_value));
}

/* A connection under way, on *fd. False: it has failed at once. */
static bool start_dial(struct run *r, int *fd)
{
    const struct trialrun_order *o = r->order;
    *fd = trialsocket_dial(o->address, o->peer_address, o->peer_port);
    if (*fd < 0) {
        judge_dial(r, errno);
        return false;
    }
    return true;
}

static void judge_connected(struct run *r, int *fd)
{
    int failure = 0;
    socklen_t bytes = sizeof(failure);
    getsockopt(*fd, SOL_SOCKET, SO_ERROR, &failure, &bytes);
    if (failure != 0) {
        judge_dial(r, failure);
        close_fd(fd);
    }
}

/* *fd is -1 if it has come to nothing, which is told in the way. */
static int dial(struct run *r, int *fd)
{
    const struct trialrun_order *o = r->order;
    uint64_t end_ms = gpul_clock_ms() + TRIALRUN_CONNECT_MS;
    end_ms = end_ms < r->deadline_ms ? end_ms : r->deadline_ms;
    while (start_dial(r, fd)) {
        struct pollfd fds[] = {{.fd = o->watch_fd, .events = POLLIN},
                               {.fd = *fd, .events = POLLOUT}};
        uint64_t again_ms = gpul_clock_ms() + TRIALRUN_REDIAL_MS;
        int rc =
            wait_watched(fds, 2, again_ms < end_ms ? again_ms : end_ms, r->err);
        if (rc == 0) {
            judge_connected(r, fd);
            return 0;
        }
        close_fd(fd);
        if (rc != GPUL_ETIMEOUT) {
            return rc;
        }
        if (gpul_clock_ms() >= end_ms) {
            fail(r, GPUL__TRIAL_WAY__FAILURE__NO_CONNECTION,
                 "no connection to %s, port %u, within %d s", o->peer_address,
                 o->peer_port, TRIALRUN_CONNECT_MS / 1000);
            return 0;
        }
    }
    return 0;
}

static int run_sending(struct run *r)
{
    struct trial_plan plan = r->order->plan;
    int fd = -1;
    plan.is_dialler = true;
    int rc = dial(r, &fd);
    if (rc == 0 && fd >= 0) {
        trial_init(&r->way->trial, &plan, gpul_clock_ns());
        rc = converse(r, fd);
    }
    close_fd(&fd);
    return rc;
}

/* ---- the way on which we are dialled ------------------------------------- */

struct caller {
    int fd;
    struct trial trial;
};

struct callers {
    struct caller all[TRIALRUN_CALLERS_MAX]; /* oldest first */
    size_t count;
};

static void remove_caller(struct callers *c, size_t i)
{
    c->count--;
    memmove(&c->all[i], &c->all[i + 1], (c->count - i) * sizeof(c->all[0]));
}

static void let_in(struct run *r, struct callers *c)
{
    struct trial_plan plan = r->order->plan;
    int fd =
        accept4(r->order->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        return; /* gone again; the deadline bounds how often */
    }
    if (c->count == TRIALRUN_CALLERS_MAX) {
        close(c->all[0].fd);
        remove_caller(c, 0);
    }
    plan.is_dialler = false;
    struct caller *caller = &c->all[c->count++];
    caller->fd = fd;
    trial_init(&caller->trial, &plan, gpul_clock_ns());
}

/* Hear caller i. Returns its descriptor if it is the peer, else -1. */
static int hear(struct run *r, struct callers *c, size_t i)
{
    struct caller *caller = &c->all[i];
    int fd = caller->fd;
    receive_some(r, &caller->trial, fd);
    if (caller->trial.state == TRIAL_HELLO) {
        return -1;
    }
    if (caller->trial.state == TRIAL_FAILED) {
        close(fd);
        fd = -1;
    } else {
        r->way->trial = caller->trial;
    }
    remove_caller(c, i);
    return fd;
}

/* One look at all who have something to say. */
static int serve_callers(struct run *r, struct callers *c, int *fd,
                         uint64_t end_ms)
{
    struct pollfd fds[2 + TRIALRUN_CALLERS_MAX] = {
        {.fd = r->order->watch_fd, .events = POLLIN},
        {.fd = r->order->listen_fd, .events = POLLIN},
    };
    size_t count = c->count;
    for (size_t i = 0; i < count; i++) {
        fds[2 + i] = (struct pollfd){.fd = c->all[i].fd, .events = POLLIN};
    }
    int rc = wait_watched(fds, 2 + count, end_ms, r->err);
    if (rc != 0) {
        return rc;
    }
    /* From the last to the first: who leaves moves only those behind. */
    for (size_t i = count; i > 0 && *fd < 0; i--) {
        if (fds[1 + i].revents != 0) {
            *fd = hear(r, c, i - 1);
        }
    }
    if (*fd < 0 && fds[1].revents != 0) {
        let_in(r, c);
    }
    return 0;
}

/* *fd is -1 if nobody has called, which is told in the way. */
static int await_caller(struct run *r, int *fd, uint64_t end_ms)
{
    struct callers callers = {.count = 0};
    int rc = 0;
    while (rc == 0 && *fd < 0) {
        rc = serve_callers(r, &callers, fd, end_ms);
    }
    for (size_t i = 0; i < callers.count; i++) {
        close(callers.all[i].fd);
    }
    if (rc == GPUL_ETIMEOUT) {
        fail(r, GPUL__TRIAL_WAY__FAILURE__NO_CALLER, "no dial of %s has come",
             r->order->peer_address);
        rc = 0;
    }
    return rc;
}

static int run_receiving(struct run *r, uint64_t end_ms)
{
    int fd = -1;
    int rc = await_caller(r, &fd, end_ms);
    if (rc == 0 && fd >= 0) {
        rc = converse(r, fd);
    }
    close_fd(&fd);
    return rc;
}

/* ---- both ---------------------------------------------------------------- */

static int run_way(struct run *r, bool is_sending, uint64_t end_ms)
{
    gpul__trial_way__init(&r->way->message);
    r->way->trial = (struct trial){0};
    r->is_flowing = false;
    int rc = is_sending ? run_sending(r) : run_receiving(r, end_ms);
    trial_fill(&r->way->trial, &r->way->message);
    return rc;
}

static int run_both(struct run *r, struct trialrun_result *out)
{
    const struct trialrun_order *order = r->order;
    uint64_t now_ms = gpul_clock_ms();
    uint64_t end_ms = now_ms + order->deadline_ms;
    uint64_t half_ms = now_ms + order->deadline_ms / 2;
    for (int turn = 0; turn < 2; turn++) {
        bool is_first = turn == 0;
        bool is_sending = is_first == order->dials_first;
        /* In the second turn the peer may still wait for the end of its own
         * first one. */
        uint64_t call_ms = is_first
                               ? now_ms + TRIALRUN_CONNECT_MS + CALL_MARGIN_MS
                               : end_ms - FLOW_MS;
        r->deadline_ms = is_first ? half_ms : end_ms;
        r->way = is_sending ? &out->sending : &out->receiving;
        call_ms = call_ms < r->deadline_ms ? call_ms : r->deadline_ms;
        int rc = run_way(r, is_sending, call_ms);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

int trialrun(struct trialrun_result *out, const struct trialrun_order *order,
             struct gpul_error *err)
{
    struct run r = {.order = order, .bytes = malloc(READ_BYTES), .err = err};
    int rc = r.bytes == NULL
                 ? gpul_fail(err, GPUL_ENOMEM, "no memory for a trial")
                 : run_both(&r, out);
    free(r.bytes);
    return rc;
}
