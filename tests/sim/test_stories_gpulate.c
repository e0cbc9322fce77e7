/* SPDX-License-Identifier: Apache-2.0
 *
 * Stories of probes that do not come: each phase of the self-test on GPUs has
 * its bound. The notation is that of test_stories_gather.c.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "coordinator/probes.h"
#include "coordinator/text.h"
#include "tests/lib/story.h"

/* A probe without a context: rank, node and device. */
static void test_silent_cuda(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    c.nodes[1].probes[1] =
        (struct fake_probe){.fault = FAKE_SILENT, .at = PROBES_CUDA};
    story_expect(&c, 11,
                 "10007 self-test phase cuda: still waiting for rank 3 (node "
                 "node1, device GPU-1-1), which has said nothing for 10 s\n"
                 "10007 user: waiting 3/4: rank 3 (node node1, device "
                 "GPU-1-1), which has said nothing for 10 s\n"
                 "20007 self-test phase cuda -> draining: self-test phase "
                 "cuda: 3 of 4 ranks after 20 s; missing: rank 3 (node node1, "
                 "device GPU-1-1), which has said nothing for 20 s\n"
                 "20007 user: stopping: self-test phase cuda: 3 of 4 ranks "
                 "after 20 s; missing: rank 3 (node node1, device GPU-1-1), "
                 "which has said nothing for 20 s\n"
                 "20007 all <- stop signal 15 grace 30000\n"
                 "20014 draining -> done: exit code 40, self-test phase cuda: "
                 "3 of 4 ranks after 20 s; missing: rank 3 (node node1, device "
                 "GPU-1-1), which has said nothing for 20 s\n"
                 "20014 user: end 40 deadline: self-test phase cuda: 3 of 4 "
                 "ranks after 20 s; missing: rank 3 (node node1, device "
                 "GPU-1-1), which has said nothing for 20 s\n"
                 "20014 all <- finish, logs stay\n"
                 "20016 done -> over: every node has left\n"
                 "20016 finish 40\n");
}

/* A root without an ID. */
static void test_silent_uid(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    c.nodes[0].never_ids = true;
    story_expect(
        &c, 11,
        "19 self-test phase cuda -> self-test phase uid: every device has a "
        "context\n"
        "10019 self-test phase uid: still waiting for rank 0 (node node0, "
        "device GPU-0-0), which has said nothing for 10 s; it said last: "
        "context there\n"
        "10019 user: waiting 0/1: rank 0 (node node0, device GPU-0-0), which "
        "has said nothing for 10 s; it said last: context there\n"
        "20019 self-test phase uid -> draining: self-test phase uid: 0 of 1 "
        "roots after 20 s; missing: rank 0 (node node0, device GPU-0-0), which "
        "has said nothing for 20 s; it said last: context there\n"
        "20019 user: stopping: self-test phase uid: 0 of 1 roots after 20 s; "
        "missing: rank 0 (node node0, device GPU-0-0), which has said nothing "
        "for 20 s; it said last: context there\n"
        "20019 all <- stop signal 15 grace 30000\n"
        "20026 draining -> done: exit code 40, self-test phase uid: 0 of 1 "
        "roots after 20 s; missing: rank 0 (node node0, device GPU-0-0), which "
        "has said nothing for 20 s; it said last: context there\n"
        "20026 user: end 40 deadline: self-test phase uid: 0 of 1 roots after "
        "20 s; missing: rank 0 (node node0, device GPU-0-0), which has said "
        "nothing for 20 s; it said last: context there\n"
        "20026 all <- finish, logs stay\n"
        "20028 done -> over: every node has left\n"
        "20028 finish 40\n");
}

/* A rank that never gets its communicator, and what it said last. */
static void test_silent_init(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    c.nodes[1].probes[1] =
        (struct fake_probe){.fault = FAKE_SILENT, .at = PROBES_INIT};
    story_expect(
        &c, 23,
        "10019 self-test phase init: still waiting for rank 3 (node node1, "
        "device GPU-1-1), which has said nothing for 10 s; it said last: "
        "context there\n"
        "10019 user: waiting 3/4: rank 3 (node node1, device GPU-1-1), which "
        "has said nothing for 10 s; it said last: context there\n"
        "20019 self-test phase init -> draining: self-test phase init: 3 of 4 "
        "ranks after 20 s; missing: rank 3 (node node1, device GPU-1-1), which "
        "has said nothing for 20 s; it said last: context there\n"
        "20019 user: stopping: self-test phase init: 3 of 4 ranks after 20 s; "
        "missing: rank 3 (node node1, device GPU-1-1), which has said nothing "
        "for 20 s; it said last: context there\n"
        "20019 all <- stop signal 15 grace 30000\n"
        "20026 draining -> done: exit code 40, self-test phase init: 3 of 4 "
        "ranks after 20 s; missing: rank 3 (node node1, device GPU-1-1), which "
        "has said nothing for 20 s; it said last: context there\n"
        "20026 user: end 40 deadline: self-test phase init: 3 of 4 ranks after "
        "20 s; missing: rank 3 (node node1, device GPU-1-1), which has said "
        "nothing for 20 s; it said last: context there\n"
        "20026 all <- finish, logs stay\n"
        "20028 done -> over: every node has left\n"
        "20028 finish 40\n");
}

