/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of host names or literals, folded into ranges: `node[01-16,20]`,
 * `10.0.0.[1-4]`, `a,b,c`. Order and repeats are kept: a list is a sequence,
 * not a set. The syntax is the one Slurm, pdsh and munge users type. Pure.
 *
 * Names have at most 253 bytes, none of them a blank, a comma or a bracket.
 * A name may have several brackets (rack[1-2]node[1-8]); the first varies
 * slowest. Leading zeros are kept.
 */
#ifndef GPUL_COMMON_HOSTLIST_H
#define GPUL_COMMON_HOSTLIST_H

#include <stddef.h>

#include "common/buf.h"
#include "common/error.h"

struct gpul_hostlist {
    char **names; /* each NUL-terminated, owned */
    size_t count;
    size_t capacity;
};

void gpul_hostlist_init(struct gpul_hostlist *l);
void gpul_hostlist_release(struct gpul_hostlist *l);

/* Append a copy of one name. Errors: GPUL_ENOMEM. */
int gpul_hostlist_push(struct gpul_hostlist *l, const char *name);

/* Append the names of an expression; `count_max` bounds the list as a whole.
 * Errors (the list is then unchanged): GPUL_EINVAL with the column of the
 * fault, GPUL_ELIMIT, GPUL_ENOMEM. */
int gpul_hostlist_expand(struct gpul_hostlist *l, const char *expression,
                         size_t count_max, struct gpul_error *err);

/* What is wrong with an item, and where: bytes from its beginning. */
struct gpul_hostlist_fault {
    size_t at;
    const char *what; /* static words; NULL: nothing */
};

/* Append the names of one item, text[0..bytes): no comma outside brackets.
 * For callers that have a file and a line to name. Errors (the list is then
 * unchanged): GPUL_EINVAL with *fault, GPUL_ELIMIT, GPUL_ENOMEM. */
int gpul_hostlist_expand_item(struct gpul_hostlist *l, const char *text,
                              size_t bytes, size_t count_max,
                              struct gpul_hostlist_fault *why);

/* Append to `out` the shortest expression this folding finds for names
 * first .. first+count-1; expanding it gives them back, in order. An IPv6
 * literal (it has a colon) is never folded and never read as a range.
 * Returns 0, or GPUL_ELIMIT when `out` could not hold it. */
int gpul_hostlist_fold(struct gpul_buf *out, const struct gpul_hostlist *l,
                       size_t first, size_t count);

/* Natural order: node7 before node66, node07 equal in value to node7 but
 * after it. <0, 0, >0. */
int gpul_hostlist_compare(const char *a, const char *b);

#endif
