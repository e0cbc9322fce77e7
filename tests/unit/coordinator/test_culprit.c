/* SPDX-License-Identifier: Apache-2.0
 *
 * Whom a phase waits for: each kind of suspicion beats the next, within one
 * the least progress counts, and where all are alike that is said.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/culprit.h"

enum { NODES = 12, DEVICES = 2, RANKS = NODES * DEVICES };

static struct roster roster;
static struct facts facts;
static struct probes probes;
static struct text text;

static int setup(void **state)
{
    (void)state;
    char *names = wire_text("n[0-11]");
    Gpul__Job job = GPUL__JOB__INIT;
    struct facts_judgement judgement;
    job.node_count = NODES;
    job.node_names = &names;
    job.n_node_names = 1;
    assert_int_equal(roster_init(&roster, &job, NULL), 0);
    assert_int_equal(facts_init(&facts, NODES), 0);
    for (uint32_t node = 0; node < NODES; node++) {
        char uuids[DEVICES][16];
        Gpul__Library library = GPUL__LIBRARY__INIT;
        Gpul__Device devices[DEVICES];
        Gpul__Device *list[DEVICES];
        Gpul__ProbeFacts report = GPUL__PROBE_FACTS__INIT;
        for (uint32_t i = 0; i < DEVICES; i++) {
            gpul__device__init(&devices[i]);
            snprintf(uuids[i], sizeof(uuids[i]), "GPU-%u", node * DEVICES + i);
            devices[i].uuid = uuids[i];
            list[i] = &devices[i];
        }
        report.nccl = &library;
        report.cuda = &library;
        report.devices = list;
        report.n_devices = DEVICES;
        assert_int_equal(facts_add(&facts, node, &report), 0);
    }
    assert_int_equal(facts_judge(&facts, &judgement, &roster), 0);
    assert_int_equal(judgement.verdict, FACTS_GOOD);
    return probes_init(&probes, RANKS, 0);
}

static int teardown(void **state)
{
    (void)state;
    probes_release(&probes);
    facts_release(&facts);
    roster_release(&roster);
    return 0;
}

#define STATE(name) GPUL__PROBE_PHASE__STATE__STATE_##name

enum { BOUND_MS = 20000, SILENCE_MS = 5000 };

/* At `at_ms`, of a phase that began at 0. */
static void say_at(uint64_t at_ms, uint32_t rank, Gpul__ProbePhase__State state,
                   uint32_t progress, uint32_t since_ms)
{
    Gpul__ProbePhase said = GPUL__PROBE_PHASE__INIT;
    said.state = state;
    said.progress = progress;
    said.since_ms = since_ms;
    said.call = wire_text("ncclAllReduce");
    said.text =
        wire_text(state == STATE(STOPPED) ? "" : "all-reduce of 8 bytes");
    assert_int_equal(probes_say(&probes, rank, &said, at_ms), 0);
}

static void say(uint32_t rank, Gpul__ProbePhase__State state, uint32_t progress,
                uint32_t since_ms)
{
    say_at(19000, rank, state, progress, since_ms);
}

/* Ranks 0 to 7 wait for others, with the same progress. */
static void all_wait(void)
{
    for (uint32_t rank = 0; rank < 8; rank++) {
        say(rank, STATE(WAITS), 40, 15000);
    }
}

/* Bits of the ranks that are missing. */
static bool is_missing(const struct probes *p, uint32_t rank, const void *arg)
{
    (void)p;
    const uint32_t *bits = arg;
    return (*bits >> rank & 1u) != 0;
}

/* At the bound. */
static const char *missing(uint32_t bits)
{
    const struct culprit_case c = {
        .probes = &probes,
        .facts = &facts,
        .roster = &roster,
        .lacks = is_missing,
        .arg = &bits,
        .now_ms = BOUND_MS,
        .elapsed_ms = BOUND_MS,
        .silence_ms = SILENCE_MS,
    };
    culprit_name(&text, &c);
    return text.bytes;
}

/* Heard, and nothing is known of how they are. */
static void all_unknown(void)
{
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        Gpul__ProbePhase said = GPUL__PROBE_PHASE__INIT;
        assert_int_equal(probes_say(&probes, rank, &said, 19000), 0);
    }
}

/* One rank with its device; several as ranges; more than ten ranges or nodes
 * are counted. */
static void test_ranges(void **state)
{
    (void)state;
    all_unknown();
    assert_string_equal(missing(0), "nobody");
    assert_string_equal(missing(1u << 7), "rank 7 (node n3, device GPU-7)");
    assert_string_equal(missing(0x38), "ranks 3-5 (nodes n[1-2])");
    assert_string_equal(missing(0x0c), "ranks 2-3 (node n1)");
    assert_string_equal(missing(0x555555),
                        "ranks 0,2,4,6,8,10,12,14,16,18 and 2 more (nodes "
                        "n[0-9] and 2 more)");
}

/* All are well as far as they see, so nobody can be named. */
static void test_all_wait(void **state)
{
    (void)state;
    all_wait();
    assert_string_equal(
        missing(0xff),
        "ranks 0-7 (nodes n[0-3]); all of them wait, so which one holds up "
        "the others cannot be told; rank 0, device GPU-0, said last: "
        "all-reduce of 8 bytes");
    assert_string_equal(missing(1u << 7),
                        "rank 7 (node n3, device GPU-7); it said last: "
                        "all-reduce of 8 bytes");
}

