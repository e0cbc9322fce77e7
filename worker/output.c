/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/output.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "proto/limits.h"
#include "worker/logpipe.h"

/* What a pipe holds, by default, so one read empties it. */
enum { READ_BYTES = 64 << 10 };
/* A pipe holds at most 1 MiB (/proc/sys/fs/pipe-max-size) for a rank that
 * asks for more; twice that in one go is enough. */
enum { READS_MAX = 32 };

/* One pipe. On the heap: libuv lets go of it some time after it is closed. */
struct stream {
    uv_poll_t poll;
    struct output *output;
    struct stream *next; /* of all that are open */
    struct stream **link;
    uint32_t local_rank;
    struct logpipe pipe;
};

struct output {
    uv_loop_t *loop;
    struct ranklogs *logs;
    struct output_handlers handlers;
    void *arg;
    struct output_job job;
    struct stream *open;     /* the one that was read last is the last */
    struct stream **end;     /* where the next one goes */
    struct lastwords *words; /* by local rank */
    uint64_t in_flight;      /* sent, not yet credited */
    bool is_paused;          /* no pipe is polled */
    uint64_t pause_ms;       /* when that began */
    uint64_t paused_ms;      /* all before that */
    bool is_discarding;      /* until new ranks start */
    bool is_finishing;       /* no writer is left */
    bool has_told_drained;
    bool has_told_broken;
    size_t closing; /* streams that libuv still has */
    bool is_destroyed;
    char buffer[READ_BYTES];
};

int output_create(struct output **out, uv_loop_t *loop, struct ranklogs *logs,
                  const struct output_handlers *handlers, void *arg,
                  struct gpul_error *err)
{
    /* Not calloc: the buffer need not be touched before it is used. */
    struct output *o = malloc(sizeof(*o));
    *out = o;
    if (o == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory for output");
    }
    memset(o, 0, offsetof(struct output, buffer));
    o->loop = loop;
    o->logs = logs;
    o->handlers = *handlers;
    o->arg = arg;
    o->end = &o->open;
    o->has_told_drained = true;
    return 0;
}

static void free_words(struct output *o)
{
    for (uint32_t i = 0; o->words != NULL && i < o->job.rank_count; i++) {
        lastwords_release(&o->words[i]);
    }
    free(o->words);
    o->words = NULL;
}

static void free_when_closed(struct output *o)
{
    if (o->is_destroyed && o->closing == 0) {
        free_words(o);
        free(o);
    }
}

int output_begin(struct output *o, const struct output_job *job,
                 struct gpul_error *err)
{
    assert(o->open == NULL);
    free_words(o);
    o->job = *job;
    o->is_discarding = false;
    o->is_finishing = false;
    o->has_told_drained = false;
    o->has_told_broken = false;
    o->words = calloc(job->rank_count, sizeof(*o->words));
    return o->words != NULL
               ? 0
               : gpul_fail(err, GPUL_ENOMEM, "out of memory for output");
}

/* ---- credit ------------------------------------------------------------- */

static bool is_forwarding(const struct output *o)
{
    return o->job.forwards && !o->is_discarding;
}

/* docs/protocol.md, "Output and credit". */
static uint64_t window_bytes(uint32_t node_count)
{
    uint64_t share = GPUL_OUTPUT_WINDOW_TOTAL_BYTES / node_count;
    if (share > GPUL_OUTPUT_WINDOW_BYTES_MAX) {
        return GPUL_OUTPUT_WINDOW_BYTES_MAX;
    }
    return share < GPUL_OUTPUT_WINDOW_BYTES_MIN ? GPUL_OUTPUT_WINDOW_BYTES_MIN
                                                : share;
}

/* How much may be read now. */
static size_t room(const struct output *o)
{
    if (!is_forwarding(o)) {
        return READ_BYTES;
    }
    uint64_t window = window_bytes(o->job.node_count);
    uint64_t left = o->in_flight < window ? window - o->in_flight : 0;
    return left < READ_BYTES ? (size_t)left : READ_BYTES;
}

/* ---- one pipe ----------------------------------------------------------- */

static void on_stream_closed(uv_handle_t *handle)
{
    struct stream *s = handle->data;
    struct output *o = s->output;
    free(s);
    o->closing--;
    free_when_closed(o);
}

