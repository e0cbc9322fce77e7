/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/inlet.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum {
    PIECE_BYTES = 128 << 10,
    /* Reads in one turn of the loop, which has other things to do too. */
    PIECES_MAX = 4,
    /* A shell need not tell a job that it was put into the foreground. */
    LOOK_MS = 500,
};

enum way {
    WAY_EMPTY, /* there is nothing to read from */
    WAY_POLL,
    WAY_THREAD,
};

struct inlet {
    enum way way;
    int fd;
    bool owns_fd;
    bool is_socket;
    bool is_terminal;
    bool is_polling;
    bool is_reading; /* a thread is at it */
    bool has_ended;
    bool is_closing;
    uint64_t wanted;
    struct inlet_handlers handlers;
    void *arg;
    uv_loop_t *loop;
    uv_poll_t poll;
    uv_timer_t timer;
    uv_fs_t request;
    uint8_t piece[PIECE_BYTES];
};

static void look(struct inlet *in);

static void stop_polling(struct inlet *in)
{
    if (in->is_polling) {
        uv_poll_stop(&in->poll);
        in->is_polling = false;
    }
}

static void end(struct inlet *in, int why)
{
    if (!in->has_ended) {
        in->has_ended = true;
        in->wanted = 0;
        stop_polling(in);
        in->handlers.on_end(in->arg, why);
    }
}

static void deliver(struct inlet *in, size_t n)
{
    in->wanted -= n;
    in->handlers.on_data(in->arg, in->piece, n);
}

static size_t next_bytes(const struct inlet *in)
{
    return in->wanted < PIECE_BYTES ? (size_t)in->wanted : PIECE_BYTES;
}

/* ---- the terminal -------------------------------------------------------- */

/* Another terminal than our own has no background. */
static bool is_in_background(const struct inlet *in)
{
    pid_t group = in->is_terminal ? tcgetpgrp(in->fd) : -1;
    return group > 0 && group != getpgrp();
}

static void on_timer(uv_timer_t *timer)
{
    look(timer->data);
}

static void wait_for_foreground(struct inlet *in)
{
    stop_polling(in);
    uv_timer_start(&in->timer, on_timer, LOOK_MS, 0);
}

/* ---- reading by poll ----------------------------------------------------- */

/* Where the description is shared, another process may have been faster. */
static bool has_data(const struct inlet *in)
{
    struct pollfd p = {.fd = in->fd, .events = POLLIN};
    return in->owns_fd || in->is_socket || poll(&p, 1, 0) > 0;
}

static ssize_t take(struct inlet *in)
{
    size_t n = next_bytes(in);
    ssize_t done;
    do {
        done = in->is_socket ? recv(in->fd, in->piece, n, MSG_DONTWAIT)
                             : read(in->fd, in->piece, n);
    } while (done < 0 && errno == EINTR);
    return done;
}

/* False: there is no more for now. */
static bool read_piece(struct inlet *in)
{
    if (is_in_background(in)) {
        wait_for_foreground(in);
        return false;
    }
    if (!has_data(in)) {
        return false;
    }
    ssize_t n = take(in);
    if (n > 0) {
        deliver(in, (size_t)n);
        return true;
    }
    if (n == 0) {
        end(in, 0);
    } else if (errno == EIO && is_in_background(in)) {
        wait_for_foreground(in);
    } else if (errno == EIO && in->is_terminal) {
        end(in, 0); /* it was hung up, which a signal tells */
    } else if (errno != EAGAIN && errno != EWOULDBLOCK) {
        end(in, errno);
    }
    return false;
}

/* libuv reports every fault of a descriptor as EBADF; a read tells more. */
static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct inlet *in = poll->data;
    (void)events;
    for (int i = 0; i < PIECES_MAX && in->wanted > 0; i++) {
        if (!read_piece(in)) {
            break;
        }
    }
    if (status < 0 && in->wanted > 0) {
        end(in, -status);
    }
    if (in->wanted == 0) {
        stop_polling(in);
    }
}

/* ---- reading by a thread ------------------------------------------------- */

static void on_read(uv_fs_t *request)
{
    struct inlet *in = request->data;
    ssize_t n = request->result;
    uv_fs_req_cleanup(request);
    in->is_reading = false;
    if (in->is_closing) {
        return;
    }
    if (n > 0) {
        deliver(in, (size_t)n);
        look(in);
    } else {
        end(in, (int)-n);
    }
}

