/* SPDX-License-Identifier: Apache-2.0
 *
 * What a search by pairs has found, in sentences. Pure. Rates are in GB/s,
 * 1e9 bytes a second.
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

/* "node c is slow in sending: 2.10 GB/s to node d, 2.05 GB/s to node g (22 %
 * of the 9.41 GB/s of healthy pairs), alone too; named in round 2". Of a node
 * that is ok or unknown that is said. Nothing for a node that there is not. */
void pairsearch_describe_node(struct text *out,
                              const struct pairsearch_result *result,
                              uint32_t node,
                              const struct pairsearch_names *names);

/* "path from node b to node c is blocked: no connection in this direction;
 * both are good with others". Likewise. */
void pairsearch_describe_path(struct text *out,
                              const struct pairsearch_result *result,
                              uint32_t path,
                              const struct pairsearch_names *names);

/* "nodes c to f together reach 3.20 GB/s, and each half of them is good". */
void pairsearch_describe_group(struct text *out,
                               const struct pairsearch_result *result,
                               uint32_t group,
                               const struct pairsearch_names *names);

/* One line over all: "8 nodes, 5 rounds: 1 slow, named within 3 rounds";
 * "2 nodes: their pair is slow, but which of them cannot be resolved: a third
 * node is needed". */
void pairsearch_summarize(struct text *out,
                          const struct pairsearch_result *result);

#endif
