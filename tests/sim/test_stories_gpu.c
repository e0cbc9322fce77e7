/* SPDX-License-Identifier: Apache-2.0
 *
 * Stories of the self-test on GPUs that goes well, and of the choice between it
 * and host memory. The notation is that of test_stories_gather.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coordinator/probes.h"
#include "coordinator/text.h"
#include "tests/lib/story.h"

/* Everybody has two devices: facts, contexts, an ID, a communicator, a sweep,
 * and the launch; the slowest rank makes the row. */
static void test_nccl(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);

    story_expect(
        &c, 4,
        "4 all <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 1\n"
        "4 assigning -> self-test phase facts: every node is ready\n"
        "4 node0 <- scout node 0/2 on 127.0.0.1\n"
        "4 node1 <- scout node 1/2 on 127.0.0.1\n"
        "7 user: facts by nccl: node[0-1]: NCCL 2.28.9 (build 8f3a, "
        "/lib/libnccl.so.2), driver for CUDA 13.0 (/lib/libcuda.so.1); 2 x "
        "NVIDIA H200\n"
        "7 self-test phase facts -> self-test phase cuda: every node can use "
        "NCCL\n"
        "7 user: testing by nccl: NCCL over 4 devices of 2 nodes\n"
        "7 node0 <- probe_begin ranks 0+2 of 4, 2 a node, ids 1\n"
        "7 node1 <- probe_begin ranks 2+2 of 4, 2 a node, ids 1\n"
        "19 self-test phase cuda -> self-test phase uid: every device has a "
        "context\n"
        "19 self-test phase uid -> self-test phase init: every root has made "
        "its ID\n"
        "19 all <- probe_ids 0-0\n"
        "31 self-test phase init -> self-test phase coll: every communicator "
        "is ready\n"
        "41 self-test phase coll -> self-test phase end: every sweep is done\n"
        "51 user: test passed 4/4 by nccl\n"
        "51 user:   1048576 B: 1000003 ns, algbw 1.049 busbw 1.573 GB/s\n"
        "51 user:     collective 1, slowest rank 3\n"
        "51 user:   1048576 B: 500003 ns, algbw 2.097 busbw 2.097 GB/s\n"
        "51 user:     collective 1 within each node, slowest rank 3\n"
        "51 self-test phase end -> running: the self-test passed\n"
        "51 all <- launch attempt 1\n"
        "51 user: launched 2/2\n"
        "153 user: exited node0 1/2\n"
        "153 user: exited node1 2/2\n"
        "153 running -> draining: every rank ended with 0\n"
        "154 draining -> done: exit code 0, every rank ended with 0\n"
        "154 user: end 0 success: every rank ended with 0\n"
        "154 all <- finish\n"
        "156 done -> over: every node has left\n"
        "156 finish 0\n");
}

/* 300 ranks need three unique IDs, whose roots are spread over the nodes. */
static void test_many_ids(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 75, 4);

    story_expect_part(
        &c, 11, 60,
        "19 self-test phase cuda -> self-test phase uid: every device has a "
        "context\n"
        "19 self-test phase uid -> self-test phase init: every root has made "
        "its ID\n"
        "19 all <- probe_ids 0-0 1-100 2-200\n"
        "31 self-test phase init -> self-test phase coll: every communicator "
        "is ready\n"
        "41 self-test phase coll -> self-test phase end: every sweep is done\n"
        "51 user: test passed 300/300 by nccl\n"
        "51 user:   1048576 B: 1000299 ns, algbw 1.048 busbw 2.090 GB/s\n"
        "51 user:     collective 1, slowest rank 299\n"
        "51 user:   1048576 B: 500299 ns, algbw 2.096 busbw 3.144 GB/s\n"
        "51 user:     collective 1 within each node, slowest rank 299\n"
        "51 self-test phase end -> running: the self-test passed\n"
        "51 all <- launch attempt 1\n"
        "51 user: launched 75/75\n");
}

