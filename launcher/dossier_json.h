/* SPDX-License-Identifier: Apache-2.0
 *
 * A dossier as the lines of JSON that docs/record.md describes. Edge
 * (jansson).
 */
#ifndef LAUNCHER_DOSSIER_JSON_H
#define LAUNCHER_DOSSIER_JSON_H

#include <jansson.h>

#include "common/buf.h"
#include "common/error.h"
#include "launcher/dossier.h"

/* Append a line for each item: the run, the nodes, ..., the end. Errors:
 * GPUL_ENOMEM, GPUL_ELIMIT. */
int dossier_print(struct gpul_buf *out, const struct dossier *d);

/* The same as one object: the keys of run and end, and a list for each of the
 * other types ("nodes", "findings", ...). Returns a new reference, NULL
 * without memory. */
json_t *dossier_object(const struct dossier *d);

/* Read n bytes of lines into an initialised dossier. Lines of a type that is
 * not known, and keys, are skipped; `name` is the file's, for messages. One
 * that lacks its end is read: dossier_end says so. Errors, with line and what
 * to do: GPUL_EINVAL (no JSON, no record, another schema_version, a value of
 * another kind), GPUL_ENOMEM. */
int dossier_read(struct dossier *d, const char *bytes, size_t n,
                 const char *name, struct gpul_error *err);

#endif
