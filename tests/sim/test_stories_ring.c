/* SPDX-License-Identifier: Apache-2.0
 *
 * Stories of probes on host memory that fail: the first cause counts. The
 * notation is that of test_stories_gather.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/lib/story.h"

/* The neighbours of a probe that died must not mask it. */
static void test_ring_first_cause(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 3, 2);
    c.self_test.backend = GPUL__SELF_TEST__BACKEND__BACKEND_HOST;
    c.nodes[0].probe_error = "node2: closed the connection";
    c.nodes[0].probe_is_remote = true;
    c.nodes[2].probe_error = "it was ended by signal 9 (SIGKILL)";
    c.nodes[2].probe_ms = 100;
    story_expect(
        &c, 19,
        "19 held back: self-test: node node0 failed in the all-reduce: "
        "node2: closed the connection\n"
        "109 probing -> draining: self-test: node node2 failed in the "
        "all-reduce: it was ended by signal 9 (SIGKILL)\n"
        "109 user: stopping: self-test: node node2 failed in the all-reduce: "
        "it was ended by signal 9 (SIGKILL)\n"
        "109 all <- stop signal 15 grace 30000\n"
        "116 draining -> done: exit code 20, self-test: node node2 "
        "failed in the all-reduce: it was ended by signal 9 (SIGKILL)\n"
        "116 user: end 20 self_test_failed: self-test: node node2 "
        "failed in the all-reduce: it was ended by signal 9 (SIGKILL)\n"
        "116 all <- finish, logs stay\n"
        "118 done -> over: every node has left\n"
        "118 finish 20\n");
}

/* Who ran out of time waited for another. The one that is silent to the end is
 * missing, and nobody else. */
static void test_ring_silent(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 3, 2);
    c.self_test.backend = GPUL__SELF_TEST__BACKEND__BACKEND_HOST;
    for (uint32_t i = 0; i < 3; i += 2) {
        c.nodes[i].probe_error = "node1: deadline reached";
        c.nodes[i].probe_is_remote = true;
        c.nodes[i].probe_ms = 56000;
    }
    c.nodes[1].never_results = true;
    story_expect(
        &c, 19,
        "30007 probing: still waiting for node[0-2]\n"
        "30007 user: waiting 0/3: node[0-2]\n"
        "56009 held back: self-test: node node0 failed in the all-reduce: "
        "node1: deadline reached\n"
        "60007 probing -> draining: 2 of 3 nodes finished the all-reduce of "
        "the self-test within 1 min; missing: node1\n"
        "60007 user: stopping: 2 of 3 nodes finished the all-reduce of the "
        "self-test within 1 min; missing: node1\n"
        "60007 all <- stop signal 15 grace 30000\n"
        "60014 draining -> done: exit code 40, 2 of 3 nodes finished the "
        "all-reduce of the self-test within 1 min; missing: node1\n"
        "60014 user: end 40 deadline: 2 of 3 nodes finished the all-reduce of "
        "the self-test within 1 min; missing: node1\n"
        "60014 all <- finish, logs stay\n"
        "60016 done -> over: every node has left\n"
        "60016 finish 40\n");
}

/* Or its agent kills it, and says so. */
static void test_ring_hangs(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 3, 2);
    c.self_test.backend = GPUL__SELF_TEST__BACKEND__BACKEND_HOST;
    for (uint32_t i = 0; i < 3; i++) {
        c.nodes[i].probe_error = "a neighbour: deadline reached";
        c.nodes[i].probe_is_remote = true;
        c.nodes[i].probe_ms = 56000;
    }
    c.nodes[1].probe_error = "it did not end in time and was killed";
    c.nodes[1].probe_is_remote = false;
    c.nodes[1].probe_ms = 58000;
    story_expect(
        &c, 19,
        "30007 probing: still waiting for node[0-2]\n"
        "30007 user: waiting 0/3: node[0-2]\n"
        "56009 held back: self-test: node node0 failed in the all-reduce: a "
        "neighbour: deadline reached\n"
        "58009 probing -> draining: self-test: node node1 failed in the "
        "all-reduce: it did not end in time and was killed\n"
        "58009 user: stopping: self-test: node node1 failed in the all-reduce: "
        "it did not end in time and was killed\n"
        "58009 all <- stop signal 15 grace 30000\n"
        "58016 draining -> done: exit code 20, self-test: node node1 failed in "
        "the all-reduce: it did not end in time and was killed\n"
        "58016 user: end 20 self_test_failed: self-test: node node1 failed in "
        "the all-reduce: it did not end in time and was killed\n"
        "58016 all <- finish, logs stay\n"
        "58018 done -> over: every node has left\n"
        "58018 finish 20\n");
}

