/* SPDX-License-Identifier: Apache-2.0
 *
 * Stories of ranks that end: failures, the success rule, restarts. The notation
 * is that of test_stories_gather.c.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coordinator/text.h"
#include "tests/lib/story.h"

/* The first rank that fails gives the exit code; the others are stopped, and
 * their ends are only recorded. */
static void test_rank_fails(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_plans[0][1] = (struct rank_plan){.run_ms = 20, .code = 7};
    story_plans[0][2] = (struct rank_plan){.run_ms = 22, .code = 9};
    story_expect(
        &c, 4,
        "4 all <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 2\n"
        "4 assigning -> running: every node is ready\n"
        "4 all <- launch attempt 1\n"
        "4 user: launched 4/4\n"
        "26 user: exited node0 1/4\n"
        "26 running -> draining: rank 1 on node node0 (host) exited with code "
        "7\n"
        "26 user: stopping: rank 1 on node node0 (host) exited with code 7\n"
        "26 all <- stop signal 15 grace 30000\n"
        "28 user: exited node1 2/4\n"
        "33 user: exited node0 3/4\n"
        "33 user: exited node1 4/4\n"
        "34 draining -> done: exit code 7, rank 1 on node node0 (host) exited "
        "with code 7\n"
        "34 user: end 7 rank_failed: rank 1 on node node0 (host) exited with "
        "code 7\n"
        "34 user:   rank 1 code 7 signal 0\n"
        "34 user:   rank 2 code 9 signal 0\n"
        "34 user:   rank 0 code 0 signal 15\n"
        "34 user:   rank 3 code 0 signal 15\n"
        "34 user:   stopped 2: 0,3\n"
        "34 all <- finish, logs stay\n"
        "36 done -> over: every node has left\n"
        "36 finish 7\n");
}

/* A signal is 128 and its number, and has its name. */
static void test_rank_signaled(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_plans[0][3] = (struct rank_plan){.run_ms = 20, .signal = SIGSEGV};
    story_expect(&c, 6,
                 "26 user: exited node1 1/4\n"
                 "26 running -> draining: rank 3 on node node1 (host) was "
                 "ended by signal 11 (SIGSEGV): segmentation fault\n"
                 "26 user: stopping: rank 3 on node node1 (host) was ended by "
                 "signal 11 (SIGSEGV): segmentation fault\n"
                 "26 all <- stop signal 15 grace 30000\n"
                 "33 user: exited node0 2/4\n"
                 "33 user: exited node0 3/4\n"
                 "33 user: exited node1 4/4\n"
                 "34 draining -> done: exit code 139, rank 3 on node node1 "
                 "(host) was ended by signal 11 (SIGSEGV): segmentation fault\n"
                 "34 user: end 139 rank_signaled: rank 3 on node node1 (host) "
                 "was ended by signal 11 (SIGSEGV): segmentation fault\n"
                 "34 user:   rank 3 code 0 signal 11\n"
                 "34 user:   rank 0 code 0 signal 15\n"
                 "34 user:   rank 1 code 0 signal 15\n"
                 "34 user:   rank 2 code 0 signal 15\n"
                 "34 user:   stopped 3: 0-2\n"
                 "34 all <- finish, logs stay\n"
                 "36 done -> over: every node has left\n"
                 "36 finish 139\n");
}

