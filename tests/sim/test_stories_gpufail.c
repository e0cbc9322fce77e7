/* SPDX-License-Identifier: Apache-2.0
 *
 * Stories of probes that fail: the first cause counts. The notation is that of
 * test_stories_gather.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coordinator/probes.h"
#include "coordinator/text.h"
#include "tests/lib/story.h"

/* A probe that dies names rank, node, device, phase and signal. */
static void test_dies(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    c.nodes[1].probes[0] =
        (struct fake_probe){.fault = FAKE_DIES, .at = PROBES_COLL};
    story_expect(
        &c, 41,
        "41 self-test phase coll -> draining: self-test phase coll: rank 2 "
        "(node node1, device GPU-1-0): it was ended by signal 9 (SIGKILL)\n"
        "41 user: stopping: self-test phase coll: rank 2 (node node1, device "
        "GPU-1-0): it was ended by signal 9 (SIGKILL)\n"
        "41 all <- stop signal 15 grace 30000\n"
        "48 draining -> done: exit code 20, self-test phase coll: rank 2 (node "
        "node1, device GPU-1-0): it was ended by signal 9 (SIGKILL)\n"
        "48 user: end 20 self_test_failed: self-test phase coll: rank 2 (node "
        "node1, device GPU-1-0): it was ended by signal 9 (SIGKILL)\n"
        "48 all <- finish, logs stay\n"
        "50 done -> over: every node has left\n"
        "50 finish 20\n");
}

/* A root that dies after giving its ID is reported as such. */
static void test_root_dies(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    c.nodes[0].probes[0] =
        (struct fake_probe){.fault = FAKE_DIES, .at = PROBES_INIT};
    story_expect(
        &c, 29,
        "31 self-test phase init -> draining: self-test phase init: rank 0 "
        "(node node0, device GPU-0-0): it was ended by signal 9 (SIGKILL); it "
        "is the root of unique ID 0, which it had given\n"
        "31 user: stopping: self-test phase init: rank 0 (node node0, device "
        "GPU-0-0): it was ended by signal 9 (SIGKILL); it is the root of "
        "unique ID 0, which it had given\n"
        "31 all <- stop signal 15 grace 30000\n"
        "38 draining -> done: exit code 20, self-test phase init: rank 0 (node "
        "node0, device GPU-0-0): it was ended by signal 9 (SIGKILL); it is the "
        "root of unique ID 0, which it had given\n"
        "38 user: end 20 self_test_failed: self-test phase init: rank 0 (node "
        "node0, device GPU-0-0): it was ended by signal 9 (SIGKILL); it is the "
        "root of unique ID 0, which it had given\n"
        "38 all <- finish, logs stay\n"
        "40 done -> over: every node has left\n"
        "40 finish 20\n");
}

/* The rank that died is the cause, though others told of it before. */
static void test_first_cause(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    c.nodes[0].probes[0] =
        (struct fake_probe){.fault = FAKE_REMOTE, .at = PROBES_COLL};
    c.nodes[0].probes[1] =
        (struct fake_probe){.fault = FAKE_REMOTE, .at = PROBES_COLL};
    c.nodes[1].probes[1] = (struct fake_probe){
        .fault = FAKE_DIES, .at = PROBES_COLL, .after_ms = 400};
    story_expect(
        &c, 41,
        "41 held back: self-test phase coll: rank 0 (node node0, device "
        "GPU-0-0): ncclAllReduce: remote error (6); NCCL said: connection "
        "closed by remote peer\n"
        "441 self-test phase coll -> draining: self-test phase coll: rank 3 "
        "(node node1, device GPU-1-1): it was ended by signal 9 (SIGKILL)\n"
        "441 user: stopping: self-test phase coll: rank 3 (node node1, device "
        "GPU-1-1): it was ended by signal 9 (SIGKILL)\n"
        "441 all <- stop signal 15 grace 30000\n"
        "448 draining -> done: exit code 20, self-test phase coll: rank 3 "
        "(node node1, device GPU-1-1): it was ended by signal 9 (SIGKILL)\n"
        "448 user: end 20 self_test_failed: self-test phase coll: rank 3 (node "
        "node1, device GPU-1-1): it was ended by signal 9 (SIGKILL)\n"
        "448 all <- finish, logs stay\n"
        "450 done -> over: every node has left\n"
        "450 finish 20\n");
}

