/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/hangwatch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "worker/beats.h"
#include "worker/gpuwatch.h"
#include "worker/rankstate.h"

enum {
    READ_BYTES = 64 << 10,
    /* Between the two looks that tell what a rank does. */
    LOOK_MS = 1000,
};

#define NEVER_MS UINT64_MAX

/* The pipe of a rank. On the heap: libuv lets go of it some time after it is
 * closed. */
struct pulse {
    uv_poll_t poll;
    struct hangwatch *watch;
    uint32_t local_rank;
    int fd;
};

struct hangwatch {
    uv_loop_t *loop;
    const struct output *output;
    hangwatch_frame_fn on_frame;
    void *arg;
    uv_timer_t timer;
    uint64_t timer_ms;     /* when it fires; NEVER_MS: not */
    uint32_t handle_count; /* that libuv still has */
    bool is_destroyed;
    struct gpuwatch *gpus;
    const struct launch *launch;
    uint32_t rank_count; /* 0: nothing is watched */
    struct beats beats;
    struct pulse **pulses;    /* by local rank; NULL: none */
    pid_t *pids;              /* 0: not known */
    struct beats_news *news;  /* to be told; kind 0: none */
    struct rankstate *states; /* what ranks look like when they are told */
    bool has_news;
    bool has_stalls; /* among them */
    struct rankstate_look before;
    uint64_t look_ms; /* of `before`; 0: there is none */
    char buffer[READ_BYTES];
};

static void arm(struct hangwatch *w);

/* The clock of the ranks stands still while nobody reads what they write. */
static uint64_t ranks_ms(const struct hangwatch *w)
{
    bool is_paused;
    return gpul_clock_ms() - output_paused_ms(w->output, &is_paused);
}

/* ---- life ---------------------------------------------------------------- */

static void free_when_closed(struct hangwatch *w)
{
    if (w->is_destroyed && w->handle_count == 0) {
        free(w);
    }
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct hangwatch *w = handle->data;
    w->handle_count--;
    free_when_closed(w);
}

static void on_pulse_closed(uv_handle_t *handle)
{
    struct pulse *p = handle->data;
    struct hangwatch *w = p->watch;
    free(p);
    w->handle_count--;
    free_when_closed(w);
}

static void on_gpus(void *arg)
{
    arm(arg);
}

int hangwatch_create(struct hangwatch **out, uv_loop_t *loop,
                     const struct hangwatch_config *config,
                     hangwatch_frame_fn on_frame, void *arg,
                     struct gpul_error *err)
{
    struct hangwatch *w = calloc(1, sizeof(*w));
    *out = NULL;
    if (w == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory to watch for hangs");
    }
    int rc =
        gpuwatch_create(&w->gpus, loop, config->node_name, on_gpus, w, err);
    if (rc != 0) {
        free(w);
        return rc;
    }
    rc = uv_timer_init(loop, &w->timer);
    if (rc != 0) {
        gpuwatch_destroy(w->gpus);
        free(w);
        return gpul_fail(err, GPUL_ESYS, "watch for hangs: %s",
                         uv_strerror(rc));
    }
    w->timer.data = w;
    w->timer_ms = NEVER_MS;
    w->handle_count = 1;
    w->loop = loop;
    w->output = config->output;
    w->on_frame = on_frame;
    w->arg = arg;
    *out = w;
    return 0;
}

static void close_pulse(struct pulse *p)
{
    p->watch->pulses[p->local_rank] = NULL;
    uv_poll_stop(&p->poll);
    uv_close((uv_handle_t *)&p->poll, on_pulse_closed);
    close(p->fd);
}

void hangwatch_end(struct hangwatch *w)
{
    for (uint32_t i = 0; i < w->rank_count; i++) {
        if (w->pulses[i] != NULL) {
            close_pulse(w->pulses[i]);
        }
    }
    free(w->pulses);
    free(w->pids);
    free(w->news);
    free(w->states);
    w->pulses = NULL;
    w->pids = NULL;
    w->news = NULL;
    w->states = NULL;
    w->rank_count = 0;
    w->has_news = false;
    w->has_stalls = false;
    w->look_ms = 0;
    w->launch = NULL;
    gpuwatch_end(w->gpus);
    rankstate_look_release(&w->before);
    beats_release(&w->beats);
    arm(w);
}

void hangwatch_destroy(struct hangwatch *w)
{
    if (w == NULL) {
        return;
    }
    hangwatch_end(w);
    gpuwatch_destroy(w->gpus);
    w->is_destroyed = true;
    uv_close((uv_handle_t *)&w->timer, on_timer_closed);
}

