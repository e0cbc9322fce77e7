/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "launcher/nodes.h"
#include "proto/limits.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* "a b/4 c/4<8": names, slots, max_slots. */
static void assert_nodes(const struct nodes *n, const char *expected)
{
    struct gpul_buf text;
    gpul_buf_init(&text, 1u << 20);
    for (uint32_t i = 0; i < n->count; i++) {
        gpul_buf_appendf(&text, "%s%s", i > 0 ? " " : "", n->list[i].name);
        if (n->list[i].slots > 0) {
            gpul_buf_appendf(&text, "/%u", n->list[i].slots);
        }
        if (n->list[i].slots_max > 0) {
            gpul_buf_appendf(&text, "<%u", n->list[i].slots_max);
        }
    }
    assert_string_equal(n->count > 0 ? gpul_buf_text(&text) : "", expected);
    gpul_buf_release(&text);
}

/* What --hosts takes; literals stay as they were written. */
static void test_lists(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"a", "a"},
        {"node[01-03],x.example.org", "node01 node02 node03 x.example.org"},
        {"a:4,b:2", "a/4 b/2"},
        {"node[1-2]:8", "node1/8 node2/8"},
        {"r[1-2]n[1-2]:2,z", "r1n1/2 r1n2/2 r2n1/2 r2n2/2 z"},
        {"10.0.0.[7-8]:4", "10.0.0.7/4 10.0.0.8/4"},
        {"::1", "::1"},
        {"[::1]", "::1"},
        {"[::1]:4", "::1/4"},
        {"[fe80::1%eth0]:2,FE80::0002", "fe80::1%eth0/2 FE80::0002"},
        {"::ffff:10.0.0.1", "::ffff:10.0.0.1"},
        {"2001:db8::1:4", "2001:db8::1:4"}, /* no slots without brackets */
        {"node7,node66,node8,node70", "node7 node66 node8 node70"},
        {"a,a", "a/2"},
        {"b,a,b,a,a", "b/2 a/3"},
        {"n[1-2],n1", "n1/2 n2"},
        {"a_b,_x,A", "a_b _x A"},
        {"a:4096", "a/4096"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct nodes n = {0};
        struct gpul_error err = {0};
        assert_int_equal(
            nodes_parse_list(&n, NODES_LIST, rows[i][0], "--hosts", &err), 0);
        assert_nodes(&n, rows[i][1]);
        assert_string_equal(n.where, "--hosts");
        nodes_release(&n);
    }
}

