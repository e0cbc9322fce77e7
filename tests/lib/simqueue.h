/* SPDX-License-Identifier: Apache-2.0
 *
 * What will happen in a simulation, earliest first; at the same time in the
 * order in which it was planned.
 */
#ifndef TESTS_LIB_SIMQUEUE_H
#define TESTS_LIB_SIMQUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_link;

/* Bytes on their way; what goes to many is kept once. */
struct sim_payload {
    size_t references;
    size_t byte_count;
    uint8_t bytes[];
};

struct sim_payload *sim_payload_create(const uint8_t *bytes, size_t n);

/* NULL is fine. */
void sim_payload_release(struct sim_payload *payload);

enum sim_kind {
    SIM_DIAL,           /* `node` dials */
    SIM_TO_COORDINATOR, /* `bytes` arrive from `link` */
    SIM_TO_NODE,        /* `bytes` arrive at the node of `link` */
    SIM_LINK_CUT,       /* the coordinator sees `link` closed */
    SIM_LINK_CLOSED,    /* the node sees `link` closed */
    SIM_FROM_OPERATOR,  /* `bytes` arrive from the front end */
    SIM_OPERATOR_GONE,
    SIM_NODE_TIMER, /* `number` (enum fake_timer) of `node` */
    SIM_RANK_END,   /* rank `number` of `node` */
    SIM_RANK_STALLS,
    SIM_RANK_RESUMES,
    SIM_PROBE, /* step number % 8 of local probe number / 8 of `node` */
    SIM_NODE_DIES,
    SIM_AGENT_CRASHES,
    SIM_KEEPER_DIES,
};

struct sim_event {
    uint64_t at_ms;
    uint64_t sequence; /* set by push */
    enum sim_kind kind;
    uint32_t node;
    uint32_t number;
    uint32_t generation; /* what it is about; others ignore it */
    struct sim_link *link;
    struct sim_payload *payload; /* one reference is the event's */
    size_t offset;               /* of the frame in it, and its size */
    size_t byte_count;
};

struct sim_queue {
    struct sim_event *items;
    size_t count;
    size_t capacity;
    uint64_t next_sequence;
};

void sim_queue_init(struct sim_queue *q);
void sim_queue_release(struct sim_queue *q);
void sim_queue_push(struct sim_queue *q, struct sim_event event);

/* False when it is empty. */
bool sim_queue_peek(const struct sim_queue *q, uint64_t *at_ms);
bool sim_queue_pop(struct sim_queue *q, struct sim_event *out);

#endif
