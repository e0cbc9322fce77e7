/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "tests/lib/fakelinks.h"
#include "tests/lib/watchaway.h"
#include "tests/lib/watchprobes.h"

#define NO_CONN WATCH_NO_CONN

#define RULE(c, holds, what) WATCH_RULE(c, holds, what)

void watch_broken(const struct cluster *c, const char *what)
{
    if (c->is_traced) {
        fwrite(c->trace.data, 1, c->trace.used, stderr);
    }
    fprintf(stderr,
            "at %llu ms: broken: %s\n"
            "rerun with: --seed %llu\n",
            (unsigned long long)c->now_ms, what,
            (unsigned long long)c->watch->seed);
    abort();
}

void watch_init(struct watch *w, struct cluster *c, uint64_t seed)
{
    uint32_t ranks = c->job.node_count * c->job.ranks_per_node;
    *w = (struct watch){.seed = seed};
    w->nodes = calloc(c->node_count, sizeof(*w->nodes));
    w->first_ranks = calloc(c->job.node_count, sizeof(*w->first_ranks));
    w->rank_ended = calloc(ranks, sizeof(*w->rank_ended));
    for (uint32_t i = 0; i < c->node_count; i++) {
        w->nodes[i].conn = NO_CONN;
    }
    gpul_rolemap_all_workers(&w->roles, c->job.n_roles > 0 ? 0 : ranks);
    for (size_t i = 0; i < c->job.n_roles; i++) {
        gpul_rolemap_add(&w->roles, c->job.roles[i]->name,
                         c->job.roles[i]->count, NULL);
    }
    c->watch = w;
}

void watch_release(struct watch *w)
{
    free(w->nodes);
    free(w->first_ranks);
    free(w->rank_ended);
}

/* ---- what the coordinator hears ---- */

void watch_decide(struct watch *w, uint32_t code)
{
    if (!w->is_decided && !w->is_by_time) {
        w->is_decided = true;
        w->expected_code = code;
    }
}

static uint32_t code_of(const Gpul__Exit *fate)
{
    if (fate->exec_errno != 0) {
        return fate->exec_errno == 2 ? 127 : 126;
    }
    return fate->signal != 0 ? 128 + fate->signal : fate->code;
}

static void hear_exit(struct cluster *c, const Gpul__Exit *fate)
{
    struct watch *w = c->watch;
    if (w->rank_ended[fate->rank]) {
        return; /* told again by the next agent */
    }
    w->rank_ended[fate->rank] = true;
    if (w->is_decided || w->is_restarting) {
        return;
    }
    uint32_t code = code_of(fate);
    bool may_retry = fate->is_bind_error && !w->has_retried &&
                     w->input_bytes <= c->input_window &&
                     w->members == c->job.node_count;
    if (code != 0 && may_retry) {
        w->has_retried = true;
        w->is_restarting = true;
    } else if (code != 0) {
        watch_decide(w, code);
    } else if (gpul_rolemap_decides(&w->roles, fate->rank) &&
               --w->deciders_left == 0) {
        watch_decide(w, 0);
    }
}

static void hear_links(struct cluster *c, struct watch_node *node)
{
    struct watch *w = c->watch;
    if (node->has_linked) {
        return;
    }
    node->has_linked = true;
    if (++w->linked == c->job.node_count && !w->is_doomed &&
        !fake_links_are_good(c)) {
        watch_decide(w, 20);
    }
}

/* The probe on host memory has its result, good or of another's end. */
static void hear_word(struct cluster *c, struct watch_node *node)
{
    struct watch *w = c->watch;
    if (node->has_told) {
        return;
    }
    node->has_told = true;
    if (++w->told < c->job.node_count || w->is_doomed) {
        return;
    }
    if (w->is_suspicious) {
        watch_decide(w, 20);
    } else {
        watch_judge_speed(c, w->told);
    }
}

static void hear_result(struct cluster *c, struct watch_node *node,
                        const Gpul__ProbeResult *result)
{
    struct watch *w = c->watch;
    if (w->probes.world_size > 0) {
        watch_hear_gpu_result(c, result);
    } else if (result->wrong_elements > 0) {
        watch_decide(w, 21);
    } else if (result->error[0] != 0 && !result->is_remote) {
        watch_decide(w, 20);
    } else {
        w->is_suspicious |= result->error[0] != 0;
        hear_word(c, node);
    }
}

