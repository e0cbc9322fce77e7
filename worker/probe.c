/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/probe.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "common/buf.h"
#include "common/clock.h"
#include "proto/frame.h"
#include "proto/limits.h"
#include "proto/message.h"
#include "worker/pattern.h"
#include "worker/wait.h"

enum {
    AGENT_FD = 3,
    /* The agent sends ProbeStart as soon as it has started us, and takes our
     * few frames as they come. */
    AGENT_DEADLINE_MS = 30000,
    EXIT_TOLD = 0,
    EXIT_NOT_TOLD = 125,
};

struct probe {
    int agent_fd;
    struct gpul_deframer in;
    uint32_t epoch; /* of the frame that started us; our answers carry them */
    uint32_t generation;
    const char *phase; /* how far we got: "init" or "coll" */
    struct ringlink link;
    struct sweep_result result;
    sweep_fault_fn fault;
    void *fault_arg;
};

/* ---- frames -------------------------------------------------------------- */

static int wait_agent(struct probe *p, short events, uint64_t deadline_ms,
                      struct gpul_error *err)
{
    struct pollfd fd = {.fd = p->agent_fd, .events = events};
    return wait_any(&fd, 1, deadline_ms, err);
}

static int read_some(struct probe *p, uint64_t deadline_ms,
                     struct gpul_error *err)
{
    int status = wait_agent(p, POLLIN, deadline_ms, err);
    if (status != 0) {
        return status;
    }
    uint8_t bytes[4096];
    ssize_t n = recv(p->agent_fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return 0;
    }
    if (n < 0) {
        return gpul_fail_errno(err, errno, "receive");
    }
    if (n == 0) {
        return gpul_fail(err, GPUL_ECLOSED, "the agent has gone");
    }
    return gpul_deframer_feed(&p->in, bytes, (size_t)n, err);
}

/* Wait for the one message that may come now; the caller releases it. */
static int read_message(struct probe *p, Gpul__Frame **out, uint64_t allowed,
                        uint64_t deadline_ms, struct gpul_error *err)
{
    const uint8_t *body;
    size_t n;
    *out = NULL;
    p->in.allowed = allowed;
    for (;;) {
        int status = gpul_deframer_next(&p->in, &body, &n, err);
        if (status == 1) {
            return gpul_message_decode(out, body, n, GPUL_PEER_AGENT, err);
        }
        if (status == 0) {
            status = read_some(p, deadline_ms, err);
        }
        if (status != 0) {
            return status;
        }
    }
}

static int write_all(struct probe *p, const uint8_t *bytes, size_t n,
                     struct gpul_error *err)
{
    uint64_t deadline_ms = gpul_clock_ms() + AGENT_DEADLINE_MS;
    for (size_t done = 0; done < n;) {
        int status = wait_agent(p, POLLOUT, deadline_ms, err);
        if (status != 0) {
            return status;
        }
        ssize_t sent = send(p->agent_fd, bytes + done, n - done,
                            MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno == EPIPE) {
            return gpul_fail(err, GPUL_ECLOSED, "the agent has gone");
        }
        if (sent < 0 && errno != EAGAIN && errno != EINTR) {
            return gpul_fail_errno(err, errno, "send");
        }
        done += sent < 0 ? 0 : (size_t)sent;
    }
    return 0;
}

static int write_message(struct probe *p, Gpul__Frame *frame,
                         struct gpul_error *err)
{
    struct gpul_buf out;
    gpul_buf_init(&out, GPUL_FRAME_BYTES_MAX + GPUL_FRAME_PREFIX_BYTES);
    frame->epoch = p->epoch;
    frame->generation = p->generation;
    int status = gpul_message_encode(&out, frame, err);
    if (status == 0) {
        status = write_all(p, out.data, out.used, err);
    }
    gpul_buf_release(&out);
    return status;
}

/* ---- the steps ----------------------------------------------------------- */

/* Decoding has seen to all else. */
static int check_start(const Gpul__ProbeStart *start, struct gpul_error *err)
{
    _Static_assert((int)GPUL_NODES_MAX <= (int)PATTERN_RANKS_MAX,
                   "sums of the largest job must be exact");
    if (start->node_count < 2) {
        return gpul_fail(err, GPUL_EINVAL,
                         "node rank %" PRIu32 " of %" PRIu32
                         " is no place in a ring",
                         start->node_rank, start->node_count);
    }
    return 0;
}

static int tell_listening(struct probe *p, char *address, uint16_t port,
                          struct gpul_error *err)
{
    Gpul__ProbeListening listening = GPUL__PROBE_LISTENING__INIT;
    listening.address = address;
    listening.port = port;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_PROBE_LISTENING;
    frame.probe_listening = &listening;
    return write_message(p, &frame, err);
}

/* Steps 2 and 3; *connect is the caller's. */
static int meet(struct probe *p, const Gpul__ProbeStart *start,
                Gpul__Frame **connect, struct gpul_error *err)
{
    uint64_t deadline_ms = gpul_clock_ms() + start->deadline_ms;
    uint16_t port;
    int status = check_start(start, err);
    if (status != 0) {
        return status;
    }
    struct ringlink_place place = {
        .rank = start->node_rank,
        .node_count = start->node_count,
        .generation = p->generation,
        .token = start->token,
    };
    ringlink_init(&p->link, &place, p->agent_fd);
    status = ringlink_listen(&p->link, start->address, &port, err);
    if (status == 0) {
        status = tell_listening(p, start->address, port, err);
    }
    if (status == 0) {
        status = read_message(p, connect,
                              GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_PROBE_CONNECT),
                              deadline_ms, err);
        if (status == GPUL_ETIMEOUT) {
            gpul_wrap(err, status, "waiting for the address of the %s",
                      p->link.right_name);
        }
    }
    return status;
}

