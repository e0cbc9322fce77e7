/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "tests/lib/ends.h"

#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static void on_connected(void *arg)
{
    struct end *e = arg;
    e->connected++;
}

static void on_message(void *arg, const Gpul__Frame *frame)
{
    struct end *e = arg;
    assert_int_equal(e->closed, 0);
    e->last_type = frame->body_case;
    if (e->allow_next != 0) {
        gpul_transport_allow(e->t, e->allow_next);
    }
    if (++e->messages == e->close_at) {
        gpul_transport_close(e->t, 0);
    }
}

void ends_on_closed(void *arg, const struct gpul_error *why)
{
    struct end *e = arg;
    e->closed++;
    e->t = NULL;
    e->status = 1;
    if (why != NULL) {
        e->status = why->status;
        memcpy(e->text, why->text, sizeof(e->text));
    }
}

const struct gpul_transport_handlers ends_handlers = {
    .on_connected = on_connected,
    .on_message = on_message,
    .on_closed = ends_on_closed,
};

uv_loop_t ends_loop;

int ends_set_up(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    return uv_loop_init(&ends_loop);
}

int ends_tear_down(void **state)
{
    (void)state;
    return uv_loop_close(&ends_loop);
}

static void on_impatient(uv_timer_t *timer)
{
    *(bool *)timer->data = true;
}

void ends_run_until(const unsigned *count, unsigned n)
{
    bool is_late = false;
    uv_timer_t timer;
    uv_timer_init(&ends_loop, &timer);
    timer.data = &is_late;
    uv_update_time(&ends_loop);
    uv_timer_start(&timer, on_impatient, ENDS_PATIENCE_MS, 0);
    while (*count < n && !is_late) {
        uv_run(&ends_loop, UV_RUN_ONCE);
    }
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&ends_loop, UV_RUN_NOWAIT);
    assert_false(is_late);
}

int ends_open_pair(struct end *e, enum gpul_peer from)
{
    int fds[2];
    *e = (struct end){0};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds),
                     0);
    assert_int_equal(gpul_transport_open(&e->t, &ends_loop, fds[0], from,
                                         &ends_handlers, e, NULL),
                     0);
    return fds[1];
}

void ends_write_all(int fd, const void *bytes, size_t n)
{
    assert_int_equal(write(fd, bytes, n), n);
}

void ends_finish(struct end *e, int fd)
{
    gpul_transport_close(e->t, 0);
    ends_run_until(&e->closed, 1);
    assert_int_equal(e->status, 1);
    close(fd);
}
