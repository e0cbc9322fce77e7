/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/ids.h"

#include <assert.h>
#include <string.h>

void ids_init(struct ids *ids, uint32_t rank_count, bool has_one)
{
    uint32_t count =
        (rank_count + GPUL_RANKS_PER_UNIQUE_ID - 1) / GPUL_RANKS_PER_UNIQUE_ID;
    if (count > GPUL_UNIQUE_IDS_MAX) {
        count = GPUL_UNIQUE_IDS_MAX;
    }
    *ids = (struct ids){.rank_count = rank_count};
    ids->count = has_one ? 1 : count;
}

uint32_t ids_root(const struct ids *ids, uint32_t index)
{
    assert(index < ids->count);
    return (uint32_t)((uint64_t)index * ids->rank_count / ids->count);
}

/* floor(k n / c) <= rank holds for all k <= ((rank + 1) c - 1) / n. */
bool ids_is_root(const struct ids *ids, uint32_t rank, uint32_t *index)
{
    uint64_t last = (((uint64_t)rank + 1) * ids->count - 1) / ids->rank_count;
    *index = (uint32_t)last;
    return ids_root(ids, *index) == rank;
}

enum ids_verdict ids_take(struct ids *ids, uint32_t index, const uint8_t *id)
{
    assert(index < ids->count);
    if (ids->given[index]) {
        return IDS_REPEATED;
    }
    for (uint32_t i = 0; i < ids->count; i++) {
        if (ids->given[i] &&
            memcmp(ids->bytes[i], id, GPUL_UNIQUE_ID_BYTES) == 0) {
            return IDS_REUSED;
        }
    }
    memcpy(ids->bytes[index], id, GPUL_UNIQUE_ID_BYTES);
    ids->given[index] = true;
    ids->have++;
    return IDS_TAKEN;
}

void ids_fill(Gpul__ProbeIds *out, ProtobufCBinaryData *list, struct ids *ids)
{
    for (uint32_t i = 0; i < ids->count; i++) {
        list[i] = (ProtobufCBinaryData){GPUL_UNIQUE_ID_BYTES, ids->bytes[i]};
    }
    out->ids = list;
    out->n_ids = ids->count;
}
