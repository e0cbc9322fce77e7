/* SPDX-License-Identifier: Apache-2.0
 *
 * RUNNING (REPORTING in mode ENV): the command on every rank, the first
 * failure, the success rule.
 */
#include <assert.h>
#include <signal.h>
#include <stdlib.h>

#include "coordinator/core.h"

enum { WORD_BITS = 64 };

bool running_has_ended(const struct rendezvous *r, uint32_t rank)
{
    return (r->rank_ended[rank / WORD_BITS] >> (rank % WORD_BITS)) & 1u;
}

static void mark_ended(struct rendezvous *r, struct node *node, uint32_t rank)
{
    r->rank_ended[rank / WORD_BITS] |= UINT64_C(1) << (rank % WORD_BITS);
    assert(node->ranks_left > 0 && r->ranks_left > 0);
    node->ranks_left--;
    r->ranks_left--;
    stalls_ended(&r->stalls, rank);
}

/* How many reports, or exits, this node owes. */
static uint32_t ranks_owed(const struct rendezvous *r, const struct node *node)
{
    if (!r->job.is_env || r->job.reports_all_ranks) {
        return node->rank_count;
    }
    return node_has_rank(node, r->job.report_rank) ? 1 : 0;
}

static int reset_ranks(struct rendezvous *r)
{
    free(r->rank_ended);
    r->rank_ended = calloc(r->world_size / WORD_BITS + 1, sizeof(uint64_t));
    if (r->rank_ended == NULL ||
        stopped_reset(&r->stopped, r->world_size) != 0) {
        outbox_fail(&r->out, GPUL_ENOMEM, "out of memory for the ranks");
        return GPUL_ENOMEM;
    }
    r->ranks_left = 0;
    for (uint32_t i = 0; i < r->roster.count; i++) {
        struct node *node = &r->roster.nodes[i];
        node->ranks_left = ranks_owed(r, node);
        r->ranks_left += node->ranks_left;
        if (node->ranks_left == 0) {
            core_answer(r, node);
        }
    }
    r->deciders_left = 0;
    for (uint32_t rank = 0; rank < r->world_size; rank++) {
        r->deciders_left += gpul_rolemap_decides(&r->roles, rank);
    }
    return 0;
}

static void tell_launched(struct rendezvous *r)
{
    Gpul__Event event = GPUL__EVENT__INIT;
    event.kind = GPUL__EVENT__KIND__LAUNCHED;
    event.have = r->world_size;
    event.need = r->world_size;
    core_tell_event(r, &event);
}

static void fill_launch(Gpul__Frame *frame, Gpul__Launch *launch,
                        const struct rendezvous *r)
{
    gpul__launch__init(launch);
    launch->attempt = r->launches;
    *frame = core_frame(r);
    frame->body_case = GPUL__FRAME__BODY_LAUNCH;
    frame->launch = launch;
}

void running_begin(struct rendezvous *r, const char *why)
{
    Gpul__Launch launch;
    Gpul__Frame frame;
    assert(r->aways.count == 0);
    if (r->job.is_check) {
        checking_conclude(r);
        return;
    }
    if (r->job.is_env) {
        core_enter(r, PHASE_REPORTING, GPUL_READY_DEADLINE_MS, "%s", why);
    } else {
        core_enter(r, PHASE_RUNNING, NEVER_MS, "%s", why);
    }
    core_await_all(r);
    if (reset_ranks(r) != 0) {
        return;
    }
    stalls_release(&r->stalls);
    r->launches++;
    r->is_launched = true;
    fill_launch(&frame, &launch, r);
    core_send_all(r, &frame);
    if (!r->job.is_env) {
        tell_launched(r);
        relay_input_begin(r);
    }
}

void running_repeat(struct rendezvous *r, const struct node *node)
{
    Gpul__Launch launch;
    Gpul__Frame frame;
    outbox_send_bytes(&r->out, node->conn, &r->roster_frames);
    fill_launch(&frame, &launch, r);
    core_send(r, node, &frame);
}

static void avoid_port(struct rendezvous *r, uint32_t port)
{
    if (r->avoid_count < GPUL_AVOID_PORTS_MAX) {
        r->avoid_ports[r->avoid_count++] = port;
    }
}

/* Which port was taken is not known: avoid the rank's own and the ones that
 * belong to the node as a whole. */
static void avoid_ports_of(struct rendezvous *r, const struct node *node,
                           uint32_t rank)
{
    avoid_port(r, node->port_base + (rank - node->first_rank));
    for (uint32_t i = 0; i < GPUL_EXTRA_PORTS; i++) {
        avoid_port(r, node->port_base + node->rank_count + i);
    }
}

/* A node that was idle may have left already: then nobody can start again. */
static bool may_retry(const struct rendezvous *r, const struct node *node,
                      const Gpul__Exit *fate)
{
    return r->phase == PHASE_RUNNING && !r->has_retried &&
           r->roster.joined == r->roster.count &&
           input_may_begin_again(&r->input) && fate->is_bind_error &&
           exit_is_failure(fate) && node_has_rank(node, fate->rank) &&
           !running_has_ended(r, fate->rank);
}

static const Gpul__Exit *find_bind_error(const struct rendezvous *r,
                                         const struct node *node,
                                         const Gpul__Exits *exits)
{
    for (size_t i = 0; i < exits->n_exits; i++) {
        if (may_retry(r, node, exits->exits[i])) {
            return exits->exits[i];
        }
    }
    return NULL;
}

/* A port that was leased got lost before its rank bound it: nobody's fault,
 * and tried again once, whatever else ended with it. */