static void hear_idle(struct watch *w, struct watch_node *node,
                      const Gpul__Idle *idle)
{
    if (w->is_restarting && !node->is_idle && idle->n_unclean > 0) {
        watch_decide(w, 75);
    }
    node->is_idle = true;
    node->reads_input = false;
}

static void hear_ready(struct watch *w, struct watch_node *node,
                       const Gpul__Ready *ready)
{
    if (ready->error[0] != 0) {
        watch_decide(w, 20);
    } else if (!node->is_ready) {
        node->is_ready = true;
        w->ready++;
    }
}

static void hear_report(struct cluster *c, const Gpul__EnvReport *report)
{
    struct watch *w = c->watch;
    bool is_asked =
        c->job.report_all_ranks || report->rank == c->job.report_rank;
    if (report->is_last && is_asked && !w->rank_ended[report->rank]) {
        w->rank_ended[report->rank] = true;
        if (--w->deciders_left == 0) {
            watch_decide(w, 0);
        }
    }
}

/* What is about a generation that is being stopped comes too late. */
static bool is_of_forming(const Gpul__Frame *frame)
{
    return frame->body_case == GPUL__FRAME__BODY_READY ||
           frame->body_case == GPUL__FRAME__BODY_LINK_LISTENING ||
           frame->body_case == GPUL__FRAME__BODY_LINK_REPORT ||
           frame->body_case == GPUL__FRAME__BODY_PROBE_RESULT ||
           frame->body_case == GPUL__FRAME__BODY_PROBE_FACTS ||
           frame->body_case == GPUL__FRAME__BODY_PROBE_ID;
}

/* A node goes on purpose, whatever the generation. */
static void hear_leave(struct cluster *c, struct watch_node *node)
{
    if (c->watch->generation > 0) {
        node->is_gone = true;
    }
}

static void hear_node(struct cluster *c, const struct rendezvous_event *event)
{
    struct watch *w = c->watch;
    struct watch_node *node = &w->nodes[c->by_conn[event->conn]->node];
    const Gpul__Frame *frame = event->frame;
    if (node->conn == event->conn) {
        node->heard_ms = c->now_ms;
    }
    if (frame->body_case == GPUL__FRAME__BODY_LEAVE &&
        node->conn == event->conn) {
        hear_leave(c, node);
    }
    if (node->conn != event->conn || frame->generation != w->generation ||
        (w->is_restarting && is_of_forming(frame))) {
        return;
    }
    switch (frame->body_case) {
    case GPUL__FRAME__BODY_READY:
        hear_ready(w, node, frame->ready);
        return;
    case GPUL__FRAME__BODY_LINK_LISTENING:
        if (frame->link_listening->error[0] != 0) {
            watch_decide(w, 20);
        }
        return;
    case GPUL__FRAME__BODY_LINK_REPORT:
        hear_links(c, node);
        return;
    case GPUL__FRAME__BODY_PROBE_RESULT:
        hear_result(c, node, frame->probe_result);
        return;
    case GPUL__FRAME__BODY_PROBE_FACTS:
        watch_hear_facts(c, frame->probe_facts);
        return;
    case GPUL__FRAME__BODY_PROBE_ID:
        watch_hear_id(c, frame->probe_id);
        return;
    case GPUL__FRAME__BODY_EXITS:
        hear_exit(c, frame->exits->exits[0]);
        return;
    case GPUL__FRAME__BODY_IDLE:
        hear_idle(w, node, frame->idle);
        return;
    case GPUL__FRAME__BODY_INPUT_CREDIT:
        node->input_taken += frame->input_credit->bytes;
        node->reads_input &= !frame->input_credit->is_closed;
        return;
    case GPUL__FRAME__BODY_ENV_REPORT:
        hear_report(c, frame->env_report);
        return;
    default:
        return;
    }
}

void watch_closed(struct cluster *c, uint32_t conn)
{
    if (c->watch != NULL) {
        watch_see_closed(c, conn, false);
    }
}

static void hear_operator(struct cluster *c, const Gpul__Frame *frame)
{
    if (frame->body_case == GPUL__FRAME__BODY_CANCEL) {
        watch_decide(c->watch, frame->cancel->is_timeout
                                   ? 124
                                   : 128 + frame->cancel->signal);
    } else if (frame->body_case == GPUL__FRAME__BODY_NODE_GONE) {
        watch_hear_gone(c, frame->node_gone->node_name);
    } else if (frame->body_case == GPUL__FRAME__BODY_INPUT) {
        c->watch->input_bytes += frame->input->data.len;
    }
}

