/* SPDX-License-Identifier: Apache-2.0
 *
 * Records as files, and what is drawn of them. Edge.
 */
#ifndef LAUNCHER_DRAWING_H
#define LAUNCHER_DRAWING_H

#include <stdbool.h>

#include "common/error.h"
#include "launcher/dossier.h"

/* Where each goes; NULL: not wanted, "-": standard output. */
struct drawings {
    const char *record;
    const char *html;
    const char *junit;
    const char *prometheus;
};

/* Could all of them be written? To be asked before hours of measuring.
 * Errors: as savefile_check, naming the option. */
int drawing_check(const struct drawings *w, struct gpul_error *err);

/* Write all that is wanted; each file is whole or as it was. Errors: as
 * savefile_write; GPUL_ENOMEM. What could be written before one stays. */
int drawing_write(const struct drawings *w, const struct dossier *d,
                  struct gpul_error *err);

/* Read a record into an initialised dossier. Errors: as dossier_read, and
 * those of reading a file, naming it. */
int drawing_read(struct dossier *d, const char *path, struct gpul_error *err);

/* Print the differences of two records. *is_same: there are none. */
int drawing_compare(bool *is_same, const char *before, const char *after,
                    struct gpul_error *err);

#endif
