/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hostlist.h"
#include "common/rng.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The names of a list, joined with blanks. */
static void assert_names(const struct gpul_hostlist *l, const char *expected)
{
    struct gpul_buf text;
    gpul_buf_init(&text, 1u << 20);
    for (size_t i = 0; i < l->count; i++) {
        gpul_buf_appendf(&text, "%s%s", i > 0 ? " " : "", l->names[i]);
    }
    assert_string_equal(gpul_buf_text(&text), expected);
    gpul_buf_release(&text);
}

/* Folding the expansion gives the expression's shortest form, and expanding
 * that gives the same names again. */
static void test_expand_and_fold(void **state)
{
    (void)state;
    static const struct {
        const char *expression;
        const char *names;
        const char *folded;
    } rows[] = {
        {"a", "a", "a"},
        {"a,b,c", "a b c", "a,b,c"},
        {"node[1-3]", "node1 node2 node3", "node[1-3]"},
        {"node[3]", "node3", "node3"},
        {"node[01-03,20]", "node01 node02 node03 node20", "node[01-03,20]"},
        {"node[8-11]", "node8 node9 node10 node11", "node[8-11]"},
        {"node[08-11]", "node08 node09 node10 node11", "node[08-11]"},
        {"n[099-101]", "n099 n100 n101", "n[099-101]"},
        {"n[99-100]x", "n99x n100x", "n[99-100]x"},
        {"n1,n01,n2", "n1 n01 n2", "n[1,01,2]"},
        {"n[9,010]", "n9 n010", "n[9,010]"},
        {"n[3,2,1]", "n3 n2 n1", "n[3,2,1]"},
        {"n1,n1,n2", "n1 n1 n2", "n[1,1-2]"},
        {"10.0.0.[1-3],10.0.1.1", "10.0.0.1 10.0.0.2 10.0.0.3 10.0.1.1",
         "10.0.0.[1-3],10.0.1.1"},
        {"127.0.0.1,127.0.0.1", "127.0.0.1 127.0.0.1", "127.0.0.[1,1]"},
        {"r[1-2]n[1-2]", "r1n1 r1n2 r2n1 r2n2", "r1n[1-2],r2n[1-2]"},
        {"r[1-2]n1", "r1n1 r2n1", "r[1-2]n1"},
        {"::1,fe80::2,fe80::3", "::1 fe80::2 fe80::3", "::1,fe80::2,fe80::3"},
        {"n[0-1],00,01", "n0 n1 00 01", "n[0-1],[00-01]"},
        {"a,a", "a a", "a,a"},
        {"n1234567890123456789,n1234567890123456790",
         "n1234567890123456789 n1234567890123456790",
         "n1234567890123456789,n1234567890123456790"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gpul_hostlist l;
        struct gpul_error err = {0};
        struct gpul_buf folded;
        gpul_buf_init(&folded, 10000);
        gpul_hostlist_init(&l);
        assert_int_equal(
            gpul_hostlist_expand(&l, rows[i].expression, 100, &err), 0);
        assert_names(&l, rows[i].names);
        assert_int_equal(gpul_hostlist_fold(&folded, &l, 0, l.count), 0);
        assert_string_equal(gpul_buf_text(&folded), rows[i].folded);
        gpul_hostlist_release(&l);
        assert_int_equal(
            gpul_hostlist_expand(&l, gpul_buf_text(&folded), 100, &err), 0);
        assert_names(&l, rows[i].names);
        gpul_hostlist_release(&l);
        gpul_buf_release(&folded);
    }
}

/* Each fault is named with its column, and the list stays as it was. */
static void test_faults(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"", "host list, column 1: a name is missing"},
        {"a,", "host list, column 3: a name is missing"},
        {"a,,b", "host list, column 3: a name is missing"},
        {"a b", "host list, column 2: unexpected character"},
        {"a]", "host list, column 2: unexpected character"},
        {"n[1", "host list, column 2: the closing bracket is missing"},
        {"n[1,2", "host list, column 2: the closing bracket is missing"},
        {"n[]", "host list, column 3: a number is missing"},
        {"n[1-]", "host list, column 5: a number is missing"},
        {"n[1,]", "host list, column 5: a number is missing"},
        {"n[a-b]", "host list, column 3: a number is missing"},
        {"n[1;2]", "host list, column 4: unexpected character"},
        {"n[5-3]", "host list, column 5: the range runs backwards"},
        {"n[1-03]",
         "host list, column 5: the ends of the range differ in leading zeros"},
        {"n[1234567890123456789]",
         "host list, column 3: the number is too long"},
        {"n[1][2][3][4][5]",
         "host list, column 14: too many brackets in one name"},
        {"ok,[::1]", "host list, column 4: a name with a colon is an IPv6 "
                     "literal, which stands here without brackets"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gpul_hostlist l;
        struct gpul_error err = {0};
        gpul_hostlist_init(&l);
        gpul_hostlist_push(&l, "before");
        assert_int_equal(gpul_hostlist_expand(&l, rows[i][0], 100, &err),
                         GPUL_EINVAL);
        assert_string_equal(err.text, rows[i][1]);
        assert_names(&l, "before");
        gpul_hostlist_release(&l);
    }
}

/* A few bytes cannot ask for more names than the caller allows. */
static void test_bound(void **state)
{
    (void)state;
    static const char *const bombs[] = {
        "n[1-5]", "n[0-999999999999999999]",
        "n[0-999999][0-999999][0-999999][0-999999]"};
    struct gpul_hostlist l;
    gpul_hostlist_init(&l);
    assert_int_equal(gpul_hostlist_expand(&l, "n[1-4]", 4, NULL), 0);
    gpul_hostlist_release(&l);
    for (size_t i = 0; i < COUNT(bombs); i++) {
        struct gpul_error err = {0};
        assert_int_equal(gpul_hostlist_expand(&l, bombs[i], 4, &err),
                         GPUL_ELIMIT);
        assert_string_equal(err.text, "host list: more than 4 names");
        assert_int_equal(l.count, 0);
    }
    gpul_hostlist_release(&l);
}

