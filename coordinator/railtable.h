/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes times rails: nodes with several network cards are searched once over
 * each of them (coordinator/pairsearch.h), and this lays the verdicts side by
 * side. A node that is bad over every rail has a fault of its own; over one,
 * that card, its cable or its port; a rail that is slow for every node, its
 * switch. Pure.
 */
#ifndef COORDINATOR_RAILTABLE_H
#define COORDINATOR_RAILTABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/pairsearch.h"

enum { RAILTABLE_RAILS_MAX = 64 };

enum railtable_cause {
    RAILTABLE_UNKNOWN = 0, /* some rail of it could not be judged, none is bad
                            */
    RAILTABLE_OK,
    RAILTABLE_CARD, /* some of its rails are bad, others good */
    RAILTABLE_NODE, /* all of its rails are bad */
};

struct railtable_node {
    enum railtable_cause cause;
    uint64_t bad;     /* bits, by rail: slow or unreachable */
    uint64_t unknown; /* bits, by rail */
};

struct railtable_rail {
    double median; /* of its healthy figures; 0: none */
    double ratio;  /* to the median of the rails' medians; 0: none */
    bool is_slow;  /* clearly below the other rails, for every node */
};

struct railtable {
    uint32_t node_count;
    uint32_t rail_count;
    struct railtable_node *nodes; /* owned */
    struct railtable_rail rails[RAILTABLE_RAILS_MAX];
};

/* From the searches of the rails, which all have `node_count` nodes in the
 * same order; the cell of a node and a rail is searches[rail]'s verdict on the
 * node. Returns 0, GPUL_EINVAL for no rail, no node or a result of another
 * number of nodes, GPUL_ELIMIT for more than RAILTABLE_RAILS_MAX rails, or
 * GPUL_ENOMEM; `t` can be released in any case. */
int railtable_judge(struct railtable *t,
                    const struct pairsearch_result *results,
                    uint32_t rail_count, uint32_t node_count,
                    struct gpul_error *err);

/* An all-zero one may be released too. */
void railtable_release(struct railtable *t);

#endif
