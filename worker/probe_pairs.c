/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/probe_pairs.h"

#include <stdlib.h>
#include <unistd.h>

#include "common/clock.h"
#include "proto/limits.h"
#include "worker/trialrun.h"
#include "worker/trialsocket.h"

struct rail {
    int fd;
    uint16_t port;
};

struct probe {
    struct probe_channel *channel;
    const Gpul__PairStart *start;
    struct rail rails[GPUL_RAILS_MAX];
    size_t rail_count;
    struct trialrun_result result; /* large */
};

static void close_rails(struct probe *p)
{
    for (size_t i = 0; i < p->rail_count; i++) {
        close(p->rails[i].fd);
    }
    p->rail_count = 0;
}

static int open_rails(struct probe *p, struct gpul_error *why)
{
    for (size_t i = 0; i < p->start->n_addresses; i++) {
        struct rail *rail = &p->rails[i];
        rail->fd = trialsocket_listen(p->start->addresses[i], &rail->port, why);
        if (rail->fd < 0) {
            int rc = rail->fd;
            close_rails(p);
            return rc;
        }
        p->rail_count++;
    }
    return 0;
}

static int tell_listening(struct probe *p, struct gpul_error *why,
                          struct gpul_error *err)
{
    uint32_t ports[GPUL_RAILS_MAX];
    Gpul__PairListening listening = GPUL__PAIR_LISTENING__INIT;
    for (size_t i = 0; i < p->rail_count; i++) {
        ports[i] = p->rails[i].port;
    }
    listening.ports = ports;
    listening.n_ports = p->rail_count;
    if (p->rail_count == 0) {
        listening.error = why->text;
    }
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_PAIR_LISTENING;
    frame.pair_listening = &listening;
    return probe_channel_write(p->channel, &frame, err);
}

static int tell_result(struct probe *p, uint32_t trial, struct gpul_error *err)
{
    Gpul__TrialResult result = GPUL__TRIAL_RESULT__INIT;
    result.trial = trial;
    result.sending = &p->result.sending.message;
    result.receiving = &p->result.receiving.message;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_TRIAL_RESULT;
    frame.trial_result = &result;
    return probe_channel_write(p->channel, &frame, err);
}

static int run_trial(struct probe *p, const Gpul__TrialStart *start,
                     struct gpul_error *err)
{
    if (start->rail >= p->rail_count) {
        return gpul_fail(err, GPUL_EPROTO, "a trial on rail %u of %zu",
                         start->rail, p->rail_count);
    }
    const struct trialrun_order order = {
        .watch_fd = p->channel->fd,
        .listen_fd = p->rails[start->rail].fd,
        .address = p->start->addresses[start->rail],
        .peer_address = start->peer_address,
        .peer_port = (uint16_t)start->peer_port,
        .dials_first = start->dials_first,
        .plan = {.token = start->token,
                 .self = p->start->node_rank,
                 .peer = start->peer_rank,
                 .run_ms = start->run_ms,
                 .bytes_max = start->bytes_max},
        .deadline_ms = start->deadline_ms,
    };
    int rc = trialrun(&p->result, &order, err);
    return rc == 0 ? tell_result(p, start->trial, err) : rc;
}

/* Orders, until there is no more: returns 0 at PairEnd. */
static int take_orders(struct probe *p, struct gpul_error *err)
{
    static const uint64_t allowed =
        GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_TRIAL_START) |
        GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_PAIR_END);
    for (;;) {
        Gpul__Frame *frame;
        int rc = probe_channel_read(p->channel, &frame, allowed,
                                    gpul_clock_ms() + p->start->idle_ms, err);
        if (rc != 0) {
            return gpul_wrap(err, rc, "waiting for the next trial");
        }
        bool is_end = frame->body_case == GPUL__FRAME__BODY_PAIR_END;
        rc = is_end ? 0 : run_trial(p, frame->trial_start, err);
        gpul_message_release(frame);
        if (is_end || rc != 0) {
            return rc;
        }
    }
}

int probe_pairs_serve(struct probe_channel *channel,
                      const Gpul__PairStart *start, struct gpul_error *err)
{
    struct gpul_error why;
    struct probe *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "no memory for trials");
    }
    p->channel = channel;
    p->start = start;
    int listening = open_rails(p, &why);
    int rc = tell_listening(p, &why, err);
    if (rc == 0 && listening == 0) {
        rc = take_orders(p, err);
    }
    close_rails(p);
    free(p);
    return rc;
}
