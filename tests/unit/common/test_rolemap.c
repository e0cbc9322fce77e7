/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/rolemap.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct gpul_rolemap parse(const char *text)
{
    struct gpul_rolemap m;
    assert_int_equal(gpul_rolemap_parse(&m, text, NULL), 0);
    return m;
}

/* Ranks take the roles in their fixed order, however they were written. */
static void test_order(void **state)
{
    (void)state;
    static const struct {
        enum gpul_role role;
        uint32_t index;
    } expected[] = {
        {GPUL_ROLE_CHIEF, 0},     {GPUL_ROLE_WORKER, 0}, {GPUL_ROLE_WORKER, 1},
        {GPUL_ROLE_WORKER, 2},    {GPUL_ROLE_PS, 0},     {GPUL_ROLE_PS, 1},
        {GPUL_ROLE_EVALUATOR, 0},
    };
    struct gpul_rolemap m = parse("evaluator=1,ps=2,worker=3,chief=1");
    assert_int_equal(gpul_rolemap_total(&m), COUNT(expected));
    for (uint32_t rank = 0; rank < COUNT(expected); rank++) {
        uint32_t index;
        assert_int_equal(gpul_rolemap_role(&m, rank, &index),
                         expected[rank].role);
        assert_int_equal(index, expected[rank].index);
        assert_int_equal(gpul_rolemap_first(&m, expected[rank].role) + index,
                         rank);
    }
}

/* Without roles every rank is a worker. */
static void test_all_workers(void **state)
{
    (void)state;
    struct gpul_rolemap m;
    uint32_t index;
    gpul_rolemap_all_workers(&m, 5);
    assert_int_equal(gpul_rolemap_total(&m), 5);
    assert_int_equal(gpul_rolemap_role(&m, 4, &index), GPUL_ROLE_WORKER);
    assert_int_equal(index, 4);
    assert_string_equal(gpul_role_name(GPUL_ROLE_WORKER), "worker");
}

/* Which ranks decide success follows the table of docs/protocol.md. */
static void test_decides(void **state)
{
    (void)state;
    static const struct {
        const char *roles;
        const char *decides; /* one letter a rank */
    } rows[] = {
        {"worker=3", "yyy"},
        {"chief=1,worker=2", "yyy"},
        {"chief=1", "y"},
        {"chief=1,worker=2,ps=1", "ynnn"},
        {"worker=2,ps=2", "yynn"},
        {"chief=1,worker=1,evaluator=1", "yyn"},
        {"chief=1,worker=1,ps=1,evaluator=1", "ynnn"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gpul_rolemap m = parse(rows[i].roles);
        for (uint32_t rank = 0; rank < gpul_rolemap_total(&m); rank++) {
            assert_int_equal(gpul_rolemap_decides(&m, rank),
                             rows[i].decides[rank] == 'y');
        }
        assert_int_equal(strlen(rows[i].decides), gpul_rolemap_total(&m));
    }
}

/* Roles that cannot be run are refused, each with its reason. */
static void test_faults(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"", "\"\" is not ROLE=COUNT, as in chief=1,worker=3"},
        {"worker", "\"worker\" is not ROLE=COUNT, as in chief=1,worker=3"},
        {"worker=1,", "\"\" is not ROLE=COUNT, as in chief=1,worker=3"},
        {"wroker=3", "unknown role \"wroker\"; the roles are chief, worker, "
                     "ps and evaluator"},
        {"work=3", "unknown role \"work\"; the roles are chief, worker, ps "
                   "and evaluator"},
        {"worker=0", "role worker: \"0\" is not a whole number from 1 to "
                     "1073741823"},
        {"worker=many", "role worker: \"many\" is not a whole number from 1 "
                        "to 1073741823"},
        {"worker=1111111111111111111",
         "role worker: \"111111111111111\" is not a whole number from 1 to "
         "1073741823"},
        {"worker=1,worker=2", "role worker is given twice"},
        {"chief=2,worker=1", "a job has at most one chief, not 2"},
        {"worker=1,evaluator=3", "a job has at most one evaluator, not 3"},
        {"chief=1,ps=1", "parameter servers need a worker; add worker=N"},
        {"evaluator=1", "no role of these trains; add worker=N"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gpul_rolemap m = {{9, 9, 9, 9}};
        struct gpul_error err = {0};
        assert_int_equal(gpul_rolemap_parse(&m, rows[i][0], &err), GPUL_EINVAL);
        assert_string_equal(err.text, rows[i][1]);
        assert_int_equal(gpul_rolemap_total(&m), 0);
    }
}

/* A map built piece by piece, as from a message, obeys the same rules. */
static void test_add(void **state)
{
    (void)state;
    struct gpul_rolemap m = {0};
    struct gpul_error err = {0};
    assert_int_equal(gpul_rolemap_add(&m, "worker", 2, NULL), 0);
    assert_int_equal(gpul_rolemap_add(&m, "worker", 1, NULL), 0);
    assert_int_equal(m.counts[GPUL_ROLE_WORKER], 3);
    assert_int_equal(gpul_rolemap_check(&m, NULL), 0);
    assert_int_equal(gpul_rolemap_add(&m, "worker", UINT32_MAX, &err),
                     GPUL_EINVAL);
    assert_string_equal(err.text, "role worker has too many ranks");
    assert_int_equal(gpul_rolemap_add(&m, "boss", 1, NULL), GPUL_EINVAL);
    assert_int_equal(gpul_rolemap_add(&m, "chief", 2, NULL), 0);
    assert_int_equal(gpul_rolemap_check(&m, NULL), GPUL_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),   cmocka_unit_test(test_all_workers),
        cmocka_unit_test(test_decides), cmocka_unit_test(test_faults),
        cmocka_unit_test(test_add),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
