/* SPDX-License-Identifier: Apache-2.0
 *
 * Both sides of a comparison place their ranks on cores in the same way.
 */
#ifndef TESTS_BENCH_PIN_H
#define TESTS_BENCH_PIN_H

#include <sched.h>
#include <unistd.h>

/* Rank r on core r while every rank has one of its own; where cores are
 * shared, the scheduler does better than a fixed place. */
static inline void pin_to_core(unsigned rank, unsigned rank_count)
{
    cpu_set_t set;
    if (rank_count <= (unsigned)sysconf(_SC_NPROCESSORS_ONLN)) {
        CPU_ZERO(&set);
        CPU_SET(rank, &set);
        sched_setaffinity(0, sizeof(set), &set);
    }
}

#endif
