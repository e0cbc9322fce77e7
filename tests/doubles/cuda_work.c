/* SPDX-License-Identifier: Apache-2.0
 *
 * What streams are given to do: copies, fills and events. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/doubles/cuda_context.h"
#include "tests/doubles/cuda_memory.h"
#include "tests/doubles/cuda_stream.h"
#include "tests/doubles/export.h"

#define X(need, result, member, parameters, symbol, hip)                       \
    DOUBLE_EXPORT result symbol parameters;
CUDA_API_MAP(X)
#undef X

/* Not called by the product; for programs that wait without polling. */
DOUBLE_EXPORT int cuStreamSynchronize(struct cuda_stream *stream);

/* --- Copying and filling ------------------------------------------------ */

/* One copy, or a fill when `from` is NULL, for a stream to do. */
struct transfer {
    void *to;
    const void *from;
    size_t count; /* of units */
    size_t unit;  /* bytes: 1, 2 or 4 */
    uint32_t value;
};

static void transfer_do(const struct transfer *transfer)
{
    char *to = transfer->to;

    if (transfer->from)
        memmove(to, transfer->from, transfer->count);
    else if (transfer->unit == 1)
        memset(to, (int)transfer->value, transfer->count);
    else /* little-endian, as every machine with such a device */
        for (size_t i = 0; i < transfer->count; i++)
            memcpy(to + i * transfer->unit, &transfer->value, transfer->unit);
}

static void transfer_run(void *argument)
{
    transfer_do(argument);
    free(argument);
}

static int transfer_push(struct cuda_stream *stream, struct transfer transfer)
{
    int status = stream_get(&stream);

    if (status != 0)
        return status;
    struct transfer *later = malloc(sizeof *later);
    if (!later)
        return CUDA_RESULT_OUT_OF_MEMORY;
    *later = transfer;
    status = stream_push(stream, transfer_run, later);
    if (status != 0)
        free(later);
    return status;
}

static int fill(cuda_address to, size_t unit, uint32_t value, size_t count,
                struct cuda_stream *stream)
{
    size_t bytes;
    void *host = NULL;

    if (!__builtin_mul_overflow(count, unit, &bytes) && to % unit == 0)
        host = memory_host(to, bytes);
    return host ? transfer_push(stream, (struct transfer){.to = host,
                                                          .count = count,
                                                          .unit = unit,
                                                          .value = value})
                : CUDA_INVALID_VALUE;
}

int cuMemsetD8Async(cuda_address to, unsigned char value, size_t count,
                    struct cuda_stream *stream)
{
    return fill(to, 1, value, count, stream);
}

int cuMemsetD16Async(cuda_address to, unsigned short value, size_t count,
                     struct cuda_stream *stream)
{
    return fill(to, 2, value, count, stream);
}

int cuMemsetD32Async(cuda_address to, unsigned value, size_t count,
                     struct cuda_stream *stream)
{
    return fill(to, 4, value, count, stream);
}

/* In the stream, or at once when the default stream is done. */
static int copy(void *to, const void *from, size_t bytes,
                struct cuda_stream *stream, bool is_async)
{
    struct transfer transfer = {.to = to, .from = from, .count = bytes};
    struct cuda_context *context;
    int status = context_get(&context);

    if (status == 0 && (!to || !from))
        status = CUDA_INVALID_VALUE;
    if (status != 0)
        return status;
    if (is_async)
        return transfer_push(stream, transfer);
    stream_wait(context_stream(context));
    transfer_do(&transfer);
    return CUDA_RESULT_SUCCESS;
}

int cuMemcpyHtoD_v2(cuda_address to, const void *from, size_t bytes)
{
    return copy(memory_host(to, bytes), from, bytes, NULL, false);
}

int cuMemcpyDtoH_v2(void *to, cuda_address from, size_t bytes)
{
    return copy(to, memory_host(from, bytes), bytes, NULL, false);
}

int cuMemcpyDtoD_v2(cuda_address to, cuda_address from, size_t bytes)
{
    return copy(memory_host(to, bytes), memory_host(from, bytes), bytes, NULL,
                false);
}

int cuMemcpyHtoDAsync_v2(cuda_address to, const void *from, size_t bytes,
                         struct cuda_stream *stream)
{
    return copy(memory_host(to, bytes), from, bytes, stream, true);
}

int cuMemcpyDtoHAsync_v2(void *to, cuda_address from, size_t bytes,
                         struct cuda_stream *stream)
{
    return copy(to, memory_host(from, bytes), bytes, stream, true);
}

int cuMemcpyDtoDAsync_v2(cuda_address to, cuda_address from, size_t bytes,
                         struct cuda_stream *stream)
{
    return copy(memory_host(to, bytes), memory_host(from, bytes), bytes, stream,
                true);
}

/* --- Streams and events ------------------------------------------------- */

int cuStreamCreate(struct cuda_stream **stream, unsigned flags)
{
    struct cuda_context *context;
    int status = context_get(&context);

    *stream = NULL;
    if (status == 0 && flags > CUDA_STREAM_NON_BLOCKING)
        status = CUDA_INVALID_VALUE;
    if (status != 0)
        return status;
    *stream = stream_make();
    return *stream ? CUDA_RESULT_SUCCESS : CUDA_RESULT_OUT_OF_MEMORY;
}

int cuStreamQuery(struct cuda_stream *stream)
{
    int status = stream_get(&stream);

    if (status == 0 && !stream_is_idle(stream))
        status = CUDA_RESULT_NOT_READY;
    return status;
}

int cuStreamSynchronize(struct cuda_stream *stream)
{
    int status = stream_get(&stream);

    if (status == 0)
        stream_wait(stream);
    return status;
}

int cuStreamDestroy_v2(struct cuda_stream *stream)
{
    if (!stream)
        return CUDA_INVALID_HANDLE;
    stream_end(stream);
    return CUDA_RESULT_SUCCESS;
}

int cuEventCreate(struct cuda_event **event, unsigned flags)
{
    struct cuda_context *context;
    int status = context_get(&context);

    *event = NULL;
    if (status != 0)
        return status;
    *event = event_make((flags & CUDA_EVENT_DISABLE_TIMING) == 0);
    return *event ? CUDA_RESULT_SUCCESS : CUDA_RESULT_OUT_OF_MEMORY;
}

int cuEventRecord(struct cuda_event *event, struct cuda_stream *stream)
{
    int status = stream_get(&stream);

    if (status == 0 && !event)
        status = CUDA_INVALID_HANDLE;
    return status ? status : event_put(event, stream);
}

int cuEventQuery(struct cuda_event *event)
{
    return event ? event_ask(event) : CUDA_INVALID_HANDLE;
}

int cuEventElapsedTime(float *ms, struct cuda_event *from,
                       struct cuda_event *to)
{
    return from && to ? event_elapsed(ms, from, to) : CUDA_INVALID_HANDLE;
}

int cuEventDestroy_v2(struct cuda_event *event)
{
    if (!event)
        return CUDA_INVALID_HANDLE;
    event_end(event);
    return CUDA_RESULT_SUCCESS;
}
