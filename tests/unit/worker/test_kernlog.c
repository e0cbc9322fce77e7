/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/kernlog.h"

/* A socket of packets gives one record a read, as /dev/kmsg does. */
static int kernel;

static void open_log(struct kernlog *k)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX,
                                SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
                                0, ends),
                     0);
    kernel = ends[1];
    kernlog_open_fd(k, ends[0]);
}

static void write_kill(int pid)
{
    char text[96];
    int n = snprintf(text, sizeof(text),
                     "3,9,9,-;Out of memory: Killed process %d (x)", pid);
    assert_int_equal(write(kernel, text, (size_t)n), n);
}

/* A kill is found whoever asks first, and at any later time. */
static void test_found(void **state)
{
    (void)state;
    struct kernlog k;
    open_log(&k);
    assert_false(kernlog_has_killed(&k, 7));
    write_kill(7);
    write_kill(8);
    assert_int_equal(write(kernel, "6,1,1,-;eth0 is up", 18), 18);
    assert_false(kernlog_has_killed(&k, 9));
    assert_true(kernlog_has_killed(&k, 8));
    assert_true(kernlog_has_killed(&k, 7));
    assert_true(k.is_whole);
    close(kernel);
    assert_true(kernlog_has_killed(&k, 7)); /* it has an end now */
    kernlog_close(&k);
    assert_false(kernlog_has_killed(&k, 7));
    assert_false(k.is_whole);
}

/* The last ones are kept; none of more than can be is a false one. */
static void test_bounded(void **state)
{
    (void)state;
    struct kernlog k;
    open_log(&k);
    for (int pid = 1; pid <= 3 * KERNLOG_PIDS; pid++) {
        write_kill(pid);
        kernlog_has_killed(&k, 0);
    }
    assert_true(kernlog_has_killed(&k, 3 * KERNLOG_PIDS));
    assert_true(kernlog_has_killed(&k, 2 * KERNLOG_PIDS + 1));
    assert_false(kernlog_has_killed(&k, 2 * KERNLOG_PIDS));
    close(kernel);
    kernlog_close(&k);
}

/* The real one opens, or says that it cannot; either way it does not wait. */
static void test_real(void **state)
{
    (void)state;
    struct kernlog k;
    kernlog_open(&k);
    assert_int_equal(k.is_whole, k.fd >= 0);
    assert_false(kernlog_has_killed(&k, 1));
    kernlog_close(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_found),
        cmocka_unit_test(test_bounded),
        cmocka_unit_test(test_real),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