/* Nobody is silent and all have lost one another: the first has it. */
static void test_ring_all_remote(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    c.self_test.backend = GPUL__SELF_TEST__BACKEND__BACKEND_HOST;
    for (uint32_t i = 0; i < 2; i++) {
        c.nodes[i].probe_error = "a neighbour: deadline reached";
        c.nodes[i].probe_is_remote = true;
        c.nodes[i].probe_ms = 56000 + i;
    }
    story_expect(&c, 19,
                 "30007 probing: still waiting for node[0-1]\n"
                 "30007 user: waiting 0/2: node[0-1]\n"
                 "56009 held back: self-test: node node0 failed in the "
                 "all-reduce: a neighbour: deadline reached\n"
                 "56010 probing -> draining: self-test: node node0 failed in "
                 "the all-reduce: a neighbour: deadline reached\n"
                 "56010 user: stopping: self-test: node node0 failed in the "
                 "all-reduce: a neighbour: deadline reached\n"
                 "56010 all <- stop signal 15 grace 30000\n"
                 "56017 draining -> done: exit code 20, self-test: node node0 "
                 "failed in the all-reduce: a neighbour: deadline reached\n"
                 "56017 user: end 20 self_test_failed: self-test: node node0 "
                 "failed in the all-reduce: a neighbour: deadline reached\n"
                 "56017 all <- finish, logs stay\n"
                 "56019 done -> over: every node has left\n"
                 "56019 finish 20\n");
}

/* A neighbour that nobody explains counts after 500 ms. */
static void test_ring_remote(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    c.self_test.backend = GPUL__SELF_TEST__BACKEND__BACKEND_HOST;
    c.nodes[0].probe_error = "node1: closed the connection";
    c.nodes[0].probe_is_remote = true;
    c.nodes[1].never_results = true;
    story_expect(
        &c, 19,
        "19 held back: self-test: node node0 failed in the all-reduce: "
        "node1: closed the connection\n"
        "519 probing -> draining: self-test: node node0 failed in the "
        "all-reduce: node1: closed the connection\n"
        "519 user: stopping: self-test: node node0 failed in the all-reduce: "
        "node1: closed the connection\n"
        "519 all <- stop signal 15 grace 30000\n"
        "526 draining -> done: exit code 20, self-test: node node0 "
        "failed in the all-reduce: node1: closed the connection\n"
        "526 user: end 20 self_test_failed: self-test: node node0 "
        "failed in the all-reduce: node1: closed the connection\n"
        "526 all <- finish, logs stay\n"
        "528 done -> over: every node has left\n"
        "528 finish 20\n");
}

/* --min-busbw holds here too. */
static void test_ring_slow(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    c.self_test.backend = GPUL__SELF_TEST__BACKEND__BACKEND_HOST;
    c.sweep.busbw_min_gbps = 400;
    c.nodes[1].probe_ns = 4000000;
    story_expect(
        &c, 19,
        "19 user: test slow 2/2 by host-tcp\n"
        "19 user:   1048576 B: 4000000 ns, algbw 0.262 busbw 0.262 GB/s\n"
        "19 probing -> draining: self-test phase coll: busbw of "
        "all-reduce at 1 MiB is 0.26 GB/s, below the 400.00 GB/s of "
        "--min-busbw; it took longest on node node1\n"
        "19 user: stopping: self-test phase coll: busbw of all-reduce "
        "at 1 MiB is 0.26 GB/s, below the 400.00 GB/s of --min-busbw; "
        "it took longest on node node1\n"
        "19 all <- stop signal 15 grace 30000\n"
        "26 draining -> done: exit code 30, self-test phase coll: "
        "busbw of all-reduce at 1 MiB is 0.26 GB/s, below the 400.00 "
        "GB/s of --min-busbw; it took longest on node node1\n"
        "26 user: end 30 self_test_slow: self-test phase coll: busbw "
        "of all-reduce at 1 MiB is 0.26 GB/s, below the 400.00 GB/s "
        "of --min-busbw; it took longest on node node1\n"
        "26 all <- finish, logs stay\n"
        "28 done -> over: every node has left\n"
        "28 finish 30\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring_first_cause),
        cmocka_unit_test(test_ring_silent),
        cmocka_unit_test(test_ring_hangs),
        cmocka_unit_test(test_ring_all_remote),
        cmocka_unit_test(test_ring_remote),
        cmocka_unit_test(test_ring_slow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