/* Where NCCL cannot take several IDs somewhere, one serves all. */
static void test_one_id(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 75, 4);
    c.nodes[3].has_one_id = true;
    story_expect_part(
        &c, 11, 60,
        "19 self-test phase cuda -> self-test phase uid: every device has a "
        "context\n"
        "19 self-test phase uid -> self-test phase init: every root has made "
        "its ID\n"
        "19 all <- probe_ids 0-0\n"
        "31 self-test phase init -> self-test phase coll: every communicator "
        "is ready\n"
        "41 self-test phase coll -> self-test phase end: every sweep is done\n"
        "51 user: test passed 300/300 by nccl\n"
        "51 user:   1048576 B: 1000299 ns, algbw 1.048 busbw 2.090 GB/s\n"
        "51 user:     collective 1, slowest rank 299\n"
        "51 user:   1048576 B: 500299 ns, algbw 2.096 busbw 3.144 GB/s\n"
        "51 user:     collective 1 within each node, slowest rank 299\n"
        "51 self-test phase end -> running: the self-test passed\n"
        "51 all <- launch attempt 1\n"
        "51 user: launched 75/75\n");
}

/* Where some node's NCCL cannot split, what happens within nodes is not known,
 * and that is said; the rest is tested. */
static void test_no_split(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    c.nodes[1].has_no_split = true;
    story_expect_part(
        &c, 7, 60,
        "7 user: facts by nccl: node[0-1]: NCCL 2.28.9 (build 8f3a, "
        "/lib/libnccl.so.2), driver for CUDA 13.0 (/lib/libcuda.so.1); 2 x "
        "NVIDIA H200\n"
        "7 self-test phase facts -> self-test phase cuda: every node can use "
        "NCCL\n"
        "7 user: testing by nccl: NCCL over 4 devices of 2 nodes\n"
        "7 user: notice: could not check all-reduce within each node: NCCL has "
        "no ncclCommSplit; 2.18 and later have it\n"
        "7 node0 <- probe_begin ranks 0+2 of 4, 2 a node, ids 1\n"
        "7 node1 <- probe_begin ranks 2+2 of 4, 2 a node, ids 1\n"
        "19 self-test phase cuda -> self-test phase uid: every device has a "
        "context\n"
        "19 self-test phase uid -> self-test phase init: every root has made "
        "its ID\n"
        "19 all <- probe_ids 0-0\n"
        "31 self-test phase init -> self-test phase coll: every communicator "
        "is ready\n"
        "41 self-test phase coll -> self-test phase end: every sweep is done\n"
        "51 user: test passed 4/4 by nccl\n"
        "51 user:   1048576 B: 1000003 ns, algbw 1.049 busbw 1.573 GB/s\n"
        "51 user:     collective 1, slowest rank 3\n"
        "51 self-test phase end -> running: the self-test passed\n"
        "51 all <- launch attempt 1\n"
        "51 user: launched 2/2\n");
}

/* Nodes of one device each have nothing within them, and of it no word. */
static void test_nothing_within(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 1);
    c.nodes[1].has_no_split = true;
    story_expect_part(
        &c, 7, 60,
        "7 user: facts by nccl: node[0-1]: NCCL 2.28.9 (build 8f3a, "
        "/lib/libnccl.so.2), driver for CUDA 13.0 (/lib/libcuda.so.1); 1 x "
        "NVIDIA H200\n"
        "7 self-test phase facts -> self-test phase cuda: every node can use "
        "NCCL\n"
        "7 user: testing by nccl: NCCL over 2 devices of 2 nodes\n"
        "7 node0 <- probe_begin ranks 0+1 of 2, 1 a node, ids 1\n"
        "7 node1 <- probe_begin ranks 1+1 of 2, 1 a node, ids 1\n"
        "19 self-test phase cuda -> self-test phase uid: every device has a "
        "context\n"
        "19 self-test phase uid -> self-test phase init: every root has made "
        "its ID\n"
        "19 all <- probe_ids 0-0\n"
        "31 self-test phase init -> self-test phase coll: every communicator "
        "is ready\n"
        "41 self-test phase coll -> self-test phase end: every sweep is done\n"
        "51 user: test passed 2/2 by nccl\n"
        "51 user:   1048576 B: 1000001 ns, algbw 1.049 busbw 1.049 GB/s\n"
        "51 user:     collective 1, slowest rank 1\n"
        "51 self-test phase end -> running: the self-test passed\n"
        "51 all <- launch attempt 1\n"
        "51 user: launched 2/2\n");
}

