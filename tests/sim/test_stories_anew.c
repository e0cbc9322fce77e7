/* SPDX-License-Identifier: Apache-2.0
 *
 * Stories of agents that die before the ranks run: what was begun is begun
 * anew. The notation is that of test_stories_gather.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coordinator/probes.h"
#include "tests/lib/story.h"

/* Before the launch its ports and probes are gone with the agent: places are
 * given out and the self-test is run anew ... */
static void test_anew(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    c.self_test.level = GPUL__SELF_TEST__LEVEL__QUICK;
    cluster_crash(&c, 1, 12);
    story_expect(
        &c, 3,
        "4 all <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 2\n"
        "4 assigning -> listening: every node is ready\n"
        "4 user: testing by host-tcp: all-reduce over 2 nodes\n"
        "4 node0 <- probe_start node 0/2 on 127.0.0.1\n"
        "4 node1 <- probe_start node 1/2 on 127.0.0.1\n"
        "7 listening -> probing: every probe listens\n"
        "7 node0 <- probe_connect 127.0.0.1:30000\n"
        "7 node1 <- probe_connect 127.0.0.1:30000\n"
        "13 away node1: it closed its connection\n"
        "33 back node1 from 10.9.0.1: agent 1 of its keeper\n"
        "33 user: back node1 2/2: its agent was started again\n"
        "33 node1 <- job job\n"
        "33 node1 <- assign node 1/2, ranks 2+2 of 4, host 1/2 with 4\n"
        "33 probing -> restarting: node node1 (host) has a new agent\n"
        "33 user: retrying: node node1 (host) has a new agent\n"
        "33 all <- stop signal 15 grace 30000\n"
        "40 restarting -> assigning: every node is idle\n"
        "40 node0 <- assign node 0/2, ranks 0+2 of 4, host 0/2 with 4\n"
        "40 node1 <- assign node 1/2, ranks 2+2 of 4, host 1/2 with 4\n"
        "40 user: assigned 2/2\n"
        "43 all <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 2\n"
        "43 assigning -> listening: every node is ready\n"
        "43 user: testing by host-tcp: all-reduce over 2 nodes\n"
        "43 node0 <- probe_start node 0/2 on 127.0.0.1\n"
        "43 node1 <- probe_start node 1/2 on 127.0.0.1\n"
        "46 listening -> probing: every probe listens\n"
        "46 node0 <- probe_connect 127.0.0.1:30000\n"
        "46 node1 <- probe_connect 127.0.0.1:30000\n"
        "58 user: test passed 2/2 by host-tcp\n"
        "58 user:   1048576 B: 1000000 ns, algbw 1.049 busbw 1.049 GB/s\n"
        "58 probing -> running: the self-test passed\n"
        "58 all <- launch attempt 1\n"
        "58 user: launched 4/4\n"
        "160 user: exited node0 1/4\n"
        "160 user: exited node0 2/4\n"
        "160 user: exited node1 3/4\n"
        "160 user: exited node1 4/4\n"
        "160 running -> draining: every rank ended with 0\n"
        "161 draining -> done: exit code 0, every rank ended with 0\n"
        "161 user: end 0 success: every rank ended with 0\n"
        "161 all <- finish\n"
        "163 done -> over: every node has left\n"
        "163 finish 0\n");
}

