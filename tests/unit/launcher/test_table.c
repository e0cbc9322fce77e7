/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/buf.h"
#include "launcher/table.h"

enum { NODES = 4, RANKS = 8 };

static Gpul__SelfTestRow small = {
    .bytes = 8,
    .count = 2,
    .min_ns = 41210,
    .median_ns = 45000,
    .max_ns = 1234567,
    .algbw_gbps = 0.00018,
    .busbw_gbps = 0.00027,
};

static Gpul__SelfTestRow large = {
    .bytes = 1073741824,
    .count = 268435456,
    .min_ns = 190000000,
    .median_ns = 201234567,
    .max_ns = 999999999999,
    .algbw_gbps = 5.334,
    .busbw_gbps = 9.335,
    .wrong_elements = 3,
};

static Gpul__SelfTestRow scatter = {
    .bytes = 1048576,
    .count = 32768,
    .median_ns = 99990,
    .algbw_gbps = 10.486,
    .busbw_gbps = 9.175,
    .collective = GPUL__COLLECTIVE__COLLECTIVE_REDUCE_SCATTER,
};

static Gpul__SelfTestRow send = {
    .bytes = 1048576,
    .count = 262144,
    .median_ns = 99990,
    .algbw_gbps = 10.486,
    .busbw_gbps = 10.486,
    .collective = GPUL__COLLECTIVE__COLLECTIVE_SEND_RECV,
};

static char host[] = "host-tcp";
static char nccl[] = "nccl";
static char simulated[] = "double";

static Gpul__Event event(Gpul__SelfTestRow **rows, size_t count, char *backend)
{
    Gpul__Event e = GPUL__EVENT__INIT;
    e.kind = GPUL__EVENT__KIND__SELF_TEST_PASSED;
    e.have = RANKS;
    e.need = RANKS;
    e.rows = rows;
    e.n_rows = count;
    e.backend = backend;
    return e;
}

/* Of the columns; a title may be cut by the terminal. */
static size_t longest_line(const char *text)
{
    size_t longest = 0;
    while (*text != '\0') {
        size_t n = strcspn(text, "\n");
        bool is_title = n > 2 && text[0] == '#' && text[2] != ' ';
        longest = n > longest && !is_title ? n : longest;
        text += n + (text[n] == '\n');
    }
    return longest;
}

static void check(const Gpul__Event *e, uint32_t nodes, size_t width,
                  const char *expected)
{
    struct gpul_buf out;
    gpul_buf_init(&out, 1 << 14);
    assert_int_equal(table_self_test(&out, e, nodes, width), 0);
    assert_string_equal(gpul_buf_text(&out), expected);
    assert_true(longest_line(gpul_buf_text(&out)) <= width);
    gpul_buf_release(&out);
}

/* 80 columns hold nccl-tests' columns with units, where no ceiling is known;
 * rows come in the order of their size. */
static void test_plain(void **state)
{
    (void)state;
    Gpul__SelfTestRow *rows[] = {&large, &small};
    Gpul__Event e = event(rows, 2, host);
    check(
        &e, NODES, 82,
        "# all-reduce on host memory over TCP, 4 nodes, slowest rank\n"
        "#     size     count  type redop     time      min      max  algbw  "
        "busbw #wrong\n"
        "#      (B)    (elem)                 (us)     (us)     (us) (GB/s) "
        "(GB/s)\n"
        "         8         2 float   sum    45.00    41.21   1234.6   0.00   "
        "0.00      0\n"
        "1073741824 268435456 float   sum 201234.6 190000.0 1000000000   "
        "5.33   9.34      3\n");
}

/* Below 80 columns the table keeps size, time, busbw and #wrong. */
static void test_narrow(void **state)
{
    (void)state;
    Gpul__SelfTestRow *rows[] = {&small, &large};
    static char unknown[] = "";
    Gpul__Event e = event(rows, 2, unknown);
    check(&e, 1, 40,
          "# all-reduce, 1 node, slowest rank\n"
          "#     size     time  busbw #wrong\n"
          "#      (B)     (us) (GB/s)\n"
          "         8    45.00   0.00      0\n"
          "1073741824 201234.6   9.34      3\n");
}

