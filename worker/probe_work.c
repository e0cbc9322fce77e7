/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/probe_work.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "worker/gpu_comm.h"
#include "worker/gpu_cuda.h"

extern char **environ;

const char *work_phase_name(enum work_phase phase)
{
    static const char *const names[] = {
        [WORK_CUDA] = "cuda", [WORK_UID] = "uid", [WORK_INIT] = "init",
        [WORK_COLL] = "coll", [WORK_END] = "end",
    };
    return names[phase];
}

/* ---- news ---------------------------------------------------------------- */

static void wake(struct probe_work *w)
{
    /* Cannot fail but for a counter that is full, and then it is awake. */
    (void)!eventfd_write(w->wake_fd, 1);
}

static void enter(struct probe_work *w, enum work_phase phase,
                  const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void enter(struct probe_work *w, enum work_phase phase,
                  const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (phase != w->phase) { /* this thread alone changes it */
        gpu_pulse_new_phase(&w->gpu.pulse);
    }
    gpu_pulse_step(&w->gpu.pulse);
    pthread_mutex_lock(&w->lock);
    w->phase = phase;
    vsnprintf(w->doing, sizeof(w->doing), format, arguments);
    w->words[0] = 0;
    pthread_mutex_unlock(&w->lock);
    va_end(arguments);
    wake(w); /* a new phase has a new deadline */
}

static void tell(struct probe_work *w, const struct work_news *news)
{
    pthread_mutex_lock(&w->lock);
    if (w->news_count < WORK_NEWS_MAX) { /* one ID and four phases at most */
        w->news[w->news_count++] = *news;
    }
    pthread_mutex_unlock(&w->lock);
    wake(w);
}

static void tell_phase(struct probe_work *w, Gpul__ProbePhase__Phase done)
{
    const struct work_news news = {.done = done};
    tell(w, &news);
}

static void on_step(void *arg, const char *text)
{
    enter(arg, WORK_COLL, "%s", text);
}

static void on_words(void *arg, const char *words)
{
    struct probe_work *w = arg;
    pthread_mutex_lock(&w->lock);
    snprintf(w->words, sizeof(w->words), "%s", words);
    pthread_mutex_unlock(&w->lock);
}

/* ---- the device ---------------------------------------------------------- */

static int open_libraries(struct probe_work *w, struct gpul_error *err)
{
    const char *chosen = w->begin->self_test->nccl_library;
    const struct gpu_facts_request request = {
        .nccl_path = chosen[0] != 0 ? chosen : NULL,
        .command = w->command,
        .environment = (const char *const *)environ,
    };
    int status = gpu_facts_read(w->facts, &request, err);
    if (status != 0) {
        return status;
    }
    atomic_store(&w->is_simulated, gpu_facts_are_simulated(w->facts));
    if (w->facts->cuda.error[0] != 0) {
        return gpul_fail(err, GPUL_ENOTFOUND, "%s", w->facts->cuda.error);
    }
    if (w->facts->nccl.error[0] != 0) {
        return gpul_fail(err, GPUL_ENOTFOUND, "%s", w->facts->nccl.error);
    }
    w->gpu.cuda = &w->facts->cuda_api;
    w->gpu.nccl = &w->facts->nccl_api;
    w->gpu.on_words = on_words;
    w->gpu.arg = w;
    return 0;
}

/* The driver numbers its devices otherwise than the agent may. */
static int find_ordinal(struct probe_work *w, int *ordinal,
                        struct gpul_error *err)
{
    struct gpu_device devices[GPU_DEVICES_MAX];
    const char *uuid = w->begin->device_uuid;
    size_t count = 0;
    int status =
        gpu_cuda_read(devices, &count, w->gpu.cuda, w->facts->maker, err);
    if (status != 0) {
        return status;
    }
    for (size_t i = 0; i < count; i++) {
        bool is_it = uuid[0] != 0 ? strcasecmp(devices[i].uuid, uuid) == 0
                                  : devices[i].index == w->begin->device_index;
        if (is_it) {
            *ordinal = (int)devices[i].index;
            return 0;
        }
    }
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    return gpul_fail(err, GPUL_ENOTFOUND,
                     "device %s is not among the %zu that CUDA shows "
                     "(CUDA_VISIBLE_DEVICES is %.128s)",
                     uuid[0] != 0 ? uuid : "without UUID", count,
                     visible != NULL ? visible : "not set");
}

static int open_device(struct probe_work *w, struct gpul_error *err)
{
    struct gpu *g = &w->gpu;
    struct cuda_context *context = NULL;
    int ordinal = 0;
    int status = find_ordinal(w, &ordinal, err);
    if (status == 0) {
        status = gpu_cuda_check(
            g, "choosing the device",
            GPU_CALL(g, "cuDeviceGet", cuda->device_get(&w->device, ordinal)),
            err);
    }
    if (status == 0) {
        status = gpu_cuda_check(
            g, "context of the device",
            GPU_CALL(g, "cuDevicePrimaryCtxRetain",
                     cuda->device_primary_ctx_retain(&context, w->device)),
            err);
    }
    if (status == 0) {
        status = gpu_cuda_check(
            g, "context of the device",
            GPU_CALL(g, "cuCtxSetCurrent", cuda->ctx_set_current(context)),
            err);
    }
    if (status == 0) {
        status = gpu_cuda_check(
            g, "stream",
            GPU_CALL(g, "cuStreamCreate",
                     cuda->stream_create(&g->stream, CUDA_STREAM_NON_BLOCKING)),
            err);
    }
    if (status == 0) {
        status = gpu_cuda_check(
            g, "event",
            GPU_CALL(g, "cuEventCreate",
                     cuda->event_create(&g->event, CUDA_EVENT_DISABLE_TIMING)),
            err);
    }
    return status == 0 ? gpu_echo_begin(&w->echo, g, context, err) : status;
}

static int close_device(struct probe_work *w, struct gpul_error *err)
{
    struct gpu *g = &w->gpu;
    int status = gpu_echo_end(&w->echo, g, err);
    if (status == 0) {
        status = gpu_cuda_check(
            g, "end of an event",
            GPU_CALL(g, "cuEventDestroy", cuda->event_destroy(g->event)), err);
    }
    if (status == 0) {
        status = gpu_cuda_check(
            g, "end of the stream",
            GPU_CALL(g, "cuStreamDestroy", cuda->stream_destroy(g->stream)),
            err);
    }
    if (status == 0) {
        status = gpu_cuda_check(
            g, "end of the context",
            GPU_CALL(g, "cuDevicePrimaryCtxRelease",
                     cuda->device_primary_ctx_release(w->device)),
            err);
    }
    return status;
}

/* ---- the phases ---------------------------------------------------------- */

static int run_cuda(struct probe_work *w, struct gpul_error *err)
{
    enter(w, WORK_CUDA, "opening the GPU libraries");
    int status = open_libraries(w, err);
    if (status == 0) {
        enter(w, WORK_CUDA, "making a context on %s", w->begin->device_uuid);
        status = open_device(w, err);
    }
    if (status == 0) {
        tell_phase(w, GPUL__PROBE_PHASE__PHASE__CUDA);
    }
    return status;
}

static int make_id(struct probe_work *w, uint32_t index, struct gpul_error *err)
{
    struct work_news news = {.is_id = true, .id_index = index};
    struct unique_id_place place;
    enter(w, WORK_UID, "making unique ID %" PRIu32, index);
    int status = gpu_comm_id(&w->gpu, &news.id, err);
    if (status != 0) {
        return status;
    }
    if (unique_id_place(&place, &news.id)) {
        snprintf(news.address, sizeof(news.address), "%s", place.address);
    }
    tell(w, &news);
    return 0;
}

static int wait_ids(struct probe_work *w, struct gpul_error *err)
{
    enter(w, WORK_UID, "waiting for the unique IDs of all roots");
    gpu_pulse_wait(&w->gpu.pulse);
    pthread_mutex_lock(&w->lock);
    while (w->ids == NULL && !atomic_load(&w->gpu.stop)) {
        pthread_cond_wait(&w->changed, &w->lock);
    }
    bool is_here = w->ids != NULL;
    pthread_mutex_unlock(&w->lock);
    gpu_pulse_go_on(&w->gpu.pulse);
    return is_here ? 0 : gpul_fail(err, GPUL_ECLOSED, "stopped");
}

static int run_uid(struct probe_work *w, struct gpul_error *err)
{
    const Gpul__ProbeBegin *b = w->begin;
    uint32_t index;
    int status = 0;
    if (gpu_plan_root_index(&index, b->first_rank, b->world_size,
                            b->id_count)) {
        status = make_id(w, index, err);
    }
    return status == 0 ? wait_ids(w, err) : status;
}

static int run_init(struct probe_work *w, struct gpul_error *err)
{
    const struct gpu_comm_place place = {
        .rank = w->begin->first_rank,
        .ranks = w->begin->world_size,
        .id_count = w->begin->id_count,
    };
    enter(w, WORK_INIT,
          "setting up the communicator: waiting in NCCL for all %" PRIu32
          " ranks",
          place.ranks);
    int status = gpu_comm_init(&w->gpu, &place, w->ids, err);
    if (status == 0) {
        tell_phase(w, GPUL__PROBE_PHASE__PHASE__INIT);
    }
    return status;
}

static int sweep_world(struct probe_work *w, struct gpul_error *err)
{
    const struct collective_request request = {
        .rank = w->begin->first_rank,
        .ranks = w->begin->world_size,
        .level = w->begin->self_test->level,
        .sweep = w->begin->self_test->sweep,
        .plan = &w->plan,
        .on_step = on_step,
        .arg = w,
    };
    enter(w, WORK_COLL, "the first all-gather");
    return collective_nccl_run(&w->result, &w->gpu, &request, err);
}

static int sweep_node(struct probe_work *w, struct gpul_error *err)
{
    const Gpul__ProbeBegin *b = w->begin;
    const struct gpu_comm_place place = {
        .rank = b->first_rank - b->node_first_rank,
        .ranks = b->node_rank_count,
    };
    enter(w, WORK_COLL, "splitting the communicator by nodes");
    int status = gpu_comm_split(&w->gpu, b->node_first_rank, &place, err);
    if (status != 0 || place.ranks == 1) {
        return status;
    }
    gpu_plan_within_node(&w->plan, b->self_test->level);
    const struct collective_request request = {
        .rank = place.rank,
        .ranks = place.ranks,
        .plan = &w->plan,
        .is_within_node = true,
        .on_step = on_step,
        .arg = w,
    };
    return collective_nccl_run(&w->result, &w->gpu, &request, err);
}

static int run_coll(struct probe_work *w, struct gpul_error *err)
{
    int status = sweep_world(w, err);
    if (status == 0 && w->begin->node_rank_count > 0) {
        status = sweep_node(w, err);
    }
    if (status == 0) {
        tell_phase(w, GPUL__PROBE_PHASE__PHASE__COLL);
    }
    return status;
}

/* That of the node first, where there is one. */
static int end_communicators(struct probe_work *w, struct gpul_error *err)
{
    int status = 0;
    while (status == 0 && atomic_load(&w->gpu.comm) != NULL) {
        enter(w, WORK_END, "finalising the communicator");
        status = gpu_comm_finalize(&w->gpu, err);
        if (status == 0) {
            enter(w, WORK_END, "destroying the communicator");
            status = gpu_comm_destroy(&w->gpu, err);
        }
    }
    return status;
}

static int run_end(struct probe_work *w, struct gpul_error *err)
{
    int status = end_communicators(w, err);
    if (status == 0) {
        enter(w, WORK_END, "giving the device back");
        status = close_device(w, err);
    }
    if (status == 0) {
        tell_phase(w, GPUL__PROBE_PHASE__PHASE__END);
    }
    return status;
}

static void *run(void *arg)
{
    static int (*const phases[])(struct probe_work *, struct gpul_error *) = {
        run_cuda, run_uid, run_init, run_coll, run_end};
    struct probe_work *w = arg;
    struct gpul_error err = {0};
    int status = 0;
    for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
        status = status == 0 ? phases[i](w, &err) : status;
    }
    pthread_mutex_lock(&w->lock);
    w->status = status;
    w->error = err;
    w->is_done = true;
    pthread_mutex_unlock(&w->lock);
    wake(w);
    return NULL;
}

