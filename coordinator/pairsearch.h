/* SPDX-License-Identifier: Apache-2.0
 *
 * The search for the node or the path that is slow, cut off or losing data,
 * by tests between two nodes at a time. Pure: it says which pairs to measure
 * next, takes the figures, and ends in verdicts. docs/check.md, "How the bad
 * node is found", has the rules in words.
 *
 *     pairsearch_create(&search, &config, &err);
 *     while (pairsearch_next(search, &round)) {
 *         measure all of round.pairs at the same time, in each of them one
 *         direction after the other, so that a fault has a direction;
 *         pairsearch_report(search, i, &measure);      for each pair i
 *     }
 *     pairsearch_result(search, &result);
 *     pairsearch_destroy(search);
 *
 * One search is of one network: with several cards a node ("rails") there is
 * one search for each rail, and coordinator/railtable.h lays them side by side.
 *
 * What it rests on: a good figure from u to v shows that u sends well, that v
 * receives well, and that the path between is good, all three. So a bad
 * figure between two of which both are known good is the path's; and who is
 * bad with two known good partners in different places, and good with nobody,
 * is bad itself. A figure that is missing shows nothing. Whether a connection
 * comes about is judged in the same way, on its own.
 *
 * All memory is allocated by pairsearch_create, about 1 KiB a node, or for all
 * pairs 100 bytes a pair. The number of rounds is bounded by
 * PAIRSEARCH_ROUNDS_MAX, and a round costs n log n steps where nobody is far
 * worse off. No figure of a peer can do harm: one that is not finite or not
 * above 0 counts as unknown.
 */
#ifndef COORDINATOR_PAIRSEARCH_H
#define COORDINATOR_PAIRSEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "coordinator/pairing.h"

enum {
    PAIRSEARCH_NODES_MAX = 65536,
    PAIRSEARCH_ALL_PAIRS_NODES_MAX = 1024,
    /* Rounds in which many pairs run at once: two of neighbours, one of pairs
     * further apart, the others of suspects with good partners. */
    PAIRSEARCH_TOGETHER_MAX = 10,
    PAIRSEARCH_ALONE_MAX = 8,   /* rounds of one pair */
    PAIRSEARCH_GROUPS_MAX = 16, /* rounds of groups: log2 of the nodes */
    /* Beside those of all pairs, where these are asked for. */
    PAIRSEARCH_ROUNDS_MAX =
        PAIRSEARCH_TOGETHER_MAX + PAIRSEARCH_ALONE_MAX + PAIRSEARCH_GROUPS_MAX,
    PAIRSEARCH_EVIDENCE_MAX = 4, /* figures that a verdict brings along */
    PAIRSEARCH_PATHS_MAX = 256,
};

struct pairsearch_config {
    uint32_t node_count;
    /* What a pair must reach whatever the others do, in bytes a second: a
     * part of the ceiling of its links. 0: not known, only peers count. */
    double floor_bytes_per_s;
    /* Data that had to be sent again, as a part of all, from which a path
     * counts as lossy; 0: PAIRSEARCH_LOSS_DEFAULT. */
    double loss_limit;
    /* busbw of an all-reduce of all nodes, as it was measured, and what it
     * must reach; 0: not known. Where it is slow and all pairs are good, the
     * search goes on in halves. */
    double whole_bytes_per_s;
    double whole_floor_bytes_per_s;
    bool is_all_pairs; /* measure every pair, not the ring's alone */
};

#define PAIRSEARCH_LOSS_DEFAULT 0.01

/* ---- rounds ---- */

enum pairsearch_kind {
    PAIRSEARCH_NEIGHBOURS = 1, /* pairs of the ring */
    PAIRSEARCH_CROSS,          /* suspects with good ones, others far apart,
                                * some only so that all rounds are as full */
    PAIRSEARCH_ALL,            /* one of the rounds of all pairs */
    PAIRSEARCH_ALONE,          /* one pair while all others are silent */
    PAIRSEARCH_GROUPS,         /* an all-reduce within each group, at once */
};

