/* SPDX-License-Identifier: Apache-2.0
 *
 * Stories of training that hangs. The notation is that of
 * test_stories_gather.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "proto/limits.h"
#include "tests/lib/story.h"

#define KIND(name) GPUL__STALL_ROW__KIND__##name

static void init(struct cluster *c, bool stops_job)
{
    static Gpul__Hang hang;
    story_init(c);
    story_run_for_ever();
    gpul__hang__init(&hang);
    hang.watch = GPUL__HANG__WATCH__GIVEN;
    hang.limit_ms = 5000;
    hang.stops_job = stops_job;
    c->job.hang = &hang;
}

/* The node of this rank says so now. */
static void say(struct cluster *c, uint32_t rank, Gpul__StallRow__Kind kind,
                uint64_t steps)
{
    Gpul__StallRow row = GPUL__STALL_ROW__INIT;
    Gpul__StallRow *list = &row;
    Gpul__Stall stall = GPUL__STALL__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    struct fake_node *node = &c->nodes[rank / 2];
    row.rank = rank;
    row.kind = kind;
    row.steps = steps;
    row.silence_ms = 5000;
    row.limit_ms = 5000;
    stall.n_rows = 1;
    stall.rows = &list;
    frame.body_case = GPUL__FRAME__BODY_STALL;
    frame.stall = &stall;
    frame.epoch = 1;
    frame.generation = node->generation;
    cluster_send(c, node->link, &frame);
}

static void begin(struct cluster *c)
{
    cluster_start(c);
    cluster_run(c, 10000);
    c->is_traced = true;
}

static void expect(struct cluster *c, uint64_t until_ms, const char *text)
{
    cluster_run(c, until_ms);
    rendezvous_check(c->core);
    assert_string_equal(gpul_buf_text(&c->trace), text);
    cluster_release(c);
}

/* One is behind: it is named, and when all go on that is said. */
static void test_reported(void **state)
{
    (void)state;
    struct cluster c;
    init(&c, false);
    begin(&c);
    say(&c, 0, KIND(BEHIND), 8);
    say(&c, 3, KIND(BEHIND), 7);
    cluster_run(&c, 9000);
    say(&c, 1, KIND(BEHIND), 8);
    say(&c, 2, KIND(BEHIND), 8);
    cluster_run(&c, 20000);
    for (uint32_t rank = 0; rank < STORY_RANKS; rank++) {
        say(&c, rank, KIND(RESUMED), 9);
    }
    expect(&c, 30000,
           "8006 user: stall node1 4/4: training hangs: no step for 5 s "
           "(limit 5 s); behind: rank 3 (node node1) after step 7; ranks "
           "0-2 wait after step 8\n"
           "18005 user: stall 0/4: training goes on after 15 s\n");
}

/* It ends the job if it was asked to, bounded like any stop. */
static void test_stopped(void **state)
{
    (void)state;
    struct cluster c;
    init(&c, true);
    begin(&c);
    say(&c, 1, KIND(BEHIND), 8);
    expect(&c, 20000,
           "14005 user: stall node0 1/4: training hangs: no step for 11 s "
           "(limit 5 s); rank 1 (node node0) waits after step 8; 3 others "
           "go on\n"
           "14005 running -> draining: training hung (--on-hang stop); rank 1 "
           "(node node0) waits after step 8\n"
           "14005 user: stopping: training hung (--on-hang stop); rank 1 (node "
           "node0) waits after step 8\n"
           "14005 all <- stop signal 15 grace 30000\n"
           "14012 user: exited node0 1/4\n"
           "14012 user: exited node0 2/4\n"
           "14012 user: exited node1 3/4\n"
           "14012 user: exited node1 4/4\n"
           "14013 draining -> done: exit code 75, training hung (--on-hang "
           "stop); rank 1 (node node0) waits after step 8\n"
           "14013 user: end 75 hang: training hung (--on-hang stop); rank 1 "
           "(node node0) waits after step 8\n"
           "14013 user:   rank 0 code 0 signal 15\n"
           "14013 user:   rank 1 code 0 signal 15\n"
           "14013 user:   rank 2 code 0 signal 15\n"
           "14013 user:   rank 3 code 0 signal 15\n"
           "14013 user:   stopped 4: 0-3\n"
           "14013 all <- finish, logs stay\n"
           "14015 done -> over: every node has left\n"
           "14015 finish 75\n");
}