/* ---- for the controlling thread ------------------------------------------ */

int probe_work_init(struct probe_work *w, const Gpul__ProbeBegin *begin,
                    const char *command, struct gpul_error *err)
{
    *w = (struct probe_work){.begin = begin, .command = command, .wake_fd = -1};
    w->facts = calloc(1, sizeof(*w->facts));
    if (w->facts == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "no memory for the device's facts");
    }
    w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->wake_fd < 0) {
        free(w->facts);
        return gpul_fail_errno(err, errno, "eventfd");
    }
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    return 0;
}

int probe_work_start(struct probe_work *w, pthread_t *thread,
                     struct gpul_error *err)
{
    int rc = pthread_create(thread, NULL, run, w);
    return rc == 0 ? 0 : gpul_fail_errno(err, rc, "thread of the probe");
}

void probe_work_release(struct probe_work *w)
{
    gpu_facts_release(w->facts);
    free(w->facts);
    free(w->ids);
    close(w->wake_fd);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
}

int probe_work_give_ids(struct probe_work *w, const Gpul__ProbeIds *ids,
                        struct gpul_error *err)
{
    if (ids->n_ids != w->begin->id_count) {
        return gpul_fail(err, GPUL_EPROTO,
                         "%zu unique IDs came, %" PRIu32 " were announced",
                         ids->n_ids, w->begin->id_count);
    }
    struct nccl_unique_id *copy = calloc(ids->n_ids, sizeof(*copy));
    if (copy == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "no memory for the unique IDs");
    }
    for (size_t i = 0; i < ids->n_ids; i++) {
        memcpy(copy[i].internal, ids->ids[i].data, sizeof(copy[i].internal));
    }
    pthread_mutex_lock(&w->lock);
    bool is_first = w->ids == NULL;
    if (is_first) {
        w->ids = copy;
    }
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    if (!is_first) {
        free(copy);
        return gpul_fail(err, GPUL_EPROTO, "unique IDs came twice");
    }
    return 0;
}

void probe_work_stop(struct probe_work *w)
{
    pthread_mutex_lock(&w->lock);
    atomic_store(&w->gpu.stop, true);
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
}
