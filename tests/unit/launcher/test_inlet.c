/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "launcher/inlet.h"

enum { TURNS_MAX = 20000, GOT_MAX = 1 << 20, CLOSED = 999 };

struct stage {
    uv_loop_t loop;
    struct inlet *inlet;
    uint8_t got[GOT_MAX];
    size_t used;
    size_t pieces;
    int ends;
    int why;
};

static struct stage s;

static void on_data(void *arg, const uint8_t *bytes, size_t n)
{
    (void)arg;
    assert_int_equal(s.ends, 0);
    assert_true(s.used + n <= GOT_MAX);
    memcpy(s.got + s.used, bytes, n);
    s.used += n;
    s.pieces++;
}

static void on_end(void *arg, int why)
{
    (void)arg;
    s.ends++;
    s.why = why;
}

static void open_inlet(int fd)
{
    static const struct inlet_handlers handlers = {on_data, on_end};
    memset(&s, 0, sizeof(s));
    assert_int_equal(uv_loop_init(&s.loop), 0);
    assert_int_equal(inlet_create(&s.inlet, &s.loop, fd, &handlers, &s, NULL),
                     0);
}

static void turn(void)
{
    uv_run(&s.loop, UV_RUN_NOWAIT);
}

/* Nothing more comes, however often one looks. */
static void stay(size_t used)
{
    for (int i = 0; i < 100; i++) {
        turn();
    }
    assert_int_equal(s.used, used);
}

static void until_used(size_t used)
{
    for (int i = 0; i < TURNS_MAX && s.used < used; i++) {
        uv_run(&s.loop, UV_RUN_ONCE);
    }
    assert_int_equal(s.used, used);
}

static void until_end(int why)
{
    for (int i = 0; i < TURNS_MAX && s.ends == 0; i++) {
        uv_run(&s.loop, UV_RUN_ONCE);
    }
    assert_int_equal(s.ends, 1);
    assert_int_equal(s.why, why);
}

static void close_inlet(void)
{
    inlet_close(s.inlet);
    uv_run(&s.loop, UV_RUN_DEFAULT);
    inlet_destroy(s.inlet);
    assert_int_equal(uv_loop_close(&s.loop), 0);
}

/* No byte is read that was not wanted; it stays for whoever comes after. The
 * flags of the description, which others share, stay as they were. */
static void test_pipe(void **state)
{
    (void)state;
    int ends[2];
    char left[8];
    assert_int_equal(pipe(ends), 0);
    int flags = fcntl(ends[0], F_GETFL);
    open_inlet(ends[0]);
    assert_int_equal(write(ends[1], "0123456789", 10), 10);
    stay(0);
    inlet_want(s.inlet, 4);
    until_used(4);
    stay(4);
    inlet_want(s.inlet, 1);
    inlet_want(s.inlet, 1);
    until_used(6);
    assert_memory_equal(s.got, "012345", 6);
    assert_int_equal(read(ends[0], left, 2), 2);
    assert_memory_equal(left, "67", 2);
    assert_int_equal(fcntl(ends[0], F_GETFL), flags);
    inlet_want(s.inlet, 100);
    until_used(8);
    assert_int_equal(s.ends, 0);
    close(ends[1]);
    until_end(0);
    inlet_want(s.inlet, 100);
    stay(8);
    close_inlet();
    close(ends[0]);
}

/* Closed while it waits for a writer that says nothing. */
static void test_silent(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    open_inlet(ends[0]);
    inlet_want(s.inlet, 1);
    stay(0);
    close_inlet();
    assert_int_equal(s.ends, 0);
    close(ends[0]);
    close(ends[1]);
}

static void test_socket(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    int flags = fcntl(ends[0], F_GETFL);
    open_inlet(ends[0]);
    inlet_want(s.inlet, 3);
    assert_int_equal(write(ends[1], "abcdef", 6), 6);
    until_used(3);
    assert_int_equal(fcntl(ends[0], F_GETFL), flags);
    inlet_want(s.inlet, 100);
    close(ends[1]);
    until_end(0);
    assert_int_equal(s.used, 6);
    close_inlet();
    close(ends[0]);
}

/* A file is read from where its offset stands. */
static void test_file(void **state)
{
    (void)state;
    enum { BYTES = 300000 };
    FILE *file = tmpfile();
    assert_non_null(file);
    for (int i = 0; i < BYTES; i++) {
        putc(i % 251, file);
    }
    fflush(file);
    assert_int_equal(lseek(fileno(file), 1, SEEK_SET), 1);
    open_inlet(fileno(file));
    stay(0);
    inlet_want(s.inlet, 200000);
    until_used(200000);
    stay(200000);
    assert_int_equal(lseek(fileno(file), 0, SEEK_CUR), 200001);
    inlet_want(s.inlet, BYTES);
    until_end(0);
    assert_int_equal(s.used, BYTES - 1);
    for (size_t i = 0; i < s.used; i++) {
        assert_int_equal(s.got[i], (i + 1) % 251);
    }
    close_inlet();
    fclose(file);
}

static void expect_empty(int fd, int why)
{
    open_inlet(fd);
    inlet_want(s.inlet, 10);
    until_end(why);
    assert_int_equal(s.used, 0);
    close_inlet();
}

/* What is at its end, what was never open, what is for writing only (as
 * nohup makes it), and what cannot be read. */
static void test_empty(void **state)
{
    (void)state;
    int fd = open("/dev/null", O_RDONLY);
    expect_empty(fd, 0);
    close(fd);
    expect_empty(CLOSED, 0);
    fd = open("/dev/null", O_WRONLY);
    expect_empty(fd, 0);
    close(fd);
    fd = open("/", O_RDONLY);
    expect_empty(fd, EISDIR);
    close(fd);
}

/* What never ends comes as far as it is wanted. */
static void test_endless(void **state)
{
    (void)state;
    int fd = open("/dev/zero", O_RDONLY);
    open_inlet(fd);
    inlet_want(s.inlet, 500000);
    until_used(500000);
    stay(500000);
    inlet_want(s.inlet, 1);
    close_inlet(); /* while a thread is at it */
    close(fd);
}

/* A terminal that is not ours has no background; its user ends it with
 * Ctrl-D. */
static void test_terminal(void **state)
{
    (void)state;
    int control, terminal;
    assert_int_equal(openpty(&control, &terminal, NULL, NULL, NULL), 0);
    open_inlet(terminal);
    inlet_want(s.inlet, 100);
    assert_int_equal(write(control, "yes\n", 4), 4);
    until_used(4);
    assert_memory_equal(s.got, "yes\n", 4);
    assert_int_equal(write(control, "\4", 1), 1);
    until_end(0);
    close_inlet();
    close(control);
    close(terminal);
}

/* Hung up: the signal tells, and there is no more to read. */
static void test_hang_up(void **state)
{
    (void)state;
    int control, terminal;
    assert_int_equal(openpty(&control, &terminal, NULL, NULL, NULL), 0);
    open_inlet(terminal);
    inlet_want(s.inlet, 100);
    stay(0);
    close(control);
    until_end(0);
    close_inlet();
    close(terminal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipe),     cmocka_unit_test(test_silent),
        cmocka_unit_test(test_socket),   cmocka_unit_test(test_file),
        cmocka_unit_test(test_empty),    cmocka_unit_test(test_endless),
        cmocka_unit_test(test_terminal), cmocka_unit_test(test_hang_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
