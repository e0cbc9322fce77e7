/* SPDX-License-Identifier: Apache-2.0
 *
 * Which variables of an environment nodes compare, and which values must not
 * leave the node. Pure; docs/checks.md lists them.
 */
#ifndef WORKER_SURVEY_VARIABLES_H
#define WORKER_SURVEY_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>

/* Of a name of n bytes, not terminated. */
bool survey_compares(const char *name, size_t n);
bool survey_is_secret(const char *name, size_t n);

#endif
