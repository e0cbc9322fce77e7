/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/outlet.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE_BYTES = 256 << 10 };

/* A second open file description of the same pipe or terminal. */
static int reopen(int fd)
{
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
}

static void choose_way(struct outlet *o, int fd)
{
    struct stat st;
    o->fd = fd;
    o->piece_bytes = PIECE_BYTES;
    if (fstat(fd, &st) != 0) {
        return;
    }
    o->is_terminal = isatty(fd) == 1;
    o->is_socket = S_ISSOCK(st.st_mode);
    o->is_polled = o->is_socket || o->is_terminal || S_ISFIFO(st.st_mode);
    if (!o->is_polled || o->is_socket) {
        return;
    }
    int own = reopen(fd);
    if (own >= 0) {
        o->fd = own;
        o->owns_fd = true;
    } else {
        /* A pipe that poll calls writable takes this much at once. */
        o->piece_bytes = PIPE_BUF;
    }
}

/* uv_poll_init makes its descriptor non-blocking; one that we share with
 * others gets its flags back, a uv_poll_t does not need it. */
static int open_poll(struct outlet *o, uv_loop_t *loop)
{
    int flags = fcntl(o->fd, F_GETFL);
    int rc = uv_poll_init(loop, &o->poll, o->fd);
    if (!o->owns_fd && flags >= 0) {
        fcntl(o->fd, F_SETFL, flags);
    }
    o->is_open = rc == 0;
    o->poll.data = o;
    return rc;
}

bool outlet_is_one_place(int a, int b)
{
    struct stat first, second;
    return fstat(a, &first) == 0 && fstat(b, &second) == 0 &&
           !S_ISREG(first.st_mode) && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

int outlet_open(struct outlet *o, uv_loop_t *loop, int fd,
                size_t queue_bytes_max, void (*on_written)(void *arg),
                void *arg)
{
    *o = (struct outlet){.on_written = on_written, .arg = arg};
    gpul_buf_init(&o->queue, queue_bytes_max);
    choose_way(o, fd);
    if (o->is_polled && open_poll(o, loop) != 0) {
        o->is_polled = false;
    }
    return 0;
}

bool outlet_is_drained(const struct outlet *o)
{
    return o->written == o->taken;
}

static void end(struct outlet *o, int why)
{
    if (o->error == 0) {
        o->error = why;
    }
    o->written = o->taken;
    gpul_buf_clear(&o->queue);
    o->start = 0;
}

/* One write; 0 when the other end is full. */
static size_t put(struct outlet *o, const uint8_t *bytes, size_t n)
{
    if (n > o->piece_bytes) {
        n = o->piece_bytes;
    }
    ssize_t done;
    do {
        done = o->is_socket ? send(o->fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL)
                            : write(o->fd, bytes, n);
    } while (done < 0 && errno == EINTR);
    if (done >= 0) {
        return (size_t)done;
    }
    if (errno != EAGAIN && errno != EWOULDBLOCK) {
        end(o, errno);
    }
    return 0;
}

static void compact(struct outlet *o)
{
    if (o->start == o->queue.used) {
        gpul_buf_clear(&o->queue);
        o->start = 0;
    } else if (o->start > o->queue.used / 2) {
        gpul_buf_consume(&o->queue, o->start);
        o->start = 0;
    }
}

static void write_queued(struct outlet *o)
{
    size_t done = put(o, o->queue.data + o->start, o->queue.used - o->start);
    if (o->error != 0) {
        return;
    }
    o->start += done;
    o->written += done;
    compact(o);
}

/* libuv reports every fault of a descriptor as EBADF; a write tells more. */
static void on_writable(uv_poll_t *poll, int status, int events)
{
    struct outlet *o = poll->data;
    (void)events;
    write_queued(o);
    if (status < 0) {
        end(o, -status);
    }
    if (outlet_is_drained(o)) {
        uv_poll_stop(&o->poll);
        o->is_polling = false;
    }
    o->on_written(o->arg);
}

/* Shared descriptors are only written to when poll says so. */
static bool may_write_now(const struct outlet *o)
{
    return o->queue.used == 0 && (!o->is_polled || o->owns_fd || o->is_socket);
}

void outlet_write(struct outlet *o, const void *bytes, size_t n)
{
    const uint8_t *at = bytes;
    o->taken += n;
    if (o->error != 0) {
        o->written = o->taken;
        return;
    }
    while (n > 0 && may_write_now(o)) {
        size_t done = put(o, at, n);
        if (o->error != 0) {
            return;
        }
        o->written += done;
        at += done;
        n -= done;
        if (done == 0) {
            break;
        }
    }
    if (n == 0) {
        return;
    }
    if (!o->is_polled) {
        end(o, EAGAIN);
        return;
    }
    if (gpul_buf_append(&o->queue, at, n) != 0) {
        end(o, ENOBUFS);
        return;
    }
    if (!o->is_polling) {
        o->is_polling = uv_poll_start(&o->poll, UV_WRITABLE, on_writable) == 0;
    }
    if (!o->is_polling) {
        end(o, EIO);
    }
}

void outlet_give_up(struct outlet *o)
{
    end(o, ETIMEDOUT);
}

void outlet_close(struct outlet *o)
{
    end(o, ECANCELED);
    if (o->is_open && !uv_is_closing((uv_handle_t *)&o->poll)) {
        uv_close((uv_handle_t *)&o->poll, NULL);
    }
    o->is_polling = false;
}

void outlet_release(struct outlet *o)
{
    gpul_buf_release(&o->queue);
    if (o->owns_fd) {
        close(o->fd);
    }
    o->owns_fd = false;
}
