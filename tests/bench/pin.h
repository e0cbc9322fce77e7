/* SPDX-License-Identifier: Apache-2.0
 *
 * Both sides of a comparison place their ranks on cores in the same way.
 */
#ifndef TESTS_BENCH_PIN_H
#define TESTS_BENCH_PIN_H

#include <sched.h>
#include <unistd.h>

/* Rank r on core r modulo the number of cores. */
static inline void pin_to_core(unsigned rank)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(rank % (unsigned)sysconf(_SC_NPROCESSORS_ONLN), &set);
    sched_setaffinity(0, sizeof(set), &set);
}

#endif
