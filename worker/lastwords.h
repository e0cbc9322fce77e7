/* SPDX-License-Identifier: Apache-2.0
 *
 * What is kept of a rank's output while it runs, for the day it fails: the end
 * of its stderr, and what NCCL complained of. Pure.
 */
#ifndef WORKER_LASTWORDS_H
#define WORKER_LASTWORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "worker/evidence.h"

/* All zero: nothing was written. */
struct lastwords {
    char *tail; /* last GPUL_TAIL_BYTES_MAX bytes of stderr, any bytes; owned */
    size_t used;
    bool is_cut;                /* there were more */
    struct evidence_nccl *nccl; /* NULL before the first byte; owned */
};

/* What was written goes by. Without memory less is kept. */
void lastwords_take(struct lastwords *w, bool is_stderr, const char *bytes,
                    size_t n);

void lastwords_release(struct lastwords *w);

#endif