static void retry(struct rendezvous *r, const struct node *node,
                  const Gpul__Exit *fate)
{
    struct text why;
    text_format(&why, "a port that rank %u on node %s was given had been taken",
                fate->rank, node->name);
    r->has_retried = true;
    avoid_ports_of(r, node, fate->rank);
    ending_restart(r, why.bytes);
}

static void judge_success(struct rendezvous *r, uint32_t rank)
{
    if (!gpul_rolemap_decides(&r->roles, rank) || --r->deciders_left > 0) {
        return;
    }
    outcome_decide(&r->outcome, OUTCOME_SUCCESS, "success", NULL,
                   r->ranks_left == 0 ? "every rank ended with 0"
                                      : "every rank that decides ended with 0");
    ending_begin(r, r->ranks_left == 0 ? 0 : SIGTERM);
}

/* Would it have ended so if nobody had stopped it? Shells, and programs that
 * save their state first, say 128 + N. */
static bool is_by_stop(const struct rendezvous *r, const Gpul__Exit *fate)
{
    bool is_out_of_memory =
        fate->signal == SIGKILL &&
        fate->out_of_memory >= GPUL__EXIT__OUT_OF_MEMORY__CGROUP;
    if (fate->exec_errno != 0 || is_out_of_memory) {
        return false;
    }
    uint32_t signal = fate->signal;
    if (signal == 0 && fate->code > OUTCOME_SIGNAL_BASE) {
        signal = fate->code - OUTCOME_SIGNAL_BASE;
    }
    return signal == SIGTERM || signal == SIGKILL ||
           (signal != 0 && signal == r->stop.signal);
}

/* `was_stopping`: before the message that brought this. */
static void judge_exit(struct rendezvous *r, const struct node *node,
                       const Gpul__Exit *fate, bool was_stopping)
{
    bool is_open = r->phase == PHASE_RUNNING || r->phase == PHASE_REPORTING;
    if (r->phase == PHASE_RESTARTING) {
        return; /* it will run again */
    }
    if (exit_is_failure(fate) && was_stopping && is_by_stop(r, fate)) {
        stopped_add(&r->stopped, fate->rank);
        outcome_rank_stopped(&r->outcome, fate, r->now_ms);
    } else if (exit_is_failure(fate)) {
        outcome_rank_failed(&r->outcome, node, fate, r->now_ms);
        if (is_open) {
            ending_begin(r, SIGTERM);
        }
    } else if (r->phase == PHASE_RUNNING) {
        judge_success(r, fate->rank);
    }
}

static void tell_exits(struct rendezvous *r, const struct node *node)
{
    Gpul__Event event = GPUL__EVENT__INIT;
    event.kind = GPUL__EVENT__KIND__RANK_EXITED;
    event.node_name = wire_text(node->name);
    event.hostname = wire_text(node_hostname(node));
    event.have = r->world_size - r->ranks_left;
    event.need = r->world_size;
    core_tell_event(r, &event);
}

/* What these ranks have told of their work, for the front end. */
static void tell_metrics(struct rendezvous *r, const Gpul__Exit *const *news,
                         size_t count)
{
    Gpul__Metric rows[GPUL_EXITS_MAX];
    Gpul__Metric *list[GPUL_EXITS_MAX];
    Gpul__Event event = GPUL__EVENT__INIT;
    if (!r->job.wants_metrics) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        gpul__metric__init(&rows[i]);
        rows[i].rank = news[i]->rank;
        rows[i].text = news[i]->metric;
        rows[i].steps = news[i]->steps;
        rows[i].steps_ms = news[i]->steps_ms;
        list[i] = &rows[i];
    }
    event.kind = GPUL__EVENT__KIND__METRICS;
    event.metrics = list;
    event.n_metrics = count;
    core_tell_event(r, &event);
}

/* The exits of this node that are news; they count as ended from now on. */
static size_t take_news(struct rendezvous *r, struct node *node,
                        const Gpul__Exits *exits,
                        const Gpul__Exit *news[GPUL_EXITS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < exits->n_exits && count < GPUL_EXITS_MAX; i++) {
        const Gpul__Exit *fate = exits->exits[i];
        if (node_has_rank(node, fate->rank) && node->ranks_left > 0 &&
            !running_has_ended(r, fate->rank)) {
            mark_ended(r, node, fate->rank);
            news[count++] = fate;
        }
    }
    return count;
}

void running_exits(struct rendezvous *r, struct node *node,
                   const Gpul__Exits *exits)
{
    const Gpul__Exit *news[GPUL_EXITS_MAX];
    if (r->phase < PHASE_REPORTING || r->phase >= PHASE_DONE ||
        r->rank_ended == NULL) {
        return;
    }
    const Gpul__Exit *unlucky = find_bind_error(r, node, exits);
    size_t count = take_news(r, node, exits, news);
    if (count == 0) {
        return;
    }
    tell_exits(r, node);
    tell_metrics(r, news, count);
    if (unlucky != NULL) {
        retry(r, node, unlucky);
    }
    bool was_stopping = r->phase == PHASE_DRAINING;
    for (size_t i = 0; i < count && r->phase < PHASE_DONE; i++) {
        judge_exit(r, node, news[i], was_stopping);
    }
}

void running_reported(struct rendezvous *r, struct node *node, uint32_t rank)
{
    if (running_has_ended(r, rank) || node->ranks_left == 0) {
        return;
    }
    mark_ended(r, node, rank);
    if (node->ranks_left == 0 && core_answer(r, node)) {
        outcome_decide(&r->outcome, OUTCOME_SUCCESS, "success", NULL,
                       "every rank asked for was reported");
        ending_begin(r, SIGTERM);
    }
}
