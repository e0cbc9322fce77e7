/* SPDX-License-Identifier: Apache-2.0
 *
 * Does a device still do what it is given, beside the work that another
 * thread waits for? A rank whose collective hangs may be the one whose device
 * stands still, or one of those that wait for it: NCCL's kernel leaves room
 * for a copy of a few bytes in a stream of its own. Edge.
 *
 * A thread of its own makes these copies, since even asking a device that
 * stands still may not come back. It has all that it needs from the start:
 * to create something could wait for the kernel.
 */
#ifndef WORKER_GPU_ECHO_H
#define WORKER_GPU_ECHO_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "worker/gpu_call.h"

/* An answer takes microseconds; a device that is busy with copies of others
 * may take some more. */
enum { GPU_ECHO_MS = 1000 };

struct gpu_echo {
    const struct cuda_api *cuda;
    struct cuda_context *context;
    struct cuda_stream *stream;
    struct cuda_event *event;
    void *from;
    cuda_address to;
    pthread_t thread;
    sem_t asked;
    atomic_bool is_there; /* and can be asked */
    atomic_bool ends;
    atomic_ullong asked_ms; /* not answered yet; 0: it is, or none was asked */
};

/* By the thread whose context it is. `e` is all zero. Errors: GPUL_ESYS. */
int gpu_echo_begin(struct gpu_echo *e, struct gpu *g,
                   struct cuda_context *context, struct gpul_error *err);

/* The same thread; it waits for an answer that is still due. */
int gpu_echo_end(struct gpu_echo *e, struct gpu *g, struct gpul_error *err);

/* By any thread: ask, unless an answer is still due. Before it has begun and
 * after its end nothing happens. */
void gpu_echo_ask(struct gpu_echo *e, uint64_t now_ms);

/* Has it owed an answer for GPU_ECHO_MS? */
bool gpu_echo_is_due(const struct gpu_echo *e, uint64_t now_ms);

#endif