/* Several are folded into ranges. */
static void test_silent_all(void **state)
{
    (void)state;
    static const struct fake_probe silent = {.fault = FAKE_SILENT,
                                             .at = PROBES_INIT};
    struct cluster c;
    story_init_gpus(&c, 3, 2);
    c.nodes[0].probes[1] = silent;
    c.nodes[1].probes[0] = silent;
    c.nodes[1].probes[1] = silent;
    c.nodes[2].probes[0] = silent;
    story_expect(
        &c, 23,
        "10019 self-test phase init: still waiting for ranks 1-4 (nodes "
        "node[0-2]), which say nothing any more; rank 1, device GPU-0-1, said "
        "last: context there\n"
        "10019 user: waiting 2/6: ranks 1-4 (nodes node[0-2]), which say "
        "nothing any more; rank 1, device GPU-0-1, said last: context there\n"
        "20019 self-test phase init -> draining: self-test phase init: 2 of 6 "
        "ranks after 20 s; missing: ranks 1-4 (nodes node[0-2]), which say "
        "nothing any more; rank 1, device GPU-0-1, said last: context there\n"
        "20019 user: stopping: self-test phase init: 2 of 6 ranks after 20 s; "
        "missing: ranks 1-4 (nodes node[0-2]), which say nothing any more; "
        "rank 1, device GPU-0-1, said last: context there\n"
        "20019 all <- stop signal 15 grace 30000\n"
        "20026 draining -> done: exit code 40, self-test phase init: 2 of 6 "
        "ranks after 20 s; missing: ranks 1-4 (nodes node[0-2]), which say "
        "nothing any more; rank 1, device GPU-0-1, said last: context there\n"
        "20026 user: end 40 deadline: self-test phase init: 2 of 6 ranks after "
        "20 s; missing: ranks 1-4 (nodes node[0-2]), which say nothing any "
        "more; rank 1, device GPU-0-1, said last: context there\n"
        "20026 all <- finish, logs stay\n"
        "20028 done -> over: every node has left\n"
        "20028 finish 40\n");
}

/* The sweep has a bound of its own. */
static void test_silent_coll(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    c.nodes[1].probes[0] =
        (struct fake_probe){.fault = FAKE_SILENT, .at = PROBES_COLL};
    story_expect(
        &c, 33,
        "30031 self-test phase coll: still waiting for rank 2 (node node1, "
        "device GPU-1-0), which has said nothing for 30 s; it said last: "
        "communicator ready\n"
        "30031 user: waiting 3/4: rank 2 (node node1, device GPU-1-0), which "
        "has said nothing for 30 s; it said last: communicator ready\n"
        "60031 self-test phase coll -> draining: self-test phase coll: 3 of 4 "
        "ranks after 1 min; missing: rank 2 (node node1, device GPU-1-0), "
        "which has said nothing for 1 min; it said last: communicator ready\n"
        "60031 user: stopping: self-test phase coll: 3 of 4 ranks after 1 min; "
        "missing: rank 2 (node node1, device GPU-1-0), which has said nothing "
        "for 1 min; it said last: communicator ready\n"
        "60031 all <- stop signal 15 grace 30000\n"
        "60038 draining -> done: exit code 40, self-test phase coll: 3 of 4 "
        "ranks after 1 min; missing: rank 2 (node node1, device GPU-1-0), "
        "which has said nothing for 1 min; it said last: communicator ready\n"
        "60038 user: end 40 deadline: self-test phase coll: 3 of 4 ranks after "
        "1 min; missing: rank 2 (node node1, device GPU-1-0), which has said "
        "nothing for 1 min; it said last: communicator ready\n"
        "60038 all <- finish, logs stay\n"
        "60040 done -> over: every node has left\n"
        "60040 finish 40\n");
}