/* Each collective has a block; each line ends in ceiling, share and verdict,
 * "n/a" and "unknown" where they are not, and the wire's rate stands beside
 * busbw. */
static void test_judged(void **state)
{
    (void)state;
    Gpul__SelfTestRow a = small, b = large, c = scatter, d = send;
    a.ceiling_gbps = b.ceiling_gbps = c.ceiling_gbps = 12.5;
    a.ceiling_kind = b.ceiling_kind = GPUL__LINK__LINK_RDMA;
    b.wire_gbps = 4.001;
    Gpul__SelfTestRow *rows[] = {&a, &b, &d, &c};
    Gpul__Event e = event(rows, 4, nccl);
    check(&e, NODES, 80,
          "# all-reduce over NCCL, 8 ranks on 4 nodes, slowest rank\n"
          "#     size     count     time  algbw  busbw   wire #wrong   ceil "
          "% of verdict\n"
          "#      (B)    (elem)     (us) (GB/s) (GB/s) (GB/s)        (GB/s) "
          "ceil\n"
          "         8         2    45.00   0.00   0.00      -      0  12.50   "
          "0%   small\n"
          "1073741824 268435456 201234.6   5.33   9.34   4.00      3  12.50  "
          "75%     low\n"
          "# reduce-scatter\n"
          "   1048576     32768    99.99  10.49   9.18      -      0  12.50  "
          "73%   small\n"
          "# send/recv\n"
          "   1048576    262144    99.99  10.49  10.49      -      0    n/a  "
          "n/a unknown\n");
}

/* Where TCP is the limit and little of it was reached, there is a hint. */
static void test_hint(void **state)
{
    (void)state;
    Gpul__SelfTestRow a = small, b = large;
    b.ceiling_gbps = 25;
    b.ceiling_kind = GPUL__LINK__LINK_TCP;
    Gpul__SelfTestRow *rows[] = {&a, &b};
    Gpul__Event e = event(rows, 2, nccl);
    check(&e, NODES, 60,
          "# all-reduce over NCCL, 8 ranks on 4 nodes, slowest rank\n"
          "#     size     time  busbw #wrong % of verdict\n"
          "#      (B)     (us) (GB/s)        ceil\n"
          "         8    45.00   0.00      0  n/a unknown\n"
          "1073741824 201234.6   9.34      3  37%     low\n"
          "# over TCP more of NCCL_SOCKET_NTHREADS and NCCL_NSOCKS_PERTHREAD "
          "may help\n");
}

/* A wide terminal shows every column; a ceiling that is not known is "n/a". */
static void test_wide(void **state)
{
    (void)state;
    Gpul__SelfTestRow *rows[] = {&small, &send};
    Gpul__Event e = event(rows, 2, host);
    check(
        &e, NODES, 132,
        "# all-reduce on host memory over TCP, 4 nodes, slowest rank\n"
        "#     size     count  type redop     time      min      max  algbw  "
        "busbw   wire #wrong   ceil % of verdict\n"
        "#      (B)    (elem)                 (us)     (us)     (us) (GB/s) "
        "(GB/s) (GB/s)        (GB/s) ceil\n"
        "         8         2 float   sum    45.00    41.21   1234.6   0.00   "
        "0.00      -      0    n/a  n/a unknown\n"
        "# send/recv\n"
        "   1048576    262144 float  none    99.99     0.00     0.00  10.49  "
        "10.49      -      0    n/a  n/a unknown\n");
}

/* One rank has no peer: its busbw is n/a, not 0.00. */
static void test_one_rank(void **state)
{
    (void)state;
    Gpul__SelfTestRow a = large;
    a.busbw_gbps = 0;
    a.ceiling_gbps = 450;
    Gpul__SelfTestRow *rows[] = {&a};
    Gpul__Event e = event(rows, 1, nccl);
    e.have = 1;
    check(&e, 1, 60,
          "# all-reduce over NCCL, 1 rank on 1 node, slowest rank\n"
          "#     size     time  busbw #wrong % of verdict\n"
          "#      (B)     (us) (GB/s)        ceil\n"
          "1073741824 201234.6    n/a      3  n/a unknown\n");
}