/* A command that is not there is 127, with the node and the system's words. */
static void test_not_found(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_plans[0][0] = (struct rank_plan){.exec_errno = ENOENT};
    story_plans[0][1] = (struct rank_plan){.exec_errno = ENOENT};
    story_expect(&c, 5,
                 "6 user: exited node0 1/4\n"
                 "6 running -> draining: rank 0 on node node0 (host) could not "
                 "start: train.py: No such file or directory\n"
                 "6 user: stopping: rank 0 on node node0 (host) could not "
                 "start: train.py: No such file or directory\n"
                 "6 all <- stop signal 15 grace 30000\n"
                 "6 user: exited node0 2/4\n"
                 "13 user: exited node1 3/4\n"
                 "13 user: exited node1 4/4\n"
                 "14 draining -> done: exit code 127, rank 0 on node node0 "
                 "(host) could not start: train.py: No such file or directory\n"
                 "14 user: end 127 exec_failed: rank 0 on node node0 (host) "
                 "could not start: train.py: No such file or directory\n"
                 "14 user:   rank 0 code 0 signal 0\n"
                 "14 user:   rank 1 code 0 signal 0\n"
                 "14 user:   rank 2 code 0 signal 15\n"
                 "14 user:   rank 3 code 0 signal 15\n"
                 "14 user:   stopped 2: 2-3\n"
                 "14 all <- finish, logs stay\n"
                 "16 done -> over: every node has left\n"
                 "16 finish 127\n");
}

/* One that may not be executed is 126. */
static void test_not_executable(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_plans[0][2] = (struct rank_plan){.exec_errno = EACCES};
    story_expect(&c, 5,
                 "6 user: exited node1 1/4\n"
                 "6 running -> draining: rank 2 on node node1 (host) could not "
                 "start: train.py: No such file or directory\n"
                 "6 user: stopping: rank 2 on node node1 (host) could not "
                 "start: train.py: No such file or directory\n"
                 "6 all <- stop signal 15 grace 30000\n"
                 "13 user: exited node0 2/4\n"
                 "13 user: exited node0 3/4\n"
                 "13 user: exited node1 4/4\n"
                 "14 draining -> done: exit code 126, rank 2 on node node1 "
                 "(host) could not start: train.py: No such file or directory\n"
                 "14 user: end 126 exec_failed: rank 2 on node node1 (host) "
                 "could not start: train.py: No such file or directory\n"
                 "14 user:   rank 2 code 0 signal 0\n"
                 "14 user:   rank 0 code 0 signal 15\n"
                 "14 user:   rank 1 code 0 signal 15\n"
                 "14 user:   rank 3 code 0 signal 15\n"
                 "14 user:   stopped 3: 0-1,3\n"
                 "14 all <- finish, logs stay\n"
                 "16 done -> over: every node has left\n"
                 "16 finish 126\n");
}

static void use_roles(struct cluster *c, Gpul__Role *roles,
                      Gpul__Role **pointers, const char *last)
{
    const char *names[] = {"chief", "worker", last};
    const uint32_t counts[] = {1, 2, 1};
    for (size_t i = 0; i < 3; i++) {
        gpul__role__init(&roles[i]);
        roles[i].name = wire_text(names[i]);
        roles[i].count = counts[i];
        pointers[i] = &roles[i];
    }
    c->job.roles = pointers;
    c->job.n_roles = 3;
}

/* With a parameter server the chief decides; the rest is then stopped. */
static void test_chief_decides(void **state)
{
    (void)state;
    struct cluster c;
    Gpul__Role roles[3];
    Gpul__Role *pointers[3];
    story_init(&c);
    use_roles(&c, roles, pointers, "ps");
    story_plans[0][1].runs_for_ever = true;
    story_plans[0][3].runs_for_ever = true;
    story_expect(
        &c, 6,
        "106 user: exited node0 1/4\n"
        "106 running -> draining: every rank that decides ended with 0\n"
        "106 user: stopping: every rank that decides ended with 0\n"
        "106 all <- stop signal 15 grace 30000\n"
        "106 user: exited node1 2/4\n"
        "113 user: exited node0 3/4\n"
        "113 user: exited node1 4/4\n"
        "114 draining -> done: exit code 0, every rank that decides ended with "
        "0\n"
        "114 user: end 0 success: every rank that decides ended with 0\n"
        "114 user:   stopped 2: 1,3\n"
        "114 all <- finish\n"
        "116 done -> over: every node has left\n"
        "116 finish 0\n");
}