/* A probe that does not end. */
static void test_silent_end(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    c.nodes[1].probes[0] =
        (struct fake_probe){.fault = FAKE_SILENT, .at = PROBES_END};
    story_expect(
        &c, 43,
        "10041 self-test phase end: still waiting for rank 2 (node node1, "
        "device GPU-1-0), which has said nothing for 10 s; it said last: sweep "
        "done\n"
        "10041 user: waiting 3/4: rank 2 (node node1, device GPU-1-0), which "
        "has said nothing for 10 s; it said last: sweep done\n"
        "20041 self-test phase end -> draining: self-test phase end: 3 of 4 "
        "ranks after 20 s; missing: rank 2 (node node1, device GPU-1-0), which "
        "has said nothing for 20 s; it said last: sweep done\n"
        "20041 user: stopping: self-test phase end: 3 of 4 ranks after 20 s; "
        "missing: rank 2 (node node1, device GPU-1-0), which has said nothing "
        "for 20 s; it said last: sweep done\n"
        "20041 all <- stop signal 15 grace 30000\n"
        "20048 draining -> done: exit code 40, self-test phase end: 3 of 4 "
        "ranks after 20 s; missing: rank 2 (node node1, device GPU-1-0), which "
        "has said nothing for 20 s; it said last: sweep done\n"
        "20048 user: end 40 deadline: self-test phase end: 3 of 4 ranks after "
        "20 s; missing: rank 2 (node node1, device GPU-1-0), which has said "
        "nothing for 20 s; it said last: sweep done\n"
        "20048 all <- finish, logs stay\n"
        "20050 done -> over: every node has left\n"
        "20050 finish 40\n");
}

/* ---- who holds up the others ---- */

/* All four stay in this step, waiting for others. */
static void all_wait(struct cluster *c, enum probes_step at)
{
    story_init_gpus(c, 2, 2);
    for (uint32_t i = 0; i < 4; i++) {
        c->nodes[i / 2].probes[i % 2] = (struct fake_probe){
            .fault = FAKE_HANGS,
            .at = at,
            .state = GPUL__PROBE_PHASE__STATE__STATE_WAITS,
            .progress = 7,
        };
    }
}

/* What is said at the bound, rank 3 being as given. */
static void expect_culprit(enum probes_step at, enum fake_fault fault,
                           Gpul__ProbePhase__State state, uint32_t progress,
                           const char *who)
{
    static const struct {
        const char *phase;
        const char *bound;
        uint64_t at_ms;
    } phases[] = {
        [PROBES_CUDA] = {"cuda", "20 s", 20007},
        [PROBES_INIT] = {"init", "20 s", 20019},
        [PROBES_COLL] = {"coll", "1 min", 60031},
        [PROBES_END] = {"end", "20 s", 20041},
    };
    char why[400], expected[1600];
    struct cluster c;
    unsigned ms = (unsigned)phases[at].at_ms;
    const char *phase = phases[at].phase;
    all_wait(&c, at);
    c.nodes[1].probes[1].fault = fault;
    c.nodes[1].probes[1].state = state;
    c.nodes[1].probes[1].progress = progress;
    snprintf(why, sizeof(why),
             "self-test phase %s: 0 of 4 ranks after %s; missing: %s", phase,
             phases[at].bound, who);
    snprintf(expected, sizeof(expected),
             "%u self-test phase %s -> draining: %s\n%u user: stopping: %s\n"
             "%u all <- stop signal 15 grace 30000\n",
             ms, phase, why, ms, why, ms);
    story_expect_part(&c, ms, ms + 2, expected);
}

#define STATE(name) GPUL__PROBE_PHASE__STATE__STATE_##name
#define RANK_3 "rank 3 (node node1, device GPU-1-1), "

/* At half of the bound too: all wait, and that is what is said. */
static void test_all_wait(void **state)
{
    (void)state;
    static const char who[] =
        "ranks 0-3 (nodes node[0-1]); all of them wait, so which one holds up "
        "the others cannot be told; rank 0, device GPU-0-0, said last: "
        "communicator ready";
    char expected[800];
    struct cluster c;
    all_wait(&c, PROBES_COLL);
    snprintf(expected, sizeof(expected),
             "30031 self-test phase coll: still waiting for %s\n"
             "30031 user: waiting 0/4: %s\n",
             who, who);
    story_expect_part(&c, 30031, 30033, expected);
    expect_culprit(PROBES_COLL, FAKE_HANGS, STATE(WAITS), 7, who);
}