/* Valid until the next call of pairsearch_next or _release. */
struct pairsearch_round {
    uint32_t number; /* from 1 */
    enum pairsearch_kind kind;
    const struct pairing_pair *pairs;   /* not for PAIRSEARCH_GROUPS */
    const struct pairing_group *groups; /* only for PAIRSEARCH_GROUPS */
    uint32_t count;
};

/* ---- figures ---- */

enum pairsearch_status {
    PAIRSEARCH_UNKNOWN = 0, /* it could not be measured, or nobody said */
    PAIRSEARCH_MEASURED,
    PAIRSEARCH_REFUSED, /* no connection came about in this direction */
    PAIRSEARCH_TIMEOUT, /* connected, but the data did not come in time */
};

/* One direction of one pair; all zero is unknown. In the direction a to b, a
 * is the one that dials, b listens, and the data goes from a to b. */
struct pairsearch_figure {
    enum pairsearch_status status;
    double bytes_per_s;
    double loss; /* 0 .. 1; all else, and a zero nobody measured: unknown */
};

struct pairsearch_measure {
    struct pairsearch_figure a_to_b;
    struct pairsearch_figure b_to_a;
};

/* ---- verdicts ---- */

enum pairsearch_state {
    PAIRSEARCH_NODE_UNKNOWN = 0,
    PAIRSEARCH_NODE_OK,          /* it sends well and receives well */
    PAIRSEARCH_NODE_SLOW,        /* with all partners, alone too */
    PAIRSEARCH_NODE_UNREACHABLE, /* with all partners */
};

/* Bits. Of a node: as what it is bad. Of a path: in which direction. */
enum pairsearch_way {
    PAIRSEARCH_SENDS = 1,
    PAIRSEARCH_RECEIVES = 2,
    PAIRSEARCH_A_TO_B = 1,
    PAIRSEARCH_B_TO_A = 2,
    PAIRSEARCH_BOTH_WAYS = 3,
};

/* One direction that was measured. */
struct pairsearch_evidence {
    uint32_t from;
    uint32_t to;
    uint32_t round;
    struct pairsearch_figure figure;
    bool is_alone;
};

struct pairsearch_node {
    enum pairsearch_state state;
    uint8_t ways;               /* in which it is bad, or not known */
    bool is_lossy;              /* its bad figures are those of lost data */
    bool is_tested_alone;       /* bad while all others were silent */
    uint32_t named_in;          /* the round since which this verdict stands */
    double best_bytes_per_s[2]; /* sending, receiving; 0: none */
    double ratio; /* of its best in its worst way to the reference; 0: none */
    struct pairsearch_evidence evidence[PAIRSEARCH_EVIDENCE_MAX]; /* bad ones */
    uint32_t evidence_count;
};

enum pairsearch_path_kind {
    PAIRSEARCH_PATH_SLOW = 1,
    PAIRSEARCH_PATH_LOSSY,
    PAIRSEARCH_PATH_BLOCKED, /* refused, or no answer */
    PAIRSEARCH_PATH_STALLED, /* connected, but no data in time */
    /* Bad, but whether that is a, b or the path cannot be told: a third node
     * is needed, or no node is known to be good. */
    PAIRSEARCH_PATH_UNRESOLVED,
    /* Bad while others ran, and good alone: the network between is shared.
     * No fault of either node. */
    PAIRSEARCH_PATH_CONGESTED,
};

struct pairsearch_path {
    uint32_t a;
    uint32_t b;
    enum pairsearch_path_kind kind;
    uint8_t ways; /* in which it is bad */
    bool is_tested_alone;
    uint32_t named_in;
    struct pairsearch_measure measure; /* the one that counts */
    double ratio;                      /* of its worst way; 0: no figure */
};

