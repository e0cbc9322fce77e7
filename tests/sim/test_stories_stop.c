/* SPDX-License-Identifier: Apache-2.0
 *
 * Stories of jobs that are stopped, or lose a node or the front end. The
 * notation is that of test_stories_gather.c.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coordinator/text.h"
#include "tests/lib/story.h"

/* A cancel stops the ranks with its signal, and they have their grace. */
static void test_cancel(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_run_for_ever();
    c.nodes[0].stop_ms = 200;
    cluster_cancel(&c, 50, SIGINT, false, false);
    story_expect(
        &c, 50,
        "50 running -> draining: canceled by signal 2 (SIGINT)\n"
        "50 user: stopping: canceled by signal 2 (SIGINT)\n"
        "50 all <- stop signal 2 grace 30000\n"
        "57 user: exited node1 1/4\n"
        "57 user: exited node1 2/4\n"
        "252 user: exited node0 3/4\n"
        "252 user: exited node0 4/4\n"
        "253 draining -> done: exit code 130, canceled by signal 2 (SIGINT)\n"
        "253 user: end 130 canceled: canceled by signal 2 (SIGINT)\n"
        "253 user:   rank 2 code 0 signal 2\n"
        "253 user:   rank 3 code 0 signal 2\n"
        "253 user:   rank 0 code 0 signal 2\n"
        "253 user:   rank 1 code 0 signal 2\n"
        "253 user:   stopped 4: 0-3\n"
        "253 all <- finish, logs stay\n"
        "255 done -> over: every node has left\n"
        "255 finish 130\n");
}

/* A second one does not wait for the grace. */
static void test_cancel_twice(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_run_for_ever();
    c.nodes[0].stop_ms = 20000;
    cluster_cancel(&c, 50, SIGINT, false, false);
    cluster_cancel(&c, 60, SIGINT, false, false);
    cluster_cancel(&c, 61, SIGINT, false, false);
    story_expect(
        &c, 50,
        "50 running -> draining: canceled by signal 2 (SIGINT)\n"
        "50 user: stopping: canceled by signal 2 (SIGINT)\n"
        "50 all <- stop signal 2 grace 30000\n"
        "57 user: exited node1 1/4\n"
        "57 user: exited node1 2/4\n"
        "60 stopping at once\n"
        "60 all <- stop signal 9 grace 0\n"
        "63 user: exited node0 3/4\n"
        "63 user: exited node0 4/4\n"
        "64 draining -> done: exit code 130, canceled by signal 2 (SIGINT)\n"
        "64 user: end 130 canceled: canceled by signal 2 (SIGINT)\n"
        "64 user:   rank 2 code 0 signal 2\n"
        "64 user:   rank 3 code 0 signal 2\n"
        "64 user:   rank 0 code 0 signal 9\n"
        "64 user:   rank 1 code 0 signal 9\n"
        "64 user:   stopped 4: 0-3\n"
        "64 all <- finish, logs stay\n"
        "66 done -> over: every node has left\n"
        "66 finish 130\n");
}

/* An immediate one neither. */
static void test_cancel_at_once(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_run_for_ever();
    cluster_cancel(&c, 50, SIGTERM, true, false);
    story_expect(
        &c, 50,
        "50 running -> draining: canceled by signal 15 (SIGTERM)\n"
        "50 user: stopping: canceled by signal 15 (SIGTERM)\n"
        "50 all <- stop signal 15 grace 30000\n"
        "50 stopping at once\n"
        "50 all <- stop signal 9 grace 0\n"
        "53 user: exited node0 1/4\n"
        "53 user: exited node0 2/4\n"
        "53 user: exited node1 3/4\n"
        "53 user: exited node1 4/4\n"
        "54 draining -> done: exit code 143, canceled by signal 15 (SIGTERM)\n"
        "54 user: end 143 canceled: canceled by signal 15 (SIGTERM)\n"
        "54 user:   rank 0 code 0 signal 9\n"
        "54 user:   rank 1 code 0 signal 9\n"
        "54 user:   rank 2 code 0 signal 9\n"
        "54 user:   rank 3 code 0 signal 9\n"
        "54 user:   stopped 4: 0-3\n"
        "54 all <- finish, logs stay\n"
        "56 done -> over: every node has left\n"
        "56 finish 143\n");
}

/* While nothing runs yet, a cancel ends the job without a stop. */
static void test_cancel_early(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    c.nodes[1].never_dials = true;
    cluster_cancel(&c, 50, SIGTERM, false, false);
    story_expect(
        &c, 2,
        "50 gathering -> done: exit code 143, canceled by signal 15 (SIGTERM)\n"
        "50 user: end 143 canceled: canceled by signal 15 (SIGTERM)\n"
        "50 all <- finish, logs stay\n"
        "52 done -> over: every node has left\n"
        "52 finish 143\n");
}

