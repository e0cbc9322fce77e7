/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/collective_nccl.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/gpu_buffers.h"

/* Two buffers, and room for what NCCL and the driver take by the way. */
enum { MEMORY_SHARE_PERCENT = 40, STEP_TEXT_BYTES = 96 };

struct sweep {
    struct gpu *gpu;
    const struct collective_request *request;
    struct collective_result *result;
    struct gpu_plan *plan;
    struct gpu_buffers buffers;
    struct cuda_event *events[GPU_ITERATIONS_MAX + 1];
    size_t event_count;
    uint64_t times_ns[GPU_ITERATIONS_MAX];
};

static int check(struct sweep *s, const char *what, int result,
                 struct gpul_error *err)
{
    return gpu_cuda_check(s->gpu, what, result, err);
}

/* ---- one call ------------------------------------------------------------ */

static const void *const_pointer(cuda_address address)
{
    return (const void *)(uintptr_t)address;
}

static void *pointer(cuda_address address)
{
    return (void *)(uintptr_t)address;
}

/* Inside a group, "in progress" is what an operation that was taken says. */
static bool is_taken(int result)
{
    return result == NCCL_SUCCESS || result == NCCL_IN_PROGRESS;
}

/* A send to and a receive from each of `peers` ranks, as one operation: the
 * ranks that are given, or all of them. Returns the first bad result. */
static int exchange(struct sweep *s, uint64_t count, uint32_t peers,
                    const uint32_t *send_to, const uint32_t *receive_from)
{
    struct nccl_comm *comm = atomic_load(&s->gpu->comm);
    int result = GPU_CALL(s->gpu, "ncclGroupStart", nccl->group_start());
    for (uint32_t i = 0; i < peers && is_taken(result); i++) {
        cuda_address offset = (cuda_address)i * count * sizeof(float);
        int to = (int)(send_to != NULL ? *send_to : i);
        int from = (int)(receive_from != NULL ? *receive_from : i);
        result =
            GPU_CALL(s->gpu, "ncclSend",
                     nccl->send(const_pointer(s->buffers.send + offset), count,
                                NCCL_FLOAT32, to, comm, s->gpu->stream));
        if (is_taken(result)) {
            result =
                GPU_CALL(s->gpu, "ncclRecv",
                         nccl->recv(pointer(s->buffers.receive + offset), count,
                                    NCCL_FLOAT32, from, comm, s->gpu->stream));
        }
    }
    int end = GPU_CALL(s->gpu, "ncclGroupEnd", nccl->group_end());
    return is_taken(result) ? end : result;
}

static int send_right(struct sweep *s, uint64_t count)
{
    uint32_t ranks = s->request->ranks;
    uint32_t right = (s->request->rank + 1) % ranks;
    uint32_t left = (s->request->rank + ranks - 1) % ranks;
    return exchange(s, count, 1, &right, &left);
}

static int launch_collective(struct sweep *s, const struct gpu_step *step,
                             struct gpul_error *err)
{
    struct gpu *g = s->gpu;
    struct nccl_comm *comm = atomic_load(&g->comm);
    const void *from = const_pointer(s->buffers.send);
    void *to = pointer(s->buffers.receive);
    const char *call = "ncclAllReduce";
    int result;
    switch (step->collective) {
    case GPUL_ALL_GATHER:
        call = "ncclAllGather";
        result = GPU_CALL(g, call,
                          nccl->all_gather(from, to, step->count, NCCL_FLOAT32,
                                           comm, g->stream));
        break;
    case GPUL_REDUCE_SCATTER:
        call = "ncclReduceScatter";
        result =
            GPU_CALL(g, call,
                     nccl->reduce_scatter(from, to, step->count, NCCL_FLOAT32,
                                          NCCL_SUM, comm, g->stream));
        break;
    case GPUL_BROADCAST:
        call = "ncclBroadcast";
        result = GPU_CALL(g, call,
                          nccl->broadcast(from, to, step->count, NCCL_FLOAT32,
                                          0, comm, g->stream));
        break;
    case GPUL_ALL_TO_ALL:
        call = "ncclSend and ncclRecv";
        result = exchange(s, step->count, s->request->ranks, NULL, NULL);
        break;
    case GPUL_SEND_RECV:
        call = "ncclSend and ncclRecv";
        result = send_right(s, step->count);
        break;
    default:
        result = GPU_CALL(g, call,
                          nccl->all_reduce(from, to, step->count, NCCL_FLOAT32,
                                           NCCL_SUM, comm, g->stream));
        break;
    }
    int status = gpu_nccl_check(g, call, result, err);
    if (status == 0) {
        gpu_pulse_step(&g->pulse); /* it is in the stream now */
    }
    return status;
}

