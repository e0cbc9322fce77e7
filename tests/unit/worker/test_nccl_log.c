/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "worker/nccl_log.h"

static struct nccl_log log_;

static int setup(void **state)
{
    (void)state;
    memset(&log_, 0, sizeof(log_));
    return 0;
}

static uint32_t take(const char *text)
{
    uint32_t before = log_.stage;
    bool has_risen = nccl_log_take(&log_, text, strlen(text));
    assert_int_equal(has_risen, log_.stage != before);
    return log_.stage;
}

/* Lines as NCCL 2.28 writes them. */
static void test_milestones(void **state)
{
    (void)state;
    assert_int_equal(take(""), 0);
    assert_int_equal(take("n0:7:7 [0] NCCL INFO NET/Plugin: none\n"), 1);
    assert_int_equal(take("n0:7:9 [0] NCCL INFO ncclCommInitRankConfig comm "
                          "0x5 rank 0 nranks 8 cudaDev 0 - Init START\n"),
                     2);
    assert_int_equal(take("n0:7:9 [0] NCCL INFO RAS client listening\n"), 2);
    assert_int_equal(take("n0:7:9 [0] NCCL INFO Bootstrap timings total 0.04 "
                          "(create 0.0, send 0.0, recv 0.0)\n"),
                     3);
    assert_int_equal(take("n0:7:9 [0] NCCL INFO comm 0x5 rank 0 nRanks 8 "
                          "nNodes 4 localRanks 2 localRank 0 MNNVL 0\n"),
                     4);
    assert_int_equal(take("n0:7:9 [0] NCCL INFO P2P Chunksize set to 131072\n"),
                     5);
    assert_int_equal(take("n0:7:9 [0] NCCL INFO ncclCommInitRankConfig comm "
                          "0x5 rank 0 - Init COMPLETE\n"),
                     6);
    /* The one of the node goes on from there. */
    assert_int_equal(take("ncclCommSplit comm 0x6 - Init START\n"), 7);
    assert_int_equal(take("Bootstrap timings total\n"), 8);
}

/* A milestone that is left out, that comes twice, or that none begins. */
static void test_order(void **state)
{
    (void)state;
    assert_int_equal(take("Bootstrap timings total\n"), 1);
    assert_int_equal(take("Init START\n"), 2);
    assert_int_equal(take("rank 0 nNodes 4 localRanks\n"), 4);
    assert_int_equal(take("Bootstrap timings total\n"), 4);
    assert_int_equal(take("rank 0 nNodes 4 localRanks\n"), 4);
    assert_int_equal(take("Init START\n"), 7);
}

/* Lines come in pieces, may be longer than is looked at, and hold anything. */
static void test_pieces(void **state)
{
    (void)state;
    static const char nothing[] = "Init\0 STA\xff";
    char line[3 * NCCL_LOG_LINE_BYTES];
    assert_int_equal(take("Init ST"), 0);
    assert_int_equal(take("ART"), 0);
    assert_int_equal(take("\nBootstrap timings total\nx"), 3);
    memset(line, 'a', sizeof(line));
    assert_false(nccl_log_take(&log_, line, sizeof(line)));
    assert_int_equal(take(" nNodes \n"), 3);
    assert_false(nccl_log_take(&log_, nothing, sizeof(nothing)));
    assert_int_equal(take("\n nNodes \n"), 4);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_milestones),
        TEST(test_order),
        TEST(test_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
