/* SPDX-License-Identifier: Apache-2.0
 *
 * A hundred thousand nodes that behave: the rendezvous alone, without wires,
 * fed in an order drawn from a seed. What it sends is counted.
 */
#ifndef TESTS_LIB_CROWD_H
#define TESTS_LIB_CROWD_H

#include "common/rng.h"
#include "coordinator/rendezvous.h"

struct crowd {
    struct rendezvous *core;
    uint32_t node_count;
    uint32_t ranks_per_node;
    bool has_gpus;         /* one for each rank */
    uint32_t *order;       /* in which the nodes act, drawn anew each time */
    uint32_t *first_ranks; /* by node, as assigned */
    struct gpul_rng rng;
    uint64_t now_ms;

    uint32_t sends[64]; /* by body case, each receiver counted */
    uint64_t sent_bytes;
    uint64_t told_bytes;
    uint32_t exit_code;
    uint32_t job_ends;
    bool is_finished;
};

void crowd_init(struct crowd *c, uint32_t node_count, uint32_t ranks_per_node);

/* The front end's Job. */
void crowd_send_job(struct crowd *c);

/* Every node does the same, in a new order. */
void crowd_everybody(struct crowd *c, void (*act)(struct crowd *, uint32_t));

/* `node` sends this. */
void crowd_say(struct crowd *c, uint32_t node, Gpul__Frame *frame);

/* What a node does, in the order of a job. */
void crowd_join(struct crowd *c, uint32_t node);
void crowd_get_ready(struct crowd *c, uint32_t node);
void crowd_open_links(struct crowd *c, uint32_t node);
void crowd_dial(struct crowd *c, uint32_t node);
void crowd_start_listening(struct crowd *c, uint32_t node);
void crowd_pass(struct crowd *c, uint32_t node);
void crowd_end_ranks(struct crowd *c, uint32_t node);
void crowd_leave(struct crowd *c, uint32_t node);

/* In place of start_listening and pass: all of the self-test on GPUs. */
void crowd_test_gpus(struct crowd *c);

#endif