/* The front end's time limit ... */
static void test_timeout_told(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_run_for_ever();
    cluster_cancel(&c, 50, 0, false, true);
    story_expect(
        &c, 50,
        "50 running -> draining: the job reached its time limit\n"
        "50 user: stopping: the job reached its time limit\n"
        "50 all <- stop signal 15 grace 30000\n"
        "57 user: exited node0 1/4\n"
        "57 user: exited node0 2/4\n"
        "57 user: exited node1 3/4\n"
        "57 user: exited node1 4/4\n"
        "58 draining -> done: exit code 124, the job reached its time limit\n"
        "58 user: end 124 timeout: the job reached its time limit\n"
        "58 user:   rank 0 code 0 signal 15\n"
        "58 user:   rank 1 code 0 signal 15\n"
        "58 user:   rank 2 code 0 signal 15\n"
        "58 user:   rank 3 code 0 signal 15\n"
        "58 user:   stopped 4: 0-3\n"
        "58 all <- finish, logs stay\n"
        "60 done -> over: every node has left\n"
        "60 finish 124\n");
}

/* ... and the job's own, which the coordinator keeps. */
static void test_timeout(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_run_for_ever();
    c.job.timeout_ms = 5000;
    story_expect(
        &c, 4000,
        "5000 running -> draining: the job reached its time limit of 5 s\n"
        "5000 user: stopping: the job reached its time limit of 5 s\n"
        "5000 all <- stop signal 15 grace 30000\n"
        "5007 user: exited node0 1/4\n"
        "5007 user: exited node0 2/4\n"
        "5007 user: exited node1 3/4\n"
        "5007 user: exited node1 4/4\n"
        "5008 draining -> done: exit code 124, the job reached its time limit "
        "of 5 s\n"
        "5008 user: end 124 timeout: the job reached its time limit of 5 s\n"
        "5008 user:   rank 0 code 0 signal 15\n"
        "5008 user:   rank 1 code 0 signal 15\n"
        "5008 user:   rank 2 code 0 signal 15\n"
        "5008 user:   rank 3 code 0 signal 15\n"
        "5008 user:   stopped 4: 0-3\n"
        "5008 all <- finish, logs stay\n"
        "5010 done -> over: every node has left\n"
        "5010 finish 124\n");
}

/* When the front end is gone the job is stopped, and output dropped. */
static void test_operator_gone(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_run_for_ever();
    c.gives_credit = false;
    story_plans[0][0] = (struct rank_plan){.run_ms = 10, .output_bytes = 100};
    cluster_operator_leaves(&c, 50);
    story_expect(
        &c, 15,
        "16 user: output of rank 0, 100 bytes from node 0\n"
        "16 user: exited node0 1/4\n"
        "50 the front end is gone; stopping the job\n"
        "50 node0 <- credit 100\n"
        "50 running -> draining: canceled by signal 15 (SIGTERM)\n"
        "50 all <- stop signal 15 grace 30000\n"
        "58 draining -> done: exit code 143, canceled by signal 15 (SIGTERM)\n"
        "58 all <- finish, logs stay\n"
        "60 done -> over: every node has left\n"
        "60 finish 143\n");
}

/* A node lost while its ranks run ends the job with 75. */
static void test_lost_running(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_run_for_ever();
    cluster_kill(&c, 1, 50);
    story_expect(
        &c, 50,
        "51 away node1: it closed its connection\n"
        "1051 user: away node1 1/2: its connection is gone; waiting up to "
        "10 s for it\n"
        "10051 lost node1: it was away for 10 s\n"
        "10051 user: left node1 1/2: it was away for 10 s\n"
        "10051 running -> draining: node node1 (host) was lost while "
        "running: it was away for 10 s\n"
        "10051 user: stopping: node node1 (host) was lost while running: "
        "it was away for 10 s\n"
        "10051 all <- stop signal 15 grace 30000\n"
        "10058 user: exited node0 1/4\n"
        "10058 user: exited node0 2/4\n"
        "10059 draining -> done: exit code 75, node node1 (host) was lost "
        "while running: it was away for 10 s\n"
        "10059 user: end 75 node_lost: node node1 (host) was lost while "
        "running: it was away for 10 s\n"
        "10059 user:   unclean node1: lost; what ran there was not seen to "
        "end\n"
        "10059 user:   rank 0 code 0 signal 15\n"
        "10059 user:   rank 1 code 0 signal 15\n"
        "10059 user:   stopped 2: 0-1\n"
        "10059 all <- finish, logs stay\n"
        "10061 done -> over: every node has left\n"
        "10061 finish 75\n");
}

/* A node lost after its ranks have ended harms nobody; it cannot come back.
 */
static void test_lost_idle(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    cluster_add(&c, 1)->dial_ms = 300;
    story_plans[0][0].run_ms = 500;
    cluster_kill(&c, 1, 200);
    story_expect(&c, 100,
                 "106 user: exited node0 1/4\n"
                 "106 user: exited node1 2/4\n"
                 "106 user: exited node1 3/4\n"
                 "201 lost node1: it closed its connection\n"
                 "201 user: left node1 1/2: it closed its connection\n"
                 "301 node1 <- refuse 5\n"
                 "301 refused 10.9.0.2: node node1 came too late: the job has "
                 "gone on to running\n"
                 "301 user: refused: node node1 came too late: the job has "
                 "gone on to running\n"
                 "506 user: exited node0 4/4\n"
                 "506 running -> draining: every rank ended with 0\n"
                 "507 draining -> done: exit code 0, every rank ended with 0\n"
                 "507 user: end 0 success: every rank ended with 0\n"
                 "507 all <- finish\n"
                 "509 done -> over: every node has left\n"
                 "509 finish 0\n");
}

