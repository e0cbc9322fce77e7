/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of the watch that judges what the coordinator says.
 */
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "tests/lib/fakelinks.h"
#include "tests/lib/watch.h"
#include "tests/lib/watchaway.h"
#include "tests/lib/watchprobes.h"

#define NO_CONN WATCH_NO_CONN

#define RULE(c, holds, what) WATCH_RULE(c, holds, what)

static void see_welcome(struct cluster *c, const struct sim_link *link)
{
    struct watch *w = c->watch;
    const char *name = c->nodes[link->node].name;
    for (uint32_t i = 0; i < c->node_count; i++) {
        RULE(c, w->nodes[i].conn == NO_CONN || strcmp(c->nodes[i].name, name),
             "a node is on two connections");
    }
    RULE(c, strcmp(c->nodes[link->node].job_id, c->job.job_id) == 0,
         "a node of another job was welcomed");
    RULE(c,
         w->dropped == NULL || strcmp(w->dropped->name, name) != 0 ||
             w->dropped_instance == w->instance,
         "a node lost its place to a twin");
    if (w->generation > 0) {
        watch_see_return(c, &w->nodes[link->node]);
    } else {
        RULE(c, !w->is_decided, "a node was welcomed after the end");
        w->nodes[link->node].is_gone = false; /* that was another one */
    }
    w->nodes[link->node].attach = w->attach;
    w->nodes[link->node].conn = link->conn;
    w->nodes[link->node].heard_ms = c->now_ms;
    w->nodes[link->node].instance = w->instance;
    w->members++;
}

static void start_generation(struct cluster *c, uint32_t generation)
{
    struct watch *w = c->watch;
    RULE(c, generation == w->generation + 1, "a generation was left out");
    RULE(c, w->members == c->job.node_count, "places while a node is away");
    for (uint32_t i = 0; i < c->node_count; i++) {
        bool is_here = w->nodes[i].conn != NO_CONN;
        RULE(c, generation == 1 || !is_here || w->nodes[i].is_idle,
             "a new generation while the old one lives");
        w->nodes[i].is_ready = false;
        w->nodes[i].is_idle = false;
        w->nodes[i].has_told = false;
        w->nodes[i].has_linked = false;
    }
    w->probes = (struct watch_probes){0};
    w->told = 0;
    w->linked = 0;
    w->is_suspicious = false;
    w->is_doomed = false;
    w->generation = generation;
    w->next_rank = 0;
    w->assigned = 0;
    w->ready = 0;
    w->is_launched = false;
    w->is_restarting = false;
}

static void see_assign(struct cluster *c, const struct sim_link *link,
                       const Gpul__Frame *frame)
{
    struct watch *w = c->watch;
    const Gpul__Assign *assign = frame->assign;
    struct watch_node *node = &w->nodes[link->node];
    if (frame->generation != w->generation) {
        start_generation(c, frame->generation);
    }
    RULE(c, node->conn == link->conn, "a place for a stranger");
    if (w->assigned == c->job.node_count) { /* told to one that is back */
        RULE(c,
             node->first_rank == assign->first_rank &&
                 node->rank_count == assign->rank_count &&
                 w->world_size == assign->world_size,
             "a node came back to another place");
        return;
    }
    /* The names are node0 .. node<n-1>, in whatever order they are listed. */
    RULE(c,
         strtoul(c->nodes[link->node].name + 4, NULL, 10) == assign->node_rank,
         "an order that is not that of the names");
    RULE(c, assign->node_rank == w->assigned, "a node rank out of order");
    RULE(c, assign->first_rank == w->next_rank, "ranks with a gap");
    RULE(c, assign->rank_count == c->job.ranks_per_node, "a wrong rank count");
    RULE(c, assign->world_size == c->job.node_count * c->job.ranks_per_node,
         "a wrong world size");
    RULE(c,
         w->generation == 1 ||
             w->first_ranks[assign->node_rank] == assign->first_rank,
         "a node got other ranks than before");
    w->first_ranks[assign->node_rank] = assign->first_rank;
    w->world_size = assign->world_size;
    node->first_rank = assign->first_rank;
    node->rank_count = assign->rank_count;
    w->probes.gpuless_count += c->nodes[link->node].gpus == 0;
    w->assigned++;
    w->next_rank += assign->rank_count;
}

static uint32_t count_deciders(const struct cluster *c)
{
    uint32_t count = 0;
    bool is_env = c->job.mode == GPUL__JOB__MODE__ENV;
    if (is_env && !c->job.report_all_ranks) {
        return 1;
    }
    for (uint32_t rank = 0; rank < c->watch->world_size; rank++) {
        count += is_env || gpul_rolemap_decides(&c->watch->roles, rank);
    }
    return count;
}

