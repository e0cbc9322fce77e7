/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/worker/tensorflow_rules.h"

#define CLUSTER(jobs) "{\"cluster\":{" jobs "}"
#define WORKERS CLUSTER("\"worker\":[\"a:1\",\"b:2\"]")
#define TASK(type, index)                                                      \
    ",\"task\":{\"type\":\"" type "\",\"index\":" index "}}"

/* The judge raises what TensorFlow raises. */
static void test_raises(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        const char *error;
    } rows[] = {
        {"", "JSONDecodeError"},
        {"{\"cluster\":", "JSONDecodeError"},
        {WORKERS TASK("worker", "0") "x", "JSONDecodeError"},
        {CLUSTER("\"worker\":[],\"worker\":[]") TASK("worker", "0"),
         "JSONDecodeError"},
        {WORKERS "}", "ValueError: no task"},
        {WORKERS ",\"task\":{\"type\":\"worker\"}}", "ValueError: no task"},
        {CLUSTER("\"worker\":\"a:1\"") TASK("worker", "0"),
         "TypeError: a job is not a list"},
        {CLUSTER("\"worker\":[1]") TASK("worker", "0"),
         "TypeError: an address is not a string"},
        {CLUSTER("\"master\":[\"a:1\"]") TASK("worker", "0"),
         "ValueError: unknown job"},
        {WORKERS TASK("ps", "0"), "ValueError: task not in cluster"},
        {WORKERS TASK("worker", "2"), "ValueError: index out of range"},
        {CLUSTER("\"chief\":[\"a:1\",\"b:1\"]") TASK("chief", "0"),
         "ValueError: more than one chief"},
        {CLUSTER("\"evaluator\":[\"a:1\",\"b:1\"]") TASK("evaluator", "0"),
         "ValueError: more than one evaluator"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tf_view view;
        char error[TF_TEXT_BYTES];
        assert_false(tf_view_init(&view, rows[i].value, error));
        assert_string_equal(error, rows[i].error);
    }
}

/* Nothing, an empty object and a wrong key all mean: alone. */
static void test_alone(void **state)
{
    (void)state;
    static const char *const values[] = {NULL, "{}", "{\"cluster\":{}}",
                                         "{\"sparseCluster\":{}}"};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        struct tf_view view;
        char error[TF_TEXT_BYTES];
        assert_true(tf_view_init(&view, values[i], error));
        assert_null(view.cluster);
        assert_int_equal(view.worker_count, -1);
        tf_view_release(&view);
    }
}

/* What the tasks of a cluster learn from it. */
static void test_views(void **state)
{
    (void)state;
#define FULL                                                                   \
    CLUSTER("\"chief\":[\"c:1\"],\"worker\":[\"a:1\",\"b:2\"],\"ps\":"         \
            "[\"p:1\"]")
    static const struct {
        const char *value;
        bool is_chief;
        int worker_count;
        int id;
        const char *leader;
        const char *address;
    } rows[] = {
        {WORKERS TASK("worker", "0"), true, 2, 0,
         "/job:worker/replica:0/task:0", "a:1"},
        {WORKERS TASK("worker", "\"1\""), false, 2, 1,
         "/job:worker/replica:0/task:0", "b:2"},
        {WORKERS TASK("evaluator", "0"), true, -1, 0, "", NULL},
        {FULL TASK("chief", "0"), true, 3, 0, "/job:chief/replica:0/task:0",
         "c:1"},
        {FULL TASK("worker", "0"), false, 3, 1, "/job:chief/replica:0/task:0",
         "a:1"},
        {FULL TASK("ps", "0"), false, -1, -1, "/job:chief/replica:0/task:0",
         "p:1"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tf_view view;
        char error[TF_TEXT_BYTES];
        assert_true(tf_view_init(&view, rows[i].value, error));
        assert_int_equal(view.is_chief, rows[i].is_chief);
        assert_int_equal(view.worker_count, rows[i].worker_count);
        assert_int_equal(view.id, rows[i].id);
        assert_string_equal(view.leader, rows[i].leader);
        if (rows[i].address == NULL) {
            assert_null(view.address);
        } else {
            assert_string_equal(view.address, rows[i].address);
        }
        tf_view_release(&view);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_raises),
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_views),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
