/* SPDX-License-Identifier: Apache-2.0
 *
 * What a check has found out, for people: findings by severity, each with its
 * nodes and what to do, the figures of the self-test, and a last line that
 * says what it comes to. Pure.
 */
#ifndef LAUNCHER_CHECKTABLE_H
#define LAUNCHER_CHECKTABLE_H

#include <stdbool.h>

#include "common/buf.h"
#include "launcher/checkbook.h"
#include "launcher/record.h"

struct checktable {
    const struct checkbook *book;
    const struct record *record; /* with its end */
    uint32_t node_count;
    int exit_code; /* of gpulaunch */
    size_t width;  /* columns; 0: no line is wrapped */
    bool has_color;
    bool has_passes; /* those that passed, too */
};

/* Errors: GPUL_ELIMIT. */
int checktable_print(struct gpul_buf *out, const struct checktable *t);

#endif
