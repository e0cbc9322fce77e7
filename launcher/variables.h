/* SPDX-License-Identifier: Apache-2.0
 *
 * The caller's environment while words are read from it: whom to ask, and
 * where to tell what is wrong. Pure.
 */
#ifndef LAUNCHER_VARIABLES_H
#define LAUNCHER_VARIABLES_H

#include "common/error.h"
#include "common/options.h"

struct variables {
    gpul_getenv_fn getenv;
    void *arg;
    struct gpul_error *err;
};

/* NULL where it is not set; an empty value counts as that. */
const char *variables_get(const struct variables *v, const char *name);

#endif