/* 253 bytes of name are taken, 254 are not, however they come about. */
static void test_longest_name(void **state)
{
    (void)state;
    char text[300];
    struct gpul_hostlist l;
    struct gpul_error err = {0};
    gpul_hostlist_init(&l);
    memset(text, 'a', sizeof(text));
    text[253] = 0;
    assert_int_equal(gpul_hostlist_expand(&l, text, 9, NULL), 0);
    strcpy(text + 252, "aa");
    assert_int_equal(gpul_hostlist_expand(&l, text, 9, &err), GPUL_EINVAL);
    assert_string_equal(err.text,
                        "host list, column 254: the name is too long");
    strcpy(text + 252, "[9]");
    assert_int_equal(gpul_hostlist_expand(&l, text, 9, NULL), 0);
    strcpy(text + 252, "[10]");
    assert_int_equal(gpul_hostlist_expand(&l, text, 9, NULL), GPUL_EINVAL);
    assert_int_equal(l.count, 2);
    gpul_hostlist_release(&l);
}

/* A part of a list folds by itself; a full buffer is reported. */
static void test_fold_part(void **state)
{
    (void)state;
    struct gpul_hostlist l;
    struct gpul_buf text;
    gpul_hostlist_init(&l);
    gpul_hostlist_expand(&l, "n[1-1000]", 1000, NULL);
    gpul_buf_init(&text, 10);
    assert_int_equal(gpul_hostlist_fold(&text, &l, 9, 20), 0);
    assert_string_equal(gpul_buf_text(&text), "n[10-29]");
    gpul_buf_clear(&text);
    assert_int_equal(gpul_hostlist_fold(&text, &l, 0, 0), 0);
    struct gpul_hostlist none;
    gpul_hostlist_init(&none);
    assert_int_equal(gpul_hostlist_fold(&text, &none, 0, 0), 0);
    assert_int_equal(text.used, 0);
    assert_int_equal(gpul_hostlist_fold(&text, &l, 0, 1000), 0);
    gpul_buf_clear(&text);
    assert_int_equal(gpul_hostlist_fold(&text, &l, 899, 101), GPUL_ELIMIT);
    gpul_buf_release(&text);
    gpul_hostlist_release(&l);
}

/* Whatever the names, folding and expanding gives them back in order. */
static void test_random_round_trips(void **state)
{
    (void)state;
    static const char *const parts[] = {"n", "0",  "1",  "9",  "-",
                                        ".", "00", "10", "99", "rack"};
    struct gpul_rng rng;
    gpul_rng_init(&rng, 5);
    for (int round = 0; round < 2000; round++) {
        struct gpul_hostlist l;
        struct gpul_hostlist again;
        struct gpul_buf text;
        gpul_hostlist_init(&l);
        gpul_hostlist_init(&again);
        gpul_buf_init(&text, 10000);
        for (uint64_t n = 1 + gpul_rng_below(&rng, 12); n > 0; n--) {
            char name[64] = "";
            for (uint64_t m = 1 + gpul_rng_below(&rng, 4); m > 0; m--) {
                strcat(name, parts[gpul_rng_below(&rng, COUNT(parts))]);
            }
            gpul_hostlist_push(&l, name);
        }
        gpul_hostlist_fold(&text, &l, 0, l.count);
        assert_int_equal(
            gpul_hostlist_expand(&again, gpul_buf_text(&text), 20, NULL), 0);
        assert_int_equal(again.count, l.count);
        for (size_t i = 0; i < l.count; i++) {
            assert_string_equal(again.names[i], l.names[i]);
        }
        gpul_hostlist_release(&l);
        gpul_hostlist_release(&again);
        gpul_buf_release(&text);
    }
}

static int compare(const void *a, const void *b)
{
    return gpul_hostlist_compare(*(const char *const *)a,
                                 *(const char *const *)b);
}

/* Natural order, total and the same whatever the order before. */
static void test_compare(void **state)
{
    (void)state;
    static const char *const sorted[] = {"",
                                         "10",
                                         "n",
                                         "n-1",
                                         "n0",
                                         "n00",
                                         "n1",
                                         "n1a",
                                         "n01a",
                                         "n2",
                                         "n007",
                                         "n66",
                                         "n100",
                                         "na",
                                         "rack1node2",
                                         "rack1node10",
                                         "rack2node1",
                                         "z99999999999999999999998",
                                         "z99999999999999999999999"};
    const char *shuffled[COUNT(sorted)];
    for (size_t i = 0; i < COUNT(sorted); i++) {
        shuffled[i] = sorted[i * 7 % COUNT(sorted)];
        for (size_t j = 0; j < COUNT(sorted); j++) {
            int order = gpul_hostlist_compare(sorted[i], sorted[j]);
            assert_int_equal(order < 0, i < j);
            assert_int_equal(order > 0, i > j);
        }
    }
    qsort(shuffled, COUNT(shuffled), sizeof(shuffled[0]), compare);
    for (size_t i = 0; i < COUNT(sorted); i++) {
        assert_string_equal(shuffled[i], sorted[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expand_and_fold),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_longest_name),
        cmocka_unit_test(test_fold_part),
        cmocka_unit_test(test_random_round_trips),
        cmocka_unit_test(test_compare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
