/* SPDX-License-Identifier: Apache-2.0
 *
 * What a probe on GPUs writes to stdout and stderr, or NCCL in it to its log:
 * most of it comes from libraries. It goes to a file, up to a bound, and never
 * to the terminal; the last line is kept, since it may be why the probe died.
 * Edge.
 */
#ifndef WORKER_PROBELOG_H
#define WORKER_PROBELOG_H

#include <stddef.h>
#include <uv.h>

#include "common/error.h"
#include "worker/ranklogs.h"

enum {
    PROBELOG_FILE_BYTES_MAX = 1 << 20, /* what comes after it is discarded */
    PROBELOG_LINE_BYTES = 200,
};

struct probelog;

/* Read `fd`, which becomes its own in any case, from now on. The file appears
 * in `logs` under `name` with the first byte; `name` NULL: no file. `logs` is
 * borrowed for its life. Errors: GPUL_ENOMEM, GPUL_ESYS. */
int probelog_open(struct probelog **out, uv_loop_t *loop, int fd,
                  struct ranklogs *logs, const char *name,
                  struct gpul_error *err);

/* Have each piece of what is read shown too, once it is written. */
typedef void (*probelog_show_fn)(void *arg, const char *bytes, size_t n);
void probelog_show(struct probelog *l, probelog_show_fn show, void *arg);

/* The process has ended: take in what is left, without waiting. The last line
 * that is not empty into `line`, without its end; "" if there is none. */
void probelog_finish(struct probelog *l, char line[PROBELOG_LINE_BYTES]);

/* Where its file is into `path`; "" if there is none, or it has no room. */
void probelog_path(const struct probelog *l, char *path, size_t bytes);

/* Lets go of it; the loop must run once more. NULL is fine. */
void probelog_close(struct probelog *l);

#endif
