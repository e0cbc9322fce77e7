/* SPDX-License-Identifier: Apache-2.0
 *
 * One table makes the command-line parser, the help text, the environment
 * names and the list that the man page is tested against. Pure: the
 * environment comes in through a look-up function.
 *
 * Long options are read with dashes and underscores alike, with "=VALUE" or
 * a separate argument; unique prefixes are not guessed. An unknown option is
 * answered with the nearest known one. `--` ends the options; so does the
 * first argument that is not one, when `stops_at_operand` is set.
 */
#ifndef GPUL_COMMON_OPTIONS_H
#define GPUL_COMMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"
#include "common/error.h"

struct gpul_option {
    const char *name;    /* "join-timeout", without dashes */
    const char *aliases; /* "nnodes rdzv-timeout": other long names, or NULL */
    char letter;         /* 'v', or 0 */
    const char *value;   /* "SECONDS" in the help; NULL: a switch */
    const char *environment; /* "GPULAUNCH_JOIN_TIMEOUT", or NULL */
    const char *group;       /* heading in the help */
    const char *help;        /* one sentence; may hold several lines' worth */
    bool repeats;            /* may be given more than once */
    bool is_hidden;          /* not in the help */
};

/* Where a value came from; later ones win. */
enum gpul_option_source {
    GPUL_SOURCE_NONE = 0,
    GPUL_SOURCE_ENVIRONMENT = 1,
    GPUL_SOURCE_FLAG = 2,
};

/* Called for each value found, environment first, in order. `index` is the
 * place in the table; `value` is borrowed, NULL for a switch. `spelling` is
 * what the user wrote ("--nnodes", "GPULAUNCH_NODES"), for messages.
 * Returns 0, or a failure that ends the parse. */
typedef int (*gpul_option_fn)(void *arg, size_t index, const char *value,
                              const char *spelling,
                              enum gpul_option_source source,
                              struct gpul_error *err);

typedef const char *(*gpul_getenv_fn)(void *arg, const char *name);

struct gpul_options {
    const struct gpul_option *table;
    size_t count;
    bool stops_at_operand;
    gpul_option_fn on_value;
    gpul_getenv_fn getenv; /* NULL: no environment */
    void *arg;             /* of both functions */
};

/* Parse argv[0..argc-1] (without the program name). *rest is the index of
 * the first argument that was not consumed; *has_separator tells whether a
 * "--" stood before it. Errors: GPUL_EINVAL with a whole sentence: unknown
 * option and the nearest one, missing or superfluous value. */
int gpul_options_parse(const struct gpul_options *o, int argc,
                       char *const argv[], int *rest, bool *has_separator,
                       struct gpul_error *err);

/* Append the options part of a help text, grouped, 80 columns. */
int gpul_options_help(struct gpul_buf *out, const struct gpul_options *o);

/* The candidate nearest to `word` by edit distance, or NULL if none is near
 * (distance over a third of the length). For options, verbs and roles. */
const char *gpul_nearest(const char *word, const char *const *candidates,
                         size_t count);

#endif