/* A remote error that nobody explains counts after 500 ms. */
static void test_remote_only(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    c.nodes[1].probes[1] =
        (struct fake_probe){.fault = FAKE_REMOTE, .at = PROBES_COLL};
    story_expect(&c, 41,
                 "41 held back: self-test phase coll: rank 3 (node node1, "
                 "device GPU-1-1): ncclAllReduce: remote error (6); NCCL said: "
                 "connection closed by remote peer\n"
                 "541 self-test phase coll -> draining: self-test phase coll: "
                 "rank 3 (node node1, device GPU-1-1): ncclAllReduce: remote "
                 "error (6); NCCL said: connection closed by remote peer\n"
                 "541 user: stopping: self-test phase coll: rank 3 (node "
                 "node1, device GPU-1-1): ncclAllReduce: remote error (6); "
                 "NCCL said: connection closed by remote peer\n"
                 "541 all <- stop signal 15 grace 30000\n"
                 "548 draining -> done: exit code 20, self-test phase coll: "
                 "rank 3 (node node1, device GPU-1-1): ncclAllReduce: remote "
                 "error (6); NCCL said: connection closed by remote peer\n"
                 "548 user: end 20 self_test_failed: self-test phase coll: "
                 "rank 3 (node node1, device GPU-1-1): ncclAllReduce: remote "
                 "error (6); NCCL said: connection closed by remote peer\n"
                 "548 all <- finish, logs stay\n"
                 "550 done -> over: every node has left\n"
                 "550 finish 20\n");
}

/* A node that is lost explains it too. */
static void test_remote_lost(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    c.nodes[0].probes[0] =
        (struct fake_probe){.fault = FAKE_REMOTE, .at = PROBES_COLL};
    cluster_kill(&c, 1, 100);
    story_expect(
        &c, 41,
        "41 held back: self-test phase coll: rank 0 (node node0, device "
        "GPU-0-0): ncclAllReduce: remote error (6); NCCL said: connection "
        "closed by remote peer\n"
        "101 away node1: it closed its connection\n"
        "1101 user: away node1 1/2: its connection is gone; waiting up to "
        "10 s for it\n"
        "10101 lost node1: it was away for 10 s\n"
        "10101 user: left node1 1/2: it was away for 10 s\n"
        "10101 self-test phase coll -> draining: node node1 (host) was "
        "lost in self-test phase coll: it was away for 10 s\n"
        "10101 user: stopping: node node1 (host) was lost in self-test "
        "phase coll: it was away for 10 s\n"
        "10101 all <- stop signal 15 grace 30000\n"
        "10108 draining -> done: exit code 41, node node1 (host) was lost "
        "in self-test phase coll: it was away for 10 s\n"
        "10108 user: end 41 node_lost: node node1 (host) was lost in "
        "self-test phase coll: it was away for 10 s\n"
        "10108 all <- finish, logs stay\n"
        "10110 done -> over: every node has left\n"
        "10110 finish 41\n");
}

/* Wrong data: rank, device, collective, element, bit. */
static void test_wrong_data(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    c.nodes[1].probes[1] =
        (struct fake_probe){.fault = FAKE_WRONG, .at = PROBES_END};
    story_expect(
        &c, 51,
        "51 self-test phase end -> draining: self-test phase coll: wrong data "
        "on rank 3 (node node1, device GPU-1-1): element 4711 of an all-reduce "
        "of 1048576 bytes is wrong in bit 23 (1 wrong element in all); do not "
        "train on this device before its memory and links have been checked\n"
        "51 user: stopping: self-test phase coll: wrong data on rank 3 (node "
        "node1, device GPU-1-1): element 4711 of an all-reduce of 1048576 "
        "bytes is wrong in bit 23 (1 wrong element in all); do not train on "
        "this device before its memory and links have been checked\n"
        "51 all <- stop signal 15 grace 30000\n"
        "58 draining -> done: exit code 21, self-test phase coll: wrong data "
        "on rank 3 (node node1, device GPU-1-1): element 4711 of an all-reduce "
        "of 1048576 bytes is wrong in bit 23 (1 wrong element in all); do not "
        "train on this device before its memory and links have been checked\n"
        "58 user: end 21 self_test_wrong_data: self-test phase coll: wrong "
        "data on rank 3 (node node1, device GPU-1-1): element 4711 of an "
        "all-reduce of 1048576 bytes is wrong in bit 23 (1 wrong element in "
        "all); do not train on this device before its memory and links have "
        "been checked\n"
        "58 all <- finish, logs stay\n"
        "60 done -> over: every node has left\n"
        "60 finish 21\n");
}

