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

#include "common/bandwidth.h"
#include "coordinator/roster.h"
#include "coordinator/tally.h"
#include "proto/message.h"

/* UUID and bus id. */
enum {
    FACTS_DEVICE_BYTES = GPUL_DEVICE_UUID_BYTES_MAX + GPUL_TOKEN_BYTES_MAX + 16,
};

struct facts {
    uint32_t node_count;
    struct tally unusable; /* why no communicator can be made there */
    struct tally versions; /* of NCCL */
    struct tally builds;   /* the same, with the build id */
    struct tally drivers;  /* versions of CUDA that they support */
    struct tally kernels;  /* versions of the kernel's driver */
    struct tally counts;   /* of devices */
    struct tally buses;    /* bus ids of all devices of a node */
    struct tally models;   /* of each device, and so on */
    struct tally memories;
    struct tally eccs;
    struct tally migs;
    struct tally links;
    struct tally networks;  /* network cards of a node */
    struct tally refused;   /* entries of CUDA_VISIBLE_DEVICES */
    struct tally libraries; /* all of it, as one line for the user */
    struct tally settings;  /* NCCL's variables, set by the user */
    struct tally findings;  /* what is wrong with a device */
    /* The device with which each of `findings` came first. */
    char finding_devices[TALLY_ANSWERS_MAX + 1][FACTS_DEVICE_BYTES];

    uint32_t *first_ranks;   /* node_count + 1 */
    char **uuids;            /* by node: its UUIDs, one string behind another */
    struct gpul_links rates; /* the least of any node or device */
    uint32_t ring_count;     /* nodes where NCCL is told to use rings */
    uint32_t collnet_count;  /* ... or the network to add up */
    bool has_one_id;         /* some node cannot use several unique IDs */
    bool has_no_split;       /* some node cannot split a communicator */
    bool is_simulated;       /* some library is a double */
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

/* The network cards of one report, for people: "8 x RDMA 400 Gbit/s", "none".
 * Then those of a node into the comparison; false without memory. */
void facts_describe_cards(struct text *out, const Gpul__ProbeFacts *report);
bool facts_add_cards(struct facts *f, uint32_t node_rank,
                     const Gpul__ProbeFacts *report);

/* All reports are in: what is not known of all is not known. */
void facts_settle_rates(struct facts *f, const struct roster *r);

/* Differences and findings that end nothing, one sentence at a time: `at` is
 * 0 at first. Returns false after the last. */
bool facts_next_notice(struct facts *f, struct text *out, size_t *at,
                       const struct roster *r);

/* Likewise what was found, once for all nodes that have the same: libraries
 * and devices, then settings of the user. */
bool facts_next_line(const struct facts *f, struct text *out, bool *is_setting,
                     size_t *at, const struct roster *r);

#endif