static void read_by_thread(struct inlet *in)
{
    uv_buf_t piece = uv_buf_init((char *)in->piece, 0);
    piece.len = next_bytes(in);
    in->request.data = in;
    int rc = uv_fs_read(in->loop, &in->request, in->fd, &piece, 1, -1, on_read);
    in->is_reading = rc == 0;
    if (rc != 0) {
        end(in, -rc);
    }
}

/* ---- both ---------------------------------------------------------------- */

/* Do what is to be done for what is wanted. */
static void look(struct inlet *in)
{
    if (in->wanted == 0 || in->has_ended || in->is_closing) {
        return;
    }
    uv_timer_stop(&in->timer);
    if (in->way == WAY_EMPTY) {
        end(in, 0);
    } else if (in->way == WAY_THREAD) {
        if (!in->is_reading) {
            read_by_thread(in);
        }
    } else if (is_in_background(in)) {
        wait_for_foreground(in);
    } else if (!in->is_polling) {
        int rc = uv_poll_start(&in->poll, UV_READABLE, on_readable);
        in->is_polling = rc == 0;
        if (rc != 0) {
            end(in, -rc);
        }
    }
}

void inlet_want(struct inlet *in, uint64_t bytes)
{
    in->wanted += in->has_ended ? 0 : bytes;
    look(in);
}

void inlet_look_again(struct inlet *in)
{
    look(in);
}

/* ---- opening ------------------------------------------------------------- */

static int reopen(int fd)
{
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
}

static bool can_be_read(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_ACCMODE) != O_WRONLY;
}

/* In the background a read shall fail rather than stop us; see read_piece for
 * what may come between the look and the read. */
static void ignore_terminal_stops(void)
{
    signal(SIGTTIN, SIG_IGN);
}

static bool open_poll(struct inlet *in, uv_loop_t *loop)
{
    int own = in->is_socket ? -1 : reopen(in->fd);
    if (own >= 0) {
        in->fd = own;
        in->owns_fd = true;
    }
    int flags = fcntl(in->fd, F_GETFL);
    int rc = uv_poll_init(loop, &in->poll, in->fd);
    if (!in->owns_fd) {
        fcntl(in->fd, F_SETFL, flags); /* it is shared, and poll needs it not */
    }
    in->poll.data = in;
    return rc == 0;
}

/* What a batch job mostly has: no thread is started to read nothing. */
static bool is_null(const struct stat *st)
{
    return S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3);
}

static enum way choose_way(struct inlet *in, uv_loop_t *loop)
{
    struct stat st;
    if (!can_be_read(in->fd) || fstat(in->fd, &st) != 0 || is_null(&st)) {
        return WAY_EMPTY;
    }
    in->is_terminal = isatty(in->fd) == 1;
    in->is_socket = S_ISSOCK(st.st_mode);
    if (in->is_terminal) {
        ignore_terminal_stops();
    }
    bool can_poll = in->is_terminal || in->is_socket || S_ISFIFO(st.st_mode);
    return can_poll && open_poll(in, loop) ? WAY_POLL : WAY_THREAD;
}

int inlet_create(struct inlet **out, uv_loop_t *loop, int fd,
                 const struct inlet_handlers *handlers, void *arg,
                 struct gpul_error *err)
{
    struct inlet *in = calloc(1, sizeof(*in));
    *out = in;
    if (in == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    in->loop = loop;
    in->fd = fd;
    in->handlers = *handlers;
    in->arg = arg;
    uv_timer_init(loop, &in->timer);
    in->timer.data = in;
    in->way = choose_way(in, loop);
    return 0;
}

void inlet_close(struct inlet *in)
{
    if (in == NULL || in->is_closing) {
        return;
    }
    in->is_closing = true;
    stop_polling(in);
    uv_close((uv_handle_t *)&in->timer, NULL);
    if (in->way == WAY_POLL) {
        uv_close((uv_handle_t *)&in->poll, NULL);
    }
    if (in->is_reading) {
        uv_cancel((uv_req_t *)&in->request); /* else it is almost done */
    }
}

void inlet_destroy(struct inlet *in)
{
    if (in != NULL && in->owns_fd) {
        close(in->fd);
    }
    free(in);
}
