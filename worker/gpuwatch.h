/* SPDX-License-Identifier: Apache-2.0
 *
 * What the GPUs of this node do, for the report of a hang. Edge.
 *
 * NVML is called by a short process, never by the agent: where a driver is in
 * trouble, which is when ranks hang, it may hang or crash whoever asks. The
 * process writes one byte as soon as NVML is open, and the rest of a struct
 * gpu_look once it is read; it writes nothing where there is no NVML.
 *
 * Happy path: gpuwatch_begin, the struct comes through the loop, on_done, then
 * gpuwatch_tell for each rank. After GPUWATCH_BOUND_MS the process is killed
 * and on_done comes as well. A process that SIGKILL does not end is not waited
 * for; while it is there, no other is started.
 */
#ifndef WORKER_GPUWATCH_H
#define WORKER_GPUWATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "common/error.h"
#include "proto/limits.h"
#include "worker/launch.h"
#include "worker/rankstate.h"

/* The verb that makes this program that process. */
#define GPUWATCH_VERB "gpus"

enum { GPUWATCH_BOUND_MS = 5000 };

struct gpuwatch;

/* The look that was begun is over. */
typedef void (*gpuwatch_fn)(void *arg);

/* `node_name` is borrowed for its life. Errors: GPUL_ENOMEM. */
int gpuwatch_create(struct gpuwatch **out, uv_loop_t *loop,
                    const char *node_name, gpuwatch_fn on_done, void *arg,
                    struct gpul_error *err);

/* The memory goes when libuv lets go of it, so the loop must run once more.
 * NULL is fine. */
void gpuwatch_destroy(struct gpuwatch *g);

/* Begin a look; none may be under way. What cannot be started leaves none, and
 * nothing to tell. on_done is never called from within. */
void gpuwatch_begin(struct gpuwatch *g);
bool gpuwatch_is_looking(const struct gpuwatch *g);

/* End the look that is under way, without on_done, and forget the last. */
void gpuwatch_end(struct gpuwatch *g);

/* What the last look says of a rank, one line; "": nothing. `pid` is its first
 * process (0: not known), `processes` are those of the node. */
void gpuwatch_tell(char out[GPUL_FINDING_BYTES_MAX + 1],
                   const struct gpuwatch *g, const struct launch *launch,
                   uint32_t local_rank, pid_t pid,
                   const struct rankstate_look *processes);

/* The process. Returns its exit code. */
int gpuwatch_main(void);

/* Where it writes; its standard streams belong to what NVML may print. */
enum { GPUWATCH_FD = 3 };

#endif