/* Steps 4 and 5. */
static int measure(struct probe *p, Gpul__SelfTest__Level level,
                   const Gpul__ProbeConnect *connect, struct gpul_error *err)
{
    uint64_t deadline_ms = gpul_clock_ms() + connect->deadline_ms;
    int status = ringlink_connect(&p->link, connect->address,
                                  (uint16_t)connect->port, deadline_ms, err);
    if (status != 0) {
        return status;
    }
    struct measure_plan plan;
    if (level == GPUL__SELF_TEST__LEVEL__FULL) {
        measure_plan_full(&plan);
    } else {
        measure_plan_quick(&plan);
    }
    p->phase = "coll";
    return sweep_run(&p->result, &p->link, &plan, deadline_ms, p->fault,
                     p->fault_arg, err);
}

static Gpul__ProbeRow row_message(const struct sweep_row *row)
{
    Gpul__ProbeRow message = GPUL__PROBE_ROW__INIT;
    message.bytes = row->count * sizeof(float);
    message.count = row->count;
    message.iterations = row->iterations;
    message.min_ns = row->stats.min_ns;
    message.median_ns = row->stats.median_ns;
    message.max_ns = row->stats.max_ns;
    message.mean_ns = row->stats.mean_ns;
    message.wrong_elements = row->wrong_elements;
    return message;
}

/* Step 6; `why` is NULL after a sweep that came to its end. */
static int tell_result(struct probe *p, struct gpul_error *why,
                       struct gpul_error *err)
{
    _Static_assert((int)MEASURE_STEPS_MAX <= (int)GPUL_PROBE_ROWS_MAX,
                   "every row must fit one result");
    Gpul__ProbeRow rows[MEASURE_STEPS_MAX];
    Gpul__ProbeRow *pointers[MEASURE_STEPS_MAX];
    for (size_t i = 0; i < p->result.row_count; i++) {
        rows[i] = row_message(&p->result.rows[i]);
        pointers[i] = &rows[i];
    }
    char phase[8];
    snprintf(phase, sizeof(phase), "%s", p->phase);
    Gpul__ProbeResult result = GPUL__PROBE_RESULT__INIT;
    result.n_rows = p->result.row_count;
    result.rows = pointers;
    result.phase = phase;
    result.wrong_elements = p->result.wrong_elements;
    result.first_wrong_offset = p->result.first_wrong_index;
    result.first_wrong_bytes = p->result.first_wrong_bytes;
    if (why != NULL) {
        result.error = why->text;
    }
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_PROBE_RESULT;
    frame.probe_result = &result;
    return write_message(p, &frame, err);
}

/* From ProbeStart to ProbeResult. An error means: nobody was told. */
static int serve(struct probe *p, struct gpul_error *err)
{
    Gpul__Frame *start = NULL;
    Gpul__Frame *connect = NULL;
    struct gpul_error why;
    int status =
        read_message(p, &start, GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_PROBE_START),
                     gpul_clock_ms() + AGENT_DEADLINE_MS, err);
    if (status != 0) {
        return gpul_wrap(err, status, "waiting for ProbeStart");
    }
    p->epoch = start->epoch;
    p->generation = start->generation;
    int outcome = meet(p, start->probe_start, &connect, &why);
    if (outcome == 0) {
        outcome =
            measure(p, start->probe_start->level, connect->probe_connect, &why);
    }
    status = tell_result(p, outcome == 0 ? NULL : &why, err);
    gpul_message_release(connect);
    gpul_message_release(start);
    return status;
}

int probe_run(int agent_fd, sweep_fault_fn fault, void *arg)
{
    struct gpul_error err;
    static const struct ringlink_place nowhere = {.node_count = 2};
    struct probe p = {
        .agent_fd = agent_fd,
        .phase = "init",
        .fault = fault,
        .fault_arg = arg,
    };
    ringlink_init(&p.link, &nowhere, agent_fd);
    gpul_deframer_init(&p.in, GPUL_PEER_AGENT);
    int status = serve(&p, &err);
    if (status != 0 && status != GPUL_ECLOSED) {
        fprintf(stderr, "gpulaunch-worker probe: %s\n", err.text);
    }
    gpul_deframer_release(&p.in);
    ringlink_release(&p.link);
    return status == 0 ? EXIT_TOLD : EXIT_NOT_TOLD;
}

int probe_main(void)
{
    int type;
    socklen_t bytes = sizeof(type);
    if (getsockopt(AGENT_FD, SOL_SOCKET, SO_TYPE, &type, &bytes) != 0) {
        fprintf(stderr,
                "gpulaunch-worker probe: descriptor %d is not a "
                "socket; an agent starts this, not a user\n",
                AGENT_FD);
        return EXIT_NOT_TOLD;
    }
    /* The agent may be killed while we are in the middle of a piece. If it
     * is gone already, its end of descriptor 3 is closed. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return probe_run(AGENT_FD, NULL, NULL);
}