/* ... on GPUs too, where an error that only tells of the dead probe waits. */
static void test_anew_on_gpus(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 1);
    c.nodes[1].restart_ms = 900;
    c.nodes[0].probes[0] =
        (struct fake_probe){.fault = FAKE_REMOTE, .at = PROBES_INIT};
    cluster_crash(&c, 1, 25);
    story_expect_part(
        &c, 20, 980,
        "26 away node1: it closed its connection\n"
        "31 held back: self-test phase init: rank 0 (node node0, device "
        "GPU-0-0): ncclAllReduce: remote error (6); NCCL said: connection "
        "closed by remote peer; it is the root of unique ID 0, which it "
        "had given\n"
        "926 back node1 from 10.9.0.1: agent 1 of its keeper\n"
        "926 user: back node1 2/2: its agent was started again\n"
        "926 node1 <- job job\n"
        "926 node1 <- assign node 1/2, ranks 1+1 of 2, host 1/2 with 2\n"
        "926 self-test phase init -> restarting: node node1 (host) has a "
        "new agent\n"
        "926 user: retrying: node node1 (host) has a new agent\n"
        "926 all <- stop signal 15 grace 30000\n"
        "933 restarting -> assigning: every node is idle\n"
        "933 node0 <- assign node 0/2, ranks 0+1 of 2, host 0/2 with 2\n"
        "933 node1 <- assign node 1/2, ranks 1+1 of 2, host 1/2 with 2\n"
        "933 user: assigned 2/2\n"
        "936 all <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 1\n"
        "936 assigning -> self-test phase facts: every node is ready\n"
        "936 node0 <- scout node 0/2 on 127.0.0.1\n"
        "936 node1 <- scout node 1/2 on 127.0.0.1\n"
        "939 user: facts by nccl: node[0-1]: NCCL 2.28.9 (build 8f3a, "
        "/lib/libnccl.so.2), driver for CUDA 13.0 (/lib/libcuda.so.1); 1 x "
        "NVIDIA H200\n"
        "939 self-test phase facts -> self-test phase cuda: every node can "
        "use NCCL\n"
        "939 user: testing by nccl: NCCL over 2 devices of 2 nodes\n"
        "939 node0 <- probe_begin ranks 0+1 of 2, 1 a node, ids 1\n"
        "939 node1 <- probe_begin ranks 1+1 of 2, 1 a node, ids 1\n"
        "951 self-test phase cuda -> self-test phase uid: every device has "
        "a context\n"
        "951 self-test phase uid -> self-test phase init: every root has "
        "made its ID\n"
        "951 all <- probe_ids 0-0\n"
        "963 held back: self-test phase init: rank 0 (node node0, device "
        "GPU-0-0): ncclAllReduce: remote error (6); NCCL said: connection "
        "closed by remote peer; it is the root of unique ID 0, which it "
        "had given\n");
}

/* ... but only twice. */
static void test_anew_thrice(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    c.nodes[0].ready_ms = 1000;
    cluster_crash(&c, 1, 10);
    cluster_crash(&c, 1, 100);
    cluster_crash(&c, 1, 200);
    story_expect(
        &c, 200,
        "201 away node1: it closed its connection\n"
        "221 back node1 from 10.9.0.1: agent 3 of its keeper\n"
        "221 user: back node1 2/2: its agent was started again\n"
        "221 node1 <- job job\n"
        "221 node1 <- assign node 1/2, ranks 2+2 of 4, host 1/2 with 4\n"
        "221 assigning -> draining: node node1 (host) has lost its agent "
        "while assigning, after the job was begun anew 2 times for such a "
        "loss\n"
        "221 user: stopping: node node1 (host) has lost its agent while "
        "assigning, after the job was begun anew 2 times for such a loss\n"
        "221 all <- stop signal 15 grace 30000\n"
        "228 draining -> done: exit code 41, node node1 (host) has lost "
        "its agent while assigning, after the job was begun anew 2 times "
        "for such a loss\n"
        "228 user: end 41 node_lost: node node1 (host) has lost its agent "
        "while assigning, after the job was begun anew 2 times for such a "
        "loss\n"
        "228 all <- finish, logs stay\n"
        "230 done -> over: every node has left\n"
        "230 finish 41\n");
}

/* A rank of a restart that is under way. */
static void test_crash_restarting(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_plans[0][0] =
        (struct rank_plan){.run_ms = 5, .code = 1, .is_bind_error = true};
    c.nodes[1].stop_ms = 50;
    cluster_crash(&c, 1, 30);
    story_expect(
        &c, 6,
        "11 user: exited node0 1/4\n"
        "11 running -> restarting: a port that rank 0 on node node0 was "
        "given had been taken\n"
        "11 user: retrying: a port that rank 0 on node node0 was given had "
        "been taken\n"
        "11 all <- stop signal 15 grace 30000\n"
        "18 user: exited node0 2/4\n"
        "31 away node1: it closed its connection\n"
        "51 back node1 from 10.9.0.1: agent 1 of its keeper\n"
        "51 user: back node1 2/2: its agent was started again\n"
        "51 node1 <- job job\n"
        "51 node1 <- assign node 1/2, ranks 2+2 of 4, host 1/2 with 4, "
        "avoid 20000 20002 20003 20004\n"
        "51 node1 <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 2\n"
        "51 node1 <- launch attempt 1\n"
        "51 node1 <- stop signal 15 grace 29960\n"
        "63 user: exited node1 3/4\n"
        "63 user: exited node1 4/4\n"
        "64 restarting -> assigning: every node is idle\n"
        "64 node0 <- assign node 0/2, ranks 0+2 of 4, host 0/2 with 4, "
        "avoid 20000 20002 20003 20004\n"
        "64 node1 <- assign node 1/2, ranks 2+2 of 4, host 1/2 with 4, "
        "avoid 20000 20002 20003 20004\n"
        "64 user: assigned 2/2\n"
        "67 all <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 2\n"
        "67 assigning -> running: every node is ready\n"
        "67 all <- launch attempt 2\n"
        "67 user: launched 4/4\n"
        "169 user: exited node0 1/4\n"
        "169 user: exited node0 2/4\n"
        "169 user: exited node1 3/4\n"
        "169 user: exited node1 4/4\n"
        "169 running -> draining: every rank ended with 0\n"
        "170 draining -> done: exit code 0, every rank ended with 0\n"
        "170 user: end 0 success: every rank ended with 0\n"
        "170 all <- finish\n"
        "172 done -> over: every node has left\n"
        "172 finish 0\n");
}

