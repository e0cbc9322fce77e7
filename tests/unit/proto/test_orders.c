/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "proto/orders.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define KEY "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* Take all lines; the first failure, or 0. */
static int take_all(struct gpul_orders *o, bool *is_whole, const char *text,
                    struct gpul_error *err)
{
    char *copy = strdup(text);
    int rc = 0;
    assert_non_null(copy);
    *o = (struct gpul_orders){0};
    *is_whole = false;
    for (char *line = copy; rc == 0 && *line != '\0';) {
        char *end = strchr(line, '\n');
        assert_non_null(end);
        *end = '\0';
        rc = gpul_orders_take(o, is_whole, line, err);
        line = end + 1;
    }
    free(copy);
    return rc;
}

/* What one side writes the other reads. */
static void test_round_trip(void **state)
{
    (void)state;
    struct gpul_orders o = {
        .job_id = "job-1",
        .node_name = "fe80::1%eth0",
        .join_timeout_ms = 30000,
        .coordinators = {{"10.0.0.1", 40123}, {"fd00::1", 7}},
        .coordinator_count = 2,
        .key = KEY};
    static const char text[] = "orders 1\njob job-1\nnode fe80::1%eth0\n"
                               "join-timeout-ms 30000\n"
                               "coordinator 10.0.0.1:40123\n"
                               "coordinator [fd00::1]:7\nkey " KEY "\nend\n";
    struct gpul_buf out;
    struct gpul_orders back;
    bool is_whole;
    gpul_buf_init(&out, GPUL_ORDERS_BYTES_MAX);
    assert_int_equal(gpul_orders_append(&out, &o), 0);
    assert_string_equal(gpul_buf_text(&out), text);
    assert_int_equal(take_all(&back, &is_whole, text, NULL), 0);
    assert_true(is_whole);
    assert_memory_equal(&back, &o, sizeof(o));
    gpul_buf_release(&out);
}

/* That no key is asked for is said, and read back. */
static void test_no_key(void **state)
{
    (void)state;
    struct gpul_orders o = {.job_id = "j",
                            .node_name = "n",
                            .join_timeout_ms = 1,
                            .coordinators = {{"127.0.0.1", 1}},
                            .coordinator_count = 1,
                            .is_insecure = true};
    struct gpul_buf out;
    struct gpul_orders back;
    bool is_whole;
    gpul_buf_init(&out, GPUL_ORDERS_BYTES_MAX);
    assert_int_equal(gpul_orders_append(&out, &o), 0);
    assert_non_null(strstr(gpul_buf_text(&out), "\nkey none\nend\n"));
    assert_int_equal(take_all(&back, &is_whole, gpul_buf_text(&out), NULL), 0);
    assert_true(is_whole);
    assert_memory_equal(&back, &o, sizeof(o));
    gpul_buf_release(&out);
}

/* The longest that there can be fit their bound. */
static void test_longest(void **state)
{
    (void)state;
    struct gpul_orders o = {.join_timeout_ms = UINT32_MAX, .key = KEY};
    struct gpul_buf out;
    memset(o.job_id, 'j', sizeof(o.job_id) - 1);
    memset(o.node_name, 'n', sizeof(o.node_name) - 1);
    for (uint32_t i = 0; i < GPUL_COORDINATORS_MAX; i++) {
        memset(o.coordinators[i].host, '1', GPUL_ADDRESS_BYTES_MAX);
        o.coordinators[i].port = 65535;
    }
    o.coordinator_count = GPUL_COORDINATORS_MAX;
    gpul_buf_init(&out, GPUL_ORDERS_BYTES_MAX);
    assert_int_equal(gpul_orders_append(&out, &o), 0);
    gpul_buf_release(&out);
}

#define WHOLE                                                                  \
    "orders 1\njob j\nnode n\njoin-timeout-ms 5\ncoordinator 127.0.0.1:1\n"

static void test_faults(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"\n", "standard input does not hold orders; gpulaunch starts this "
               "program itself"},
        {"orders 2\n", "an order of the front end makes no sense here: orders; "
                       "install the same release on both"},
        {"reboot now\n", "an order of the front end makes no sense here: "
                         "reboot; install the same release on both"},
        {"job a b\n", "an order of the front end makes no sense here: job; "
                      "install the same release on both"},
        {"node \n", "an order of the front end makes no sense here: node; "
                    "install the same release on both"},
        {"join-timeout-ms 0\n", "an order of the front end makes no sense "
                                "here: join-timeout-ms; install the same "
                                "release on both"},
        {"coordinator 10.0.0.1\n",
         "an order of the front end makes no sense here: coordinator; install "
         "the same release on both"},
        {"key 0123\n", "an order of the front end makes no sense here: key; "
                       "install the same release on both"},
        {"end\n", "the orders of the front end are not whole; install the "
                  "same release on both"},
        {WHOLE "end\n",
         "the orders of the front end are not whole; install the "
         "same release on both"},
        {"orders 1\njob j\nnode n\njoin-timeout-ms 5\nkey none\nend\n",
         "the orders of the front end are not whole; install the same release "
         "on both"},
        {WHOLE "coordinator 1.1.1.1:2\ncoordinator 1.1.1.1:3\n"
               "coordinator 1.1.1.1:4\ncoordinator 1.1.1.1:5\n"
               "coordinator 1.1.1.1:6\ncoordinator 1.1.1.1:7\n"
               "coordinator 1.1.1.1:8\ncoordinator 1.1.1.1:9\n",
         "an order of the front end makes no sense here: coordinator; install "
         "the same release on both"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gpul_orders o;
        struct gpul_error err = {0};
        bool is_whole;
        assert_int_equal(take_all(&o, &is_whole, rows[i][0], &err),
                         GPUL_EINVAL);
        assert_string_equal(err.text, rows[i][1]);
        assert_false(is_whole);
    }
}

/* Of this release, of another form, and what shells print. */
static void test_greetings(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        bool is_one;
        uint32_t form;
        uint32_t protocol_max;
    } rows[] = {
        {"gpulaunch-worker remote 1 0.1.0 1 1", true, 1, 1},
        {"gpulaunch-worker remote 1 2.0.0-rc1 3 7", true, 1, 7},
        {"gpulaunch-worker remote 2 whatever comes", true, 2, 0},
        {"gpulaunch-worker remote 1 0.1.0 1", false, 0, 0},
        {"gpulaunch-worker remote 1 0.1.0 1 1 1", false, 0, 0},
        {"gpulaunch-worker remote 1 0.1.0 1 -1", false, 0, 0},
        {"gpulaunch-worker remote x", false, 0, 0},
        {"Welcome to node07", false, 0, 0},
        {"", false, 0, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gpul_greeting g;
        assert_int_equal(gpul_greeting_parse(&g, rows[i].line), rows[i].is_one);
        if (rows[i].is_one) {
            assert_int_equal(g.form, rows[i].form);
            assert_int_equal(g.protocol_max, rows[i].protocol_max);
        }
    }
    struct gpul_buf out;
    struct gpul_greeting own;
    gpul_buf_init(&out, GPUL_GREETING_BYTES_MAX);
    assert_int_equal(gpul_greeting_append(&out), 0);
    out.data[out.used - 1] = '\0'; /* the newline */
    assert_true(gpul_greeting_parse(&own, (const char *)out.data));
    assert_string_equal(own.version, GPULAUNCH_VERSION);
    assert_int_equal(own.protocol_max, GPUL_PROTOCOL);
    gpul_buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_no_key),
        cmocka_unit_test(test_longest), cmocka_unit_test(test_faults),
        cmocka_unit_test(test_greetings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
