/* SPDX-License-Identifier: Apache-2.0
 *
 * One device and one communicator, behind the pointers of NCCL and of the
 * driver: how their calls fail, and how to wait for them. Edge.
 *
 * One thread calls and waits. Every wait ends when the work is done, when
 * the library reports an error, or when `stop` is set by another thread; it
 * never blocks in the library. A call itself may block there for ever: that
 * other thread keeps the deadlines and ends the process.
 */
#ifndef WORKER_GPU_CALL_H
#define WORKER_GPU_CALL_H

#include <stdatomic.h>
#include <stdbool.h>

#include "common/error.h"
#include "worker/cuda_api.h"
#include "worker/gpu_pulse.h"
#include "worker/nccl_api.h"

enum { GPU_WORDS_BYTES = 512 };

struct gpu {
    const struct cuda_api *cuda;
    const struct nccl_api *nccl;
    struct gpu_pulse pulse;           /* for the other thread to look at */
    atomic_bool stop;                 /* give up; set by the other thread */
    _Atomic(struct nccl_comm *) comm; /* in use; NULL: none */
    /* The communicator that `comm` was split from, NULL: none. */
    _Atomic(struct nccl_comm *) parent;
    struct nccl_comm *split; /* NCCL writes here until the split is done */
    struct cuda_stream *stream;
    struct cuda_event *event; /* to wait for the stream by */
    /* Of the first failure, if NCCL had a part in it. */
    char words[GPU_WORDS_BYTES]; /* ncclGetLastError, "" if none */
    bool is_remote;              /* it tells of another rank's end */
    /* Called about every second of a wait in which NCCL has something to
     * say, a warning perhaps; may be NULL. */
    void (*on_words)(void *arg, const char *words);
    void *arg;
};

/* A call of a library, `call` being "nccl->comm_count(comm, &n)", with its
 * name shown in the pulse until its result is checked by one of the below. */
#define GPU_CALL(g, name, call)                                                \
    (gpu_pulse_enter(&(g)->pulse, (name)), (g)->call)

/* `result` is what the driver returned when it was to do `what` ("memory of
 * 32 bytes"). Returns 0, or GPUL_ESYS with what, the driver's words and its
 * number. */
int gpu_cuda_check(struct gpu *g, const char *what, int result,
                   struct gpul_error *err);

/* The same for a call of NCCL ("ncclAllReduce"). A result of "in progress"
 * is waited for. Errors: GPUL_ESYS, GPUL_ECLOSED when stopped. */
int gpu_nccl_check(struct gpu *g, const char *call, int result,
                   struct gpul_error *err);

/* Wait until the stream has done all that was put into it; meanwhile look
 * for errors of the communicator. `what` is for messages. */
int gpu_stream_wait(struct gpu *g, const char *what, struct gpul_error *err);

/* The same for an event that was recorded. */
int gpu_event_wait(struct gpu *g, const char *what, struct cuda_event *event,
                   struct gpul_error *err);

#endif
