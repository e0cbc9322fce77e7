/* SPDX-License-Identifier: Apache-2.0
 *
 * The addresses of a name that may become known only later: of a pod, a
 * machine that is being started. Edge.
 *
 * Happy path: a literal is itself, nobody is asked; a name is looked up once.
 * Failure: as long as nobody knows the name it is looked up again, further and
 * further apart. A name server that is silent costs one try, not the wait:
 * each is made by a process that is ended in time.
 */
#ifndef LAUNCHER_LOOKUP_H
#define LAUNCHER_LOOKUP_H

#include <stdint.h>

#include "common/error.h"
#include "common/hostport.h"
#include "proto/limits.h"

struct lookup {
    struct gpul_hostport at[GPUL_COORDINATORS_MAX]; /* literals */
    uint32_t count;
};

/* Called once, when half of the wait is over; `left_ms` is the rest. */
typedef void (*lookup_delay_fn)(void *arg, const char *why, uint64_t left_ms);

/* Wait for the addresses until end_ms (of gpul_clock_ms), the first of them
 * if there are many. `on_delay` may be NULL. Errors: GPUL_ETIMEOUT with the
 * name and the last answer, GPUL_ESYS. */
int lookup_wait(struct lookup *out, const struct gpul_hostport *where,
                uint64_t end_ms, lookup_delay_fn on_delay, void *arg,
                struct gpul_error *err);

#endif