/* One that is lost while it stops is named as unclean. */
static void test_lost_draining(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_run_for_ever();
    c.nodes[1].dies_at = GPUL__FRAME__BODY_STOP;
    cluster_cancel(&c, 50, SIGTERM, false, false);
    story_expect(
        &c, 50,
        "50 running -> draining: canceled by signal 15 (SIGTERM)\n"
        "50 user: stopping: canceled by signal 15 (SIGTERM)\n"
        "50 all <- stop signal 15 grace 30000\n"
        "52 away node1: it closed its connection\n"
        "57 user: exited node0 1/4\n"
        "57 user: exited node0 2/4\n"
        "1052 user: away node1 1/2: its connection is gone; waiting up to "
        "10 s for it\n"
        "10052 lost node1: it was away for 10 s\n"
        "10052 user: left node1 1/2: it was away for 10 s\n"
        "10052 draining -> done: exit code 143, canceled by signal 15 "
        "(SIGTERM)\n"
        "10052 user: end 143 canceled: canceled by signal 15 (SIGTERM)\n"
        "10052 user:   unclean node1: lost while it stopped\n"
        "10052 user:   rank 0 code 0 signal 15\n"
        "10052 user:   rank 1 code 0 signal 15\n"
        "10052 user:   stopped 2: 0-1\n"
        "10052 all <- finish, logs stay\n"
        "10054 done -> over: every node has left\n"
        "10054 finish 143\n");
}

/* Whoever comes when the job is ending is told so. */
static void test_job_over(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_run_for_ever();
    c.nodes[0].stop_ms = 200;
    cluster_add(&c, 1)->dial_ms = 100;
    cluster_cancel(&c, 50, SIGTERM, false, false);
    story_expect(
        &c, 100,
        "101 node1 <- refuse 8\n"
        "101 refused 10.9.0.2: node node1 came when the job had ended\n"
        "101 user: refused: node node1 came when the job had ended\n"
        "252 user: exited node0 3/4\n"
        "252 user: exited node0 4/4\n"
        "253 draining -> done: exit code 143, canceled by signal 15 (SIGTERM)\n"
        "253 user: end 143 canceled: canceled by signal 15 (SIGTERM)\n"
        "253 user:   rank 2 code 0 signal 15\n"
        "253 user:   rank 3 code 0 signal 15\n"
        "253 user:   rank 0 code 0 signal 15\n"
        "253 user:   rank 1 code 0 signal 15\n"
        "253 user:   stopped 4: 0-3\n"
        "253 all <- finish, logs stay\n"
        "255 done -> over: every node has left\n"
        "255 finish 143\n");
}

/* A node that does not become idle is named at the bound, as is a process
 * that would not die. */
static void test_unclean(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    c.job.grace_ms = 1000;
    story_plans[0][0] = (struct rank_plan){.run_ms = 10, .code = 1};
    c.nodes[0].unclean = "4711 python";
    c.nodes[1].never_idle = true;
    story_expect(
        &c, 10,
        "16 user: exited node0 1/4\n"
        "16 running -> draining: rank 0 on node node0 (host) exited with code "
        "1\n"
        "16 user: stopping: rank 0 on node node0 (host) exited with code 1\n"
        "16 all <- stop signal 15 grace 1000\n"
        "23 user: exited node0 2/4\n"
        "23 user: exited node1 3/4\n"
        "23 user: exited node1 4/4\n"
        "5516 draining: still waiting for node1\n"
        "5516 user: waiting 1/2: node1\n"
        "11016 draining -> done: exit code 1, rank 0 on node node0 (host) "
        "exited with code 1\n"
        "11016 user: end 1 rank_failed: rank 0 on node node0 (host) exited "
        "with code 1\n"
        "11016 user:   unclean node0: 4711 python\n"
        "11016 user:   unclean node1: did not become idle in time\n"
        "11016 user:   rank 0 code 1 signal 0\n"
        "11016 user:   rank 1 code 0 signal 15\n"
        "11016 user:   rank 2 code 0 signal 15\n"
        "11016 user:   rank 3 code 0 signal 15\n"
        "11016 user:   stopped 3: 1-3\n"
        "11016 all <- finish, logs stay\n"
        "11018 done -> over: every node has left\n"
        "11018 finish 1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_cancel_twice),
        cmocka_unit_test(test_cancel_at_once),
        cmocka_unit_test(test_cancel_early),
        cmocka_unit_test(test_timeout_told),
        cmocka_unit_test(test_timeout),
        cmocka_unit_test(test_operator_gone),
        cmocka_unit_test(test_lost_running),
        cmocka_unit_test(test_lost_idle),
        cmocka_unit_test(test_lost_draining),
        cmocka_unit_test(test_job_over),
        cmocka_unit_test(test_unclean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