/* One node of one device among others: all split, busbw within is n/a. */
static void test_unequal_nodes(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    c.nodes[1].gpus = 1;
    story_expect_part(
        &c, 51, 60,
        "51 user: test passed 3/3 by nccl\n"
        "51 user:   1048576 B: 1000002 ns, algbw 1.049 busbw 1.398 GB/s\n"
        "51 user:     collective 1, slowest rank 2\n"
        "51 user:   1048576 B: 500001 ns, algbw 2.097 busbw 0.000 GB/s\n"
        "51 user:     collective 1 within each node, slowest rank 1\n"
        "51 self-test phase end -> running: the self-test passed\n"
        "51 all <- launch attempt 1\n"
        "51 user: launched 2/2\n");
}

/* A double anywhere makes everything SIMULATED. */
static void test_double(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    c.nodes[1].is_double = true;
    story_expect_part(
        &c, 7, 60,
        "7 user: facts by double SIMULATED: node[0-1]: NCCL 2.28.9 (build "
        "8f3a, /lib/libnccl.so.2), driver for CUDA 13.0 (/lib/libcuda.so.1); 2 "
        "x NVIDIA H200\n"
        "7 self-test phase facts -> self-test phase cuda: every node can use "
        "NCCL\n"
        "7 user: testing by double SIMULATED: NCCL over 4 devices of 2 nodes\n"
        "7 node0 <- probe_begin ranks 0+2 of 4, 2 a node, ids 1\n"
        "7 node1 <- probe_begin ranks 2+2 of 4, 2 a node, ids 1\n"
        "19 self-test phase cuda -> self-test phase uid: every device has a "
        "context\n"
        "19 self-test phase uid -> self-test phase init: every root has made "
        "its ID\n"
        "19 all <- probe_ids 0-0\n"
        "31 self-test phase init -> self-test phase coll: every communicator "
        "is ready\n"
        "41 self-test phase coll -> self-test phase end: every sweep is done\n"
        "51 user: test passed 4/4 by double SIMULATED\n"
        "51 user:   1048576 B: 1000003 ns, algbw 1.049 busbw 1.573 GB/s\n"
        "51 user:     collective 1, slowest rank 3\n"
        "51 user:   1048576 B: 500003 ns, algbw 2.097 busbw 2.097 GB/s\n"
        "51 user:     collective 1 within each node, slowest rank 3\n"
        "51 self-test phase end -> running: the self-test passed\n"
        "51 all <- launch attempt 1\n"
        "51 user: launched 2/2\n");
}

/* `auto` with a GPU on some nodes only: host memory, and a line. */
static void test_auto_without(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    c.self_test.backend = GPUL__SELF_TEST__BACKEND__BACKEND_AUTO;
    c.nodes[1].gpus = 0;
    story_expect_part(&c, 4, 7,
                      "4 all <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 1\n"
                      "4 user: notice: no GPU on node1: the self-test runs on "
                      "host memory, not over NCCL\n"
                      "4 assigning -> listening: every node is ready\n"
                      "4 user: testing by host-tcp: all-reduce over 2 nodes\n"
                      "4 node0 <- probe_start node 0/2 on 127.0.0.1\n"
                      "4 node1 <- probe_start node 1/2 on 127.0.0.1\n"
                      "7 listening -> probing: every probe listens\n"
                      "7 node0 <- probe_connect 127.0.0.1:30000\n"
                      "7 node1 <- probe_connect 127.0.0.1:30000\n");
}

/* `auto` with GPUs but without NCCL somewhere: host memory, and a line that
 * says where and why. */