static void link_last(struct stream *s)
{
    struct output *o = s->output;
    s->next = NULL;
    s->link = o->end;
    *s->link = s;
    o->end = &s->next;
}

static void unlink_stream(struct stream *s)
{
    *s->link = s->next;
    if (s->next != NULL) {
        s->next->link = s->link;
    } else {
        s->output->end = s->link;
    }
}

static void close_stream(struct stream *s)
{
    unlink_stream(s);
    uv_poll_stop(&s->poll);
    uv_close((uv_handle_t *)&s->poll, on_stream_closed);
    logpipe_release(&s->pipe);
}

static void tell_broken(struct output *o, const struct gpul_error *err)
{
    if (!o->has_told_broken) {
        o->has_told_broken = true;
        char text[GPUL_ERROR_TEXT_BYTES + 64];
        snprintf(text, sizeof(text),
                 "log files are incomplete, output goes on here: %s",
                 err->text);
        o->handlers.on_notice(o->arg, text);
    }
}

static void send_frame(struct stream *s, char *bytes, size_t n)
{
    struct output *o = s->output;
    Gpul__Output body;
    gpul__output__init(&body);
    body.rank = o->job.first_rank + s->local_rank;
    body.node_rank = o->job.node_rank;
    body.stream = s->pipe.stream == RANKLOG_OUT ? GPUL__OUTPUT__STREAM__STDOUT
                                                : GPUL__OUTPUT__STREAM__STDERR;
    body.data.data = (uint8_t *)bytes;
    body.data.len = n;
    Gpul__Frame frame;
    gpul__frame__init(&frame);
    frame.body_case = GPUL__FRAME__BODY_OUTPUT;
    frame.output = &body;
    o->in_flight += n;
    o->handlers.on_frame(o->arg, &frame);
}

static void show(struct stream *s, char *bytes, size_t n)
{
    struct output *o = s->output;
    lastwords_take(&o->words[s->local_rank], s->pipe.stream == RANKLOG_ERR,
                   bytes, n);
    while (n > 0 && is_forwarding(o)) {
        size_t piece = n < GPUL_OUTPUT_BYTES_MAX ? n : GPUL_OUTPUT_BYTES_MAX;
        send_frame(s, bytes, piece);
        bytes += piece;
        n -= piece;
    }
}

enum progress { READ_SOME, READ_EMPTY, READ_END, READ_NO_CREDIT };

static enum progress read_once(struct stream *s)
{
    struct output *o = s->output;
    struct gpul_error trouble = {0};
    bool is_shown = !o->is_discarding || s->pipe.stream == RANKLOG_ERR;
    size_t n = room(o);
    if (n == 0) {
        return READ_NO_CREDIT;
    }
    enum logpipe_progress progress =
        logpipe_take(&s->pipe, is_shown ? o->buffer : NULL, &n, &trouble);
    if (trouble.status != 0) {
        tell_broken(o, &trouble);
    }
    if (progress == LOGPIPE_SOME) {
        o->handlers.on_written(o->arg, s->local_rank);
    }
    if (progress == LOGPIPE_SOME && is_shown) {
        show(s, o->buffer, n);
    }
    return progress == LOGPIPE_SOME    ? READ_SOME
           : progress == LOGPIPE_EMPTY ? READ_EMPTY
                                       : READ_END;
}

/* Until it is empty; a writer that never pauses is cut off. */
static enum progress read_all(struct stream *s)
{
    enum progress progress = READ_SOME;
    for (int i = 0; i < READS_MAX && progress == READ_SOME; i++) {
        progress = read_once(s);
    }
    return progress;
}

/* ---- all pipes ---------------------------------------------------------- */

static void on_readable(uv_poll_t *poll, int status, int events);

static void set_paused(struct output *o, bool is_paused)
{
    if (o->is_paused == is_paused) {
        return;
    }
    o->is_paused = is_paused;
    if (is_paused) {
        o->pause_ms = gpul_clock_ms();
    } else {
        o->paused_ms += gpul_clock_ms() - o->pause_ms;
    }
    for (struct stream *s = o->open; s != NULL; s = s->next) {
        if (is_paused) {
            uv_poll_stop(&s->poll);
        } else {
            uv_poll_start(&s->poll, UV_READABLE, on_readable);
        }
    }
}

