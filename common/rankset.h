/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of ranks as sorted, disjoint, inclusive ranges: "0,3-5". Pure.
 */
#ifndef GPUL_COMMON_RANKSET_H
#define GPUL_COMMON_RANKSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"

struct gpul_rankrange {
    uint32_t first;
    uint32_t last;
};

struct gpul_rankset {
    struct gpul_rankrange *ranges;
    size_t count;
    size_t capacity;
};

void gpul_rankset_init(struct gpul_rankset *s);
void gpul_rankset_release(struct gpul_rankset *s);

/* Errors: GPUL_ENOMEM. Adding what is there is fine. */
int gpul_rankset_add(struct gpul_rankset *s, uint32_t first, uint32_t last);

/* Make the set that of "0,3-5", spaces not allowed. Errors (the set is then
 * unchanged): GPUL_EINVAL with the column, GPUL_ENOMEM. */
int gpul_rankset_parse(struct gpul_rankset *s, const char *text,
                       struct gpul_error *err);

/* Append the canonical text. */
int gpul_rankset_format(struct gpul_buf *out, const struct gpul_rankset *s);

bool gpul_rankset_has(const struct gpul_rankset *s, uint32_t rank);

/* Ranks in the set. */
uint64_t gpul_rankset_size(const struct gpul_rankset *s);

/* Those of them that are below `bound`. */
uint64_t gpul_rankset_size_below(const struct gpul_rankset *s, uint32_t bound);

#endif
