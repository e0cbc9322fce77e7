/* SPDX-License-Identifier: Apache-2.0
 *
 * Who says what: the distinct answers to one question, each with the nodes
 * that gave it, so that a minority can be named. Pure.
 *
 * Most nodes agree, so the memory is that of the few answers, not that of the
 * nodes: TALLY_ANSWERS_MAX times one bit for each node at most.
 */
#ifndef COORDINATOR_TALLY_H
#define COORDINATOR_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coordinator/roster.h"
#include "coordinator/text.h"

/* More different answers than this are kept as one, "something else". */
enum { TALLY_ANSWERS_MAX = 64 };

struct tally_answer {
    char *text;      /* owned; NULL: something else */
    uint64_t *nodes; /* owned; bits, by node rank */
    uint32_t node_count;
    uint32_t times; /* it was given; a node may repeat itself */
};

struct tally {
    struct tally_answer answers[TALLY_ANSWERS_MAX + 1];
    size_t count;
};

/* An all-zero tally is empty. Gives everything back, and leaves it empty. */
void tally_release(struct tally *t);

/* Node `index` of `node_count` says `text`. Returns the answer, NULL without
 * memory. */
struct tally_answer *tally_add(struct tally *t, uint32_t index,
                               uint32_t node_count, const char *text);

/* Fewest nodes first; among equals the one with the first node, whatever the
 * order in which they came. */
void tally_sort(struct tally *t);

/* The nodes of one answer, folded: "node[1-10] and 90 more". */
void tally_names(struct text *out, const struct tally_answer *answer,
                 const struct roster *r);

/* The lowest of them. */
uint32_t tally_first_node(const struct tally_answer *answer);

/* "node3 has 2.27.3, node[0-2] have 2.28.9" in sorted order; the first four
 * answers, then a count. */
void tally_describe(struct text *out, const struct tally *t,
                    const struct roster *r);

#endif
