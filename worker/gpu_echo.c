/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/gpu_echo.h"

#include <errno.h>
#include <time.h>

enum { ECHO_BYTES = 8, NAP_NS = 1000 * 1000 };

/* An error is an answer: the thread that waits gets it as well. */
static void echo(struct gpu_echo *e)
{
    const struct timespec nap = {.tv_nsec = NAP_NS};
    const struct cuda_api *cuda = e->cuda;
    int result =
        cuda->memcpy_h_to_d_async(e->to, e->from, ECHO_BYTES, e->stream);
    if (result == CUDA_RESULT_SUCCESS) {
        result = cuda->event_record(e->event, e->stream);
    }
    while (result == CUDA_RESULT_SUCCESS &&
           cuda->event_query(e->event) == CUDA_RESULT_NOT_READY) {
        nanosleep(&nap, NULL);
    }
}

static void *run(void *arg)
{
    struct gpu_echo *e = arg;
    bool can_ask = e->cuda->ctx_set_current(e->context) == CUDA_RESULT_SUCCESS;
    for (;;) {
        while (sem_wait(&e->asked) != 0 && errno == EINTR) {
        }
        if (atomic_load(&e->ends)) {
            return NULL;
        }
        if (can_ask) {
            echo(e);
        }
        atomic_store(&e->asked_ms, 0);
    }
}

static int create(struct gpu_echo *e, struct gpu *g, struct gpul_error *err)
{
    int status = gpu_cuda_check(
        g, "stream",
        GPU_CALL(g, "cuStreamCreate",
                 cuda->stream_create(&e->stream, CUDA_STREAM_NON_BLOCKING)),
        err);
    if (status == 0) {
        status = gpu_cuda_check(
            g, "event",
            GPU_CALL(g, "cuEventCreate",
                     cuda->event_create(&e->event, CUDA_EVENT_DISABLE_TIMING)),
            err);
    }
    if (status == 0) {
        status =
            gpu_cuda_check(g, "pinned host memory",
                           GPU_CALL(g, "cuMemHostAlloc",
                                    cuda->mem_host_alloc(&e->from, ECHO_BYTES,
                                                         CUDA_HOST_PORTABLE)),
                           err);
    }
    if (status == 0) {
        status = gpu_cuda_check(
            g, "device memory",
            GPU_CALL(g, "cuMemAlloc", cuda->mem_alloc(&e->to, ECHO_BYTES)),
            err);
    }
    return status;
}

int gpu_echo_begin(struct gpu_echo *e, struct gpu *g,
                   struct cuda_context *context, struct gpul_error *err)
{
    int status = create(e, g, err);
    if (status != 0) {
        return status;
    }
    e->cuda = g->cuda;
    e->context = context;
    sem_init(&e->asked, 0, 0);
    int rc = pthread_create(&e->thread, NULL, run, e);
    if (rc != 0) {
        return gpul_fail_errno(err, rc, "thread of the probe");
    }
    atomic_store(&e->is_there, true);
    return 0;
}

static int destroy(struct gpu_echo *e, struct gpu *g, struct gpul_error *err)
{
    int status =
        gpu_cuda_check(g, "end of device memory",
                       GPU_CALL(g, "cuMemFree", cuda->mem_free(e->to)), err);
    if (status == 0) {
        status = gpu_cuda_check(
            g, "end of pinned host memory",
            GPU_CALL(g, "cuMemFreeHost", cuda->mem_free_host(e->from)), err);
    }
    if (status == 0) {
        status = gpu_cuda_check(
            g, "end of an event",
            GPU_CALL(g, "cuEventDestroy", cuda->event_destroy(e->event)), err);
    }
    if (status == 0) {
        status = gpu_cuda_check(
            g, "end of a stream",
            GPU_CALL(g, "cuStreamDestroy", cuda->stream_destroy(e->stream)),
            err);
    }
    return status;
}

int gpu_echo_end(struct gpu_echo *e, struct gpu *g, struct gpul_error *err)
{
    atomic_store(&e->is_there, false);
    atomic_store(&e->ends, true);
    sem_post(&e->asked);
    gpu_pulse_enter(&g->pulse, "cuEventQuery");
    pthread_join(e->thread, NULL);
    gpu_pulse_leave(&g->pulse);
    return destroy(e, g, err);
}

void gpu_echo_ask(struct gpu_echo *e, uint64_t now_ms)
{
    unsigned long long none = 0;
    if (atomic_load(&e->is_there) &&
        atomic_compare_exchange_strong(&e->asked_ms, &none, now_ms)) {
        sem_post(&e->asked);
    }
}

bool gpu_echo_is_due(const struct gpu_echo *e, uint64_t now_ms)
{
    uint64_t asked_ms = atomic_load(&e->asked_ms);
    return atomic_load(&e->is_there) && asked_ms != 0 &&
           now_ms >= asked_ms + GPU_ECHO_MS;
}