/* Each fault has its column and says what to write instead. */
static void test_list_faults(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"", "--hosts, column 1: a name is missing"},
        {"a,,b", "--hosts, column 3: a name is missing"},
        {"a,", "--hosts, column 3: a name is missing"},
        {":4", "--hosts, column 1: a name is missing"},
        {"a:", "--hosts, column 3: slots is a number from 1 to 4096"},
        {"a:0", "--hosts, column 3: slots is a number from 1 to 4096"},
        {"a:4097", "--hosts, column 3: slots is a number from 1 to 4096"},
        {"a:4x", "--hosts, column 4: nothing may stand behind the slots"},
        {"a:99999999999999999999",
         "--hosts, column 3: slots is a number from 1 to 4096"},
        {"ok,a b", "--hosts, column 5: a blank cannot be in a host name"},
        {"-oProxyCommand=x",
         "--hosts, column 1: a host name cannot begin with '-'"},
        {"a,-x", "--hosts, column 3: a host name cannot begin with '-'"},
        {"a;b", "--hosts, column 2: ';' cannot be in a host name"},
        {"a$(b)", "--hosts, column 2: '$' cannot be in a host name"},
        {"a\nb", "--hosts, column 2: 0x0a cannot be in a host name"},
        {"a\xc3\xa4", "--hosts, column 2: 0xc3 cannot be in a host name"},
        {"me@a", "--hosts, column 3: a user does not go into the list of "
                 "nodes; give it in ~/.ssh/config: Host, User"},
        {"hosts/all", "--hosts, column 6: a / is in no host name; a file of "
                      "nodes is given with --hostfile FILE"},
        {"n[1-", "--hosts, column 2: the closing bracket is missing"},
        {"a,n[3-1]", "--hosts, column 7: the range runs backwards"},
        {"4", "--hosts, column 1: \"4\" is a number, not a host; for a number "
              "of nodes there is --nodes"},
        {"10.0.0.[255-256]",
         "--hosts, column 1: \"10.0.0.256\" is no IPv4 address"},
        {"10.1", "--hosts, column 1: \"10.1\" is no IPv4 address"},
        {"a:b:c",
         "--hosts, column 1: \"a:b:c\" is no IPv6 address; a name takes one "
         "colon, before its slots: name:4"},
        {"[::1", "--hosts, column 1: \"[::1\" is no IPv6 address; a name takes "
                 "one colon, before its slots: name:4"},
        {"[::1]x", "--hosts, column 6: only :SLOTS may stand behind the "
                   "bracket of an IPv6 address"},
        {"[fe80::1%]", "--hosts, column 2: \"fe80::1%\" is no IPv6 address; a "
                       "name takes one colon, before its slots: name:4"},
        {"[fe80::1%a;b]", "--hosts, column 2: \"fe80::1%a;b\" is no IPv6 "
                          "address; a name takes one colon, before its slots: "
                          "name:4"},
        {"n[1-999999999]", "--hosts: more than 131072 nodes"},
        {"a:4,b,a:4", "--hosts: a is named twice, and slots are given; "
                      "launchers differ in whether they add up; name it once"},
        {"a,a:4", "--hosts: a is named twice, and slots are given; launchers "
                  "differ in whether they add up; name it once"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct nodes n = {0};
        struct gpul_error err = {0};
        int rc = nodes_parse_list(&n, NODES_LIST, rows[i][0], "--hosts", &err);
        assert_true(rc == GPUL_EINVAL || rc == GPUL_ELIMIT);
        assert_string_equal(err.text, rows[i][1]);
        assert_int_equal(n.count, 0);
        assert_null(n.list);
    }
}

/* Ranks follow numbers, not letters, where the names are a set; a list of the
 * user's stays as it is. Both say so. */
