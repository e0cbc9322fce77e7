/* SPDX-License-Identifier: Apache-2.0
 *
 * What somebody may have meant by a word that does not exist. For options,
 * verbs and roles. Pure.
 */
#ifndef GPUL_COMMON_NEAREST_H
#define GPUL_COMMON_NEAREST_H

#include <stddef.h>

/* The candidate nearest to `word`: the smallest number of insertions,
 * deletions, replacements and swaps of neighbours, if that is at most a
 * third of the longer word; else one that `word` (three letters or more) is
 * the beginning of; else NULL. The first of equals wins. */
const char *gpul_nearest(const char *word, const char *const *candidates,
                         size_t count);

#endif
