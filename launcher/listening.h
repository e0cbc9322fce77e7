/* SPDX-License-Identifier: Apache-2.0
 *
 * The sockets that the coordinator listens on: one for each address of this
 * machine that nodes are to find it at, never "any address"; and where they are
 * told to look for it. Edge.
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
    uint16_t port;  /* the same for all; 0: each gets one that is free */
    bool is_chosen; /* the user has named the address */
    /* Where this machine is found from elsewhere though it does not have that
     * address: through NAT, a forwarded port. "": nowhere. */
    struct gpul_hostport advertised;
    /* What was found here and cannot be listened on, and why; "": nothing. */
    char left_out[GPUL_ERROR_TEXT_BYTES];
};

/* Take an address in, unless it is there or there is no room for more; the
 * port is 0 until listening_open. Returns its place, or GPUL_COORDINATORS_MAX.
 */
uint32_t listening_add(struct listening *l, const char *address);

/* Where others are, loopback is of no use; the places move up. */
void listening_drop_loopback(struct listening *l);

/* Does all that passes stay on this machine? */
bool listening_is_loopback(const struct listening *l);

/* Bind and listen; at[].port is then known. An address that was found and not
 * chosen may turn out to be of no use (IPv6 turned off, or not yet its own): it
 * goes, with a word in left_out, as long as another stays. Errors: GPUL_ESYS
 * and GPUL_EINVAL naming the address; nothing is open then. A port of the
 * user's that somebody else has is one, since nodes would find that other. */
int listening_open(struct listening *l, struct gpul_error *err);

void listening_close(struct listening *l);

/* Where nodes are to look, the advertised address first. Returns how many. */
uint32_t listening_told(const struct listening *l,
                        struct gpul_hostport out[GPUL_COORDINATORS_MAX]);

#endif
