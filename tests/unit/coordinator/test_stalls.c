/* SPDX-License-Identifier: Apache-2.0
 *
 * Who is behind, in words; when reports come, and how training goes on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/stalls.h"

enum { NODES = 4, PER_NODE = 4, RANKS = NODES * PER_NODE, START_MS = 1000000 };

#define KIND(name) GPUL__STALL_ROW__KIND__##name
#define NEVER_MS UINT64_MAX

static struct roster roster;
static struct stalls stalls;
static struct stalls_report report;

static int setup(void **state)
{
    (void)state;
    char *names = wire_text("n[0-3]");
    Gpul__Job job = GPUL__JOB__INIT;
    job.node_count = NODES;
    job.node_names = &names;
    job.n_node_names = 1;
    assert_int_equal(roster_init(&roster, &job, NULL), 0);
    for (uint32_t i = 0; i < NODES; i++) {
        roster.nodes[i].first_rank = i * PER_NODE;
        roster.nodes[i].rank_count = PER_NODE;
    }
    stalls = (struct stalls){.ranks = NULL};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    stalls_release(&stalls);
    roster_release(&roster);
    return 0;
}

static Gpul__StallRow row_of(uint32_t rank, Gpul__StallRow__Kind kind,
                             uint64_t steps)
{
    Gpul__StallRow row = GPUL__STALL_ROW__INIT;
    row.rank = rank;
    row.kind = kind;
    row.steps = steps;
    row.silence_ms = 30000;
    row.limit_ms = 30000;
    row.state = wire_text("S");
    row.threads = 9;
    row.look_ms = 1000;
    row.wait_channel = wire_text("futex_wait_queue");
    return row;
}

static bool take(const Gpul__StallRow *row, uint64_t now_ms)
{
    uint64_t silence_ms = 0;
    bool goes_on = stalls_take(&stalls, RANKS, row, now_ms, &silence_ms);
    assert_true(silence_ms == 0 || silence_ms > 2000);
    return goes_on;
}

static void stall(uint32_t first, uint32_t last, uint64_t steps)
{
    for (uint32_t rank = first; rank <= last; rank++) {
        const Gpul__StallRow row = row_of(rank, KIND(BEHIND), steps);
        assert_false(take(&row, START_MS));
    }
}

static const char *report_at(uint64_t now_ms, uint32_t ranks_left)
{
    assert_true(stalls_due_ms(&stalls) <= now_ms);
    stalls_report(&stalls, &roster, ranks_left, now_ms, &report);
    return report.text.bytes;
}

/* The one that has made fewer steps is named with its node and its look. */
static void test_behind(void **state)
{
    (void)state;
    stall(0, 15, 120);
    Gpul__StallRow row = row_of(6, KIND(BEHIND), 118);
    row.state = wire_text("T");
    row.wait_channel = wire_text("do_signal_stop");
    row.threads = 1;
    row.text = wire_text("GPU 2 idle");
    take(&row, START_MS);
    assert_string_equal(
        report_at(START_MS + 6000, RANKS),
        "training hangs: no step for 36 s (limit 30 s); behind: rank 6 "
        "(node n1) after step 118; ranks 0-5,7-15 wait after step 120\n"
        "  rank 6: stopped by a signal (T), 0 % CPU, 1 thread, in "
        "do_signal_stop; GPU 2 idle\n"
        "  ranks 0-5,7-15: sleeping (S), 0 % CPU, 9 threads, in "
        "futex_wait_queue");
    assert_string_equal(report.verdict.bytes,
                        "training hung (--on-hang stop); "
                        "behind was rank 6 (node n1) after step 118");
    assert_string_equal(report.ranks.bytes, "6");
    assert_ptr_equal(report.node, &roster.nodes[1]);
    assert_int_equal(report.count, RANKS);
    assert_false(report.are_all_stopped);
}

/* All have made the same steps: the odd look is told first. */
static void test_all_wait(void **state)
{
    (void)state;
    stall(0, 15, 120);
    Gpul__StallRow row = row_of(9, KIND(BEHIND), 120);
    row.state = wire_text("R");
    row.wait_channel = wire_text("");
    row.cpu_ms = 987;
    row.is_learned = true;
    take(&row, START_MS);
    assert_string_equal(
        report_at(START_MS + 6000, RANKS),
        "training hangs: no step for 36 s (limit 30 s, learned); all 16 "
        "ranks wait after step 120\n"
        "  rank 9: running (R), 100 % CPU, 9 threads\n"
        "  ranks 0-8,10-15: sleeping (S), 0 % CPU, 9 threads, in "
        "futex_wait_queue");
    assert_string_equal(report.verdict.bytes,
                        "training hung (--on-hang stop); "
                        "all 16 ranks wait after step 120");
    assert_string_equal(report.ranks.bytes, "");
    assert_null(report.node);
}

