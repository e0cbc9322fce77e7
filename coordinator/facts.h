/* SPDX-License-Identifier: Apache-2.0
 *
 * What the scouts found: one report a node, compared before any communicator
 * is made, so that NCCL never has to complain in its own words. Also the map
 * from self-test ranks to nodes and devices. Pure.
 *
 * Self-test ranks number the devices: node 0's first, in the order in which
 * the node sees them.
 */
#ifndef COORDINATOR_FACTS_H
#define COORDINATOR_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/roster.h"
#include "coordinator/tally.h"
#include "proto/message.h"

struct facts {
    uint32_t node_count;
    struct tally unusable;  /* why no communicator can be made there */
    struct tally versions;  /* of NCCL */
    struct tally builds;    /* the same, with the build id */
    struct tally drivers;   /* versions of CUDA that they support */
    struct tally counts;    /* of devices */
    struct tally libraries; /* all of it, as one line for the user */
    struct tally settings;  /* NCCL's variables, set by the user */
    struct tally findings;  /* what is wrong with a device */
    /* The device with which each of `findings` came first. */
    char finding_uuids[TALLY_ANSWERS_MAX + 1][GPUL_DEVICE_UUID_BYTES_MAX + 1];

    uint32_t *first_ranks; /* node_count + 1 */
    char **uuids;          /* by node: its UUIDs, one string behind another */
    double link_gbps;      /* of the worst device; 0: not known of all */
    bool has_one_id;       /* some node cannot use several unique IDs */
    bool has_no_split;     /* some node cannot split a communicator */
    bool is_simulated;     /* some library is a double */
};

/* Returns 0 or GPUL_ENOMEM; `f` can be released either way. */
int facts_init(struct facts *f, uint32_t node_count);

/* An all-zero one may be released too. */
void facts_release(struct facts *f);

/* The report of one node, once each. Returns 0 or GPUL_ENOMEM. */
int facts_add(struct facts *f, uint32_t node_rank,
              const Gpul__ProbeFacts *report);

enum facts_verdict {
    FACTS_GOOD = 0,
    FACTS_UNUSABLE, /* NCCL, the driver or a device is missing somewhere */
    FACTS_SHARED,   /* nodes of one host see the same device */
    FACTS_WRONG,    /* each node could, but not together */
};

struct facts_judgement {
    enum facts_verdict verdict;
    struct text why;         /* not good: a sentence with nodes and values */
    const struct node *node; /* that it is about most, NULL: none */
};

/* All reports are in: give out the ranks, and compare. Returns 0 or
 * GPUL_ENOMEM. */
int facts_judge(struct facts *f, struct facts_judgement *out,
                const struct roster *r);

/* Self-test ranks: of all nodes, and of one. */
uint32_t facts_rank_count(const struct facts *f);
uint32_t facts_device_count(const struct facts *f, uint32_t node_rank);

/* Devices of every node, 0 if not all have as many. */
uint32_t facts_ranks_per_node(const struct facts *f);

/* The node of a self-test rank, and the UUID of its device ("": unknown). */
uint32_t facts_node(const struct facts *f, uint32_t rank);
const char *facts_uuid(const struct facts *f, uint32_t rank);

/* Differences and findings that end nothing, one sentence at a time: `at` is
 * 0 at first. Returns false after the last. */
bool facts_next_notice(struct facts *f, struct text *out, size_t *at,
                       const struct roster *r);

/* Likewise what was found, once for all nodes that have the same: libraries
 * and devices, then settings of the user. */
bool facts_next_line(const struct facts *f, struct text *out, bool *is_setting,
                     size_t *at, const struct roster *r);

#endif
