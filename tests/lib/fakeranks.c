/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/fakeranks.h"

#include <stdio.h>
#include <stdlib.h>

#include "coordinator/text.h"
#include "proto/limits.h"
#include "tests/lib/fakenode.h"

enum { FAKE_RANKS_MAX = 64 };

static struct rank_plan plan_of(struct cluster *c, const struct fake_node *node,
                                uint32_t rank)
{
    return c->plan != NULL ? c->plan(c, rank, node->held_generation)
                           : (struct rank_plan){.run_ms = 100};
}

void fake_send_exit(struct cluster *c, struct fake_node *node, uint32_t rank,
                    const struct rank_plan *fate)
{
    Gpul__Exit one = GPUL__EXIT__INIT;
    Gpul__Exit *list = &one;
    one.rank = rank;
    one.code = fate->code;
    one.signal = fate->signal;
    one.exec_errno = fate->exec_errno;
    one.is_bind_error = fate->is_bind_error;
    if (fate->exec_errno != 0) {
        one.text = wire_text("train.py: No such file or directory");
    }
    Gpul__Exits exits = GPUL__EXITS__INIT;
    exits.exits = &list;
    exits.n_exits = 1;
    Gpul__Frame frame = fake_frame(node);
    frame.body_case = GPUL__FRAME__BODY_EXITS;
    frame.exits = &exits;
    fake_send(c, node, &frame);
}

static void send_output(struct cluster *c, struct fake_node *node,
                        uint32_t rank, uint32_t bytes)
{
    static uint8_t data[GPUL_OUTPUT_BYTES_MAX];
    Gpul__Output output = GPUL__OUTPUT__INIT;
    Gpul__Frame frame = fake_frame(node);
    frame.body_case = GPUL__FRAME__BODY_OUTPUT;
    frame.output = &output;
    output.rank = rank;
    output.stream = GPUL__OUTPUT__STREAM__STDOUT;
    output.data.data = data;
    while (bytes > 0) {
        output.data.len = bytes < sizeof(data) ? bytes : sizeof(data);
        bytes -= (uint32_t)output.data.len;
        fake_send(c, node, &frame);
    }
}

/* Has the agent taken over what the keeper has? */
static bool is_attended(const struct fake_node *node)
{
    return node->generation == node->held_generation &&
           (node->state == FAKE_RUNNING || node->state == FAKE_STOPPING);
}

static void end_rank(struct cluster *c, struct fake_node *node, uint32_t index,
                     uint32_t rank, const struct rank_plan *fate)
{
    uint32_t local = rank - node->first_rank;
    if ((node->rank_alive >> local & 1u) == 0) {
        return;
    }
    node->rank_alive &= ~(UINT64_C(1) << local);
    node->rank_kept |= UINT64_C(1) << local;
    node->ranks_alive--;
    node->kept[local] = *fate;
    if (!is_attended(node)) {
        return; /* the next agent will tell */
    }
    send_output(c, node, rank, fate->output_bytes);
    fake_send_exit(c, node, rank, fate);
    if (node->ranks_alive == 0) {
        cluster_plan(c, SIM_NODE_TIMER, index, FAKE_IDLE, node->generation, 1);
    }
}

void fake_rank_end(struct cluster *c, uint32_t index, uint32_t rank,
                   uint32_t generation)
{
    struct fake_node *node = &c->nodes[index];
    if (node->held_generation == generation && node->ranks_alive > 0) {
        struct rank_plan fate = plan_of(c, node, rank);
        end_rank(c, node, index, rank, &fate);
    }
}

void fake_rank_stall(struct cluster *c, uint32_t index, uint32_t rank,
                     uint32_t generation, bool is_over)
{
    const struct fake_node *node = &c->nodes[index];
    uint64_t bit = UINT64_C(1) << (rank - node->first_rank);
    if (node->held_generation != generation || (node->rank_alive & bit) == 0 ||
        !is_attended(node)) {
        return;
    }
    Gpul__StallRow row = GPUL__STALL_ROW__INIT;
    Gpul__StallRow *list = &row;
    Gpul__Stall stall = GPUL__STALL__INIT;
    Gpul__Frame frame = fake_frame(node);
    row.rank = rank;
    row.kind = is_over         ? GPUL__STALL_ROW__KIND__RESUMED
               : rank % 3 == 0 ? GPUL__STALL_ROW__KIND__SILENT
                               : GPUL__STALL_ROW__KIND__BEHIND;
    row.steps = 7 + rank % 2;
    row.silence_ms = 5000;
    row.limit_ms = 5000;
    stall.rows = &list;
    stall.n_rows = 1;
    frame.body_case = GPUL__FRAME__BODY_STALL;
    frame.stall = &stall;
    fake_send(c, node, &frame);
}

