/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "launcher/nodes.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int parse(struct nodes *n, const char *text, struct gpul_error *err)
{
    return nodes_parse_file(n, text, strlen(text), "hosts.txt", err);
}

/* "a b/4 c/4<8": names, slots, max_slots. */
static void assert_nodes(const struct nodes *n, const char *expected)
{
    struct gpul_buf text;
    gpul_buf_init(&text, 1000);
    for (uint32_t i = 0; i < n->count; i++) {
        gpul_buf_appendf(&text, "%s%s", i > 0 ? " " : "", n->list[i].name);
        if (n->list[i].slots > 0) {
            gpul_buf_appendf(&text, "/%u", n->list[i].slots);
        }
        if (n->list[i].slots_max > 0) {
            gpul_buf_appendf(&text, "<%u", n->list[i].slots_max);
        }
    }
    assert_string_equal(gpul_buf_text(&text), expected);
    gpul_buf_release(&text);
}

/* The files that users of other launchers have. */
static void test_dialects(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"a\nb\n", "a b"},
        {"a\nb", "a b"},
        {"a slots=4\nb slots=4\n", "a/4 b/4"}, /* MPI, DeepSpeed */
        {"a slots=4 max_slots=8\n", "a/4<8"},
        {"a slots = 4 max-slots = 8\n", "a/4<8"},
        {"a max_slots=8\n", "a<8"},
        {"a slots-max=8 slots=2\n", "a/2<8"},
        {"a:4\nb:4\n", "a/4 b/4"}, /* Horovod */
        {"[::1]:4\n::2\n", "::1/4 ::2"},
        {"# all nodes\n\n  a\t# the first\nb#next\n   # end\n", "a b"},
        {"a slots=2# two\n", "a/2"},
        {"a\r\nb slots=2\r\n", "a b/2"},
        {"node[01-03] slots=8\n", "node01/8 node02/8 node03/8"},
        {"a\na\nb\nb\n", "a/2 b/2"}, /* MPI's oldest form */
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct nodes n = {0};
        struct gpul_error err = {0};
        assert_int_equal(parse(&n, rows[i][0], &err), 0);
        assert_nodes(&n, rows[i][1]);
        nodes_release(&n);
    }
}

static void test_faults(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"", "hosts.txt: names no node; write one a line, as in: node1 "
             "slots=8"},
        {"# a\n\n", "hosts.txt: names no node; write one a line, as in: node1 "
                    "slots=8"},
        {"a\nb;c\n", "hosts.txt:2:2: ';' cannot be in a host name"},
        {"a\n\n  -b\n", "hosts.txt:3:3: a host name cannot begin with '-'"},
        {"a,b\n", "hosts.txt:1:2: one node a line, without commas"},
        {"a slots=0\n", "hosts.txt:1:9: slots is a number from 1 to 4096"},
        {"a slots=\n", "hosts.txt:1:9: slots is a number from 1 to 4096"},
        {"a slots=x\n", "hosts.txt:1:9: slots is a number from 1 to 4096"},
        {"a slots=-4\n", "hosts.txt:1:9: slots is a number from 1 to 4096"},
        {"a slots=4x\n", "hosts.txt:1:10: a blank is missing"},
        {"a slots=4 slots=4\n", "hosts.txt:1:11: slots: given twice"},
        {"a:4 slots=4\n", "hosts.txt:1:5: slots: given twice"},
        {"a slots=8 max_slots=4\n",
         "hosts.txt:1:2: slots=8 is more than max_slots=4"},
        {"a 4\n", "hosts.txt:1:3: unknown word; behind a node stand slots=N "
                  "and max_slots=N, and comments begin with #"},
        {"a slots\n", "hosts.txt:1:3: unknown word; behind a node stand "
                      "slots=N and max_slots=N, and comments begin with #"},
        {"a b\n", "hosts.txt:1:3: unknown word; behind a node stand slots=N "
                  "and max_slots=N, and comments begin with #"},
        {"a user=me\n", "hosts.txt:1:3: user is a matter of ssh; give it in "
                        "~/.ssh/config: Host, User, Port"},
        {"me@a\n", "hosts.txt:1:3: a user does not go into the list of nodes; "
                   "give it in ~/.ssh/config: Host, User"},
        {"a slots=4\nb\na slots=4\n",
         "hosts.txt:3: a is on line 1 already, and slots are given; launchers "
         "differ in whether they add up; keep one of the two lines"},
        {"\xef\xbb\xbf"
         "a\n",
         "hosts.txt:1:1: 0xef cannot be in a host name"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct nodes n = {0};
        struct gpul_error err = {0};
        assert_int_equal(parse(&n, rows[i][0], &err), GPUL_EINVAL);
        assert_string_equal(err.text, rows[i][1]);
        assert_int_equal(n.count, 0);
    }
}

/* A NUL ends nothing, and is no part of a name. */
static void test_nul(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t bytes;
        const char *words;
    } rows[] = {
        {"a\nb\0c\n", 6, "hosts.txt:2:2: 0x00 cannot be in a host name"},
        {"::1\0x\n", 6, "hosts.txt:1:1: \"::1"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct nodes n = {0};
        struct gpul_error err = {0};
        assert_int_equal(nodes_parse_file(&n, rows[i].text, rows[i].bytes,
                                          "hosts.txt", &err),
                         GPUL_EINVAL);
        assert_int_equal(
            strncmp(err.text, rows[i].words, strlen(rows[i].words)), 0);
    }
}

/* A long path leaves room for what is wrong. */
static void test_long_path(void **state)
{
    (void)state;
    char path[3000];
    struct nodes n = {0};
    struct gpul_error err = {0};
    memset(path, 'd', sizeof(path));
    strcpy(path + sizeof(path) - 7, "/hosts");
    assert_int_equal(nodes_parse_file(&n, "a:0\n", 4, path, &err), GPUL_EINVAL);
    assert_non_null(
        strstr(err.text, "ddd/hosts:1:3: slots is a number from 1 to 4096"));
}

static void test_max_slots(void **state)
{
    (void)state;
    struct nodes n = {0};
    struct gpul_error err = {0};
    assert_int_equal(parse(&n, "a slots=4\nb slots=4 max_slots=6\n", NULL), 0);
    assert_int_equal(nodes_check_ranks(&n, 6, &err), 0);
    assert_int_equal(nodes_check_ranks(&n, 7, &err), GPUL_EINVAL);
    assert_string_equal(err.text,
                        "hosts.txt:2: b has max_slots=6, but 7 ranks are to "
                        "run on each node; lower --per-node, or raise "
                        "max_slots");
    nodes_release(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dialects),  cmocka_unit_test(test_faults),
        cmocka_unit_test(test_nul),       cmocka_unit_test(test_long_path),
        cmocka_unit_test(test_max_slots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
