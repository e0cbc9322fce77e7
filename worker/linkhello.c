/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/linkhello.h"

#include <string.h>

static const uint8_t magic[] = {'g', 'p', 'u', 'l', 'i', 'n', 'k', '1'};

static uint8_t *put(uint8_t *out, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++) {
        *out++ = (uint8_t)(value >> (8 * (bytes - 1 - i)));
    }
    return out;
}

static uint64_t take(const uint8_t **in, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++) {
        value = value << 8 | *(*in)++;
    }
    return value;
}

void linkhello_write(uint8_t out[LINKHELLO_BYTES], const struct linkhello *h)
{
    memcpy(out, magic, sizeof(magic));
    out = put(out + sizeof(magic), h->token, 8);
    out = put(out, h->from, 4);
    put(out, h->to, 4);
}

bool linkhello_read(struct linkhello *out, const uint8_t in[LINKHELLO_BYTES])
{
    if (memcmp(in, magic, sizeof(magic)) != 0) {
        return false;
    }
    in += sizeof(magic);
    out->token = take(&in, 8);
    out->from = (uint32_t)take(&in, 4);
    out->to = (uint32_t)take(&in, 4);
    return true;
}
