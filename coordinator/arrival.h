/* SPDX-License-Identifier: Apache-2.0
 *
 * Late or slow: who made the others wait in a collective, from the times at
 * which each rank entered and left it. Pure. docs/check.md has it in words.
 *
 * In a collective that leaves nobody out (all-reduce, all-gather, barrier) all
 * wait for all. The rank that is in it longest is the first that came, so the
 * victim; the one that came last is the cause. Told apart are
 *
 *     late     enters after the others, since what it did before took longer;
 *              from then on the collective takes as long as ever
 *     slow     enters with the others, or late because it left late, and is
 *              still at it when they have left
 *     victim   waited for somebody that is named
 *
 * A slow network card is none of these: in a ring all leave at the same time,
 * whoever is slow. That is what coordinator/pairsearch.h finds.
 *
 * A difference within the uncertainty of the clocks is no difference: whose
 * clock is not known well enough is unknown. What a rank did before is timed
 * on its own clock, and needs no other.
 */
#ifndef COORDINATOR_ARRIVAL_H
#define COORDINATOR_ARRIVAL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

enum {
    ARRIVAL_RANKS_MAX = 1 << 20,
    ARRIVAL_ITERATIONS_MAX = 1 << 16,
    ARRIVAL_CELLS_MAX = 1 << 22, /* ranks times iterations */
    ARRIVAL_SPIKES_MAX = 16,     /* that are listed; the others are counted */
};

/* One collective of one rank, by the clock of its node. Entering and leaving
 * at the same instant, or leaving before it was entered: not measured. */
struct arrival_visit {
    int64_t enter_ns;
    int64_t leave_ns;
};

/* Of the clock of a rank, as in coordinator/clockskew.h. */
struct arrival_clock {
    int64_t offset_ns;
    uint64_t uncertainty_ns;
    bool is_known;
};

struct arrival_input {
    uint32_t ranks;
    uint32_t iterations;
    const struct arrival_visit *visits; /* [iteration * ranks + rank] */
    const struct arrival_clock *clocks; /* [rank] */
};

enum arrival_state {
    ARRIVAL_UNKNOWN = 0, /* not measured, or its clock is not known enough */
    ARRIVAL_ON_TIME,
    ARRIVAL_LATE,
    ARRIVAL_SLOW,
    ARRIVAL_LATE_AND_SLOW,
    ARRIVAL_VICTIM,
};

/* Medians over the iterations in which it was measured, against the lower
 * median of all ranks: half of them may be late. Negative: before that. */
struct arrival_rank {
    enum arrival_state state;
    double late_ns;        /* entered so much after the others */
    double left_late_ns;   /* left so much after the others */
    double inside_ns;      /* from entering to leaving: the victim's is long */
    double waited_ns;      /* from entering to the arrival of the last */
    double before_ns;      /* from leaving the last one to entering; 0: none */
    double before_more_ns; /* so much longer than that of the others */
    double uncertainty_ns; /* of the first two */
    uint32_t last_count;   /* iterations in which it was clearly the last */
    uint32_t iterations;   /* measured */
};

enum arrival_spike_kind {
    ARRIVAL_SPIKE_SHARED = 1, /* the collective itself, or all ranks before */
    ARRIVAL_SPIKE_RANK,       /* that rank alone, before it entered */
};

struct arrival_spike {
    enum arrival_spike_kind kind;
    uint32_t iteration;
    uint32_t rank; /* not of a shared one */
    double factor; /* how many times the mean */
};

struct arrival_report {
    struct arrival_rank *ranks; /* owned; one for each rank */
    uint32_t late_count;        /* late, or late and slow */
    uint32_t slow_count;        /* slow, or late and slow */
    uint32_t victim_count;
    uint32_t unknown_count;
    double together_ns; /* median: from the last arrival to the last leaving */
    double wait_ns;     /* median: from the usual arrival to the last */
    double cv;     /* of the time together: deviation to mean; 0: too few */
    bool is_noisy; /* cv > GPUL_NOISY_VARIATION */
    struct arrival_spike spikes[ARRIVAL_SPIKES_MAX];
    uint32_t spike_count; /* may be more than are listed */
};

#define ARRIVAL_SPIKE_FACTOR 1.5
/* Up to this part of the time together a delay makes nobody late. */
#define ARRIVAL_MARGIN 0.05

/* Returns 0, GPUL_EINVAL for no ranks or no iterations, GPUL_ELIMIT over a
 * bound above, or GPUL_ENOMEM. `report` can be released in any case. */
int arrival_judge(struct arrival_report *report,
                  const struct arrival_input *input, struct gpul_error *err);

/* An all-zero one may be released too. */
void arrival_release(struct arrival_report *report);

#endif
