/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/input.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "worker/inputqueue.h"

enum {
    NOBODY = -1,
    /* Writes to one pipe in one turn of the loop. */
    WRITES_MAX = 16,
};

/* One rank's pipe; lives until libuv lets go of it. */
struct feeder {
    uv_poll_t poll;
    struct input *owner;
    uint32_t local_rank;
    int fd;
    bool is_full; /* there is no room: poll tells when there is */
};

struct input {
    uv_loop_t *loop;
    input_frame_fn on_frame;
    void *arg;
    input_close_fn on_close;
    void *close_arg;
    uint32_t generation; /* of what is in the queue */
    struct inputqueue queue;
    struct feeder **feeders; /* by local rank; NULL: closed, or not to read */
    uint32_t rank_count;
};

int input_create(struct input **out, uv_loop_t *loop, input_frame_fn on_frame,
                 void *arg, struct gpul_error *err)
{
    struct input *in = calloc(1, sizeof(*in));
    *out = in;
    if (in == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory for input");
    }
    in->loop = loop;
    in->on_frame = on_frame;
    in->arg = arg;
    inputqueue_init(&in->queue);
    return 0;
}

void input_tell_closed(struct input *in, input_close_fn on_close, void *arg)
{
    in->on_close = on_close;
    in->close_arg = arg;
}

bool input_is_for(const Gpul__Job *job, uint32_t rank)
{
    const Gpul__InputTarget *target = job->input_target;
    return target != NULL && (target->is_all || target->rank == rank);
}

/* ---- credit -------------------------------------------------------------- */

static void tell(struct input *in)
{
    Gpul__InputCredit credit;
    gpul__input_credit__init(&credit);
    bool is_closed;
    if (!inputqueue_credit(&in->queue, &credit.bytes, &is_closed)) {
        return;
    }
    credit.is_closed = is_closed;
    Gpul__Frame frame;
    gpul__frame__init(&frame);
    frame.body_case = GPUL__FRAME__BODY_INPUT_CREDIT;
    frame.input_credit = &credit;
    in->on_frame(in->arg, &frame);
}

/* ---- one pipe ------------------------------------------------------------ */

static void on_feeder_closed(uv_handle_t *handle)
{
    free(handle->data);
}

/* The next agent may go on with it. */
static bool drop_feeder(struct input *in, uint32_t local_rank)
{
    struct feeder *f = in->feeders[local_rank];
    if (f == NULL) {
        return false;
    }
    in->feeders[local_rank] = NULL;
    inputqueue_close(&in->queue, local_rank);
    uv_close((uv_handle_t *)&f->poll, on_feeder_closed);
    close(f->fd);
    return true;
}

static void close_feeder(struct input *in, uint32_t local_rank)
{
    if (drop_feeder(in, local_rank)) {
        in->on_close(in->close_arg, local_rank);
    }
}

static void on_event(uv_poll_t *poll, int status, int events);

/* Room in the pipe matters while something waits for it; that the rank has
 * closed its end is always news. */
static void watch(struct feeder *f)
{
    const uint8_t *bytes;
    struct input *in = f->owner;
    bool has_more = inputqueue_next(&in->queue, f->local_rank, &bytes) > 0;
    int events = UV_DISCONNECT | (has_more ? UV_WRITABLE : 0);
    f->is_full = has_more;
    if (uv_poll_start(&f->poll, events, on_event) != 0) {
        close_feeder(in, f->local_rank);
    }
}

/* Returns false once the rank does not read any more. */
static bool write_some(struct feeder *f)
{
    const uint8_t *bytes;
    struct inputqueue *q = &f->owner->queue;
    for (int i = 0; i < WRITES_MAX; i++) {
        size_t n = inputqueue_next(q, f->local_rank, &bytes);
        ssize_t done = n > 0 ? write(f->fd, bytes, n) : 0;
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done < 0) {
            return errno == EAGAIN;
        }
        inputqueue_took(q, f->local_rank, (size_t)done);
        if (n == (size_t)done) {
            break;
        }
    }
    return !inputqueue_is_done(q, f->local_rank);
}

