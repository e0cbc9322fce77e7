/* SPDX-License-Identifier: Apache-2.0
 *
 * A rank's environment as text: assignments that a shell can read, or a
 * table with the rule behind each variable. Pure.
 */
#ifndef LAUNCHER_ENVTEXT_H
#define LAUNCHER_ENVTEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"
#include "gpulaunch.pb-c.h"

/* Append NAME=VALUE lines, quoted for a POSIX shell where needed, of every
 * variable that the rank gets; `skips_inherited` leaves out those that no
 * rule touched. Names that a shell cannot assign are left out as well. */
int envtext_assignments(struct gpul_buf *out, Gpul__EnvEntry *const *entries,
                        size_t count, bool skips_inherited);

/* Append a table: action, name=value, rule. Control characters in values
 * are shown as \xNN, long values are cut with "...". */
int envtext_explain(struct gpul_buf *out, Gpul__EnvEntry *const *entries,
                    size_t count);

/* "set", "kept", "replaced", "dropped", "inherited". */
const char *envtext_action(Gpul__EnvEntry__Action action);

/* Append n bytes as one word of a POSIX shell. */
int envtext_quote(struct gpul_buf *out, const uint8_t *bytes, size_t n);

#endif
