/* SPDX-License-Identifier: Apache-2.0
 *
 * The binding of a launch's ranks, from what this node is: the processors that
 * this process may use, the machine, the GPUs that each rank will see. Edge.
 */
#ifndef WORKER_PLACEMENT_H
#define WORKER_PLACEMENT_H

#include "common/error.h"
#include "worker/binding.h"
#include "worker/launch.h"

struct placement_input {
    enum binding_kind kind; /* not NONE */
    const struct launch *launch;
    /* The rest is for tests: NULL in the program. */
    const char *root;        /* before the paths of /proc, /sys and /dev */
    const char *program;     /* the worker; else this process's own */
    const uint64_t *allowed; /* else the processors of this process */
};

/* What cannot be known leaves ranks unbound, with a notice. Errors:
 * GPUL_ENOMEM, GPUL_ESYS where not even the own processors are known. */
int placement_make(struct binding **out, const struct placement_input *in,
                   struct gpul_error *err);

typedef void (*placement_notice_fn)(void *arg, const char *text);

/* Give the launch its binding, none for NONE, and say what there is to say:
 * training on the wrong processors is slow, and none at all is worse, so
 * nothing that is wrong here stops a launch. */
void placement_bind(struct launch *launch, enum binding_kind kind,
                    placement_notice_fn on_notice, void *arg);

#endif