static void test_auto_unusable(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    c.self_test.backend = GPUL__SELF_TEST__BACKEND__BACKEND_AUTO;
    c.nodes[1].scout_error = "libnccl.so.2 was not found";
    story_expect_part(
        &c, 7, 11,
        "7 user: facts by nccl: node0: NCCL 2.28.9 (build 8f3a, "
        "/lib/libnccl.so.2), driver for CUDA 13.0 (/lib/libcuda.so.1); 2 x "
        "NVIDIA H200\n"
        "7 user: facts by nccl: node1: driver for CUDA 13.0 "
        "(/lib/libcuda.so.1); 2 x NVIDIA H200\n"
        "7 user: notice node1: the self-test runs on host memory, not over "
        "NCCL: NCCL cannot be used on node1: libnccl.so.2 was not found\n"
        "7 self-test phase facts -> listening: NCCL cannot be used\n"
        "7 user: testing by host-tcp: all-reduce over 2 nodes\n"
        "7 node0 <- probe_start node 0/2 on 127.0.0.1\n"
        "7 node1 <- probe_start node 1/2 on 127.0.0.1\n"
        "10 listening -> probing: every probe listens\n"
        "10 node0 <- probe_connect 127.0.0.1:30000\n"
        "10 node1 <- probe_connect 127.0.0.1:30000\n");
}

/* `auto` on nodes that share a host and a device: host memory, and a line. */
static void test_auto_shared(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    c.self_test.backend = GPUL__SELF_TEST__BACKEND__BACKEND_AUTO;
    c.nodes[1].has_twin = true;
    story_expect_part(
        &c, 7, 11,
        "7 user: facts by nccl: node[0-1]: NCCL 2.28.9 (build 8f3a, "
        "/lib/libnccl.so.2), driver for CUDA 13.0 (/lib/libcuda.so.1); 2 x "
        "NVIDIA H200\n"
        "7 user: notice node1: the self-test runs on host memory, not over "
        "NCCL: GPU-201 rank 0 (node node0, its device 0) and rank 2 (node "
        "node1, its device 0) have the same device GPU-0-0; give each a device "
        "of its own, with CUDA_VISIBLE_DEVICES for example\n"
        "7 self-test phase facts -> listening: NCCL cannot be used\n"
        "7 user: testing by host-tcp: all-reduce over 2 nodes\n"
        "7 node0 <- probe_start node 0/2 on 127.0.0.1\n"
        "7 node1 <- probe_start node 1/2 on 127.0.0.1\n"
        "10 listening -> probing: every probe listens\n"
        "10 node0 <- probe_connect 127.0.0.1:30000\n"
        "10 node1 <- probe_connect 127.0.0.1:30000\n");
}

/* Different versions would break the training too, so `auto` ends by them. */
static void test_auto_versions(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    c.self_test.backend = GPUL__SELF_TEST__BACKEND__BACKEND_AUTO;
    c.nodes[1].nccl_version = "2.27.3";
    story_expect(
        &c, 7,
        "7 user: facts by nccl: node0: NCCL 2.28.9 (build 8f3a, "
        "/lib/libnccl.so.2), driver for CUDA 13.0 (/lib/libcuda.so.1); 2 x "
        "NVIDIA H200\n"
        "7 user: facts by nccl: node1: NCCL 2.27.3 (build 8f3a, "
        "/lib/libnccl.so.2), driver for CUDA 13.0 (/lib/libcuda.so.1); 2 x "
        "NVIDIA H200\n"
        "7 self-test phase facts -> draining: self-test phase facts: VER-301 "
        "the versions of NCCL differ: node0 has 2.28.9, node1 has 2.27.3; "
        "install the same on every node, or name it with --nccl-lib\n"
        "7 user: stopping: self-test phase facts: VER-301 the versions of NCCL "
        "differ: node0 has 2.28.9, node1 has 2.27.3; install the same on every "
        "node, or name it with --nccl-lib\n"
        "7 all <- stop signal 15 grace 30000\n"
        "14 draining -> done: exit code 20, self-test phase facts: VER-301 the "
        "versions of NCCL differ: node0 has 2.28.9, node1 has 2.27.3; install "
        "the same on every node, or name it with --nccl-lib\n"
        "14 user: end 20 self_test_failed: self-test phase facts: VER-301 the "
        "versions of NCCL differ: node0 has 2.28.9, node1 has 2.27.3; install "
        "the same on every node, or name it with --nccl-lib\n"
        "14 all <- finish, logs stay\n"
        "16 done -> over: every node has left\n"
        "16 finish 20\n");
}

