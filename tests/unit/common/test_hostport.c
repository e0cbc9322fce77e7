/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "common/hostport.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* What is parsed gives the same text when it is written again. */
static void test_round_trip(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *host;
        uint16_t port;
    } rows[] = {
        {"node7:29500", "node7", 29500},
        {"10.0.0.1:1", "10.0.0.1", 1},
        {"[::1]:65535", "::1", 65535},
        {"[fe80::1%eth0]:80", "fe80::1%eth0", 80},
    };
    struct gpul_buf text;
    gpul_buf_init(&text, 1000);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gpul_hostport parsed;
        assert_int_equal(gpul_hostport_parse(&parsed, rows[i].text, NULL), 0);
        assert_string_equal(parsed.host, rows[i].host);
        assert_int_equal(parsed.port, rows[i].port);
        gpul_buf_clear(&text);
        gpul_hostport_append(&text, parsed.host, parsed.port);
        assert_string_equal(gpul_buf_text(&text), rows[i].text);
    }
    gpul_buf_release(&text);
}

/* Each fault has its own sentence and leaves nothing behind. */
static void test_faults(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *fault;
    } rows[] = {
        {"", "the port is missing"},
        {"node7", "the port is missing"},
        {"[::1]", "the port is missing"},
        {"[::1:80", "the closing bracket is missing"},
        {"::1:80", "an IPv6 address goes in brackets, as in [::1]:29500"},
        {":80", "the host is no name and no address"},
        {"a b:80", "the host is no name and no address"},
        {"[]:80", "the host is no name and no address"},
        {"node7:", "the port must be a number from 1 to 65535"},
        {"node7:0", "the port must be a number from 1 to 65535"},
        {"node7:65536", "the port must be a number from 1 to 65535"},
        {"node7:http", "the port must be a number from 1 to 65535"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gpul_hostport parsed;
        struct gpul_error err = {0};
        char expected[128];
        assert_int_equal(gpul_hostport_parse(&parsed, rows[i].text, &err),
                         GPUL_EINVAL);
        snprintf(expected, sizeof(expected), "\"%s\" is not HOST:PORT: %s",
                 rows[i].text, rows[i].fault);
        assert_string_equal(err.text, expected);
        assert_string_equal(parsed.host, "");
        assert_int_equal(parsed.port, 0);
    }
}

/* A name of 253 bytes fits, one of 254 does not. */
static void test_longest_host(void **state)
{
    (void)state;
    char text[300];
    struct gpul_hostport parsed;
    memset(text, 'a', sizeof(text));
    memcpy(text + 253, ":80", 4);
    assert_int_equal(gpul_hostport_parse(&parsed, text, NULL), 0);
    assert_int_equal(strlen(parsed.host), 253);
    memcpy(text + 253, "a:80", 5);
    assert_int_equal(gpul_hostport_parse(&parsed, text, NULL), GPUL_EINVAL);
}

/* Every spelling of loopback is known, and nothing that resembles it. */
static void test_loopback(void **state)
{
    (void)state;
    static const char *const loopback[] = {
        "127.0.0.1",        "127.9.8.7", "::1",
        "0:0:0:0:0:0:0:1",  "localhost", "LocalHost",
        "::ffff:127.0.0.1", "::1%lo"};
    static const char *const other[] = {"10.0.0.1",
                                        "128.0.0.1",
                                        "::2",
                                        "::ffff:10.0.0.1",
                                        "127.example.org",
                                        "",
                                        "localhost.example.org",
                                        "1270.0.0.1"};
    for (size_t i = 0; i < COUNT(loopback); i++) {
        assert_true(gpul_host_is_loopback(loopback[i]));
    }
    for (size_t i = 0; i < COUNT(other); i++) {
        assert_false(gpul_host_is_loopback(other[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_longest_host),
        cmocka_unit_test(test_loopback),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
