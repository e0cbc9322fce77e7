/* SPDX-License-Identifier: Apache-2.0
 *
 * From which address of this machine does the route to a host begin? That is
 * where a node over there finds us: no interface and no name is guessed. Edge.
 *
 * Happy path, for each host in a process of its own: ask ssh which host it
 * would connect to and what it is set up for (ssh -G), look that host up, ask
 * the kernel for the route (connect of a datagram socket, which sends nothing).
 * Failure: a name that nobody knows, a name server that is silent (the process
 * is ended after LOCALADDR_MS), no route. Literals are never looked up.
 */
#ifndef LAUNCHER_LOCALADDR_H
#define LAUNCHER_LOCALADDR_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "launcher/nodes.h"
#include "proto/limits.h"

#define LOCALADDR_MS 5000u

enum { LOCALADDR_WORDS_BYTES = 200 };

struct localaddr {
    char address[GPUL_ADDRESS_BYTES_MAX + 1]; /* literal; "": not found */
    char words[LOCALADDR_WORDS_BYTES];        /* why not */
    bool is_known;    /* the name, if the address is not */
    uint32_t options; /* for its sessions, see launcher/sshconfig.h */
};

/* `ssh` is the command and its options, NULL-terminated; out[i] is for node i.
 * Takes LOCALADDR_MS for each 32 nodes at most. Errors: GPUL_ESYS (no process
 * could be started); what is found out of single hosts is none. */
int localaddr_find(struct localaddr *out, const struct nodes *nodes,
                   char *const *ssh, struct gpul_error *err);

#endif
