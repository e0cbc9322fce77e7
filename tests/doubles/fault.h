/* SPDX-License-Identifier: Apache-2.0
 *
 * What the scenario's faults ask of one call. A call gathers its orders
 * once, then acts on each where it belongs. */
#ifndef DOUBLES_FAULT_H
#define DOUBLES_FAULT_H

#include "tests/doubles/scenario.h"

/* Who calls, and how often it has been at each point. */
struct fault_caller {
    int rank; /* SCENARIO_ANY before it is known */
    int gpu;
    int calls[POINT_COUNT];
};

/* All that applies to one call, together. */
struct fault_orders {
    int code; /* to return; 0: none */
    bool hangs;
    bool stalls;
    bool never_arrives;
    uint64_t late_ms;
    int signal; /* 0: none */
    uint64_t signal_after_ms;
    bool flips;
    uint64_t element;
    unsigned bit;
};

/* Counts a call at `point` (and at POINT_COLLECTIVE, when it is one). */
struct fault_orders fault_call(const struct scenario *scenario,
                               struct fault_caller *caller,
                               enum scenario_point point);

/* How many times slower a rank is than its links; 1: it is not. */
double fault_slowness(const struct scenario *scenario, int rank, int gpu);

/* Ends the process by the signal ordered, at once or from a thread. */
void fault_signal(const struct fault_orders *orders);

/* For calls that nothing can interrupt: waits as ordered, then hangs for
 * ever if that is ordered. */
void fault_block(const struct fault_orders *orders);

/* A call at a point that comes before ranks are known: counted for the whole
 * process, everything done. The code to return, or 0. */
int fault_early(enum scenario_point point, int gpu);

#endif