/* With an evaluator every chief and worker decides. */
static void test_evaluator(void **state)
{
    (void)state;
    struct cluster c;
    Gpul__Role roles[3];
    Gpul__Role *pointers[3];
    story_init(&c);
    use_roles(&c, roles, pointers, "evaluator");
    story_plans[0][2].run_ms = 500;
    story_plans[0][3].runs_for_ever = true;
    story_expect(
        &c, 6,
        "106 user: exited node0 1/4\n"
        "106 user: exited node0 2/4\n"
        "506 user: exited node1 3/4\n"
        "506 running -> draining: every rank that decides ended with 0\n"
        "506 user: stopping: every rank that decides ended with 0\n"
        "506 all <- stop signal 15 grace 30000\n"
        "513 user: exited node1 4/4\n"
        "514 draining -> done: exit code 0, every rank that decides ended with "
        "0\n"
        "514 user: end 0 success: every rank that decides ended with 0\n"
        "514 user:   stopped 1: 3\n"
        "514 all <- finish\n"
        "516 done -> over: every node has left\n"
        "516 finish 0\n");
}

/* A parameter server that fails fails the job. */
static void test_ps_fails(void **state)
{
    (void)state;
    struct cluster c;
    Gpul__Role roles[3];
    Gpul__Role *pointers[3];
    story_init(&c);
    use_roles(&c, roles, pointers, "ps");
    story_plans[0][3] = (struct rank_plan){.run_ms = 10, .code = 3};
    story_expect(
        &c, 6,
        "16 user: exited node1 1/4\n"
        "16 running -> draining: rank 3 on node node1 (host) exited with code "
        "3\n"
        "16 user: stopping: rank 3 on node node1 (host) exited with code 3\n"
        "16 all <- stop signal 15 grace 30000\n"
        "23 user: exited node0 2/4\n"
        "23 user: exited node0 3/4\n"
        "23 user: exited node1 4/4\n"
        "24 draining -> done: exit code 3, rank 3 on node node1 (host) exited "
        "with code 3\n"
        "24 user: end 3 rank_failed: rank 3 on node node1 (host) exited with "
        "code 3\n"
        "24 user:   rank 3 code 3 signal 0\n"
        "24 user:   rank 0 code 0 signal 15\n"
        "24 user:   rank 1 code 0 signal 15\n"
        "24 user:   rank 2 code 0 signal 15\n"
        "24 user:   stopped 3: 0-2\n"
        "24 all <- finish, logs stay\n"
        "26 done -> over: every node has left\n"
        "26 finish 3\n");
}

/* A port that was taken costs one restart with other ports, not the job. */
static void test_bind_retry(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_plans[0][0] =
        (struct rank_plan){.run_ms = 5, .code = 1, .is_bind_error = true};
    story_expect(&c, 6,
                 "11 user: exited node0 1/4\n"
                 "11 running -> restarting: a port that rank 0 on node node0 "
                 "was given had been taken\n"
                 "11 user: retrying: a port that rank 0 on node node0 was "
                 "given had been taken\n"
                 "11 all <- stop signal 15 grace 30000\n"
                 "18 user: exited node0 2/4\n"
                 "18 user: exited node1 3/4\n"
                 "18 user: exited node1 4/4\n"
                 "19 restarting -> assigning: every node is idle\n"
                 "19 node0 <- assign node 0/2, ranks 0+2 of 4, host 0/2 with "
                 "4, avoid 20000 20002 20003 20004\n"
                 "19 node1 <- assign node 1/2, ranks 2+2 of 4, host 1/2 with "
                 "4, avoid 20000 20002 20003 20004\n"
                 "19 user: assigned 2/2\n"
                 "22 all <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 2\n"
                 "22 assigning -> running: every node is ready\n"
                 "22 all <- launch attempt 2\n"
                 "22 user: launched 4/4\n"
                 "124 user: exited node0 1/4\n"
                 "124 user: exited node0 2/4\n"
                 "124 user: exited node1 3/4\n"
                 "124 user: exited node1 4/4\n"
                 "124 running -> draining: every rank ended with 0\n"
                 "125 draining -> done: exit code 0, every rank ended with 0\n"
                 "125 user: end 0 success: every rank ended with 0\n"
                 "125 all <- finish\n"
                 "127 done -> over: every node has left\n"
                 "127 finish 0\n");
}

