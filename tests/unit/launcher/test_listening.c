/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "launcher/listening.h"

/* Each address once, eight at most; loopback goes where there are others. */
static void test_set(void **state)
{
    (void)state;
    struct listening l = {.count = 0};
    assert_int_equal(listening_add(&l, "127.0.0.1"), 0);
    assert_int_equal(listening_add(&l, "::1"), 1);
    assert_int_equal(listening_add(&l, "127.0.0.1"), 0);
    assert_true(listening_is_loopback(&l));
    listening_drop_loopback(&l);
    assert_int_equal(l.count, 2); /* there are no others */
    assert_int_equal(listening_add(&l, "10.0.0.1"), 2);
    assert_false(listening_is_loopback(&l));
    listening_drop_loopback(&l);
    assert_int_equal(l.count, 1);
    assert_string_equal(l.at[0].host, "10.0.0.1");
    for (uint32_t i = 1; i < GPUL_COORDINATORS_MAX; i++) {
        char address[] = "10.0.1.0";
        address[7] = (char)('0' + i);
        assert_int_equal(listening_add(&l, address), i);
    }
    assert_int_equal(listening_add(&l, "10.0.0.9"), GPUL_COORDINATORS_MAX);
    assert_int_equal(l.count, GPUL_COORDINATORS_MAX);
}

/* Both families listen, on ports of their own, and on that address only. */
static void test_open(void **state)
{
    (void)state;
    struct listening l = {.count = 0};
    struct gpul_error err = {0};
    listening_add(&l, "127.0.0.1");
    listening_add(&l, "::1");
    assert_int_equal(listening_open(&l, &err), 0);
    for (uint32_t i = 0; i < 2; i++) {
        int listens = 0;
        socklen_t n = sizeof(listens);
        assert_int_not_equal(l.at[i].port, 0);
        assert_int_equal(
            getsockopt(l.fds[i], SOL_SOCKET, SO_ACCEPTCONN, &listens, &n), 0);
        assert_int_equal(listens, 1);
        assert_int_equal(fcntl(l.fds[i], F_GETFD), FD_CLOEXEC);
    }
    listening_close(&l);
    assert_int_equal(l.fds[0], -1);
}

/* What is no literal, or not of this machine; nothing stays open. */
static void test_refusals(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"front", "\"front\" is no literal address; nodes may not know names, "
                  "so give one such as 10.0.0.1"},
        {"192.0.2.1",
         "192.0.2.1 is no address of this machine; `ip address` lists those. "
         "If "
         "it leads here all the same, by NAT or a forwarded port, give it by "
         "--advertise"},
    };
    for (size_t i = 0; i < 2; i++) {
        struct listening l = {.is_chosen = true};
        struct gpul_error err = {0};
        listening_add(&l, "127.0.0.1");
        listening_add(&l, rows[i][0]);
        assert_int_equal(listening_open(&l, &err), GPUL_EINVAL);
        assert_string_equal(err.text, rows[i][1]);
        assert_int_equal(l.fds[0], -1);
        assert_int_equal(l.fds[1], -1);
    }
}

/* What was found and turns out to be of no use goes, unless nothing is left. */
static void test_left_out(void **state)
{
    (void)state;
    struct listening l = {.count = 0};
    struct gpul_error err = {0};
    listening_add(&l, "198.51.100.1");
    listening_add(&l, "127.0.0.1");
    listening_add(&l, "198.51.100.2");
    assert_int_equal(listening_open(&l, &err), 0);
    assert_int_equal(l.count, 1);
    assert_string_equal(l.at[0].host, "127.0.0.1");
    assert_int_not_equal(l.at[0].port, 0);
    assert_true(l.fds[0] >= 0);
    assert_int_equal(l.fds[1], -1);
    assert_string_equal(
        l.left_out, "cannot listen on 198.51.100.1: Cannot assign requested "
                    "address; cannot listen on 198.51.100.2: Cannot assign "
                    "requested address");
    listening_close(&l);
    l = (struct listening){.count = 0};
    listening_add(&l, "198.51.100.1");
    listening_add(&l, "198.51.100.2");
    assert_int_equal(listening_open(&l, &err), GPUL_ESYS);
    assert_string_equal(err.text,
                        "cannot listen on 198.51.100.2: Cannot assign "
                        "requested address");
}

/* Somebody else's port is an error: nodes would find that one there. */
static void test_port_taken(void **state)
{
    (void)state;
    struct listening first = {.count = 0}, l = {.count = 0};
    struct gpul_error err = {0};
    listening_add(&first, "127.0.0.1");
    assert_int_equal(listening_open(&first, &err), 0);
    l.port = first.at[0].port;
    listening_add(&l, "127.0.0.1");
    listening_add(&l, "127.0.0.2");
    assert_int_equal(listening_open(&l, &err), GPUL_ESYS);
    assert_non_null(strstr(err.text, "in use"));
    listening_close(&first);
}

/* What is advertised comes first, has a place among the eight, and means that
 * nodes are elsewhere. */
static void test_told(void **state)
{
    (void)state;
    struct gpul_hostport told[GPUL_COORDINATORS_MAX];
    struct listening l = {.advertised = {.host = "192.0.2.1", .port = 7}};
    char address[] = "127.0.0.1";
    for (uint32_t i = 1; i < GPUL_COORDINATORS_MAX; i++) {
        address[8] = (char)('0' + i);
        assert_int_equal(listening_add(&l, address), i - 1);
    }
    assert_int_equal(listening_add(&l, "127.0.0.9"), GPUL_COORDINATORS_MAX);
    assert_false(listening_is_loopback(&l));
    assert_int_equal(listening_told(&l, told), GPUL_COORDINATORS_MAX);
    assert_string_equal(told[0].host, "192.0.2.1");
    assert_int_equal(told[0].port, 7);
    assert_string_equal(told[1].host, "127.0.0.1");
    assert_string_equal(told[7].host, "127.0.0.7");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set),        cmocka_unit_test(test_open),
        cmocka_unit_test(test_refusals),   cmocka_unit_test(test_left_out),
        cmocka_unit_test(test_port_taken), cmocka_unit_test(test_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
