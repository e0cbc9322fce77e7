/* SPDX-License-Identifier: Apache-2.0
 *
 * One thread a stream, started with it. */
#include "tests/doubles/cuda_stream.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

struct item {
    struct item *next;
    void (*run)(void *);
    void *argument;
};

struct cuda_stream {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct item *first; /* guarded by lock, as is all below */
    struct item **last;
    bool is_busy; /* an item is running */
    bool ends;
};

struct cuda_event {
    pthread_mutex_t lock;
    unsigned users;    /* the owner, and each record under way */
    uint64_t recorded; /* how often */
    uint64_t reached;  /* the latest record that its stream came to */
    struct timespec at;
    bool is_timed;
};

/* --- The device --------------------------------------------------------- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool halts;
} device = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};

void streams_halt(bool halts)
{
    (void)pthread_mutex_lock(&device.lock);
    device.halts = halts;
    (void)pthread_cond_broadcast(&device.changed);
    (void)pthread_mutex_unlock(&device.lock);
}

static void device_wait(void)
{
    (void)pthread_mutex_lock(&device.lock);
    while (device.halts)
        (void)pthread_cond_wait(&device.changed, &device.lock);
    (void)pthread_mutex_unlock(&device.lock);
}

/* --- Streams ------------------------------------------------------------ */

static void stream_free(struct cuda_stream *stream)
{
    (void)pthread_cond_destroy(&stream->changed);
    (void)pthread_mutex_destroy(&stream->lock);
    free(stream);
}

static struct item *item_next(struct cuda_stream *stream)
{
    while (!stream->first && !stream->ends)
        (void)pthread_cond_wait(&stream->changed, &stream->lock);
    struct item *item = stream->first;
    if (item) {
        stream->first = item->next;
        if (!stream->first)
            stream->last = &stream->first;
        stream->is_busy = true;
    }
    return item;
}

static void *stream_run(void *argument)
{
    struct cuda_stream *stream = argument;

    (void)pthread_mutex_lock(&stream->lock);
    for (struct item *item; (item = item_next(stream)) != NULL;) {
        (void)pthread_mutex_unlock(&stream->lock);
        device_wait();
        item->run(item->argument);
        free(item);
        (void)pthread_mutex_lock(&stream->lock);
        stream->is_busy = false;
        (void)pthread_cond_broadcast(&stream->changed);
    }
    (void)pthread_mutex_unlock(&stream->lock);
    stream_free(stream);
    return NULL;
}

struct cuda_stream *stream_make(void)
{
    struct cuda_stream *stream = calloc(1, sizeof *stream);
    pthread_attr_t attributes;
    pthread_t thread;

    if (!stream)
        return NULL;
    stream->last = &stream->first;
    (void)pthread_mutex_init(&stream->lock, NULL);
    (void)pthread_cond_init(&stream->changed, NULL);
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int status = pthread_create(&thread, &attributes, stream_run, stream);
    (void)pthread_attr_destroy(&attributes);
    if (status != 0) {
        stream_free(stream);
        return NULL;
    }
    return stream;
}

void stream_end(struct cuda_stream *stream)
{
    (void)pthread_mutex_lock(&stream->lock);
    stream->ends = true;
    (void)pthread_cond_broadcast(&stream->changed);
    (void)pthread_mutex_unlock(&stream->lock);
}

int stream_push(struct cuda_stream *stream, void (*run)(void *), void *argument)
{
    struct item *item = malloc(sizeof *item);

    if (!item)
        return CUDA_RESULT_OUT_OF_MEMORY;
    *item = (struct item){NULL, run, argument};
    (void)pthread_mutex_lock(&stream->lock);
    *stream->last = item;
    stream->last = &item->next;
    (void)pthread_cond_broadcast(&stream->changed);
    (void)pthread_mutex_unlock(&stream->lock);
    return CUDA_RESULT_SUCCESS;
}

bool stream_is_idle(struct cuda_stream *stream)
{
    (void)pthread_mutex_lock(&stream->lock);
    bool is_idle = !stream->first && !stream->is_busy;
    (void)pthread_mutex_unlock(&stream->lock);
    return is_idle;
}

void stream_wait(struct cuda_stream *stream)
{
    (void)pthread_mutex_lock(&stream->lock);
    while (stream->first || stream->is_busy)
        (void)pthread_cond_wait(&stream->changed, &stream->lock);
    (void)pthread_mutex_unlock(&stream->lock);
}

/* --- Events ------------------------------------------------------------- */

struct cuda_event *event_make(bool is_timed)
{
    struct cuda_event *event = calloc(1, sizeof *event);

    if (!event)
        return NULL;
    (void)pthread_mutex_init(&event->lock, NULL);
    event->users = 1;
    event->is_timed = is_timed;
    return event;
}

/* Unlocks. */
static void event_leave(struct cuda_event *event)
{
    unsigned users = --event->users;

    (void)pthread_mutex_unlock(&event->lock);
    if (users > 0)
        return;
    (void)pthread_mutex_destroy(&event->lock);
    free(event);
}

void event_end(struct cuda_event *event)
{
    (void)pthread_mutex_lock(&event->lock);
    event_leave(event);
}

static void event_reach(void *argument)
{
    struct cuda_event *event = argument;

    (void)pthread_mutex_lock(&event->lock);
    event->reached++;
    (void)clock_gettime(CLOCK_MONOTONIC, &event->at);
    event_leave(event);
}

int event_put(struct cuda_event *event, struct cuda_stream *stream)
{
    (void)pthread_mutex_lock(&event->lock);
    event->users++;
    event->recorded++;
    (void)pthread_mutex_unlock(&event->lock);
    int status = stream_push(stream, event_reach, event);
    if (status != 0)
        event_reach(event);
    return status;
}

int event_ask(struct cuda_event *event)
{
    (void)pthread_mutex_lock(&event->lock);
    bool is_ready = event->reached == event->recorded;
    (void)pthread_mutex_unlock(&event->lock);
    return is_ready ? CUDA_RESULT_SUCCESS : CUDA_RESULT_NOT_READY;
}

/* When an event was reached, or why that cannot be said. */
static int event_time(struct cuda_event *event, struct timespec *at)
{
    int status = CUDA_RESULT_SUCCESS;

    (void)pthread_mutex_lock(&event->lock);
    *at = event->at;
    if (!event->is_timed || event->recorded == 0)
        status = CUDA_INVALID_HANDLE;
    else if (event->reached != event->recorded)
        status = CUDA_RESULT_NOT_READY;
    (void)pthread_mutex_unlock(&event->lock);
    return status;
}

int event_elapsed(float *ms, struct cuda_event *from, struct cuda_event *to)
{
    struct timespec start, end;
    int status = event_time(from, &start);

    *ms = 0;
    if (status == 0)
        status = event_time(to, &end);
    if (status == 0)
        *ms = (float)((double)(end.tv_sec - start.tv_sec) * 1e3 +
                      (double)(end.tv_nsec - start.tv_nsec) / 1e6);
    return status;
}