void hangwatch_begin(struct hangwatch *w, const Gpul__Hang *hang,
                     const struct launch *launch)
{
    uint32_t rank_count = launch->rank_count;
    hangwatch_end(w);
    if (hang != NULL && hang->watch == GPUL__HANG__WATCH__OFF) {
        return;
    }
    w->pulses = calloc(rank_count, sizeof(struct pulse *));
    w->pids = calloc(rank_count, sizeof(*w->pids));
    w->news = calloc(rank_count, sizeof(*w->news));
    w->states = calloc(rank_count, sizeof(*w->states));
    if (w->pulses == NULL || w->pids == NULL || w->news == NULL ||
        w->states == NULL ||
        beats_begin(&w->beats, rank_count, hang != NULL ? hang->limit_ms : 0,
                    ranks_ms(w), NULL) != 0) {
        hangwatch_end(w);
        return;
    }
    w->launch = launch;
    w->rank_count = rank_count;
    arm(w);
}

/* ---- what ranks do ------------------------------------------------------- */

int hangwatch_pipe(int ends[2])
{
    return pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0 ? 0 : errno;
}

/* A rank that closes its end beats no more. */
static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct pulse *p = poll->data;
    struct hangwatch *w = p->watch;
    (void)events;
    ssize_t n = status < 0 ? 0 : read(p->fd, w->buffer, sizeof(w->buffer));
    if (n > 0) {
        beats_take(&w->beats, p->local_rank, w->buffer, (size_t)n, ranks_ms(w));
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        beats_over(&w->beats, p->local_rank, ranks_ms(w));
        close_pulse(p);
    }
    arm(w);
}

static struct pulse *make_pulse(struct hangwatch *w, uint32_t local_rank,
                                int fd)
{
    struct pulse *p =
        local_rank < w->rank_count && w->pulses[local_rank] == NULL
            ? calloc(1, sizeof(*p))
            : NULL;
    if (p == NULL || uv_poll_init(w->loop, &p->poll, fd) != 0) {
        free(p);
        return NULL;
    }
    p->poll.data = p;
    p->watch = w;
    p->local_rank = local_rank;
    p->fd = fd;
    w->handle_count++;
    return p;
}

void hangwatch_add(struct hangwatch *w, uint32_t local_rank, int fd,
                   bool is_taken_over)
{
    struct pulse *p = make_pulse(w, local_rank, fd);
    if (p == NULL) {
        close(fd);
        return;
    }
    w->pulses[local_rank] = p;
    if (is_taken_over) {
        beats_take_over(&w->beats, local_rank);
    }
    uv_poll_start(&p->poll, UV_READABLE, on_readable);
}

void hangwatch_started(struct hangwatch *w, uint32_t local_rank, pid_t pid)
{
    if (local_rank < w->rank_count) {
        w->pids[local_rank] = pid;
    }
}

void hangwatch_output(struct hangwatch *w, uint32_t local_rank)
{
    if (local_rank < w->rank_count) {
        beats_output(&w->beats, local_rank, ranks_ms(w));
        arm(w);
    }
}

void hangwatch_ended(struct hangwatch *w, uint32_t local_rank)
{
    if (local_rank < w->rank_count) {
        w->pids[local_rank] = 0;
        beats_over(&w->beats, local_rank, ranks_ms(w));
        arm(w);
    }
}

void hangwatch_pace(struct hangwatch *w, uint32_t local_rank, uint64_t *steps,
                    uint64_t *ms)
{
    *steps = 0;
    *ms = 0;
    if (local_rank >= w->rank_count) {
        return;
    }
    struct pulse *p = w->pulses[local_rank];
    ssize_t n = p != NULL ? read(p->fd, w->buffer, sizeof(w->buffer)) : 0;
    if (n > 0) {
        beats_take(&w->beats, local_rank, w->buffer, (size_t)n, ranks_ms(w));
    }
    beats_pace(&w->beats, local_rank, steps, ms);
}

/* ---- telling ------------------------------------------------------------- */

/* A row with the text that it points to. */
struct row {
    Gpul__StallRow message;
    char state[2];
    char gpus[GPUL_FINDING_BYTES_MAX + 1];
};

/* What the ranks look like now. */
struct looks {
    struct rankstate_look now;
    uint32_t waited_ms; /* since the look before; 0: there was none */
};

static void fill_row(struct row *row, const struct hangwatch *w,
                     const struct beats_news *news, struct looks *looks)
{
    struct rankstate *state = &w->states[news->local_rank];
    Gpul__StallRow *m = &row->message;
    gpul__stall_row__init(m);
    m->rank = w->launch->first_rank + news->local_rank;
    m->kind = (Gpul__StallRow__Kind)news->kind;
    m->steps = news->steps;
    m->silence_ms = news->silence_ms;
    m->limit_ms = news->limit_ms;
    m->is_learned = news->is_learned;
    if (news->kind == BEATS_RESUMED) {
        return;
    }
    m->silence_ms += looks->waited_ms;
    gpuwatch_tell(row->gpus, w->gpus, w->launch, news->local_rank,
                  w->pids[news->local_rank], &looks->now);
    m->text = row->gpus;
    if (state->state == 0) {
        return;
    }
    row->state[0] = state->state;
    row->state[1] = 0;
    m->state = row->state;
    m->threads = state->threads;
    m->cpu_ms = state->cpu_ms;
    m->look_ms = looks->waited_ms;
    m->wait_channel = state->wait_channel;
}