/* Some stall, and the others go on. */
static void test_some(void **state)
{
    (void)state;
    stall(4, 5, 7);
    assert_string_equal(
        report_at(START_MS + 6000, RANKS),
        "training hangs: no step for 36 s (limit 30 s); ranks 4-5 (node "
        "n1) wait after step 7; 14 others go on\n"
        "  ranks 4-5: sleeping (S), 0 % CPU, 9 threads, in futex_wait_queue");
    assert_string_equal(report.ranks.bytes, "4-5");
    assert_ptr_equal(report.node, &roster.nodes[1]);
}

static void test_silent(void **state)
{
    (void)state;
    for (uint32_t rank = 0; rank < 3; rank++) {
        Gpul__StallRow row = row_of(rank * 5, KIND(SILENT), 0);
        row.state = wire_text("");
        take(&row, START_MS);
    }
    assert_string_equal(
        report_at(START_MS + 6000, 4),
        "training hangs: no output for 36 s (limit 30 s); nothing from "
        "ranks 0,5,10 (nodes n[0-2]); 1 other goes on");
    assert_string_equal(report.verdict.bytes,
                        "training hung (--on-hang stop); "
                        "nothing came from ranks 0,5,10 (nodes n[0-2])");
    assert_string_equal(report.ranks.bytes, "0,5,10");
}

/* Ranks that a user has stopped, all of them. */
static void test_stopped(void **state)
{
    (void)state;
    for (uint32_t rank = 0; rank < 2; rank++) {
        Gpul__StallRow row = row_of(rank, KIND(BEHIND), 3);
        row.state = wire_text("T");
        take(&row, START_MS);
    }
    report_at(START_MS + 6000, 2);
    assert_true(report.are_all_stopped);
    Gpul__StallRow other = row_of(2, KIND(BEHIND), 3);
    take(&other, START_MS + 7000);
    report_at(START_MS + 16000, 3);
    assert_false(report.are_all_stopped);
}

/* Reports come at 6 s, then with gaps of 10 s, 20 s ..., as long as nodes say
 * so. */
static void test_gaps(void **state)
{
    (void)state;
    Gpul__StallRow row = row_of(1, KIND(BEHIND), 3);
    assert_int_equal(stalls_due_ms(&stalls), NEVER_MS);
    take(&row, START_MS);
    assert_int_equal(stalls_due_ms(&stalls), START_MS + 6000);
    take(&row, START_MS + 1000);
    assert_int_equal(stalls_due_ms(&stalls), START_MS + 6000);
    report_at(START_MS + 6000, RANKS);
    assert_int_equal(stalls_due_ms(&stalls), NEVER_MS);
    take(&row, START_MS + 7000);
    assert_int_equal(stalls_due_ms(&stalls), START_MS + 16000);
    report_at(START_MS + 16000, RANKS);
    take(&row, START_MS + 60000);
    assert_int_equal(stalls_due_ms(&stalls), START_MS + 66000);
    report_at(START_MS + 66000, RANKS);
    take(&row, START_MS + 67000);
    assert_int_equal(stalls_due_ms(&stalls), START_MS + 106000);
}

/* When all ranks that are left stall, nobody is waited for; a report still
 * does not come too soon after the last. */
static void test_all_are_told(void **state)
{
    (void)state;
    stalls_check(&stalls, 0, START_MS);
    assert_int_equal(stalls_due_ms(&stalls), NEVER_MS);
    stall(0, 2, 3);
    stalls_check(&stalls, 4, START_MS + 100);
    assert_int_equal(stalls_due_ms(&stalls), START_MS + 6000);
    stall(3, 3, 3);
    stalls_check(&stalls, 4, START_MS + 200);
    assert_int_equal(stalls_due_ms(&stalls), START_MS + 200);
    stalls_check(&stalls, 4, START_MS + 300);
    assert_int_equal(stalls_due_ms(&stalls), START_MS + 200);
    report_at(START_MS + 200, 4);
    Gpul__StallRow row = row_of(1, KIND(BEHIND), 3);
    take(&row, START_MS + 8000);
    stalls_check(&stalls, 4, START_MS + 8000);
    assert_int_equal(stalls_due_ms(&stalls), START_MS + 10200);
}

/* What the GPUs do is told of ranks whose processes could not be seen, too, and
 * sets ranks apart that are alike otherwise. */
