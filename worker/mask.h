/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of processors or NUMA nodes as words of bits, in the form that the
 * kernel takes them, and as the text that it writes: "0-3,8". Pure.
 *
 * A number beyond the words is never in a set, and is not put into one.
 */
#ifndef WORKER_MASK_H
#define WORKER_MASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

bool mask_has(const uint64_t *mask, size_t words, uint32_t number);
void mask_add(uint64_t *mask, size_t words, uint32_t number);
void mask_join(uint64_t *mask, const uint64_t *other, size_t words);
void mask_meet(uint64_t *mask, const uint64_t *other, size_t words);
bool mask_is_empty(const uint64_t *mask, size_t words);
size_t mask_count(const uint64_t *mask, size_t words);

/* Read "0-3,8", a newline at its end or not; "" is the empty set. False, with
 * the set empty, for anything else. */
bool mask_parse(uint64_t *mask, size_t words, const char *text);

/* Append the same form. */
int mask_format(struct gpul_buf *out, const uint64_t *mask, size_t words);

#endif
