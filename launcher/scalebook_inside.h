/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of scalebook: each appends its items to the record. Pure.
 */
#ifndef LAUNCHER_SCALEBOOK_INSIDE_H
#define LAUNCHER_SCALEBOOK_INSIDE_H

#include "launcher/scalebook.h"

/* A fit of which nothing is known yet; `note` is copied. NULL: no memory. */
struct dossier_fit *scalebook_add_fit(struct scalebook *b, const char *model,
                                      const char *note);

/* Of each collective, size and count of nodes the run in the middle; and fits
 * of the all-reduce. */
void scalebook_add_bandwidths(struct scalebook *b);

/* busbw of the largest all-reduce on so many nodes, from what
 * scalebook_add_bandwidths has added. NAN: none. */
double scalebook_busbw(const struct scalebook *b, uint32_t nodes);

/* Throughputs, efficiencies, fits of them, predictions. */
void scalebook_add_efficiencies(struct scalebook *b);

#endif
