/* SPDX-License-Identifier: Apache-2.0
 *
 * The front end's words: the job, once; then cancel, credit, signals, input,
 * news of workers.
 */
#include <signal.h>
#include <stdlib.h>

#include "common/signals.h"
#include "common/units.h"
#include "coordinator/core.h"

enum { SIGNAL_MAX = 64 };

static int init_peers(struct rendezvous *r, struct gpul_error *err)
{
    r->peer_count = r->job.node_count + PEERS_EXTRA;
    r->peers = calloc(r->peer_count, sizeof(*r->peers));
    if (r->peers == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory for %u connections",
                         r->peer_count);
    }
    int rc = guests_init(&r->guests, r->peer_count);
    if (rc == 0) {
        rc = gpul_minheap_init(&r->silences, r->peer_count);
    }
    return rc == 0 ? gpul_minheap_init(&r->aways, r->job.node_count) : rc;
}

/* One rank has a window of its own; every rank has what every node has. */
static int init_input(struct rendezvous *r, const Gpul__Job *message,
                      struct gpul_error *err)
{
    const Gpul__InputTarget *target =
        r->job.is_env ? NULL : message->input_target;
    bool is_all = target != NULL && target->is_all;
    int rc =
        input_init(&r->input, target, r->job.node_count,
                   is_all ? r->job.window_bytes : GPUL_INPUT_WINDOW_BYTES_MAX);
    return rc == 0 ? 0 : gpul_fail(err, rc, "out of memory for the input");
}

static void take_job(struct rendezvous *r, const Gpul__Job *message)
{
    struct gpul_error err = {0};
    int rc = job_init(&r->job, message, r->config.epoch, &err);
    if (rc == 0) {
        rc = roster_init(&r->roster, message, &err);
    }
    if (rc == 0) {
        rc = init_peers(r, &err);
    }
    if (rc == 0) {
        rc = init_input(r, message, &err);
    }
    if (rc == GPUL_ENOMEM) {
        outbox_fail(&r->out, rc, "out of memory for the job");
    } else if (rc != 0) {
        outcome_decide(&r->outcome, OUTCOME_INTERNAL, "usage", NULL, "%s",
                       err.text);
        ending_begin(r, 0);
    } else {
        core_enter(r, PHASE_GATHERING, r->job.join_timeout_ms,
                   "job %s wants nodes: %u", r->job.job_id, r->job.node_count);
        r->pending = r->roster.count;
        if (r->job.timeout_ms > 0) {
            r->job_deadline_ms = r->now_ms + r->job.timeout_ms;
        }
        if (r->job.warning_signal != 0) {
            r->warning_at_ms = r->job_deadline_ms - r->job.warning_ms;
        }
        outbox_listen(&r->out, r->peer_count, r->job.job_id);
    }
}

static void cancel(struct rendezvous *r, uint32_t signal, bool is_immediate,
                   bool is_timeout)
{
    if (signal == 0 || signal > SIGNAL_MAX) {
        signal = SIGTERM;
    }
    r->is_impatient = true;
    bool is_first = r->phase < PHASE_DRAINING;
    if (is_timeout) {
        char limit[UNITS_TEXT_BYTES];
        gpul_format_duration(limit, r->job.timeout_ms);
        outcome_decide(&r->outcome, OUTCOME_TIMEOUT, "timeout", NULL,
                       "the job reached its time limit%s%s",
                       r->job.timeout_ms > 0 ? " of " : "",
                       r->job.timeout_ms > 0 ? limit : "");
    } else {
        char name[GPUL_SIGNAL_TEXT_BYTES];
        outcome_decide(&r->outcome, OUTCOME_SIGNAL_BASE + signal, "canceled",
                       NULL, "canceled by %s",
                       gpul_format_signal(name, signal));
    }
    ending_begin(r, signal);
    if (is_immediate || !is_first) {
        ending_kill(r);
    }
}

static void node_gone(struct rendezvous *r, const Gpul__NodeGone *gone)
{
    struct node *node = roster_find(&r->roster, gone->node_name);
    if (node != NULL && r->phase < PHASE_DONE) {
        ending_node_gone(r, node, gone->why, gone->text);
    }
}

void operator_message(struct rendezvous *r, const Gpul__Frame *frame)
{
    switch (frame->body_case) {
    case GPUL__FRAME__BODY_JOB:
        if (r->phase == PHASE_START) {
            take_job(r, frame->job);
        }
        return;
    case GPUL__FRAME__BODY_CANCEL:
        cancel(r, frame->cancel->signal, frame->cancel->is_immediate,
               frame->cancel->is_timeout);
        return;
    case GPUL__FRAME__BODY_CREDIT:
        relay_credit(r, frame->credit);
        return;
    case GPUL__FRAME__BODY_SIGNAL:
        relay_signal(r, frame->signal->signal);
        return;
    case GPUL__FRAME__BODY_INPUT:
        relay_input(r, frame->input);
        return;
    case GPUL__FRAME__BODY_NODE_GONE:
        node_gone(r, frame->node_gone);
        return;
    default:
        return;
    }
}

void operator_closed(struct rendezvous *r)
{
    r->is_unheard = true;
    if (r->phase < PHASE_DONE) {
        outbox_log(&r->out, true, "the front end is gone; stopping the job");
        relay_discard(r);
        cancel(r, SIGTERM, false, false);
    }
}

void operator_timeout(struct rendezvous *r)
{
    r->job_deadline_ms = NEVER_MS;
    if (r->phase < PHASE_DRAINING) {
        cancel(r, SIGTERM, false, true);
    }
}
