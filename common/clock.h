/* SPDX-License-Identifier: Apache-2.0
 *
 * The clocks of the project. Edge: only I/O files read them.
 */
#ifndef GPUL_COMMON_CLOCK_H
#define GPUL_COMMON_CLOCK_H

#include <stdint.h>

/* Milliseconds since boot, suspend included; for every deadline. Not moved
 * by changes of the date. */
uint64_t gpul_clock_ms(void);

/* Nanoseconds of CLOCK_MONOTONIC; for measuring. */
uint64_t gpul_clock_ns(void);

/* Nanoseconds of CLOCK_REALTIME, since 1970; to compare it with that of
 * another machine. */
uint64_t gpul_clock_real_ns(void);

#endif