static int launch(struct sweep *s, const struct gpu_step *step,
                  struct gpul_error *err)
{
    struct gpu *g = s->gpu;
    struct cuda_stream *stream = g->stream;
    size_t bytes = (size_t)step->bytes;
    switch (step->collective) {
    case GPUL_COPY_TO_DEVICE:
        return check(s, "copy",
                     GPU_CALL(g, "cuMemcpyHtoDAsync",
                              cuda->memcpy_h_to_d_async(s->buffers.receive,
                                                        s->buffers.staging,
                                                        bytes, stream)),
                     err);
    case GPUL_COPY_TO_HOST:
        return check(
            s, "copy",
            GPU_CALL(g, "cuMemcpyDtoHAsync",
                     cuda->memcpy_d_to_h_async(s->buffers.staging,
                                               s->buffers.send, bytes, stream)),
            err);
    case GPUL_COPY_ON_DEVICE:
        return check(
            s, "copy",
            GPU_CALL(g, "cuMemcpyDtoDAsync",
                     cuda->memcpy_d_to_d_async(s->buffers.receive,
                                               s->buffers.send, bytes, stream)),
            err);
    default:
        return launch_collective(s, step, err);
    }
}

/* ---- checking ------------------------------------------------------------ */

static void note_wrong(struct sweep *s, struct collective_row *row,
                       const struct verify_verdict *verdict)
{
    struct collective_result *r = s->result;
    if (r->wrong_elements == 0) {
        r->first_wrong_collective = row->step.collective;
        r->first_wrong_index = verdict->first_wrong;
        r->first_wrong_bytes = row->step.bytes;
        r->first_wrong_bit = verdict->first_bit;
        r->first_wrong_is_within_node = row->is_within_node;
    }
    r->wrong_elements += verdict->wrong_elements;
    row->wrong_elements += verdict->wrong_elements;
}

static int verify(struct sweep *s, struct collective_row *row,
                  struct gpul_error *err)
{
    const struct verify_call call = {row->step.collective, s->request->rank,
                                     s->request->ranks, row->step.count};
    struct verify_verdict verdict = {0};
    int status = gpu_buffers_fill(&s->buffers, &call, err);
    if (status == 0) {
        status = launch(s, &row->step, err);
    }
    if (status == 0) {
        status = gpu_buffers_check(&s->buffers, &verdict, &call, err);
    }
    if (verdict.wrong_elements != 0) {
        note_wrong(s, row, &verdict);
    }
    return status;
}

/* ---- timing -------------------------------------------------------------- */

static int warm_up(struct sweep *s, const struct gpu_step *step,
                   struct gpul_error *err)
{
    int status = 0;
    for (uint32_t i = 0; i < step->warmups && status == 0; i++) {
        status = launch(s, step, err);
    }
    return status == 0 ? gpu_stream_wait(s->gpu, "warm-up", err) : status;
}

static int record(struct sweep *s, size_t i, struct gpul_error *err)
{
    return check(s, "event",
                 GPU_CALL(s->gpu, "cuEventRecord",
                          cuda->event_record(s->events[i], s->gpu->stream)),
                 err);
}

static int read_times(struct sweep *s, uint32_t iterations,
                      struct gpul_error *err)
{
    for (uint32_t i = 0; i < iterations; i++) {
        float ms = 0;
        int status = check(s, "time between events",
                           GPU_CALL(s->gpu, "cuEventElapsedTime",
                                    cuda->event_elapsed_time(&ms, s->events[i],
                                                             s->events[i + 1])),
                           err);
        if (status != 0) {
            return status;
        }
        s->times_ns[i] = ms > 0 ? (uint64_t)((double)ms * 1e6) : 0;
    }
    return 0;
}

