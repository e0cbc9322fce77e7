/* SPDX-License-Identifier: Apache-2.0
 *
 * Which addresses of a node the others are to dial, and in which order. Pure.
 */
#ifndef WORKER_LINKPICK_H
#define WORKER_LINKPICK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"

enum {
    /* That are looked at: so many candidates, and as many others. */
    INTERFACES_MAX = 128,
};

/* One address. */
struct interface {
    char name[GPUL_INTERFACE_BYTES_MAX + 1];
    char address[GPUL_ADDRESS_BYTES_MAX + 1];
    const char *kind; /* "ethernet", "bridge", ... */
    uint32_t mbits;   /* 1e6 bits a second, one way; 0: unknown */
    bool is_rdma;
    bool is_tunnel;
    bool is_link_local;
    uint16_t port; /* where the node listens, 0: nowhere */
    /* Why it is no candidate, "": it is one. */
    char rejection[GPUL_REJECTION_BYTES_MAX + 1];
};

/* Put the candidates first, in the order of the choice, at most
 * GPUL_LINKS_MAX; and drop what is over GPUL_INTERFACES_MAX. `wanted` is the
 * user's list of names and addresses ("": none), which counts instead of all
 * reasons but that an address is link-local. Returns how many are left;
 * *candidates of them come first. */
size_t linkpick_sort(struct interface *all, size_t count, const char *wanted,
                     size_t *candidates);

enum { LINKPICK_TEXT_BYTES = 768 };

/* Why there is no candidate, with what there is instead. */
void linkpick_explain(char out[LINKPICK_TEXT_BYTES],
                      const struct interface *all, size_t count,
                      const char *wanted);

#endif