/* What comes when nothing runs, or was not asked for, is dropped; a rank of
 * another node is none of this one's. */
static void test_dropped(void **state)
{
    (void)state;
    struct cluster c;
    init(&c, false);
    c.job.hang->watch = GPUL__HANG__WATCH__OFF;
    c.job.hang->limit_ms = 0;
    begin(&c);
    say(&c, 1, KIND(BEHIND), 8);
    expect(&c, 20000, "");
    init(&c, true);
    story_plans[0][1] = (struct rank_plan){.run_ms = 100};
    begin(&c);
    say(&c, 1, KIND(BEHIND), 8); /* it has ended */
    say(&c, 2, KIND(RESUMED), 8);
    expect(&c, 20000, "");
}

/* Half a window of this rank's output. */
static void write_much(struct cluster *c, uint32_t rank)
{
    enum { FRAMES = GPUL_OUTPUT_WINDOW_BYTES_MAX / 2 / GPUL_OUTPUT_BYTES_MAX };
    static uint8_t bytes[GPUL_OUTPUT_BYTES_MAX];
    struct fake_node *node = &c->nodes[rank / 2];
    for (int i = 0; i < FRAMES; i++) {
        Gpul__Output output = GPUL__OUTPUT__INIT;
        Gpul__Frame frame = GPUL__FRAME__INIT;
        output.rank = rank;
        output.node_rank = rank / 2;
        output.stream = GPUL__OUTPUT__STREAM__STDOUT;
        output.data = (ProtobufCBinaryData){sizeof(bytes), bytes};
        frame.body_case = GPUL__FRAME__BODY_OUTPUT;
        frame.output = &output;
        frame.epoch = 1;
        frame.generation = node->generation;
        cluster_send(c, node->link, &frame);
    }
}

static void read_all(struct cluster *c, uint32_t rank, uint64_t at_ms)
{
    Gpul__Credit credit = GPUL__CREDIT__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    credit.node_rank = rank / 2;
    credit.bytes = GPUL_OUTPUT_WINDOW_BYTES_MAX / 2;
    frame.body_case = GPUL__FRAME__BODY_CREDIT;
    frame.credit = &credit;
    cluster_operate(c, at_ms, &frame);
}

/* Rank 0 waits for its output to be read, and the ranks of the other node for
 * rank 0: no report, and no end, until all had their limit again. Those that
 * go on until then never stalled. */
static void test_held_up(void **state)
{
    (void)state;
    struct cluster c;
    init(&c, true);
    c.gives_credit = false;
    cluster_start(&c);
    cluster_run(&c, 10000);
    write_much(&c, 0);
    say(&c, 2, KIND(BEHIND), 8);
    say(&c, 3, KIND(BEHIND), 8);
    read_all(&c, 0, 60000);
    cluster_run(&c, 60100);
    c.is_traced = true;
    cluster_run(&c, 62000);
    say(&c, 2, KIND(RESUMED), 9);
    cluster_run(&c, 64900);
    assert_string_equal(gpul_buf_text(&c.trace), "");
    cluster_run(&c, 65010);
    assert_non_null(
        strstr(gpul_buf_text(&c.trace),
               "65000 user: stall node1 1/4: training hangs: no "
               "step for 1 min 1 s (limit 5 s); rank 3 (node node1) "
               "waits after step 8; 3 others go on\n"));
    cluster_release(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reported),
        cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_dropped),
        cmocka_unit_test(test_held_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