/* Slower than --min-busbw at the largest size: the slow node shows within the
 * nodes, since in a ring of all ranks the others wait for it. */
static void test_slow(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    c.sweep.busbw_min_gbps = 400;
    c.nodes[1].probe_ns = 4000000;
    story_expect(
        &c, 51,
        "51 user: test slow 4/4 by nccl\n"
        "51 user:   1048576 B: 4000003 ns, algbw 0.262 busbw 0.393 GB/s\n"
        "51 user:     collective 1, slowest rank 3\n"
        "51 user:   1048576 B: 2000003 ns, algbw 0.524 busbw 0.524 GB/s\n"
        "51 user:     collective 1 within each node, slowest rank 3\n"
        "51 self-test phase end -> draining: self-test phase coll: busbw "
        "of all-reduce at 1 MiB is 0.39 GB/s, below the 400.00 GB/s of "
        "--min-busbw; within its node it took longest on rank 3 (node "
        "node1, device GPU-1-1)\n"
        "51 user: stopping: self-test phase coll: busbw of all-reduce at 1 "
        "MiB is 0.39 GB/s, below the 400.00 GB/s of --min-busbw; within "
        "its node it took longest on rank 3 (node node1, device GPU-1-1)\n"
        "51 all <- stop signal 15 grace 30000\n"
        "58 draining -> done: exit code 30, self-test phase coll: busbw of "
        "all-reduce at 1 MiB is 0.39 GB/s, below the 400.00 GB/s of "
        "--min-busbw; within its node it took longest on rank 3 (node "
        "node1, device GPU-1-1)\n"
        "58 user: end 30 self_test_slow: self-test phase coll: busbw of "
        "all-reduce at 1 MiB is 0.39 GB/s, below the 400.00 GB/s of "
        "--min-busbw; within its node it took longest on rank 3 (node "
        "node1, device GPU-1-1)\n"
        "58 all <- finish, logs stay\n"
        "60 done -> over: every node has left\n"
        "60 finish 30\n");
}

/* Where nobody stands out, nobody is named. */
static void test_slow_all(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    c.sweep.busbw_min_gbps = 400;
    c.nodes[0].probe_ns = 4000000;
    c.nodes[1].probe_ns = 4000000;
    story_expect(
        &c, 51,
        "51 user: test slow 4/4 by nccl\n"
        "51 user:   1048576 B: 4000003 ns, algbw 0.262 busbw 0.393 GB/s\n"
        "51 user:     collective 1, slowest rank 3\n"
        "51 user:   1048576 B: 2000003 ns, algbw 0.524 busbw 0.524 GB/s\n"
        "51 user:     collective 1 within each node, slowest rank 3\n"
        "51 self-test phase end -> draining: self-test phase coll: busbw "
        "of all-reduce at 1 MiB is 0.39 GB/s, below the 400.00 GB/s of "
        "--min-busbw; all ranks took about as long, so which one is slow "
        "cannot be told\n"
        "51 user: stopping: self-test phase coll: busbw of all-reduce at 1 "
        "MiB is 0.39 GB/s, below the 400.00 GB/s of --min-busbw; all ranks "
        "took about as long, so which one is slow cannot be told\n"
        "51 all <- stop signal 15 grace 30000\n"
        "58 draining -> done: exit code 30, self-test phase coll: busbw of "
        "all-reduce at 1 MiB is 0.39 GB/s, below the 400.00 GB/s of "
        "--min-busbw; all ranks took about as long, so which one is slow "
        "cannot be told\n"
        "58 user: end 30 self_test_slow: self-test phase coll: busbw of "
        "all-reduce at 1 MiB is 0.39 GB/s, below the 400.00 GB/s of "
        "--min-busbw; all ranks took about as long, so which one is slow "
        "cannot be told\n"
        "58 all <- finish, logs stay\n"
        "60 done -> over: every node has left\n"
        "60 finish 30\n");
}

