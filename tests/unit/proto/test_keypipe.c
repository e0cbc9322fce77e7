/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/keypipe.h"

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

/* What goes in comes out, and the descriptor is gone. */
static void test_round_trip(void **state)
{
    (void)state;
    struct gpul_secret secret;
    struct gpul_secret taken;
    struct gpul_key key;
    struct gpul_key taken_key;
    int fd;
    assert_int_equal(gpul_secret_draw(&secret, NULL), 0);
    assert_int_equal(gpul_keypipe_put_secret(&fd, &secret, NULL), 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(gpul_keypipe_take_secret(&taken, fd, NULL), 0);
    assert_memory_equal(&taken, &secret, sizeof(secret));
    assert_false(is_open(fd));
    memcpy(key.bytes, secret.bytes, sizeof(key.bytes));
    assert_int_equal(gpul_keypipe_put_key(&fd, &key, NULL), 0);
    assert_int_equal(gpul_keypipe_take_key(&taken_key, fd, NULL), 0);
    assert_memory_equal(&taken_key, &key, sizeof(key));
    assert_false(is_open(fd));
}

/* Nothing but one whole line will do; then nothing is left in *out. */
static void test_refusals(void **state)
{
    (void)state;
    static const char good[] = "00112233445566778899aabbccddeeff"
                               "00112233445566778899aabbccddeeff\n";
    char twice[2 * sizeof(good)] = "";
    strcat(strcat(twice, good), good);
    const char *const table[] = {
        "",       "\n",  "0123\n",
        good + 1, twice, "an environment that is not a key\n"};
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct gpul_secret none = {{0}};
        struct gpul_secret secret = {{1}};
        struct gpul_error err;
        int ends[2];
        size_t n = strlen(table[i]);
        assert_int_equal(pipe(ends), 0);
        assert_int_equal(write(ends[1], table[i], n), (ssize_t)n);
        close(ends[1]);
        assert_int_equal(gpul_keypipe_take_secret(&secret, ends[0], &err),
                         GPUL_EINVAL);
        assert_non_null(strstr(err.text, " does not hold the job's secret: "));
        assert_memory_equal(&secret, &none, sizeof(none));
        assert_false(is_open(ends[0]));
    }
}

/* Only a pipe is believed to be one: what else is inherited under the number
 * may block for ever. */
static void test_no_pipe(void **state)
{
    (void)state;
    struct gpul_key key;
    struct gpul_error err;
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(gpul_keypipe_take_key(&key, pair[0], &err), GPUL_EINVAL);
    assert_non_null(strstr(err.text, " is no pipe with this node's key; "));
    assert_false(is_open(pair[0]));
    close(pair[1]);
    assert_int_equal(gpul_keypipe_take_key(&key, pair[0], &err), GPUL_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_no_pipe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
