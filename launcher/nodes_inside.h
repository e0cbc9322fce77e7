/* SPDX-License-Identifier: Apache-2.0
 *
 * What the readers of lists, files and schedulers share. Inside nodes_*.c
 * and allocation*.c only. Pure.
 *
 * A reader calls nodes_begin, nodes_add for each mention, and nodes_finish,
 * which makes one node of all mentions of a name.
 */
#ifndef LAUNCHER_NODES_INSIDE_H
#define LAUNCHER_NODES_INSIDE_H

#include "launcher/nodes.h"

/* The text that is read, for places in messages. */
struct nodes_text {
    const char *where;
    const char *line_start;
    uint32_t line; /* from 1; 0: the text has no lines */
    struct gpul_error *err;
};

/* Empty the list, and say where it will be from: n->where, of which a long
 * path keeps its end, so that messages keep theirs. Errors: GPUL_ENOMEM. */
int nodes_begin(struct nodes *n, enum nodes_source source, const char *where,
                struct gpul_error *err);

/* "hosts.txt:3:7: " or "--hosts, column 7: ", then what is wrong at `at`.
 * Returns GPUL_EINVAL. */
int nodes_fault(const struct nodes_text *t, const char *at, const char *format,
                ...) __attribute__((format(printf, 3, 4)));

/* The byte at `at` as a person may read it: 'x', or 0x01. */
const char *nodes_byte(char text[8], char c);

/* A number within [1, max] that begins at *at, before `end`; *at moves behind
 * it. `what` names it in messages. */
int nodes_read_number(const struct nodes_text *t, uint32_t *out,
                      const char **at, const char *end, uint32_t max,
                      const char *what);

/* One mention: a name or a range, text[0..bytes), with ":slots" unless
 * `is_bare`. *first is the index of the first node that it added. */
int nodes_add(struct nodes *n, const struct nodes_text *t, const char *text,
              size_t bytes, bool is_bare, uint32_t *first);

/* A scheduler counts: mentions add up, numbers or not. */
bool nodes_source_adds(enum nodes_source source);

/* Merge, and order. On failure, and if `rc` is one, the list is empty. */
int nodes_finish(struct nodes *n, int rc, struct gpul_error *err);

#endif