static void test_order(void **state)
{
    (void)state;
    static const struct {
        enum nodes_source source;
        const char *where;
        const char *words;
    } rows[] = {
        {NODES_SET, "--nodelist",
         "4 nodes of --nodelist, in natural order: node[7-8,66,70]"},
        {NODES_LIST, "--hosts",
         "4 nodes of --hosts, in its order: node[7,66,8,70]"},
        {NODES_FILE, "hosts.txt",
         "4 nodes of hosts.txt, in its order: node[7,66,8,70]"},
        {NODES_SLURM, "SLURM_JOB_NODELIST",
         "4 nodes of SLURM_JOB_NODELIST, in the order of Slurm: "
         "node[7,66,8,70]"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct nodes n = {0};
        struct gpul_buf words;
        gpul_buf_init(&words, 1000);
        assert_int_equal(nodes_parse_list(&n, rows[i].source,
                                          "node7,node66,node8,node70",
                                          rows[i].where, NULL),
                         0);
        assert_int_equal(nodes_describe(&words, &n), 0);
        assert_string_equal(gpul_buf_text(&words), rows[i].words);
        gpul_buf_release(&words);
        nodes_release(&n);
    }
}

/* Names that do not fold are told as the first ten and a number. */
static void test_many_names(void **state)
{
    (void)state;
    struct nodes n = {0};
    struct gpul_buf text;
    gpul_buf_init(&text, 4000);
    for (int i = 0; i < 26; i++) {
        gpul_buf_appendf(&text, "%s%c-node-of-this-cluster", i > 0 ? "," : "",
                         'a' + i);
    }
    assert_int_equal(
        nodes_parse_list(&n, NODES_LIST, gpul_buf_text(&text), "--hosts", NULL),
        0);
    gpul_buf_clear(&text);
    nodes_append_names(&text, &n, 100);
    assert_non_null(
        strstr(gpul_buf_text(&text), ",j-node-of-this-cluster and 16 more"));
    assert_null(strstr(gpul_buf_text(&text), "k-node"));
    gpul_buf_release(&text);
    nodes_release(&n);
}

static void test_take(void **state)
{
    (void)state;
    struct nodes n = {0};
    struct gpul_error err = {0};
    nodes_parse_list(&n, NODES_LIST, "n[1-4]", "--hosts", NULL);
    assert_int_equal(nodes_take(&n, 5, &err), GPUL_EINVAL);
    assert_string_equal(err.text, "5 nodes are asked for, but --hosts has 4; "
                                  "ask for fewer, or name more");
    assert_int_equal(nodes_take(&n, 2, NULL), 0);
    assert_nodes(&n, "n1 n2");
    nodes_release(&n);
}

/* Equal slots are ranks per node; those that differ are no job. */
static void test_slots(void **state)
{
    (void)state;
    static const struct {
        enum nodes_source source;
        const char *list;
        int rc;
        uint32_t slots;
        const char *words;
    } rows[] = {
        {NODES_LIST, "a,b", 0, 0, ""},
        {NODES_LIST, "a:4,b:4", 0, 4, ""},
        {NODES_LIST, "a,a,b,b", 0, 2, ""},
        {NODES_PBS, "a,a,b", 0, 0, ""}, /* processors, not ranks */
        {NODES_LIST, "a:4,b:2,c", GPUL_EINVAL, 0,
         "--hosts: a has 4 slots, b has 2; a job has as many ranks on each "
         "node: make them equal, or give --per-node K"},
        {NODES_LIST, "a,b:2", GPUL_EINVAL, 0,
         "--hosts: a has 1 slot, b has 2; a job has as many ranks on each "
         "node: make them equal, or give --per-node K"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct nodes n = {0};
        struct gpul_error err = {0};
        uint32_t slots = 99;
        nodes_parse_list(&n, rows[i].source, rows[i].list, "--hosts", NULL);
        assert_int_equal(nodes_slots(&n, &slots, &err), rows[i].rc);
        assert_int_equal(slots, rows[i].slots);
        assert_string_equal(err.text, rows[i].words);
        nodes_release(&n);
    }
}

/* A range that names all that are possible, and repeats of all of them. */
static void test_large(void **state)
{
    (void)state;
    struct nodes n = {0};
    struct gpul_error err = {0};
    assert_int_equal(nodes_parse_list(&n, NODES_LIST, "n[1-131072],n[1-131072]",
                                      "--hosts", &err),
                     0);
    assert_int_equal(n.count, GPUL_NODES_MAX);
    assert_int_equal(n.list[131071].slots, 2);
    assert_int_equal(
        nodes_parse_list(&n, NODES_LIST, "n[1-131072],x", "--hosts", &err),
        GPUL_ELIMIT);
    assert_string_equal(err.text,
                        "--hosts: 131073 nodes; at most 131072 are possible");
    memset(&err, 0, sizeof(err));
    assert_int_equal(
        nodes_parse_list(&n, NODES_LIST,
                         "n[1-131072],n[1-131072],n[1-131072],n[1-131072],"
                         "n[1-131072],n[1-131072],n[1-131072],n[1-131072],x",
                         "--hosts", &err),
        GPUL_ELIMIT);
    assert_string_equal(err.text,
                        "--hosts: more than 1048576 mentions of nodes");
    nodes_release(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists), cmocka_unit_test(test_list_faults),
        cmocka_unit_test(test_order), cmocka_unit_test(test_many_names),
        cmocka_unit_test(test_take),  cmocka_unit_test(test_slots),
        cmocka_unit_test(test_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