/* Reports of an environment cannot be taken back. */
static void test_reporting(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    c.job.mode = GPUL__JOB__MODE__ENV;
    c.job.report_all_ranks = true;
    c.nodes[0].never_reports = true;
    cluster_crash(&c, 1, 10);
    story_expect(
        &c, 8,
        "11 lost node1: it closed its connection\n"
        "11 user: left node1 1/2: it closed its connection\n"
        "11 reporting -> draining: node node1 (host) was lost while "
        "reporting: it closed its connection\n"
        "11 user: stopping: node node1 (host) was lost while reporting: it "
        "closed its connection\n"
        "11 all <- stop signal 15 grace 30000\n"
        "18 draining -> done: exit code 41, node node1 (host) was lost "
        "while reporting: it closed its connection\n"
        "18 user: end 41 node_lost: node node1 (host) was lost while "
        "reporting: it closed its connection\n"
        "18 all <- finish, logs stay\n"
        "20 done -> over: every node has left\n"
        "20 finish 41\n");
}

/* It dies with the launch on its way: no keeper has its ranks. */
static void test_launch_lost(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    cluster_crash(&c, 1, 4);
    story_expect(
        &c, 4,
        "4 all <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 2\n"
        "4 assigning -> running: every node is ready\n"
        "4 all <- launch attempt 1\n"
        "4 user: launched 4/4\n"
        "5 away node1: it closed its connection\n"
        "25 back node1 from 10.9.0.1: agent 1 of its keeper\n"
        "25 user: back node1 2/2: its agent was started again\n"
        "25 node1 <- job job\n"
        "25 node1 <- assign node 1/2, ranks 2+2 of 4, host 1/2 with 4\n"
        "25 running -> restarting: node node1 (host) has a new agent\n"
        "25 user: retrying: node node1 (host) has a new agent\n"
        "25 all <- stop signal 15 grace 30000\n"
        "32 user: exited node0 1/4\n"
        "32 user: exited node0 2/4\n"
        "33 restarting -> assigning: every node is idle\n"
        "33 node0 <- assign node 0/2, ranks 0+2 of 4, host 0/2 with 4\n"
        "33 node1 <- assign node 1/2, ranks 2+2 of 4, host 1/2 with 4\n"
        "33 user: assigned 2/2\n"
        "36 all <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 2\n"
        "36 assigning -> running: every node is ready\n"
        "36 all <- launch attempt 2\n"
        "36 user: launched 4/4\n"
        "138 user: exited node0 1/4\n"
        "138 user: exited node0 2/4\n"
        "138 user: exited node1 3/4\n"
        "138 user: exited node1 4/4\n"
        "138 running -> draining: every rank ended with 0\n"
        "139 draining -> done: exit code 0, every rank ended with 0\n"
        "139 user: end 0 success: every rank ended with 0\n"
        "139 all <- finish\n"
        "141 done -> over: every node has left\n"
        "141 finish 0\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_anew),
        cmocka_unit_test(test_anew_on_gpus),
        cmocka_unit_test(test_anew_thrice),
        cmocka_unit_test(test_crash_restarting),
        cmocka_unit_test(test_reporting),
        cmocka_unit_test(test_launch_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