uint64_t output_paused_ms(const struct output *o, bool *is_paused)
{
    *is_paused = o->is_paused;
    return o->paused_ms + (o->is_paused ? gpul_clock_ms() - o->pause_ms : 0);
}

/* After anything that may have closed a pipe or moved the credit. */
static void settle(struct output *o)
{
    struct stream *next;
    for (struct stream *s = o->open; o->is_finishing && s != NULL; s = next) {
        next = s->next;
        enum progress progress = read_all(s);
        if (progress == READ_NO_CREDIT) {
            break;
        }
        close_stream(s);
    }
    if (o->is_finishing && o->open == NULL && !o->has_told_drained) {
        o->has_told_drained = true;
        o->handlers.on_drained(o->arg);
        return;
    }
    set_paused(o, room(o) == 0);
}

/* One read a turn for each pipe, so that none starves the others; nor by
 * taking all of a small credit again and again: libuv asks after the pipes in
 * the order in which polling them has begun, which is that of the list. */
static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)events;
    struct stream *s = poll->data;
    struct output *o = s->output;
    enum progress progress = status < 0 ? READ_END : read_once(s);
    if (progress == READ_END) {
        close_stream(s);
    } else if (progress == READ_SOME) {
        unlink_stream(s);
        link_last(s);
    }
    settle(o);
}

int output_add(struct output *o, uint32_t local_rank,
               enum ranklog_stream stream, int fd, struct gpul_error *err)
{
    assert(local_rank < o->job.rank_count);
    struct stream *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        close(fd);
        return gpul_fail(err, GPUL_ENOMEM,
                         "out of memory for output of a rank");
    }
    int rc = uv_poll_init(o->loop, &s->poll, fd);
    if (rc != 0) {
        free(s);
        close(fd);
        return gpul_fail(err, GPUL_ESYS, "pipe of a rank: %s", uv_strerror(rc));
    }
    s->poll.data = s;
    s->output = o;
    s->local_rank = local_rank;
    logpipe_init(&s->pipe, o->logs, o->job.first_rank + local_rank, stream, fd);
    link_last(s);
    o->closing++;
    if (!o->is_paused) {
        uv_poll_start(&s->poll, UV_READABLE, on_readable);
    }
    return 0;
}

/* ---- the end of a rank -------------------------------------------------- */

struct lastwords *output_words(struct output *o, uint32_t local_rank)
{
    struct stream *next;
    for (struct stream *s = o->open; s != NULL; s = next) {
        next = s->next;
        if (s->local_rank == local_rank && read_all(s) == READ_END) {
            close_stream(s);
        }
    }
    set_paused(o, room(o) == 0);
    return &o->words[local_rank];
}

void output_touch_log(struct output *o, uint32_t local_rank)
{
    char path[GPUL_PATH_BYTES_MAX + 1];
    uint32_t rank = o->job.first_rank + local_rank;
    ranklogs_path(o->logs, path, sizeof(path), rank, RANKLOG_ERR);
    if (path[0] == 0 || access(path, F_OK) == 0) {
        return;
    }
    struct gpul_error err;
    int fd;
    for (struct stream *s = o->open; s != NULL; s = s->next) {
        if (s->local_rank == local_rank && s->pipe.stream == RANKLOG_ERR) {
            if (logpipe_make_log(&s->pipe, &err) != 0) {
                tell_broken(o, &err);
            }
            return;
        }
    }
    if (ranklogs_open(o->logs, &fd, rank, RANKLOG_ERR, &err) == 0) {
        close(fd);
    } else {
        tell_broken(o, &err);
    }
}

void output_credit(struct output *o, uint64_t bytes)
{
    o->in_flight -= bytes < o->in_flight ? bytes : o->in_flight;
    settle(o);
}

void output_discard(struct output *o)
{
    o->is_discarding = true;
    settle(o);
}

void output_finish(struct output *o)
{
    o->is_finishing = true;
    settle(o);
}

void output_destroy(struct output *o)
{
    if (o == NULL) {
        return;
    }
    while (o->open != NULL) {
        close_stream(o->open);
    }
    o->is_destroyed = true;
    free_when_closed(o);
}
