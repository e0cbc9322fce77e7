/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/gpu_buffers.h"

#include <inttypes.h>
#include <stdio.h>

static int check(struct gpu_buffers *b, const char *what, int result,
                 struct gpul_error *err)
{
    return gpu_cuda_check(b->gpu, what, result, err);
}

/* ---- memory -------------------------------------------------------------- */

static int allocate(struct gpu_buffers *b, cuda_address *out, uint64_t bytes,
                    struct gpul_error *err)
{
    char what[64];
    snprintf(what, sizeof(what), "device memory of %" PRIu64 " bytes", bytes);
    return check(
        b, what,
        GPU_CALL(b->gpu, "cuMemAlloc", cuda->mem_alloc(out, (size_t)bytes)),
        err);
}

int gpu_buffers_allocate(struct gpu_buffers *b, uint64_t send_bytes,
                         uint64_t receive_bytes, struct gpul_error *err)
{
    int status = allocate(b, &b->send, send_bytes, err);
    if (status == 0) {
        status = allocate(b, &b->receive, receive_bytes, err);
    }
    if (status == 0) {
        status =
            check(b, "fill of the device",
                  GPU_CALL(b->gpu, "cuMemsetD8Async",
                           cuda->memset_d8_async(b->send, 0, (size_t)send_bytes,
                                                 b->gpu->stream)),
                  err);
    }
    return status == 0 ? gpu_stream_wait(b->gpu, "fill of the device", err)
                       : status;
}

int gpu_buffers_free(struct gpu_buffers *b, struct gpul_error *err)
{
    int status =
        check(b, "end of device memory",
              GPU_CALL(b->gpu, "cuMemFree", cuda->mem_free(b->send)), err);
    if (status == 0) {
        status = check(
            b, "end of device memory",
            GPU_CALL(b->gpu, "cuMemFree", cuda->mem_free(b->receive)), err);
    }
    b->send = 0;
    b->receive = 0;
    return status;
}

int gpu_buffers_init(struct gpu_buffers *b, struct gpu *gpu,
                     struct gpul_error *err)
{
    void *memory = NULL;
    *b = (struct gpu_buffers){.gpu = gpu};
    verify_table_init(&b->table);
    int status = check(b, "pinned host memory",
                       GPU_CALL(gpu, "cuMemHostAlloc",
                                cuda->mem_host_alloc(&memory, GPU_STAGING_BYTES,
                                                     CUDA_HOST_PORTABLE)),
                       err);
    b->staging = memory;
    return status;
}

int gpu_buffers_release(struct gpu_buffers *b, struct gpul_error *err)
{
    return check(
        b, "end of pinned host memory",
        GPU_CALL(b->gpu, "cuMemFreeHost", cuda->mem_free_host(b->staging)),
        err);
}

/* ---- checking ------------------------------------------------------------ */

/* Elements of a buffer that go through the staging memory at once. */
static uint64_t portion(uint64_t done, uint64_t count)
{
    uint64_t most = GPU_STAGING_BYTES / sizeof(float);
    return count - done < most ? count - done : most;
}

static int write_send(struct gpu_buffers *b, const struct verify_call *call,
                      struct gpul_error *err)
{
    uint64_t count = verify_send_count(call);
    int status = 0;
    for (uint64_t done = 0; done < count && status == 0;) {
        uint64_t n = portion(done, count);
        verify_fill(b->staging, &b->table, call, done, n);
        status = check(b, "copy to the device",
                       GPU_CALL(b->gpu, "cuMemcpyHtoDAsync",
                                cuda->memcpy_h_to_d_async(
                                    b->send + done * sizeof(float), b->staging,
                                    (size_t)n * sizeof(float), b->gpu->stream)),
                       err);
        if (status == 0) {
            status = gpu_stream_wait(b->gpu, "copy to the device", err);
        }
        done += n;
    }
    return status;
}

/* No pattern has this value, so that what was not written shows. */
static int spoil_receive(struct gpu_buffers *b, const struct verify_call *call,
                         struct gpul_error *err)
{
    size_t bytes = (size_t)verify_receive_count(call) * sizeof(float);
    return check(b, "fill of the device",
                 GPU_CALL(b->gpu, "cuMemsetD8Async",
                          cuda->memset_d8_async(b->receive, 0xff, bytes,
                                                b->gpu->stream)),
                 err);
}

int gpu_buffers_fill(struct gpu_buffers *b, const struct verify_call *call,
                     struct gpul_error *err)
{
    int status = write_send(b, call, err);
    return status == 0 ? spoil_receive(b, call, err) : status;
}

int gpu_buffers_check(struct gpu_buffers *b, struct verify_verdict *verdict,
                      const struct verify_call *call, struct gpul_error *err)
{
    uint64_t count = verify_receive_count(call);
    int status = gpu_stream_wait(b->gpu, "check", err);
    for (uint64_t done = 0; done < count && status == 0;) {
        uint64_t n = portion(done, count);
        status =
            check(b, "copy to the host",
                  GPU_CALL(b->gpu, "cuMemcpyDtoHAsync",
                           cuda->memcpy_d_to_h_async(
                               b->staging, b->receive + done * sizeof(float),
                               (size_t)n * sizeof(float), b->gpu->stream)),
                  err);
        if (status == 0) {
            status = gpu_stream_wait(b->gpu, "copy to the host", err);
        }
        if (status == 0) {
            verify_check(verdict, &b->table, call, b->staging, done, n);
        }
        done += n;
    }
    return status;
}
