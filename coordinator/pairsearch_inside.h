/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the search by pairs share. Pure.
 *
 *     pairsearch.c          which round comes next, and its figures in
 *     pairsearch_judge.c    what the figures so far show of each node's ends
 *     pairsearch_verdict.c  verdicts out of that
 *     pairsearch_alone.c    what is bad, again while all others are silent
 *     pairsearch_groups.c   halves and quarters
 */
#ifndef COORDINATOR_PAIRSEARCH_INSIDE_H
#define COORDINATOR_PAIRSEARCH_INSIDE_H

#include <stddef.h>

#include "coordinator/pairsearch.h"

#define PAIRSEARCH_NO_RECORD UINT32_MAX

/* A figure, made harmless: measured means finite and above 0; a loss that
 * is not known is 0, since it is only ever held against somebody. */
struct pairsearch_cell {
    double rate;
    float loss;
    uint8_t status; /* enum pairsearch_status */
};

/* A pair that was measured, or is about to be. Index 0 is a, or a to b; 1 is
 * b, or b to a. */
struct pairsearch_record {
    uint32_t nodes[2];
    uint32_t next[2]; /* the next record of that node */
    struct pairsearch_cell together[2];
    struct pairsearch_cell alone[2];
    uint16_t round;
    uint16_t alone_round; /* 0: not measured alone a second time */
    uint16_t since[2];    /* the round since which `kinds` stand */
    uint8_t kinds[2];     /* enum pairsearch_path_kind; 0: not bad */
    bool is_single;       /* was alone in its first round already */
};

/* Whether a connection comes about, and how fast it is, are judged apart: a
 * slow one shows that it can be reached. */
enum pairsearch_level { LEVEL_REACH, LEVEL_RATE, LEVELS };

enum pairsearch_mark { MARK_NONE = 0, MARK_GOOD, MARK_BAD };

/* What is known of a node as a sender (index 0) or as a receiver (1). "Known
 * good" partners are those whose other end is good at the same level. */
struct pairsearch_standing {
    uint32_t bad;           /* figures */
    uint32_t bad_known;     /* of these with a known good partner */
    uint32_t bad_elsewhere; /* of these that is no neighbour in the ring */
    uint32_t tries;         /* pairs with a known good partner, whatever came */
    bool is_good;
};

struct pairsearch_end {
    double best; /* bytes a second; 0: none */
    struct pairsearch_standing levels[LEVELS];
};

struct pairsearch_inner {
    uint32_t first; /* its records */
    struct pairsearch_end ends[2];
};

/* A group that was found slow and is to be split, and what its halves did. */
struct pairsearch_split {
    struct pairing_group group;
    double rate;
};

struct pairsearch {
    struct pairsearch_config config;
    uint32_t node_count;
    struct pairsearch_inner *inner; /* node_count */
    struct pairsearch_record *records;
    uint32_t record_count;
    uint32_t records_max;
    double *scratch; /* to sort figures in: 2 * records_max, 2 * node_count */
    uint8_t *roles;  /* node_count */

    /* the round that is on */
    uint32_t number; /* 0: none yet */
    enum pairsearch_kind kind;
    struct pairing_pair *pairs; /* node_count / 2 + 1 */
    uint32_t *pair_records;
    uint32_t pair_count;
    bool is_reported; /* its figures are judged */

    uint32_t together_count; /* rounds of each kind so far */
    uint32_t alone_count;
    uint32_t groups_count;
    bool is_cross_over;
    bool is_alone_over;
    bool is_over;

    /* what the figures show */
    struct pairsearch_reference reference;
    uint32_t shared_pairs;    /* bad while others ran, good alone */
    uint32_t alone_bad_pairs; /* bad alone too */
    uint32_t faster_nodes;

    /* groups */
    struct pairsearch_split *splits; /* node_count / 2 + 1 */
    uint32_t split_count;
    struct pairing_group *groups; /* of the round: two for each split */
    struct pairsearch_cell *group_cells;
    uint32_t group_count;

    /* verdicts */
    struct pairsearch_node *nodes; /* node_count */
    struct pairsearch_path *paths; /* PAIRSEARCH_PATHS_MAX */
    uint32_t path_count;
    uint32_t paths_left_out;
    struct pairsearch_group *slow_groups; /* node_count / 2 + 1 */
    uint32_t slow_group_count;
};

/* ---- pairsearch_judge.c ---- */

/* Against the fastest figures, so that of a slow majority the good are found
 * out, and are partners for the others. */
void pairsearch_judge_fastest(struct pairsearch *s);

/* Against those of most nodes: what verdicts are made of. */
void pairsearch_judge_usual(struct pairsearch *s);

/* The figure that counts: of two the better, since what was good once is not
 * broken. */
const struct pairsearch_cell *
pairsearch_cell_of(const struct pairsearch_record *r, unsigned direction);

enum pairsearch_mark pairsearch_mark(const struct pairsearch *s,
                                     const struct pairsearch_cell *cell,
                                     enum pairsearch_level level);

/* Which of the two nodes of a record it is. */
static inline unsigned pairsearch_side(const struct pairsearch_record *r,
                                       uint32_t node)
{
    return r->nodes[0] == node ? 0 : 1;
}

/* The end that sends, or receives, in a direction of a record. */
static inline struct pairsearch_end *
pairsearch_end_of(const struct pairsearch *s, const struct pairsearch_record *r,
                  unsigned direction, unsigned as)
{
    return &s->inner[r->nodes[direction ^ as]].ends[as];
}

/* It sends well and receives well. */
static inline bool pairsearch_is_good(const struct pairsearch_inner *node)
{
    return node->ends[0].levels[LEVEL_RATE].is_good &&
           node->ends[1].levels[LEVEL_RATE].is_good;
}

/* Bad with everybody that it was measured with, two known good among them. */
static inline bool pairsearch_is_named(const struct pairsearch_end *end,
                                       enum pairsearch_level level)
{
    return !end->levels[level].is_good && end->levels[level].bad_known >= 2;
}

/* Bad while others ran, clearly better alone. */
bool pairsearch_is_shared(const struct pairsearch *s,
                          const struct pairsearch_record *r);
bool pairsearch_has_shared(const struct pairsearch *s, uint32_t node);

/* ---- pairsearch_verdict.c ---- */

/* After pairsearch_judge_usual: fill nodes and paths. */
void pairsearch_conclude(struct pairsearch *s);

/* Some node, path or group is named. */
bool pairsearch_has_found(const struct pairsearch *s);

/* ---- pairsearch_alone.c ---- */

/* The next round of one pair; false: none. */
bool pairsearch_plan_alone(struct pairsearch *s);

/* ---- pairsearch_groups.c ---- */

/* The next round of halves; false: none. */
bool pairsearch_plan_groups(struct pairsearch *s);

/* Its figures are in. */
void pairsearch_finish_groups(struct pairsearch *s);

#endif