static void feed(struct feeder *f)
{
    if (write_some(f)) {
        watch(f);
    } else {
        close_feeder(f->owner, f->local_rank);
    }
}

static void on_event(uv_poll_t *poll, int status, int events)
{
    struct feeder *f = poll->data;
    struct input *in = f->owner;
    (void)events;
    if (status < 0) {
        close_feeder(in, f->local_rank);
    } else {
        feed(f);
    }
    tell(in);
}

/* ---- all of them --------------------------------------------------------- */

static void feed_all(struct input *in)
{
    for (uint32_t i = 0; i < in->rank_count; i++) {
        if (in->feeders[i] != NULL && !in->feeders[i]->is_full) {
            feed(in->feeders[i]);
        }
    }
    tell(in);
}

static void reset(struct input *in, uint32_t generation)
{
    for (uint32_t i = 0; i < in->rank_count; i++) {
        drop_feeder(in, i);
    }
    free(in->feeders);
    in->feeders = NULL;
    in->rank_count = 0;
    inputqueue_clear(&in->queue);
    in->generation = generation;
}

int input_put(struct input *in, uint32_t generation, const Gpul__Input *input,
              struct gpul_error *err)
{
    if (generation != in->generation) {
        reset(in, generation);
    }
    int rc = inputqueue_put(&in->queue, input->data.data, input->data.len,
                            input->is_end);
    if (rc != 0) {
        return gpul_fail(err, rc, "%s",
                         rc == GPUL_ELIMIT ? "the coordinator sends more input "
                                             "than the ranks have room for"
                                           : "out of memory for input");
    }
    feed_all(in);
    return 0;
}

static bool is_wanted(const Gpul__Job *job, uint32_t first_rank,
                      uint32_t rank_count)
{
    for (uint32_t i = 0; i < rank_count; i++) {
        if (input_is_for(job, first_rank + i)) {
            return true;
        }
    }
    return false;
}

int input_begin(struct input *in, uint32_t generation, const Gpul__Job *job,
                uint32_t first_rank, uint32_t rank_count,
                struct gpul_error *err)
{
    if (generation != in->generation) {
        reset(in, generation);
    }
    if (!is_wanted(job, first_rank, rank_count)) {
        return 0;
    }
    in->feeders = calloc(rank_count, sizeof(struct feeder *));
    if (in->feeders == NULL || inputqueue_open(&in->queue, rank_count) != 0) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory for input");
    }
    in->rank_count = rank_count;
    return 0;
}

static struct feeder *make_feeder(struct input *in, uint32_t local_rank, int fd)
{
    struct feeder *f = calloc(1, sizeof(*f));
    if (f == NULL || uv_poll_init(in->loop, &f->poll, fd) != 0) {
        free(f);
        return NULL;
    }
    f->poll.data = f;
    f->owner = in;
    f->local_rank = local_rank;
    f->fd = fd;
    return f;
}

void input_add(struct input *in, uint32_t local_rank, int fd)
{
    in->feeders[local_rank] = make_feeder(in, local_rank, fd);
    if (in->feeders[local_rank] == NULL) {
        close(fd);
        in->on_close(in->close_arg, local_rank);
    }
}

void input_started(struct input *in)
{
    for (uint32_t i = 0; i < in->rank_count; i++) {
        if (in->feeders[i] == NULL) {
            inputqueue_close(&in->queue, i);
        }
    }
    feed_all(in);
}

void input_ended(struct input *in, uint32_t local_rank)
{
    if (local_rank < in->rank_count) {
        close_feeder(in, local_rank);
        tell(in);
    }
}

void input_finish(struct input *in)
{
    for (uint32_t i = 0; i < in->rank_count; i++) {
        close_feeder(in, i);
    }
    tell(in);
}

void input_destroy(struct input *in)
{
    if (in != NULL) {
        reset(in, 0);
        inputqueue_release(&in->queue);
        free(in);
    }
}