void fake_ranks_stop(struct cluster *c, uint32_t index)
{
    struct fake_node *node = &c->nodes[index];
    struct rank_plan fate = {.signal = node->stop_signal};
    for (uint32_t i = 0; i < node->rank_count; i++) {
        end_rank(c, node, index, node->first_rank + i, &fate);
    }
}

static void start(struct cluster *c, uint32_t index)
{
    struct fake_node *node = &c->nodes[index];
    bool is_full = node->rank_count >= FAKE_RANKS_MAX;
    node->held_generation = node->generation;
    node->ranks_alive = node->rank_count;
    node->rank_kept = 0;
    node->has_input = false;
    node->input_bytes = 0;
    node->input_credited = 0;
    node->has_input_end = false;
    node->rank_alive =
        is_full ? UINT64_MAX : (UINT64_C(1) << node->rank_count) - 1;
    for (uint32_t i = 0; i < node->rank_count; i++) {
        uint32_t rank = node->first_rank + i;
        struct rank_plan fate = plan_of(c, node, rank);
        if (!fate.runs_for_ever) {
            cluster_plan(c, SIM_RANK_END, index, rank, node->generation,
                         fate.run_ms);
        }
        if (fate.stall_ms > 0) {
            cluster_plan(c, SIM_RANK_STALLS, index, rank, node->generation,
                         fate.stall_ms);
            cluster_plan(c, SIM_RANK_RESUMES, index, rank, node->generation,
                         fate.stall_ms + fate.stalls_for_ms);
        }
    }
}

/* It tells all exits, whoever has told them before. */
static void adopt(struct cluster *c, uint32_t index)
{
    struct fake_node *node = &c->nodes[index];
    for (uint32_t i = 0; i < node->rank_count; i++) {
        if ((node->rank_kept >> i & 1u) != 0) {
            fake_send_exit(c, node, node->first_rank + i, &node->kept[i]);
        }
    }
    if (node->ranks_alive == 0) {
        cluster_plan(c, SIM_NODE_TIMER, index, FAKE_IDLE, node->generation, 1);
    }
}

void fake_ranks_launch(struct cluster *c, uint32_t index)
{
    struct fake_node *node = &c->nodes[index];
    node->state = FAKE_RUNNING;
    if (node->held_generation == node->generation) {
        adopt(c, index);
    } else {
        start(c, index);
    }
}

/* ---- the keeper ---- */

void fake_crash(struct cluster *c, uint32_t index)
{
    struct fake_node *node = &c->nodes[index];
    if (node->link != NULL && !node->is_mute) {
        cluster_hang_up(c, node->link);
        node->state = FAKE_AWAY;
        node->link = NULL;
        node->generation = 0;
        node->attach++;
        cluster_plan(c, SIM_DIAL, index, 0, 0, node->restart_ms);
    }
}

static void say_leave(struct cluster *c, struct fake_node *node)
{
    Gpul__Leave leave = GPUL__LEAVE__INIT;
    char *unclean = wire_text(node->unclean);
    leave.text = wire_text("its keeper ended; its ranks were killed");
    leave.is_clean = unclean == NULL;
    leave.unclean = &unclean;
    leave.n_unclean = unclean != NULL;
    Gpul__Frame frame = fake_frame(node);
    frame.body_case = GPUL__FRAME__BODY_LEAVE;
    frame.leave = &leave;
    fake_send(c, node, &frame);
}

void fake_keeper_die(struct cluster *c, uint32_t index)
{
    struct fake_node *node = &c->nodes[index];
    node->is_dead = true;
    node->ranks_alive = 0;
    node->rank_alive = 0;
    if (node->link != NULL && !node->is_mute) {
        if (!node->leaves_silently) {
            say_leave(c, node);
        }
        cluster_hang_up(c, node->link);
        node->link = NULL;
    }
    node->state = FAKE_AWAY;
}