/* From the least suspicious to the most, each added to the ones before. */
static void test_order(void **state)
{
    (void)state;
    all_wait();
    say(1, STATE(WAITS), 39, 15000);
    assert_string_equal(
        missing(0xff),
        "rank 1 (node n0, device GPU-1), which is behind the others; the other "
        "7 wait; it said last: all-reduce of 8 bytes");
    say(2, STATE(NONE), 60, 0);
    assert_string_equal(missing(0xff),
                        "rank 2 (node n1, device GPU-2); the other 7 wait; it "
                        "said last: all-reduce of 8 bytes");
    say(3, STATE(WORKS), 60, 14500);
    assert_string_equal(
        missing(0xff),
        "rank 3 (node n1, device GPU-3), at work on the host for 15.5 s; the "
        "other 7 wait; it said last: all-reduce of 8 bytes");
    say(4, STATE(DEAF), 60, 15000);
    assert_string_equal(
        missing(0xff),
        "rank 4 (node n2, device GPU-4), whose device does not answer; the "
        "other 7 wait; it said last: all-reduce of 8 bytes");
    say(5, STATE(INSIDE), 60, 14000);
    assert_string_equal(
        missing(0xff),
        "rank 5 (node n2, device GPU-5), inside ncclAllReduce for 15 s; the "
        "other 7 wait; it said last: all-reduce of 8 bytes");
    say_at(14000, 6, STATE(INSIDE), 60, 14000);
    assert_string_equal(
        missing(0xff),
        "rank 6 (node n3, device GPU-6), which has said nothing for 6 s; the "
        "other 7 wait; it said last: all-reduce of 8 bytes");
    say_at(3000, 7, STATE(STOPPED), 0, 0);
    assert_string_equal(
        missing(0xff),
        "rank 7 (node n3, device GPU-7), whose process is stopped; the other 7 "
        "wait; it said last: all-reduce of 8 bytes");
    assert_string_equal(missing(0x11),
                        "rank 4 (node n2, device GPU-4), whose device does not "
                        "answer; the other one waits; it said last: all-reduce "
                        "of 8 bytes");
}

/* Two of a kind: the one that has come least far, or both. */
static void test_progress(void **state)
{
    (void)state;
    all_wait();
    say(2, STATE(INSIDE), 40, 15000);
    say(6, STATE(INSIDE), 39, 15000);
    assert_string_equal(
        missing(0xff),
        "rank 6 (node n3, device GPU-6), inside ncclAllReduce for 16 s; the "
        "other 7 wait; it said last: all-reduce of 8 bytes");
    say(2, STATE(INSIDE), 39, 15000);
    assert_string_equal(
        missing(0xff),
        "ranks 2,6 (nodes n[1,3]), each inside a call of a library; the other "
        "6 wait; rank 2, device GPU-2, said last: all-reduce of 8 bytes");
    /* How far silent ones have come meanwhile is not known. */
    say_at(1000, 0, STATE(WAITS), 3, 0);
    say_at(1000, 3, STATE(WAITS), 4, 0);
    assert_string_equal(
        missing(0xff),
        "ranks 0,3 (nodes n[0-1]), which say nothing any more; the other 6 "
        "wait; rank 0, device GPU-0, said last: all-reduce of 8 bytes");
}

/* Of ranks that wait at the same step those in which NCCL has come least far,
 * as far as that is known. */
static void test_stage(void **state)
{
    (void)state;
    static const uint32_t stages[] = {5, 5, 5, 4, 5, 5, 0, 5};
    for (uint32_t rank = 0; rank < 8; rank++) {
        Gpul__ProbePhase said = GPUL__PROBE_PHASE__INIT;
        said.state = STATE(WAITS);
        said.progress = 1;
        said.stage = stages[rank];
        assert_int_equal(probes_say(&probes, rank, &said, 19000), 0);
    }
    assert_string_equal(missing(0xff),
                        "rank 3 (node n1, device GPU-3), whose NCCL is behind "
                        "that of the others; the other 7 wait");
    assert_string_equal(missing(0xf7),
                        "ranks 0-2,4-5,7 (nodes n[0-3]); all of them wait, so "
                        "which one holds up the others cannot be told; the "
                        "other one waits");
    probes.reports[5].stage = 4;
    assert_string_equal(missing(0xff),
                        "ranks 3,5 (nodes n[1-2]), whose NCCL is behind that "
                        "of the others; the other 6 wait");
    /* The step comes first. */
    probes.reports[7].progress = 0;
    assert_string_equal(missing(0xff),
                        "rank 7 (node n3, device GPU-7), which is behind the "
                        "others; the other 7 wait");
}

/* What began a moment ago holds up nobody. */
static void test_moment(void **state)
{
    (void)state;
    all_wait();
    say(2, STATE(INSIDE), 40, 3900);
    say(3, STATE(WORKS), 40, 3900);
    missing(0xff);
    assert_non_null(strstr(text.bytes, "all of them wait"));
    say(3, STATE(WORKS), 40, 4000);
    missing(0xff);
    assert_non_null(strstr(text.bytes, "rank 3 "));
    say(2, STATE(INSIDE), 40, 4000);
    missing(0xff);
    assert_non_null(strstr(text.bytes, "rank 2 "));
}

/* Numbers beyond all sense: no time is longer than the phase. */
static void test_odd(void **state)
{
    (void)state;
    all_wait();
    say(2, STATE(INSIDE), UINT32_MAX, UINT32_MAX);
    assert_string_equal(
        missing(0xff),
        "rank 2 (node n1, device GPU-2), inside ncclAllReduce for 20 s; the "
        "other 7 wait; it said last: all-reduce of 8 bytes");
    say(2, STATE(WAITS), UINT32_MAX, UINT32_MAX);
    missing(0xff);
    assert_non_null(strstr(text.bytes, "ranks 0-1,3-7 "));
    assert_non_null(strstr(text.bytes, "cannot be told; the other one waits"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_ranges),   TEST(test_all_wait), TEST(test_order),
        TEST(test_progress), TEST(test_stage),    TEST(test_moment),
        TEST(test_odd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
