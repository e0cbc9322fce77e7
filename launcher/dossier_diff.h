/* SPDX-License-Identifier: Apache-2.0
 *
 * What has changed from one record to another: nodes that came and went, facts
 * of the same node, findings that are new or gone, bandwidths and efficiencies
 * that moved by more than they vary anyway. Pure.
 */
#ifndef LAUNCHER_DOSSIER_DIFF_H
#define LAUNCHER_DOSSIER_DIFF_H

#include <stdbool.h>

#include "common/buf.h"
#include "launcher/dossier.h"

/* Figures that differ by less are the same: repeats on one machine do. */
#define DOSSIER_DIFF_SHARE 0.05

/* Append one line for each difference, grouped, in the order of the records:
 * "- " was and is no more, "+ " is new, "~ " has changed. Facts that change by
 * themselves (free memory and the like, `.free`, `.available`, `.used` at the
 * end of a key, and the clock) are left out. *is_same: nothing was found.
 * Records of different verbs, or of which one is simulated, are compared, and
 * that is said first. Errors: GPUL_ENOMEM, GPUL_ELIMIT. */
int dossier_diff(struct gpul_buf *out, bool *is_same,
                 const struct dossier *before, const struct dossier *after);

#endif