/* With a double in play every title says so, and no ceiling counts. */
static void test_simulated(void **state)
{
    (void)state;
    Gpul__SelfTestRow a = large, b = scatter;
    a.ceiling_gbps = b.ceiling_gbps = 12.5;
    Gpul__SelfTestRow *rows[] = {&a, &b};
    Gpul__Event e = event(rows, 2, simulated);
    e.is_simulated = true;
    check(&e, NODES, 62,
          "# SIMULATED all-reduce over test doubles, 8 ranks on 4 nodes, "
          "slowest rank\n"
          "#     size     time  busbw #wrong % of verdict\n"
          "#      (B)     (us) (GB/s)        ceil\n"
          "1073741824 201234.6   9.34      3    -       -\n"
          "# SIMULATED reduce-scatter\n"
          "   1048576    99.99   9.18      0    -       -\n");
}

/* The title of the all-reduce that --min-busbw judged says that it was not
 * enough, and no other title does. */
static void test_slow(void **state)
{
    (void)state;
    Gpul__SelfTestRow *rows[] = {&send, &small};
    Gpul__Event e = event(rows, 2, host);
    e.kind = GPUL__EVENT__KIND__SELF_TEST_SLOW;
    check(&e, NODES, 40,
          "# all-reduce on host memory over TCP, 4 nodes, slowest rank: "
          "FAILED, below --min-busbw\n"
          "#     size     time  busbw #wrong\n"
          "#      (B)     (us) (GB/s)\n"
          "         8    45.00   0.00      0\n"
          "# send/recv\n"
          "   1048576    99.99  10.49      0\n");
}

/* What each node did by itself stands last, with the ranks of a node where
 * every node has as many; else a bus bandwidth means nothing. */
static void test_within_nodes(void **state)
{
    (void)state;
    Gpul__SelfTestRow a = large, b = large, c = send;
    a.scope = GPUL__SCOPE__SCOPE_NODE;
    a.ranks = 2;
    Gpul__SelfTestRow *rows[] = {&a, &b, &c};
    Gpul__Event e = event(rows, 3, nccl);
    check(&e, NODES, 60,
          "# all-reduce over NCCL, 8 ranks on 4 nodes, slowest rank\n"
          "#     size     time  busbw #wrong % of verdict\n"
          "#      (B)     (us) (GB/s)        ceil\n"
          "1073741824 201234.6   9.34      3  n/a unknown\n"
          "# send/recv\n"
          "   1048576    99.99  10.49      0  n/a unknown\n"
          "# all-reduce within each node, 2 ranks\n"
          "1073741824 201234.6   9.34      3  n/a unknown\n");
    a.ranks = 0;
    a.busbw_gbps = 0;
    e.n_rows = 2;
    check(&e, NODES, 60,
          "# all-reduce over NCCL, 8 ranks on 4 nodes, slowest rank\n"
          "#     size     time  busbw #wrong % of verdict\n"
          "#      (B)     (us) (GB/s)        ceil\n"
          "1073741824 201234.6   9.34      3  n/a unknown\n"
          "# all-reduce within each node\n"
          "1073741824 201234.6    n/a      3  n/a unknown\n");
}

/* Without room the failure is reported. */
static void test_no_room(void **state)
{
    (void)state;
    Gpul__SelfTestRow *rows[] = {&small, &large};
    Gpul__Event e = event(rows, 2, host);
    struct gpul_buf out;
    gpul_buf_init(&out, 10);
    assert_int_not_equal(table_self_test(&out, &e, NODES, 80), 0);
    gpul_buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),     cmocka_unit_test(test_narrow),
        cmocka_unit_test(test_judged),    cmocka_unit_test(test_hint),
        cmocka_unit_test(test_wide),      cmocka_unit_test(test_one_rank),
        cmocka_unit_test(test_simulated), cmocka_unit_test(test_within_nodes),
        cmocka_unit_test(test_slow),      cmocka_unit_test(test_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