/* One rank has no busbw, so it cannot be enough. */
static void test_slow_alone(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 1, 2);
    c.nodes[0].gpus = 1;
    c.sweep.busbw_min_gbps = 1;
    story_expect(
        &c, 51,
        "51 self-test phase end -> draining: self-test phase coll: --min-busbw "
        "cannot be judged, since there is no busbw of an all-reduce; it takes "
        "two ranks\n"
        "51 user: stopping: self-test phase coll: --min-busbw cannot be "
        "judged, since there is no busbw of an all-reduce; it takes two ranks\n"
        "51 all <- stop signal 15 grace 30000\n"
        "58 draining -> done: exit code 20, self-test phase coll: --min-busbw "
        "cannot be judged, since there is no busbw of an all-reduce; it takes "
        "two ranks\n"
        "58 user: end 20 self_test_failed: self-test phase coll: --min-busbw "
        "cannot be judged, since there is no busbw of an all-reduce; it takes "
        "two ranks\n"
        "58 all <- finish, logs stay\n"
        "60 done -> over: every node has left\n"
        "60 finish 20\n");
}

/* A rank that failed and goes on has failed all the same. */
static void test_repents(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    c.nodes[1].probes[1] =
        (struct fake_probe){.fault = FAKE_REPENTS, .at = PROBES_COLL};
    story_expect(&c, 41,
                 "41 held back: self-test phase coll: rank 3 (node node1, "
                 "device GPU-1-1): ncclAllReduce: remote error (6); NCCL said: "
                 "connection closed by remote peer\n"
                 "541 self-test phase coll -> draining: self-test phase coll: "
                 "rank 3 (node node1, device GPU-1-1): ncclAllReduce: remote "
                 "error (6); NCCL said: connection closed by remote peer\n"
                 "541 user: stopping: self-test phase coll: rank 3 (node "
                 "node1, device GPU-1-1): ncclAllReduce: remote error (6); "
                 "NCCL said: connection closed by remote peer\n"
                 "541 all <- stop signal 15 grace 30000\n"
                 "548 draining -> done: exit code 20, self-test phase coll: "
                 "rank 3 (node node1, device GPU-1-1): ncclAllReduce: remote "
                 "error (6); NCCL said: connection closed by remote peer\n"
                 "548 user: end 20 self_test_failed: self-test phase coll: "
                 "rank 3 (node node1, device GPU-1-1): ncclAllReduce: remote "
                 "error (6); NCCL said: connection closed by remote peer\n"
                 "548 all <- finish, logs stay\n"
                 "550 done -> over: every node has left\n"
                 "550 finish 20\n");
}

/* At the bound of the phase what was held back is the cause. */
static void test_late_remote(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    c.nodes[1].probes[1] = (struct fake_probe){
        .fault = FAKE_REMOTE, .at = PROBES_COLL, .after_ms = 59700};
    story_expect(
        &c, 50000,
        "59741 held back: self-test phase coll: rank 3 (node node1, device "
        "GPU-1-1): ncclAllReduce: remote error (6); NCCL said: connection "
        "closed by remote peer\n"
        "60031 self-test phase coll -> draining: self-test phase coll: rank 3 "
        "(node node1, device GPU-1-1): ncclAllReduce: remote error (6); NCCL "
        "said: connection closed by remote peer\n"
        "60031 user: stopping: self-test phase coll: rank 3 (node node1, "
        "device GPU-1-1): ncclAllReduce: remote error (6); NCCL said: "
        "connection closed by remote peer\n"
        "60031 all <- stop signal 15 grace 30000\n"
        "60038 draining -> done: exit code 20, self-test phase coll: rank 3 "
        "(node node1, device GPU-1-1): ncclAllReduce: remote error (6); NCCL "
        "said: connection closed by remote peer\n"
        "60038 user: end 20 self_test_failed: self-test phase coll: rank 3 "
        "(node node1, device GPU-1-1): ncclAllReduce: remote error (6); NCCL "
        "said: connection closed by remote peer\n"
        "60038 all <- finish, logs stay\n"
        "60040 done -> over: every node has left\n"
        "60040 finish 20\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dies),        cmocka_unit_test(test_root_dies),
        cmocka_unit_test(test_first_cause), cmocka_unit_test(test_remote_only),
        cmocka_unit_test(test_remote_lost), cmocka_unit_test(test_wrong_data),
        cmocka_unit_test(test_slow),        cmocka_unit_test(test_slow_all),
        cmocka_unit_test(test_slow_alone),  cmocka_unit_test(test_repents),
        cmocka_unit_test(test_late_remote),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