/* The second time it is a failure like any other. */
static void test_bind_twice(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_plans[0][3] =
        (struct rank_plan){.run_ms = 5, .code = 1, .is_bind_error = true};
    story_plans[1][0] =
        (struct rank_plan){.run_ms = 5, .code = 98, .is_bind_error = true};
    story_expect(
        &c, 6,
        "11 user: exited node1 1/4\n"
        "11 running -> restarting: a port that rank 3 on node node1 was given "
        "had been taken\n"
        "11 user: retrying: a port that rank 3 on node node1 was given had "
        "been taken\n"
        "11 all <- stop signal 15 grace 30000\n"
        "18 user: exited node0 2/4\n"
        "18 user: exited node0 3/4\n"
        "18 user: exited node1 4/4\n"
        "19 restarting -> assigning: every node is idle\n"
        "19 node0 <- assign node 0/2, ranks 0+2 of 4, host 0/2 with 4, avoid "
        "20001 20002 20003 20004\n"
        "19 node1 <- assign node 1/2, ranks 2+2 of 4, host 1/2 with 4, avoid "
        "20001 20002 20003 20004\n"
        "19 user: assigned 2/2\n"
        "22 all <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 2\n"
        "22 assigning -> running: every node is ready\n"
        "22 all <- launch attempt 2\n"
        "22 user: launched 4/4\n"
        "29 user: exited node0 1/4\n"
        "29 running -> draining: rank 0 on node node0 (host) exited with code "
        "98\n"
        "29 user: stopping: rank 0 on node node0 (host) exited with code 98\n"
        "29 all <- stop signal 15 grace 30000\n"
        "36 user: exited node0 2/4\n"
        "36 user: exited node1 3/4\n"
        "36 user: exited node1 4/4\n"
        "37 draining -> done: exit code 98, rank 0 on node node0 (host) exited "
        "with code 98\n"
        "37 user: end 98 rank_failed: rank 0 on node node0 (host) exited with "
        "code 98\n"
        "37 user:   rank 0 code 98 signal 0\n"
        "37 user:   rank 1 code 0 signal 15\n"
        "37 user:   rank 2 code 0 signal 15\n"
        "37 user:   rank 3 code 0 signal 15\n"
        "37 user:   stopped 3: 1-3\n"
        "37 all <- finish, logs stay\n"
        "39 done -> over: every node has left\n"
        "39 finish 98\n");
}

/* There is no restart over processes that would not die. */
static void test_restart_unclean(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_plans[0][0] =
        (struct rank_plan){.run_ms = 5, .code = 1, .is_bind_error = true};
    c.nodes[1].unclean = "4711 python";
    story_expect(&c, 6,
                 "11 user: exited node0 1/4\n"
                 "11 running -> restarting: a port that rank 0 on node node0 "
                 "was given had been taken\n"
                 "11 user: retrying: a port that rank 0 on node node0 was "
                 "given had been taken\n"
                 "11 all <- stop signal 15 grace 30000\n"
                 "18 user: exited node0 2/4\n"
                 "18 user: exited node1 3/4\n"
                 "18 user: exited node1 4/4\n"
                 "19 restarting -> draining: node node1 (host) cannot start "
                 "again: 4711 python is still alive\n"
                 "19 draining -> done: exit code 75, node node1 (host) cannot "
                 "start again: 4711 python is still alive\n"
                 "19 user: end 75 unclean: node node1 (host) cannot start "
                 "again: 4711 python is still alive\n"
                 "19 user:   unclean node1: 4711 python\n"
                 "19 all <- finish, logs stay\n"
                 "21 done -> over: every node has left\n"
                 "21 finish 75\n");
}

