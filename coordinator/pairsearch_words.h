/* SPDX-License-Identifier: Apache-2.0
 *
 * What a search by pairs has found, in sentences. Pure. Rates are in GB/s or
 * MB/s, 1e9 and 1e6 bytes a second.
 */
#ifndef COORDINATOR_PAIRSEARCH_WORDS_H
#define COORDINATOR_PAIRSEARCH_WORDS_H

#include "coordinator/pairsearch.h"
#include "coordinator/text.h"

/* The name of a node, for as long as the sentence is made. */
struct pairsearch_names {
    const char *(*name)(const void *arg, uint32_t node);
    const void *arg;
};

/* "node c is slow in sending: 2.10 GB/s to node g, 2.05 GB/s to node d;
 * healthy pairs have 9.41 GB/s (22 %); alone too; named in round 2". Of one
 * that is good or unknown that is said. Nothing for a node that there is not.
 */
void pairsearch_describe_node(struct text *out,
                              const struct pairsearch_result *result,
                              uint32_t node,
                              const struct pairsearch_names *names);

/* "the path from node b to node c is blocked: no connection; both nodes are
 * good with others; alone too; named in round 2". Likewise. */
void pairsearch_describe_path(struct text *out,
                              const struct pairsearch_result *result,
                              uint32_t path,
                              const struct pairsearch_names *names);

/* "nodes c to f reach 3.20 GB/s together; either half of them is good".
 * Likewise. */
void pairsearch_describe_group(struct text *out,
                               const struct pairsearch_result *result,
                               uint32_t group,
                               const struct pairsearch_names *names);

/* One line over all: "8 nodes in 4 rounds: 1 node is slow; named within 2
 * rounds"; "2 nodes in 1 round: their pair is bad, and which of them it is
 * cannot be resolved: a third node is needed". */
void pairsearch_summarize(struct text *out,
                          const struct pairsearch_result *result);

#endif
