/* SPDX-License-Identifier: Apache-2.0
 *
 * The record of a sweep over counts of nodes, for people: a table of 80
 * columns, and what follows from it. Pure.
 */
#ifndef LAUNCHER_SCALETABLE_H
#define LAUNCHER_SCALETABLE_H

#include "common/buf.h"
#include "launcher/dossier.h"

/* `source`: what the throughput is; "": there is none. Of the fits those that
 * may be used, and why there are none. Errors: GPUL_ELIMIT. */
int scaletable_print(struct gpul_buf *out, const struct dossier *d,
                     const char *source);

#endif