/* All iterations are put into the stream at once, an event between any two,
 * so that the host's own pace is not measured. */
static int measure(struct sweep *s, struct collective_row *row,
                   struct gpul_error *err)
{
    uint32_t iterations = row->step.iterations;
    int status = record(s, 0, err);
    for (uint32_t i = 0; i < iterations && status == 0; i++) {
        status = launch(s, &row->step, err);
        if (status == 0) {
            status = record(s, i + 1, err);
        }
    }
    if (status == 0) {
        status = gpu_event_wait(s->gpu, "timed iterations",
                                s->events[iterations], err);
    }
    if (status == 0) {
        status = read_times(s, iterations, err);
    }
    if (status == 0) {
        measure_stats(&row->stats, s->times_ns, iterations);
    }
    return status;
}

static int run_step(struct sweep *s, const struct gpu_step *step,
                    struct gpul_error *err)
{
    bool is_within_node = s->request->is_within_node;
    struct collective_row row = {.step = *step,
                                 .is_within_node = is_within_node};
    char text[STEP_TEXT_BYTES];
    snprintf(text, sizeof(text), "%s%s of %" PRIu64 " bytes",
             gpul_collective_name(step->collective),
             is_within_node ? " within the node" : "", step->bytes);
    if (s->request->on_step != NULL) {
        s->request->on_step(s->request->arg, text);
    }
    int status = warm_up(s, step, err);
    if (status == 0) {
        status = measure(s, &row, err);
    }
    for (uint32_t i = 0;
         i < step->checks && status == 0 && row.wrong_elements == 0; i++) {
        status = verify(s, &row, err);
    }
    if (status != 0) {
        return gpul_wrap(err, status, "%s", text);
    }
    s->result->rows[s->result->row_count++] = row;
    if (row.wrong_elements != 0) {
        return gpul_fail(err, GPUL_ESYS, "wrong data in %s", text);
    }
    return 0;
}

/* ---- before and after ---------------------------------------------------- */

static int create_events(struct sweep *s, struct gpul_error *err)
{
    size_t need = 1;
    for (size_t i = 0; i < s->plan->step_count; i++) {
        if (s->plan->steps[i].iterations + 1 > need) {
            need = s->plan->steps[i].iterations + 1;
        }
    }
    int status = 0;
    while (s->event_count < need && status == 0) {
        status = check(s, "event",
                       GPU_CALL(s->gpu, "cuEventCreate",
                                cuda->event_create(&s->events[s->event_count],
                                                   CUDA_EVENT_DEFAULT)),
                       err);
        s->event_count += status == 0;
    }
    return status;
}

static int give_back(struct sweep *s, struct gpul_error *err)
{
    int status = gpu_buffers_free(&s->buffers, err);
    if (status == 0) {
        status = gpu_buffers_release(&s->buffers, err);
    }
    while (s->event_count > 0 && status == 0) {
        status =
            check(s, "end of an event",
                  GPU_CALL(s->gpu, "cuEventDestroy",
                           cuda->event_destroy(s->events[--s->event_count])),
                  err);
    }
    return status;
}

static int free_share(struct sweep *s, uint64_t *bytes, struct gpul_error *err)
{
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    int status = check(s, "free device memory",
                       GPU_CALL(s->gpu, "cuMemGetInfo",
                                cuda->mem_get_info(&free_bytes, &total_bytes)),
                       err);
    *bytes = free_bytes / 100 * MEMORY_SHARE_PERCENT;
    return status;
}

/* All ranks' `mine`, through NCCL itself: the first thing it has to do.
 * They fit the staging memory: 2^22 ranks would. */
