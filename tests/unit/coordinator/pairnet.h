/* SPDX-License-Identifier: Apache-2.0
 *
 * A network that exists in numbers only: rates of nodes in each direction,
 * factors of paths, noise, a shared link in the middle. A search asks, it
 * answers, and checks each round as it goes by.
 */
#ifndef TESTS_PAIRNET_H
#define TESTS_PAIRNET_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/rng.h"
#include "coordinator/pairsearch.h"

enum { PAIRNET_NODES_MAX = 4096, PAIRNET_PATHS_MAX = 8 };

#define PAIRNET_RATE 10e9 /* bytes a second of a healthy direction */

/* One direction. */
struct pairnet_path {
    uint32_t from;
    uint32_t to;
    double factor;                 /* of the rate; 1: none */
    double loss;                   /* 0: none */
    enum pairsearch_status status; /* instead of a figure; 0: a figure */
};

struct pairnet {
    struct pairsearch_config config;
    uint64_t seed;
    struct gpul_rng rng;
    double rates[2][PAIRNET_NODES_MAX]; /* sending, receiving: 1 is healthy */
    bool is_dead[PAIRNET_NODES_MAX];    /* refuses, and says nothing */
    bool is_mute[PAIRNET_NODES_MAX];    /* its pairs cannot be measured */
    struct pairnet_path paths[PAIRNET_PATHS_MAX];
    uint32_t path_count;
    double noise;   /* standard deviation, as a part */
    double missing; /* part of the figures that get lost */
    double total;   /* rate of all pairs together; 0: enough */
    double middle;  /* rate between the two halves of the nodes; 0: enough */
    double whole;   /* busbw of groups of more than `whole_from` nodes */
    uint32_t whole_from;

    /* the search */
    struct pairsearch *search;
    struct pairsearch_result result;
    uint32_t together_rounds;
    uint32_t alone_rounds;
    uint32_t group_rounds;
    uint32_t dead_pairs;    /* that were asked for with a dead node */
    struct gpul_buf *story; /* each round is told to; or NULL */
};

/* A healthy one without noise. The seed is printed if the test fails. */
void pairnet_init(struct pairnet *net, uint32_t nodes, uint64_t seed);

/* The rate of a node in some ways (bits of enum pairsearch_way). */
void pairnet_slow(struct pairnet *net, uint32_t node, uint8_t ways,
                  double rate);
void pairnet_bad_path(struct pairnet *net, uint32_t from, uint32_t to,
                      double factor);

/* Search to the end; the verdicts are in net->result until the next call of
 * pairnet_run or pairnet_end. */
void pairnet_run(struct pairnet *net);
void pairnet_end(struct pairnet *net);

/* Fail, with the seed and all verdicts, unless the named nodes are exactly
 * those of rate < 1, in exactly the ways in which it is, and the faults of
 * paths exactly net->paths. */
void pairnet_expect_exact(const struct pairnet *net);

/* Fail likewise unless that holds. */
#define pairnet_expect(net, what) pairnet_check(net, what, #what, __LINE__)
void pairnet_check(const struct pairnet *net, bool is_true, const char *what,
                   int line);

#endif
