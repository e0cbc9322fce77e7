/* SPDX-License-Identifier: Apache-2.0
 *
 * One table makes the command-line parser, the help text, the environment
 * names and the list that the man page is tested against. Pure: the
 * environment comes in through a look-up function.
 *
 * Long options are read with dashes and underscores alike, with "=VALUE" or
 * a separate argument; unique prefixes are not guessed. An unknown option is
 * answered with the nearest known one. `--` ends the options; so does the
 * first argument that is not one, when `stops_at_operand` is set. Letters
 * may be bundled (-vq) and take their value as -N4, -N=4 or -N 4.
 *
 * Giving an option twice with two values is an error unless it `repeats`;
 * the same value again is ignored. An empty environment value counts as
 * unset; that of a switch is 1 or 0 (or true/false, yes/no, on/off).
 */
#ifndef GPUL_COMMON_OPTIONS_H
#define GPUL_COMMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"
#include "common/error.h"
#include "common/nearest.h" /* with it, for verbs and roles */

struct gpul_option {
    const char *name;    /* "join-timeout", without dashes */
    const char *aliases; /* "nnodes rdzv-timeout": other long names, or NULL */
    char letter;         /* 'v', or 0 */
    const char *value;   /* "SECONDS" in the help; NULL: a switch */
    const char *environment; /* "GPULAUNCH_JOIN_TIMEOUT", or NULL */
    const char *group;       /* heading in the help */
    const char *help;        /* one sentence; may hold several lines' worth */
    bool repeats;            /* each value counts, in order */
    bool is_hidden;          /* not in the help */
};

/* Where a value came from; a flag wins over the environment. */
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
 * option and the nearest one, missing, superfluous or contradictory value,
 * an operand where none can be. The outputs are then 0 and false. */
int gpul_options_parse(const struct gpul_options *o, int argc,
                       char *const argv[], int *rest, bool *has_separator,
                       struct gpul_error *err);

/* Append the options part of a help text, grouped, 80 columns. Returns 0, or
 * GPUL_ELIMIT when `out` could not hold it. */
int gpul_options_help(struct gpul_buf *out, const struct gpul_options *o);

#endif
