/* SPDX-License-Identifier: Apache-2.0 */
#include "common/clock.h"

#include <time.h>

static uint64_t read_ns(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now); /* cannot fail for these clocks */
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t gpul_clock_ms(void)
{
    return read_ns(CLOCK_BOOTTIME) / 1000000u;
}

uint64_t gpul_clock_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

uint64_t gpul_clock_real_ns(void)
{
    return read_ns(CLOCK_REALTIME);
}
