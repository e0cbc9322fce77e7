/* SPDX-License-Identifier: Apache-2.0
 *
 * One run of a sweep: a gpulaunch of its own, whose output is passed on to
 * standard error and searched for figures. Edge.
 *
 * Waits as long as that gpulaunch does, which has bounds of its own. SIGINT,
 * SIGTERM and SIGHUP are passed on to it, each time that they come.
 */
#ifndef LAUNCHER_SCALECHILD_H
#define LAUNCHER_SCALECHILD_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "launcher/metricline.h"

enum { SCALECHILD_FIGURES_MAX = 1 << 20 }; /* of one run; more do not count */

struct scalechild {
    const char *path;
    char *const *arguments;
    char *const *environment;
    int signal_fd;         /* of those three, and of SIGCHLD */
    const regex_t *metric; /* NULL: lines are not searched */
    bool is_quiet;         /* what ranks write is not passed on */
};

struct scalechild_end {
    int exit_code; /* 128+N for signal N */
    int signal;    /* the first that came meanwhile; 0: none */
    struct metricline_figure *figures; /* owned: to be freed */
    size_t figure_count;
};

/* To its end. Errors: GPUL_ESYS, GPUL_ENOMEM: it could not be started, or not
 * be waited for; it is ended then. */
int scalechild_run(struct scalechild_end *end, const struct scalechild *child,
                   struct gpul_error *err);

#endif