static int gather(struct sweep *s, const uint64_t *mine, struct gpul_error *err)
{
    struct gpu *g = s->gpu;
    size_t all_bytes = s->request->ranks * sizeof(*mine);
    memcpy(s->buffers.staging, mine, sizeof(*mine));
    int status = check(
        s, "copy to the device",
        GPU_CALL(g, "cuMemcpyHtoDAsync",
                 cuda->memcpy_h_to_d_async(s->buffers.send, s->buffers.staging,
                                           sizeof(*mine), g->stream)),
        err);
    if (status == 0) {
        status = gpu_nccl_check(
            g, "ncclAllGather",
            GPU_CALL(g, "ncclAllGather",
                     nccl->all_gather(const_pointer(s->buffers.send),
                                      pointer(s->buffers.receive), 1,
                                      NCCL_UINT64, atomic_load(&g->comm),
                                      g->stream)),
            err);
    }
    if (status == 0) {
        status = check(s, "copy to the host",
                       GPU_CALL(g, "cuMemcpyDtoHAsync",
                                cuda->memcpy_d_to_h_async(
                                    s->buffers.staging, s->buffers.receive,
                                    all_bytes, g->stream)),
                       err);
    }
    return status == 0 ? gpu_stream_wait(g, "first all-gather", err) : status;
}

static int agree(struct sweep *s, uint64_t *bytes_limit, struct gpul_error *err)
{
    uint64_t mine;
    uint64_t ranks = s->request->ranks;
    int status = free_share(s, &mine, err);
    if (status == 0) {
        status = gpu_buffers_allocate(&s->buffers, sizeof(mine),
                                      ranks * sizeof(mine), err);
    }
    if (status == 0) {
        status = gather(s, &mine, err);
    }
    if (status != 0) {
        return status;
    }
    *bytes_limit = mine;
    for (uint64_t i = 0; i < ranks; i++) {
        uint64_t other;
        memcpy(&other, (const char *)s->buffers.staging + i * sizeof(other),
               sizeof(other));
        *bytes_limit = other < *bytes_limit ? other : *bytes_limit;
    }
    return gpu_buffers_free(&s->buffers, err);
}

static int make_plan(struct sweep *s, struct gpul_error *err)
{
    uint64_t bytes_limit = 0;
    int status = agree(s, &bytes_limit, err);
    if (status != 0) {
        return status;
    }
    gpu_plan_make(s->plan, s->request->level, s->request->sweep,
                  s->request->ranks, bytes_limit);
    if (s->plan->step_count == 0) {
        return gpul_fail(err, GPUL_EINVAL,
                         "no all-reduce fits: the smallest that was asked for "
                         "has %" PRIu64 " bytes, and the device with the "
                         "least free memory has room for %" PRIu64 " (-b and "
                         "-e choose the sizes)",
                         s->plan->bytes_least, bytes_limit);
    }
    return 0;
}

static int prepare(struct sweep *s, struct gpul_error *err)
{
    int status = gpu_buffers_init(&s->buffers, s->gpu, err);
    if (status == 0 && s->plan->step_count == 0) {
        status = make_plan(s, err);
    }
    if (status == 0) {
        status = create_events(s, err);
    }
    if (status == 0) {
        status = gpu_buffers_allocate(&s->buffers, s->plan->bytes_max,
                                      s->plan->bytes_max, err);
    }
    return status;
}

int collective_nccl_run(struct collective_result *out, struct gpu *g,
                        const struct collective_request *request,
                        struct gpul_error *err)
{
    if (request->ranks > PATTERN_RANKS_MAX) {
        return gpul_fail(err, GPUL_EINVAL,
                         "sums of %u ranks are not exact: at most %d devices",
                         request->ranks, PATTERN_RANKS_MAX);
    }
    struct sweep *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "no memory for the sweep");
    }
    s->gpu = g;
    s->request = request;
    s->result = out;
    s->plan = request->plan;
    int status = prepare(s, err);
    if (status != 0) {
        gpul_wrap(err, status, "before the sweep");
    }
    for (size_t i = 0; i < s->plan->step_count && status == 0; i++) {
        status = run_step(s, &s->plan->steps[i], err);
    }
    if (status == 0) {
        status = give_back(s, err);
    }
    free(s);
    return status;
}