/* Those whose agent may not die now: bytes would be lost with it. */
static void note_readers(struct cluster *c)
{
    for (uint32_t i = 0; i < c->node_count; i++) {
        struct watch_node *node = &c->watch->nodes[i];
        uint32_t rank = c->input_target.rank;
        bool has_target = c->input_target.is_all ||
                          (rank >= node->first_rank &&
                           rank - node->first_rank < node->rank_count);
        node->input_taken = 0;
        node->reads_input = node->conn != NO_CONN && has_target &&
                            c->job.input_target != NULL &&
                            c->job.mode == GPUL__JOB__MODE__RUN;
    }
}

static void see_launch(struct cluster *c)
{
    struct watch *w = c->watch;
    RULE(c, !w->is_launched, "two launches in a generation");
    RULE(c, !w->is_decided, "a launch after the end was decided");
    RULE(c, w->assigned == c->job.node_count && w->next_rank == w->world_size,
         "a launch before every rank has its place");
    RULE(c, w->ready == c->job.node_count, "a launch before all are ready");
    watch_see_tested(c);
    RULE(c, w->members == c->job.node_count, "a launch while a node is away");
    RULE(c,
         w->has_launched || !fake_links_are_spread(c) ||
             (w->linked == c->job.node_count && fake_links_are_good(c)),
         "a launch before every address was proved");
    w->is_launched = true;
    w->has_launched = true;
    note_readers(c);
    for (uint32_t rank = 0; rank < w->world_size; rank++) {
        w->rank_ended[rank] = false;
    }
    w->deciders_left = count_deciders(c);
}

/* Stop or JobEnd: by what was heard, or else by the time at this tick. */
static void see_end(struct cluster *c)
{
    struct watch *w = c->watch;
    bool has_reason = w->is_decided || w->is_restarting || w->is_by_time;
    RULE(c, has_reason || w->is_tick, "an end without a reason");
    w->is_by_time = w->is_by_time || !has_reason ||
                    (w->is_restarting && w->is_tick && !w->is_decided);
}

void watch_sent(struct cluster *c, const struct sim_link *link,
                const Gpul__Frame *frame)
{
    struct watch *w = c->watch;
    if (w == NULL) {
        return;
    }
    RULE(c,
         frame->generation >= w->generation ||
             frame->body_case == GPUL__FRAME__BODY_REFUSE ||
             frame->body_case == GPUL__FRAME__BODY_JOB, /* of no generation */
         "the generation fell");
    switch (frame->body_case) {
    case GPUL__FRAME__BODY_WELCOME:
        see_welcome(c, link);
        return;
    case GPUL__FRAME__BODY_ASSIGN:
        see_assign(c, link, frame);
        return;
    case GPUL__FRAME__BODY_PROBE_START:
        watch_see_start(c, frame->probe_start);
        return;
    case GPUL__FRAME__BODY_PROBE_BEGIN:
        watch_see_begin(c, link, frame->probe_begin);
        return;
    case GPUL__FRAME__BODY_PROBE_IDS:
        watch_see_ids(c, link, frame);
        return;
    case GPUL__FRAME__BODY_LAUNCH:
        if (link == NULL) {
            see_launch(c);
        } else {
            RULE(c, w->is_launched, "a launch of one node alone");
        }
        return;
    case GPUL__FRAME__BODY_STOP:
        see_end(c);
        return;
    case GPUL__FRAME__BODY_FINISH:
        RULE(c, w->has_ended || !c->has_operator, "Finish before JobEnd");
        w->has_finished = true;
        return;
    default:
        return;
    }
}

/* Where something may still run, the user is told so. */
static void check_unclean(const struct cluster *c, const Gpul__JobEnd *end)
{
    for (uint32_t i = 0; i < c->node_count; i++) {
        const struct fake_node *node = &c->nodes[i];
        size_t n = strlen(node->name);
        bool is_named = node->ranks_alive == 0;
        for (size_t k = 0; k < end->n_unclean && !is_named; k++) {
            is_named = strncmp(end->unclean[k], node->name, n) == 0 &&
                       end->unclean[k][n] == ':';
        }
        RULE(c, is_named, "ranks are left that nobody is told of");
    }
}

void watch_told(struct cluster *c, const Gpul__Frame *frame)
{
    struct watch *w = c->watch;
    if (w == NULL) {
        return;
    }
    RULE(c, !w->has_ended, "something was told after JobEnd");
    /* Maybe there is nobody to send a Stop to. */
    if (frame->body_case == GPUL__FRAME__BODY_EVENT &&
        frame->event->kind == GPUL__EVENT__KIND__STOPPING) {
        see_end(c);
    }
    if (frame->body_case == GPUL__FRAME__BODY_EVENT &&
        frame->event->kind == GPUL__EVENT__KIND__STALL) {
        w->stall_reports++;
    }
    if (frame->body_case == GPUL__FRAME__BODY_JOB_END) {
        see_end(c);
        check_unclean(c, frame->job_end);
        w->has_ended = true;
    }
}
