/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the process that made an NCCL unique ID listens: the ID is opaque by
 * contract, but a failed start is explained by the address in it. Pure.
 *
 * Source: struct ncclBootstrapHandle and bootstrapGetUniqueId of NCCL
 * (src/include/bootstrap.h, src/bootstrap.cc), the same from 2.16 to 2.29: a
 * magic number of 64 bits, then a union of the two kinds of socket address,
 * in the byte order of the machine; zeros behind it, but for a count of
 * ranks that 2.29 added.
 */
#ifndef WORKER_UNIQUE_ID_H
#define WORKER_UNIQUE_ID_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/nccl_api.h"

enum { UNIQUE_ID_ADDRESS_BYTES = 64 };

struct unique_id_place {
    char address[UNIQUE_ID_ADDRESS_BYTES]; /* literal, without brackets */
    uint16_t port;
    bool is_loopback; /* nobody on another host can reach it */
};

/* False, with `out` cleared, if the layout is not the one above or there is
 * no address in it: then the place is unknown, and the ID may still be good. */
bool unique_id_place(struct unique_id_place *out,
                     const struct nccl_unique_id *id);

#endif
