/* SPDX-License-Identifier: Apache-2.0
 *
 * What the two nodes of a trial tell of it, put together: figures for the
 * search, and a row for the user. Pure; docs/check.md, "Pair trials", has the
 * rules in words.
 */
#ifndef COORDINATOR_TRIALS_H
#define COORDINATOR_TRIALS_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/pairsearch.h"
#include "coordinator/text.h"
#include "proto/message.h"

enum {
    /* So many round trips without a packet lost: what is sent again under
     * load then is a queue that was full, not data that got lost. */
    TRIALS_CLEAN_PINGS = 64,
    /* Of the flow both ends together were on a processor, or waited for one:
     * from here on they, and not the link, set the pace. One of a pair works
     * while the other one waits, so hosts that are the bound reach 100 and more
     * (111 to 160 were seen, 55 at most with links that are). */
    TRIALS_BUSY_PERCENT = 100,
    /* So many times below the others no busy processor explains it. */
    TRIALS_BUSY_FACTOR = 10,
};

/* What one node knows of one way. */
struct trial_way {
    uint64_t bytes;
    uint64_t ns;
    uint64_t rtt_ns; /* median; 0: none */
    uint64_t segments;
    uint64_t retransmits;
    uint64_t lone_retransmits;
    uint32_t rtt_count;
    uint8_t busy_percent;
    uint8_t failure; /* gpul.TrialWay.Failure */
    char *text;      /* of a failure; owned, or NULL */
};

/* What one node has told of its trial. */
struct trial_side {
    struct trial_way sending;
    struct trial_way receiving;
};

/* Take what the message says, in place of what there is. Returns 0 or
 * GPUL_ENOMEM. */
int trial_side_set(struct trial_side *side, const Gpul__TrialResult *result);

/* Nothing is known any more. An all-zero one may be cleared too. */
void trial_side_clear(struct trial_side *side);

/* Bytes a second that came; 0: none were measured. */
double trial_rate(const struct trial_way *receiving);

/* The way from the node that tells `sending` to that which tells `receiving`.
 * `reference` stands for a good one, in bytes a second, the same in all rounds;
 * 0: not known. Where the processors of the two set the pace, all that the rate
 * shows is that the link is no worse: it counts as the reference then, or, far
 * below it, as unknown. */
void trial_figure(struct pairsearch_figure *out,
                  const struct trial_way *sending,
                  const struct trial_way *receiving, double reference);

/* The median of rates[0 .. n-1]; 0 for none. Sorts them. */
double trial_median(double *rates, uint32_t n);

/* What both have told, but for names, round and rail. `error` has room for
 * GPUL_EVIDENCE_BYTES_MAX + 1 bytes and must live as long as the row. */
void trial_row(Gpul__PairRow *row, char *error, const struct trial_side *a,
               const struct trial_side *b);

#endif
