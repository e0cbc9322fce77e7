/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL's unique IDs on their way from the roots to all: one for every 128
 * ranks, each made once, by its own root, and used for one communicator. Pure.
 */
#ifndef COORDINATOR_IDS_H
#define COORDINATOR_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"
#include "proto/message.h"

struct ids {
    uint32_t rank_count;
    uint32_t count; /* wanted */
    uint32_t have;
    bool given[GPUL_UNIQUE_IDS_MAX];
    uint8_t bytes[GPUL_UNIQUE_IDS_MAX][GPUL_UNIQUE_ID_BYTES];
};

/* `has_one`: NCCL cannot use several somewhere. */
void ids_init(struct ids *ids, uint32_t rank_count, bool has_one);

/* The rank that makes ID `index` < count: spread evenly over the ranks. */
uint32_t ids_root(const struct ids *ids, uint32_t index);

/* Is `rank` a root, and of which ID? */
bool ids_is_root(const struct ids *ids, uint32_t rank, uint32_t *index);

enum ids_verdict {
    IDS_TAKEN = 0,
    IDS_REPEATED, /* its root has given this one before */
    IDS_REUSED,   /* another root has given the same bytes */
};

/* `id` has GPUL_UNIQUE_ID_BYTES. Not taken: nothing has changed. */
enum ids_verdict ids_take(struct ids *ids, uint32_t index, const uint8_t *id);

/* All of them, in order; `list` has room for `count` and borrows from `ids`.
 */
void ids_fill(Gpul__ProbeIds *out, ProtobufCBinaryData *list, struct ids *ids);

#endif