/* A group that is slow, though its halves are not, or are too small to be
 * split. */
struct pairsearch_group {
    struct pairing_group members;
    double bytes_per_s;
    bool are_halves_known; /* both halves were measured, and good */
};

enum pairsearch_rule {
    PAIRSEARCH_RULE_NONE = 0, /* nothing to compare with */
    /* median - max(5 % of it, 3.5 * 1.4826 * MAD). As neither is known well
     * of few, with the root of their number: 20 % / root more of the median,
     * 2.3 / root more of the MAD. But not below 75 % of the median. */
    PAIRSEARCH_RULE_PEERS,
    PAIRSEARCH_RULE_FEW,   /* 85 % of the median: fewer than 4 figures */
    PAIRSEARCH_RULE_FLOOR, /* the caller's floor, being higher */
};

/* What a figure is held against. */
struct pairsearch_reference {
    double median; /* of the healthy figures; 0: none */
    double mad;
    double threshold; /* below it a figure is slow */
    uint32_t figures; /* that the median is of */
    enum pairsearch_rule rule;
};

enum pairsearch_outcome {
    PAIRSEARCH_INCOMPLETE = 0, /* nothing is named, something is unknown */
    PAIRSEARCH_HEALTHY,        /* every node is ok, no path is bad */
    PAIRSEARCH_FOUND,          /* some node, path or group is named */
    PAIRSEARCH_NEEDS_THIRD,    /* two nodes, and their pair is bad */
    PAIRSEARCH_ALL_BAD, /* no pair is good, so nobody can be told apart */
    PAIRSEARCH_SHARED,  /* all is good alone, pairs at once are not */
};

struct pairsearch_result {
    enum pairsearch_outcome outcome;
    struct pairsearch_reference reference;
    uint32_t rounds; /* used */
    /* The last round by which a verdict was first clear: the later ones only
     * confirmed it. 0: nothing is named. */
    uint32_t named_in;
    const struct pairsearch_node *nodes;
    uint32_t node_count;
    const struct pairsearch_path *paths;
    uint32_t path_count;
    const struct pairsearch_group *groups;
    uint32_t group_count;
    uint32_t slow_nodes;
    uint32_t unreachable_nodes;
    uint32_t unknown_nodes;
    uint32_t paths_left_out; /* bad ones, beyond PAIRSEARCH_PATHS_MAX */
    /* More than half of the nodes are held for the norm, but so many are
     * clearly faster. 0: the rule. */
    uint32_t faster_nodes;
};

struct pairsearch; /* coordinator/pairsearch.c has what is inside */

/* Errors: GPUL_EINVAL for fewer than two nodes, GPUL_ELIMIT for more than
 * PAIRSEARCH_NODES_MAX (for all pairs PAIRSEARCH_ALL_PAIRS_NODES_MAX),
 * GPUL_ENOMEM; then *search is NULL. */
int pairsearch_create(struct pairsearch **search,
                      const struct pairsearch_config *config,
                      struct gpul_error *err);

/* NULL is accepted. */
void pairsearch_destroy(struct pairsearch *search);

/* The next round; false: there is none, the verdicts stand. What was not
 * reported of the round before is unknown from here on. */
bool pairsearch_next(struct pairsearch *search, struct pairsearch_round *round);

/* The figures of pair `index` of the round that pairsearch_next gave last; an
 * index beyond it is ignored, and of several reports the last one counts. */
void pairsearch_report(struct pairsearch *search, uint32_t index,
                       const struct pairsearch_measure *measure);

/* busbw of group `index` of a round of groups, likewise. */
void pairsearch_report_group(struct pairsearch *search, uint32_t index,
                             const struct pairsearch_figure *figure);

/* What is known. May be asked for between two rounds too: then the verdicts
 * are those that the figures so far allow. The pointers are valid until the
 * next call with this search. */
void pairsearch_result(struct pairsearch *search,
                       struct pairsearch_result *result);

#endif
