/* SPDX-License-Identifier: Apache-2.0
 *
 * The sockets that the coordinator listens on: one for each address of this
 * machine that nodes are to find it at, never "any address". Edge.
 */
#ifndef LAUNCHER_LISTENING_H
#define LAUNCHER_LISTENING_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/hostport.h"
#include "proto/limits.h"

struct listening {
    struct gpul_hostport at[GPUL_COORDINATORS_MAX]; /* literals */
    int fds[GPUL_COORDINATORS_MAX];
    uint32_t count;
    uint16_t port; /* the same for all; 0: each gets one that is free */
};

/* Take an address in, unless it is there or there is no room for more; the
 * port is 0 until listening_open. Returns its place, or GPUL_COORDINATORS_MAX.
 */
uint32_t listening_add(struct listening *l, const char *address);

/* Where others are, loopback is of no use; the places move up. */
void listening_drop_loopback(struct listening *l);

bool listening_is_loopback(const struct listening *l);

/* Bind and listen; at[].port is then known. Errors: GPUL_ESYS and
 * GPUL_EINVAL naming the address; nothing is open then. */
int listening_open(struct listening *l, struct gpul_error *err);

void listening_close(struct listening *l);

#endif
