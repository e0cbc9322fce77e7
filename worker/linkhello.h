/* SPDX-License-Identifier: Apache-2.0
 *
 * What a dialler and a listener of docs/links.md say to each other: 24 bytes,
 * the same form both ways. Pure.
 */
#ifndef WORKER_LINKHELLO_H
#define WORKER_LINKHELLO_H

#include <stdbool.h>
#include <stdint.h>

enum { LINKHELLO_BYTES = 24 };

struct linkhello {
    uint64_t token; /* of the generation */
    uint32_t from;  /* node ranks */
    uint32_t to;
};

void linkhello_write(uint8_t out[LINKHELLO_BYTES], const struct linkhello *h);

/* False: it is none. */
bool linkhello_read(struct linkhello *out, const uint8_t in[LINKHELLO_BYTES]);

#endif
