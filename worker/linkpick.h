/* SPDX-License-Identifier: Apache-2.0
 *
 * Which addresses of a node the others are to dial, and in which order. Pure.
 */
#ifndef WORKER_LINKPICK_H
#define WORKER_LINKPICK_H

#include <stddef.h>

#include "proto/interfaces.h"

/* Put the candidates first, in the order of the choice, at most
 * GPUL_LINKS_MAX, among them the one that is_joined and one of each family, if
 * there are any; and drop what is over GPUL_INTERFACES_MAX. `wanted` is the
 * user's list of names and addresses ("": none), which counts instead of all
 * reasons but that an address is link-local. Returns how many are left;
 * *candidates of them come first. */
size_t linkpick_sort(struct gpul_interface *all, size_t count,
                     const char *wanted, size_t *candidates);

enum { LINKPICK_TEXT_BYTES = 768 };

/* Why there is no candidate, with what there is instead. */
void linkpick_explain(char out[LINKPICK_TEXT_BYTES],
                      const struct gpul_interface *all, size_t count,
                      const char *wanted);

#endif
