/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "launcher/outlet.h"

enum {
    FLOOD_BYTES = 1 << 20, /* more than a pipe or a socket takes at once */
    QUEUE_BYTES_MAX = 4 << 20,
};

struct fixture {
    uv_loop_t loop;
    struct outlet outlet;
    unsigned calls;
};

static void on_written(void *arg)
{
    struct fixture *f = arg;
    f->calls++;
}

static void set_up(struct fixture *f, int fd, size_t queue_bytes_max)
{
    memset(f, 0, sizeof(*f));
    assert_int_equal(uv_loop_init(&f->loop), 0);
    assert_int_equal(
        outlet_open(&f->outlet, &f->loop, fd, queue_bytes_max, on_written, f),
        0);
}

static void tear_down(struct fixture *f)
{
    outlet_close(&f->outlet);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    outlet_release(&f->outlet);
}

static uint8_t *flood(void)
{
    uint8_t *bytes = malloc(FLOOD_BYTES);
    assert_non_null(bytes);
    for (size_t i = 0; i < FLOOD_BYTES; i++) {
        bytes[i] = (uint8_t)(i * 31 + i / 4096);
    }
    return bytes;
}

/* Reads until FLOOD_BYTES have come, giving the loop its turns. */
static void drain(struct fixture *f, int fd, const uint8_t *expected)
{
    uint8_t *got = malloc(FLOOD_BYTES);
    assert_non_null(got);
    size_t used = 0;
    while (used < FLOOD_BYTES) {
        ssize_t n = read(fd, got + used, FLOOD_BYTES - used);
        assert_true(n > 0);
        used += (size_t)n;
        uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    assert_memory_equal(got, expected, FLOOD_BYTES);
    free(got);
}

/* What the reader does not take yet is queued and comes in order; the
 * descriptor that we share keeps its blocking mode. */
static void check_slow_reader(int read_fd, int write_fd)
{
    struct fixture f;
    uint8_t *bytes = flood();
    set_up(&f, write_fd, QUEUE_BYTES_MAX);
    outlet_write(&f.outlet, bytes, FLOOD_BYTES);
    assert_false(outlet_is_drained(&f.outlet));
    assert_int_equal(fcntl(write_fd, F_GETFL) & O_NONBLOCK, 0);
    drain(&f, read_fd, bytes);
    uv_run(&f.loop, UV_RUN_NOWAIT);
    assert_true(outlet_is_drained(&f.outlet));
    assert_int_equal(f.outlet.written, FLOOD_BYTES);
    assert_true(f.calls > 0);
    tear_down(&f);
    assert_int_equal(fcntl(write_fd, F_GETFL) & O_NONBLOCK, 0);
    close(read_fd);
    close(write_fd);
    free(bytes);
}

static void test_slow_pipe(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    check_slow_reader(fds[0], fds[1]);
}

static void test_slow_socket(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds),
                     0);
    check_slow_reader(fds[0], fds[1]);
}

/* A regular file takes everything at once, at the shared position. */
static void test_file(void **state)
{
    (void)state;
    char path[] = "/tmp/test-outlet-XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "head\n", 5), 5);
    struct fixture f;
    set_up(&f, fd, QUEUE_BYTES_MAX);
    outlet_write(&f.outlet, "body\n", 5);
    assert_true(outlet_is_drained(&f.outlet));
    tear_down(&f);
    char text[16] = {0};
    assert_int_equal(pread(fd, text, sizeof(text), 0), 10);
    assert_string_equal(text, "head\nbody\n");
    close(fd);
    unlink(path);
}

/* When the reader goes, the stream ends; what comes later is dropped and
 * counts as written. */
static void test_reader_gone(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    struct fixture f;
    set_up(&f, fds[1], QUEUE_BYTES_MAX);
    close(fds[0]);
    outlet_write(&f.outlet, "x", 1);
    assert_int_equal(f.outlet.error, EPIPE);
    outlet_write(&f.outlet, "y", 1);
    assert_true(outlet_is_drained(&f.outlet));
    assert_int_equal(f.outlet.taken, 2);
    tear_down(&f);
    close(fds[1]);
}

/* The same while bytes are queued: poll tells, the loop does not spin. */
static void test_reader_goes_later(void **state)
{
    (void)state;
    int fds[2];
    uint8_t *bytes = flood();
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    struct fixture f;
    set_up(&f, fds[1], QUEUE_BYTES_MAX);
    outlet_write(&f.outlet, bytes, FLOOD_BYTES);
    assert_int_equal(f.outlet.error, 0);
    close(fds[0]);
    uv_run(&f.loop, UV_RUN_DEFAULT);
    assert_int_equal(f.outlet.error, EPIPE);
    assert_true(outlet_is_drained(&f.outlet));
    tear_down(&f);
    close(fds[1]);
    free(bytes);
}

/* Over its bound the queue ends the stream instead of growing. */
static void test_bound(void **state)
{
    (void)state;
    int fds[2];
    uint8_t *bytes = flood();
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    struct fixture f;
    set_up(&f, fds[1], 1000);
    outlet_write(&f.outlet, bytes, FLOOD_BYTES);
    assert_int_equal(f.outlet.error, ENOBUFS);
    assert_true(outlet_is_drained(&f.outlet));
    tear_down(&f);
    close(fds[0]);
    close(fds[1]);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slow_pipe),
        cmocka_unit_test(test_slow_socket),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_reader_gone),
        cmocka_unit_test(test_reader_goes_later),
        cmocka_unit_test(test_bound),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
