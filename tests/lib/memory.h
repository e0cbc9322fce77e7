/* SPDX-License-Identifier: Apache-2.0
 *
 * Watches what the project's own code allocates: how much at most, and what
 * happens when the n-th allocation fails. Linking tests_memory routes malloc,
 * calloc, realloc and free of every static library through here.
 */
#ifndef TESTS_LIB_MEMORY_H
#define TESTS_LIB_MEMORY_H

#include <stddef.h>

/* Start to count from zero; no allocation fails. */
void memory_watch(void);

/* Bytes held now, and at most, of what was allocated since memory_watch. */
size_t memory_held(void);
size_t memory_peak(void);

/* The n-th allocation from now on fails, once; 0: none does. */
void memory_fail_at(size_t n);

#endif