static void send_rows(struct hangwatch *w, struct row *rows, size_t count)
{
    Gpul__StallRow *list[GPUL_STALL_ROWS_MAX];
    Gpul__Stall stall = GPUL__STALL__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    for (size_t i = 0; i < count; i++) {
        list[i] = &rows[i].message;
    }
    stall.rows = list;
    stall.n_rows = count;
    frame.body_case = GPUL__FRAME__BODY_STALL;
    frame.stall = &stall;
    if (count > 0) {
        w->on_frame(w->arg, &frame);
    }
}

static void send_news(struct hangwatch *w, struct looks *looks)
{
    struct row rows[GPUL_STALL_ROWS_MAX];
    size_t count = 0;
    for (uint32_t i = 0; i < w->rank_count; i++) {
        if (w->news[i].kind == 0) {
            continue;
        }
        fill_row(&rows[count++], w, &w->news[i], looks);
        w->news[i].kind = 0;
        if (count == GPUL_STALL_ROWS_MAX) {
            send_rows(w, rows, count);
            count = 0;
        }
    }
    send_rows(w, rows, count);
}

/* All that is to be told, with what it looks like where that is known. */
static void tell(struct hangwatch *w, uint64_t now_ms)
{
    struct looks looks = {
        .waited_ms = w->look_ms > 0 ? (uint32_t)(now_ms - w->look_ms) : 0,
    };
    memset(w->states, 0, w->rank_count * sizeof(*w->states));
    if (looks.waited_ms > 0 && rankstate_look_take(&looks.now, NULL) == 0) {
        rankstate_read(w->states, w->pids, w->rank_count, &w->before,
                       &looks.now, NULL);
    }
    send_news(w, &looks);
    rankstate_look_release(&looks.now);
    rankstate_look_release(&w->before);
    gpuwatch_end(w->gpus);
    w->look_ms = 0;
    w->has_news = false;
    w->has_stalls = false;
}

/* The last of a rank counts: while we look, it may have gone on. */
static void collect(struct hangwatch *w, uint64_t now_ms)
{
    struct beats_news news;
    while (beats_next_news(&w->beats, &news, now_ms)) {
        w->news[news.local_rank] = news;
        w->has_news = true;
        w->has_stalls |= news.kind != BEATS_RESUMED;
    }
}

static void begin_look(struct hangwatch *w, uint64_t now_ms)
{
    if (rankstate_look_take(&w->before, NULL) == 0) {
        w->look_ms = now_ms;
        gpuwatch_begin(w->gpus);
    }
}

static bool is_look_over(const struct hangwatch *w, uint64_t now_ms)
{
    return now_ms - w->look_ms >= LOOK_MS && !gpuwatch_is_looking(w->gpus);
}

static void on_timer(uv_timer_t *timer)
{
    struct hangwatch *w = timer->data;
    uint64_t now_ms = gpul_clock_ms();
    w->timer_ms = NEVER_MS;
    beats_tick(&w->beats, ranks_ms(w));
    collect(w, ranks_ms(w));
    if (w->has_stalls && w->look_ms == 0) {
        begin_look(w, now_ms);
    }
    if (w->has_news && (w->look_ms == 0 || is_look_over(w, now_ms))) {
        tell(w, now_ms);
    }
    arm(w);
}

/* When something is to be done next. */
static uint64_t next_ms(const struct hangwatch *w, uint64_t paused_ms)
{
    uint64_t next = beats_next_ms(&w->beats);
    if (w->beats.news_count > 0) {
        return 0;
    }
    next = next < NEVER_MS - paused_ms ? next + paused_ms : NEVER_MS;
    if (w->look_ms > 0 && !gpuwatch_is_looking(w->gpus) &&
        w->look_ms + LOOK_MS < next) {
        next = w->look_ms + LOOK_MS;
    }
    return next;
}

/* Beats come often: a timer that is early enough stays as it is. While the
 * ranks' clock stands still it cannot be known when it is time. */
static void arm(struct hangwatch *w)
{
    bool is_paused;
    uint64_t next = next_ms(w, output_paused_ms(w->output, &is_paused));
    uint64_t now_ms = gpul_clock_ms();
    if (is_paused && next < now_ms + LOOK_MS) {
        next = now_ms + LOOK_MS;
    }
    if (next == NEVER_MS && w->rank_count == 0) {
        uv_timer_stop(&w->timer);
        w->timer_ms = NEVER_MS;
    } else if (next < w->timer_ms) {
        w->timer_ms = next;
        uv_update_time(w->loop); /* its clock stands still within a turn */
        uv_timer_start(&w->timer, on_timer, next > now_ms ? next - now_ms : 0,
                       0);
    }
}