/* One is inside a call, in any phase. */
static void test_inside(void **state)
{
    (void)state;
    expect_culprit(PROBES_CUDA, FAKE_HANGS, STATE(INSIDE), 7,
                   RANK_3 "inside ncclAllReduce for 20 s; the other 3 wait");
    expect_culprit(PROBES_INIT, FAKE_HANGS, STATE(INSIDE), 7,
                   RANK_3 "inside ncclAllReduce for 20 s; the other 3 wait; it "
                          "said last: context there");
    expect_culprit(PROBES_COLL, FAKE_HANGS, STATE(INSIDE), 7,
                   RANK_3 "inside ncclAllReduce for 1 min; the other 3 wait; "
                          "it said last: communicator ready");
    expect_culprit(PROBES_END, FAKE_HANGS, STATE(INSIDE), 7,
                   RANK_3 "inside ncclAllReduce for 20 s; the other 3 wait; it "
                          "said last: sweep done");
}

/* One is stopped, deaf, at work, behind, or silent. */
static void test_suspects(void **state)
{
    (void)state;
    static const struct {
        enum fake_fault fault;
        Gpul__ProbePhase__State state;
        uint32_t progress;
        const char *how;
    } rows[] = {
        {FAKE_HANGS, STATE(STOPPED), 0, "whose process is stopped"},
        {FAKE_SILENT, STATE(NONE), 0, "which has said nothing for 1 min"},
        {FAKE_HANGS, STATE(DEAF), 7, "whose device does not answer"},
        {FAKE_HANGS, STATE(WORKS), 7, "at work on the host for 1 min"},
        {FAKE_HANGS, STATE(WAITS), 6, "which is behind the others"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char who[300];
        snprintf(who, sizeof(who),
                 RANK_3 "%s; the other 3 wait; it said last: communicator "
                        "ready",
                 rows[i].how);
        expect_culprit(PROBES_COLL, rows[i].fault, rows[i].state,
                       rows[i].progress, who);
    }
}

/* A node lost in a phase of the self-test. */
static void test_lost(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    cluster_kill(&c, 1, 25);
    story_expect(
        &c, 25,
        "26 away node1: it closed its connection\n"
        "1026 user: away node1 1/2: its connection is gone; waiting up to "
        "10 s for it\n"
        "10019 self-test phase init: still waiting for node1\n"
        "10019 user: waiting 1/2: node1\n"
        "10026 lost node1: it was away for 10 s\n"
        "10026 user: left node1 1/2: it was away for 10 s\n"
        "10026 self-test phase init -> draining: node node1 (host) was "
        "lost in self-test phase init: it was away for 10 s\n"
        "10026 user: stopping: node node1 (host) was lost in self-test "
        "phase init: it was away for 10 s\n"
        "10026 all <- stop signal 15 grace 30000\n"
        "10033 draining -> done: exit code 41, node node1 (host) was lost "
        "in self-test phase init: it was away for 10 s\n"
        "10033 user: end 41 node_lost: node node1 (host) was lost in "
        "self-test phase init: it was away for 10 s\n"
        "10033 all <- finish, logs stay\n"
        "10035 done -> over: every node has left\n"
        "10035 finish 41\n");
}

/* Ctrl-C during the self-test. */
static void test_cancel(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    cluster_cancel(&c, 25, SIGINT, false, false);
    story_expect(
        &c, 25,
        "25 self-test phase init -> draining: canceled by signal 2 (SIGINT)\n"
        "25 user: stopping: canceled by signal 2 (SIGINT)\n"
        "25 all <- stop signal 2 grace 30000\n"
        "32 draining -> done: exit code 130, canceled by signal 2 (SIGINT)\n"
        "32 user: end 130 canceled: canceled by signal 2 (SIGINT)\n"
        "32 all <- finish, logs stay\n"
        "34 done -> over: every node has left\n"
        "34 finish 130\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_silent_cuda), cmocka_unit_test(test_silent_uid),
        cmocka_unit_test(test_silent_init), cmocka_unit_test(test_silent_all),
        cmocka_unit_test(test_silent_coll), cmocka_unit_test(test_silent_end),
        cmocka_unit_test(test_all_wait),    cmocka_unit_test(test_inside),
        cmocka_unit_test(test_suspects),    cmocka_unit_test(test_lost),
        cmocka_unit_test(test_cancel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