static void test_gpus(void **state)
{
    (void)state;
    stall(0, 15, 7);
    for (uint32_t rank = 0; rank < 5; rank++) {
        Gpul__StallRow row = row_of(rank, KIND(BEHIND), 7);
        if (rank < 2) {
            row.state = wire_text("");
            row.wait_channel = wire_text("");
            row.look_ms = 0;
        }
        row.text = wire_text("its GPU is idle");
        take(&row, START_MS);
    }
    assert_string_equal(
        report_at(START_MS + 6000, RANKS),
        "training hangs: no step for 36 s (limit 30 s); all 16 ranks wait "
        "after step 7\n"
        "  ranks 0-1: what it does is not known; its GPU is idle\n"
        "  ranks 2-4: sleeping (S), 0 % CPU, 9 threads, in futex_wait_queue; "
        "its GPU is idle\n"
        "  ranks 5-15: sleeping (S), 0 % CPU, 9 threads, in "
        "futex_wait_queue");
}

/* It goes on when the last one does, if anything was said at all. */
static void test_goes_on(void **state)
{
    (void)state;
    Gpul__StallRow on[2] = {row_of(1, KIND(RESUMED), 4),
                            row_of(2, KIND(RESUMED), 4)};
    assert_false(take(&on[0], START_MS));
    stall(1, 2, 3);
    assert_false(take(&on[0], START_MS + 1));
    assert_false(take(&on[1], START_MS + 1));
    assert_int_equal(stalls_due_ms(&stalls), NEVER_MS);
    stall(1, 2, 3);
    report_at(START_MS + 6000, RANKS);
    assert_false(take(&on[0], START_MS + 7000));
    assert_true(take(&on[1], START_MS + 7000));
    assert_false(take(&on[1], START_MS + 7000));
    /* Soon again: not at once. After a calm time: as at first. */
    Gpul__StallRow row = row_of(1, KIND(BEHIND), 3);
    take(&row, START_MS + 8000);
    assert_int_equal(stalls_due_ms(&stalls), START_MS + 16000);
    take(&on[0], START_MS + 9000);
    take(&row, START_MS + 20000);
    assert_int_equal(stalls_due_ms(&stalls), START_MS + 26000);
    report_at(START_MS + 26000, RANKS);
    take(&row, START_MS + 27000);
    assert_int_equal(stalls_due_ms(&stalls), START_MS + 36000);
}

/* Ranks that end stall no more, and nobody says that they go on. */
static void test_ended(void **state)
{
    (void)state;
    stalls_ended(&stalls, 1);
    stall(1, 2, 3);
    report_at(START_MS + 6000, RANKS);
    stalls_ended(&stalls, 1);
    stalls_ended(&stalls, 1);
    stalls_ended(&stalls, 7);
    assert_int_equal(stalls.count, 1);
    stalls_ended(&stalls, 2);
    stalls_ended(&stalls, RANKS);
    assert_int_equal(stalls.count, 0);
    assert_int_equal(stalls_due_ms(&stalls), NEVER_MS);
    for (int i = 0; i < STALLS_LOOKS_MAX; i++) {
        assert_int_equal(stalls.looks[i].count, 0);
    }
}

/* Every second rank, each with a look of its own: the text is cut at whole
 * ranges, and stays within its bound. */
static void test_bounds(void **state)
{
    (void)state;
    enum { MANY = 100000 };
    uint64_t silence_ms;
    stalls_release(&stalls);
    for (uint32_t rank = 0; rank < MANY; rank += 2) {
        char place[GPUL_WAIT_CHANNEL_BYTES_MAX + 1];
        Gpul__StallRow row = row_of(rank, KIND(BEHIND), rank % 7);
        snprintf(place, sizeof(place), "somewhere_in_the_kernel_at_%u", rank);
        row.wait_channel = place;
        stalls_take(&stalls, MANY, &row, START_MS, &silence_ms);
    }
    stalls_report(&stalls, &roster, MANY, START_MS + 6000, &report);
    assert_int_equal(report.count, MANY / 2);
    assert_non_null(strstr(report.text.bytes,
                           "behind: ranks 0,2,4,8,10,12,14,16,18,22 and 42847 "
                           "more (nodes n[0-3]) after steps 0 to 5; "));
    size_t n = strlen(report.ranks.bytes);
    assert_in_range(n, GPUL_TEXT_BYTES_MAX / 2, GPUL_TEXT_BYTES_MAX);
    assert_true(report.ranks.bytes[n - 1] != ',');
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_behind),       TEST(test_all_wait), TEST(test_some),
        TEST(test_silent),       TEST(test_stopped),  TEST(test_gaps),
        TEST(test_all_are_told), TEST(test_gpus),     TEST(test_goes_on),
        TEST(test_ended),        TEST(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