/* Nor on a node that does not stop. */
static void test_restart_late(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    c.job.grace_ms = 1000;
    story_plans[0][0] =
        (struct rank_plan){.run_ms = 5, .code = 1, .is_bind_error = true};
    c.nodes[1].never_idle = true;
    story_expect(&c, 6,
                 "11 user: exited node0 1/4\n"
                 "11 running -> restarting: a port that rank 0 on node node0 "
                 "was given had been taken\n"
                 "11 user: retrying: a port that rank 0 on node node0 was "
                 "given had been taken\n"
                 "11 all <- stop signal 15 grace 1000\n"
                 "18 user: exited node0 2/4\n"
                 "18 user: exited node1 3/4\n"
                 "18 user: exited node1 4/4\n"
                 "5511 restarting: still waiting for node1\n"
                 "5511 user: waiting 1/2: node1\n"
                 "11011 restarting -> draining: the ranks could not be stopped "
                 "to start them again on: node1\n"
                 "11011 user: stopping: the ranks could not be stopped to "
                 "start them again on: node1\n"
                 "11011 stopping at once\n"
                 "11011 all <- stop signal 9 grace 0\n"
                 "16511 draining: still waiting for node1\n"
                 "16511 user: waiting 1/2: node1\n"
                 "21011 draining -> done: exit code 75, the ranks could not be "
                 "stopped to start them again on: node1\n"
                 "21011 user: end 75 unclean: the ranks could not be stopped "
                 "to start them again on: node1\n"
                 "21011 user:   unclean node1: did not become idle in time\n"
                 "21011 all <- finish, logs stay\n"
                 "21013 done -> over: every node has left\n"
                 "21013 finish 75\n");
}

/* What a node still says of an older generation is not heard: the failed exit
 * of rank 3 below comes when the second generation is being given out. */
static void test_stale_exit(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_plans[0][0] =
        (struct rank_plan){.run_ms = 5, .code = 1, .is_bind_error = true};
    cluster_start(&c);
    cluster_run(&c, 21);
    Gpul__Exit one = GPUL__EXIT__INIT;
    Gpul__Exit *list = &one;
    one.rank = 3;
    one.code = 5;
    Gpul__Exits exits = GPUL__EXITS__INIT;
    exits.exits = &list;
    exits.n_exits = 1;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.epoch = 1;
    frame.generation = 1;
    frame.body_case = GPUL__FRAME__BODY_EXITS;
    frame.exits = &exits;
    cluster_send(&c, c.nodes[1].link, &frame);
    c.is_traced = true;
    cluster_run(&c, 1000);
    assert_string_equal(
        gpul_buf_text(&c.trace),
        "22 all <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 2\n"
        "22 assigning -> running: every node is ready\n"
        "22 all <- launch attempt 2\n"
        "22 user: launched 4/4\n"
        "124 user: exited node0 1/4\n"
        "124 user: exited node0 2/4\n"
        "124 user: exited node1 3/4\n"
        "124 user: exited node1 4/4\n"
        "124 running -> draining: every rank ended with 0\n"
        "125 draining -> done: exit code 0, every rank ended with 0\n"
        "125 user: end 0 success: every rank ended with 0\n"
        "125 all <- finish\n"
        "127 done -> over: every node has left\n"
        "127 finish 0\n");
    cluster_release(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rank_fails),
        cmocka_unit_test(test_rank_signaled),
        cmocka_unit_test(test_not_found),
        cmocka_unit_test(test_not_executable),
        cmocka_unit_test(test_chief_decides),
        cmocka_unit_test(test_evaluator),
        cmocka_unit_test(test_ps_fails),
        cmocka_unit_test(test_bind_retry),
        cmocka_unit_test(test_bind_twice),
        cmocka_unit_test(test_restart_unclean),
        cmocka_unit_test(test_restart_late),
        cmocka_unit_test(test_stale_exit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
