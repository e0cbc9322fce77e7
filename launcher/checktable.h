/* SPDX-License-Identifier: Apache-2.0
 *
 * What a check has found out, for people: findings by severity, each with its
 * nodes and what to do, and a last line. Pure.
 */
#ifndef LAUNCHER_CHECKTABLE_H
#define LAUNCHER_CHECKTABLE_H

#include <stdbool.h>

#include "common/buf.h"
#include "launcher/checkbook.h"

struct checktable {
    const struct checkbook *book;
    const Gpul__JobEnd *end;
    size_t width; /* columns */
    bool has_color;
    bool has_passes; /* those that passed, too */
};

/* Errors: GPUL_ELIMIT. */
int checktable_print(struct gpul_buf *out, const struct checktable *t);

#endif