/* One node without a usable NCCL has nothing to reduce with. */
static void test_auto_one_node(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 1, 2);
    c.self_test.backend = GPUL__SELF_TEST__BACKEND__BACKEND_AUTO;
    c.nodes[0].scout_error = "libnccl.so.2 was not found";
    story_expect(
        &c, 7,
        "7 user: facts by nccl: node0: driver for CUDA 13.0 "
        "(/lib/libcuda.so.1); 2 x NVIDIA H200\n"
        "7 user: notice node0: the self-test is skipped: NCCL cannot be used "
        "on node0: libnccl.so.2 was not found\n"
        "7 user: test skipped: one node has nothing to reduce with\n"
        "7 self-test phase facts -> running: NCCL cannot be used\n"
        "7 all <- launch attempt 1\n"
        "7 user: launched 1/1\n"
        "109 user: exited node0 1/1\n"
        "109 running -> draining: every rank ended with 0\n"
        "110 draining -> done: exit code 0, every rank ended with 0\n"
        "110 user: end 0 success: every rank ended with 0\n"
        "110 all <- finish\n"
        "112 done -> over: every node has left\n"
        "112 finish 0\n");
}

/* As fast as it must be. */
static void test_fast(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    c.sweep.busbw_min_gbps = 1;
    story_expect_part(
        &c, 51, 52,
        "51 user: test passed 4/4 by nccl\n"
        "51 user:   1048576 B: 1000003 ns, algbw 1.049 busbw 1.573 GB/s\n"
        "51 user:     collective 1, slowest rank 3\n"
        "51 user:   1048576 B: 500003 ns, algbw 2.097 busbw 2.097 GB/s\n"
        "51 user:     collective 1 within each node, slowest rank 3\n"
        "51 self-test phase end -> running: the self-test passed\n"
        "51 all <- launch attempt 1\n"
        "51 user: launched 2/2\n");
}

/* What was asked for and did not fit is told: the next size after the largest
 * row, 8 times as large, is within -e. One byte less, and nothing was left
 * out. */
static void test_cut(void **state)
{
    (void)state;
    static const struct {
        uint64_t asked;
        const char *notice;
    } cases[] = {
        {8388639, ""},
        {8388640,
         "51 user: notice: the largest all-reduce of the self-test had 1048576 "
         "bytes, though 8388640 were asked for: there is no room for more\n"},
    };
    for (size_t i = 0; i < 2; i++) {
        struct cluster c;
        struct text expected;
        story_init_gpus(&c, 2, 2);
        c.sweep.bytes_max = cases[i].asked;
        text_format(&expected, "%s%s", cases[i].notice,
                    "51 user: test passed 4/4 by nccl\n"
                    "51 user:   1048576 B: 1000003 ns, algbw 1.049 busbw 1.573 "
                    "GB/s\n"
                    "51 user:     collective 1, slowest rank 3\n"
                    "51 user:   1048576 B: 500003 ns, algbw 2.097 busbw 2.097 "
                    "GB/s\n"
                    "51 user:     collective 1 within each node, slowest rank "
                    "3\n"
                    "51 self-test phase end -> running: the self-test passed\n"
                    "51 all <- launch attempt 1\n"
                    "51 user: launched 2/2\n");
        story_expect_part(&c, 51, 52, expected.bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nccl),
        cmocka_unit_test(test_many_ids),
        cmocka_unit_test(test_one_id),
        cmocka_unit_test(test_no_split),
        cmocka_unit_test(test_nothing_within),
        cmocka_unit_test(test_unequal_nodes),
        cmocka_unit_test(test_double),
        cmocka_unit_test(test_auto_without),
        cmocka_unit_test(test_auto_unusable),
        cmocka_unit_test(test_auto_shared),
        cmocka_unit_test(test_auto_versions),
        cmocka_unit_test(test_auto_one_node),
        cmocka_unit_test(test_fast),
        cmocka_unit_test(test_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
