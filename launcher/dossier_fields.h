/* SPDX-License-Identifier: Apache-2.0
 *
 * The items of a dossier as keys of JSON: the one table by which a record is
 * written, read and held against docs/record.schema.json. Pure.
 */
#ifndef LAUNCHER_DOSSIER_FIELDS_H
#define LAUNCHER_DOSSIER_FIELDS_H

#include <stddef.h>

#include "launcher/dossier.h"

enum dossier_field_kind {
    DOSSIER_TEXT,      /* const char *; NULL is null */
    DOSSIER_COUNT,     /* int64_t; DOSSIER_UNKNOWN is null */
    DOSSIER_FIGURE,    /* double; NAN is null */
    DOSSIER_FLAG,      /* bool */
    DOSSIER_TEXTS,     /* struct dossier_texts */
    DOSSIER_COMMAND,   /* the same, null without has_command */
    DOSSIER_MAP,       /* struct dossier_map */
    DOSSIER_FIGURES,   /* struct dossier_figures, an object */
    DOSSIER_NUMBERS,   /* the same, a list */
    DOSSIER_SIMULATED, /* is_simulated, null with may_be_simulated */
    DOSSIER_COUNTS,    /* an object of the end's four counts */
};

struct dossier_field {
    const char *key;
    enum dossier_field_kind kind;
    size_t offset;
};

struct dossier_shape {
    const char *name; /* value of "type" */
    size_t bytes;     /* of the item */
    const struct dossier_field *fields;
    size_t field_count;
};

const struct dossier_shape *dossier_shape(enum dossier_type type);

/* The type of this name, DOSSIER_TYPE_COUNT: none. */
enum dossier_type dossier_find_type(const char *name);

#endif