void watch_before(struct cluster *c, const struct rendezvous_event *event)
{
    struct watch *w = c->watch;
    if (w == NULL) {
        return;
    }
    w->dropped = NULL;
    w->is_tick = event->kind == RENDEZVOUS_TICK;
    w->is_hello = event->kind == RENDEZVOUS_PEER_MESSAGE &&
                  event->frame->body_case == GPUL__FRAME__BODY_HELLO;
    w->hello_conn = event->conn;
    w->attach = w->is_hello ? event->frame->hello->attach : 0;
    w->instance = w->is_hello ? event->frame->hello->instance : 0;
    w->held_generation = w->is_hello ? event->frame->hello->held_generation : 0;
    switch (event->kind) {
    case RENDEZVOUS_PEER_MESSAGE:
        hear_node(c, event);
        return;
    case RENDEZVOUS_PEER_CLOSED:
        watch_see_closed(c, event->conn, true);
        return;
    case RENDEZVOUS_OPERATOR_MESSAGE:
        hear_operator(c, event->frame);
        return;
    case RENDEZVOUS_TICK:
        watch_lose_overdue(c);
        return;
    case RENDEZVOUS_OPERATOR_CLOSED:
        watch_decide(w, 128 + 15);
        return;
    default:
        return;
    }
}

/* ---- at every step, and at the end ---- */

/* Nobody is waited for in vain: a silent node is lost when its lease is over,
 * and the end comes when the last node is idle. */
static void check_promptness(const struct cluster *c)
{
    const struct watch *w = c->watch;
    bool is_busy = false;
    for (uint32_t i = 0; i < c->node_count; i++) {
        const struct watch_node *node = &w->nodes[i];
        if (node->conn != NO_CONN) {
            is_busy = is_busy || !node->is_idle;
            RULE(c, c->now_ms - node->heard_ms <= GPUL_LEASE_MS,
                 "a silent node outlived its lease");
        }
        is_busy = is_busy || node->is_away;
        RULE(c,
             !node->is_away || w->has_ended || w->has_finished ||
                 c->now_ms - node->away_ms <= GPUL_AWAY_MS,
             "a node was waited for too long");
    }
    RULE(c, !w->has_ended || w->has_finished || w->members == 0,
         "a JobEnd and no Finish");
    RULE(c, is_busy || !w->is_decided || w->has_ended || !c->has_operator,
         "every node is idle and the job goes on");
}

void watch_after(struct cluster *c, const struct rendezvous_event *event)
{
    struct watch *w = c->watch;
    if (w == NULL) {
        return;
    }
    rendezvous_check(c->core);
    RULE(c,
         event->kind != RENDEZVOUS_TICK ||
             rendezvous_next_deadline_ms(c->core) > c->now_ms,
         "the next deadline is not after the tick");
    RULE(c,
         w->generation == 0 || (w->assigned == c->job.node_count &&
                                w->next_rank == w->world_size),
         "a generation without all of its ranks");
    check_promptness(c);
}

void watch_end(struct cluster *c)
{
    struct watch *w = c->watch;
    uint32_t code = (uint32_t)c->finish_code;
    RULE(c, c->is_finished, "the job does not end");
    cluster_settle(c);
    RULE(c, w->has_ended || !c->has_operator, "no JobEnd was told");
    RULE(c, !w->has_ended || c->exit_code == code, "two exit codes");
    RULE(c, w->is_decided || w->is_by_time, "an end without a reason");
    RULE(c, !w->is_decided || code == w->expected_code,
         "the exit code is not that of the first failure");
    RULE(c,
         w->is_decided || code == 40 || code == 75 || code == 124 ||
             (code == 20 && w->is_suspicious),
         "a deadline with another exit code");
    for (uint32_t i = 0; i < c->node_count; i++) {
        const struct fake_node *node = &c->nodes[i];
        /* A keeper that has no agent ends them by itself, later. */
        bool is_orphan = node->state == FAKE_AWAY && node->attach > 0;
        RULE(c, node->ranks_alive == 0 || node->is_mute || is_orphan,
             "ranks are left on a node that can be reached");
    }
}
