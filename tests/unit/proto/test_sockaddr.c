/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "proto/limits.h"
#include "proto/sockaddr.h"

/* Literals survive the way in and out; a v4-mapped one comes out as IPv4. */
static void test_round_trip(void **state)
{
    (void)state;
    const struct {
        const char *in;
        const char *out;
    } cases[] = {
        {"127.0.0.1", "127.0.0.1"},
        {"255.255.255.255", "255.255.255.255"},
        {"::1", "::1"},
        {"2001:DB8:0::7", "2001:db8::7"},
        {"fe80::1%lo", "fe80::1%lo"},
        {"::ffff:192.0.2.7", "192.0.2.7"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sockaddr_storage ss = {0};
        char text[GPUL_ADDRESS_BYTES_MAX + 1];
        uint16_t port;
        assert_int_equal(gpul_sockaddr_parse(&ss, cases[i].in, 65535, NULL), 0);
        gpul_sockaddr_format(&ss, text, &port);
        assert_string_equal(text, cases[i].out);
        assert_int_equal(port, 65535);
        gpul_sockaddr_format(&ss, text, NULL);
        assert_string_equal(text, cases[i].out);
    }
}

/* Names and broken literals are refused, not looked up. */
static void test_no_literal(void **state)
{
    (void)state;
    const char *texts[] = {"",    "localhost", "127.0.0",   "127.0.0.256",
                           "::g", "[::1]",     "10.0.0.1 ", "1.2.3.4:5"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct sockaddr_storage ss;
        struct gpul_error err = {0};
        assert_int_equal(gpul_sockaddr_parse(&ss, texts[i], 1, &err),
                         GPUL_EINVAL);
    }
    struct gpul_error err;
    struct sockaddr_storage ss;
    gpul_sockaddr_parse(&ss, "node7", 1, &err);
    assert_string_equal(err.text, "node7 is not an address");
}

/* An address of no network has no text. */
static void test_other_family(void **state)
{
    (void)state;
    struct sockaddr_storage ss = {.ss_family = AF_UNIX};
    char text[GPUL_ADDRESS_BYTES_MAX + 1] = "x";
    uint16_t port = 7;
    gpul_sockaddr_format(&ss, text, &port);
    assert_string_equal(text, "");
    assert_int_equal(port, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_no_literal),
        cmocka_unit_test(test_other_family),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
