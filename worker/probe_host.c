/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/probe_host.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "common/clock.h"
#include "proto/limits.h"
#include "worker/pattern.h"

struct probe {
    struct probe_channel *channel;
    const char *phase; /* how far we got: "init" or "coll" */
    bool has_dialled;
    struct ringlink link;
    struct sweep_result result;
    sweep_fault_fn fault;
    void *fault_arg;
};

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
    return probe_channel_write(p->channel, &frame, err);
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
        .generation = p->channel->generation,
        .token = start->token,
        .left_name = start->left_name,
        .right_name = start->right_name,
    };
    ringlink_init(&p->link, &place, p->channel->fd);
    status = ringlink_listen(&p->link, start->address, &port, err);
    if (status == 0) {
        status = tell_listening(p, start->address, port, err);
    }
    if (status == 0) {
        status = probe_channel_read(
            p->channel, connect,
            GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_PROBE_CONNECT), deadline_ms,
            err);
        if (status == GPUL_ETIMEOUT) {
            gpul_wrap(err, status, "waiting for the address of the %s",
                      p->link.right_name);
        }
    }
    return status;
}

/* Steps 4 and 5. */
static int measure(struct probe *p, const Gpul__ProbeStart *start,
                   const Gpul__ProbeConnect *connect, struct gpul_error *err)
{
    uint64_t deadline_ms = gpul_clock_ms() + connect->deadline_ms;
    p->has_dialled = true;
    int status = ringlink_connect(&p->link, connect->address,
                                  (uint16_t)connect->port, deadline_ms, err);
    if (status != 0) {
        return status;
    }
    struct measure_plan plan;
    measure_plan_make(&plan, start->level, start->sweep);
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

/* Is the error about another probe, which can say better what happened? */
static bool tells_of_another(const struct probe *p, int status)
{
    return status == GPUL_ETIMEOUT ||
           (p->has_dialled &&
            (status == GPUL_ECLOSED || status == GPUL_EPROTO));
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
        result.is_remote = tells_of_another(p, why->status);
    }
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_PROBE_RESULT;
    frame.probe_result = &result;
    return probe_channel_write(p->channel, &frame, err);
}

int probe_host_serve(struct probe_channel *channel,
                     const Gpul__ProbeStart *start, sweep_fault_fn fault,
                     void *arg, struct gpul_error *err)
{
    static const struct ringlink_place nowhere = {.node_count = 2};
    struct probe p = {
        .channel = channel,
        .phase = "init",
        .fault = fault,
        .fault_arg = arg,
    };
    Gpul__Frame *connect = NULL;
    struct gpul_error why;
    ringlink_init(&p.link, &nowhere, channel->fd);
    int outcome = meet(&p, start, &connect, &why);
    if (outcome == 0) {
        outcome = measure(&p, start, connect->probe_connect, &why);
    }
    int status = tell_result(&p, outcome == 0 ? NULL : &why, err);
    gpul_message_release(connect);
    ringlink_release(&p.link);
    return status;
}
