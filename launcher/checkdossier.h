/* SPDX-License-Identifier: Apache-2.0
 *
 * A check as a dossier: what a record, and --json, are made of. Pure.
 */
#ifndef LAUNCHER_CHECKDOSSIER_H
#define LAUNCHER_CHECKDOSSIER_H

#include "launcher/checkbook.h"
#include "launcher/dossier.h"
#include "launcher/plan.h"
#include "launcher/record.h"

struct checkdossier {
    const struct plan *plan;
    const struct record *record; /* with its end */
    const struct checkbook *book;
    const char *job_id;
    int exit_code; /* of gpulaunch */
};

/* Fill an initialised dossier; see dossier.is_failed. */
void checkdossier_fill(struct dossier *d, const struct checkdossier *c);

/* Its part of pair trials: checkdossier_pairs.c. */
void checkdossier_pairs(struct dossier *d, const struct checkbook *book);

#endif
