/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/probes.h"
#include "coordinator/text.h"

enum { RANKS = 24 };

static struct probes probes;

static int setup(void **state)
{
    (void)state;
    return probes_init(&probes, RANKS, 1000);
}

static int teardown(void **state)
{
    (void)state;
    probes_release(&probes);
    return 0;
}

/* A step implies the ones before it, counts once, and is never taken back. */
static void test_steps(void **state)
{
    (void)state;
    assert_true(probes_pass(&probes, 3, PROBES_COLL));
    assert_false(probes_pass(&probes, 3, PROBES_COLL));
    assert_false(probes_pass(&probes, 3, PROBES_CUDA));
    assert_false(probes_pass(&probes, 3, PROBES_NOTHING));
    assert_true(probes_pass(&probes, 4, PROBES_CUDA));
    assert_int_equal(probes.passed[PROBES_CUDA], 2);
    assert_int_equal(probes.passed[PROBES_INIT], 1);
    assert_int_equal(probes.passed[PROBES_COLL], 1);
    assert_int_equal(probes.passed[PROBES_END], 0);
    assert_int_equal(probes.steps[3], PROBES_COLL);
}

static void say(uint32_t rank, Gpul__ProbePhase__State state, uint32_t progress,
                const char *text, const char *call)
{
    Gpul__ProbePhase said = GPUL__PROBE_PHASE__INIT;
    said.state = state;
    said.progress = progress;
    said.since_ms = 70;
    said.text = wire_text(text);
    said.call = wire_text(call);
    assert_int_equal(probes_say(&probes, rank, &said, 2000), 0);
}

/* The last report counts; words and call of before stay where it has none,
 * and an agent that sees a process stopped knows nothing of its progress. */
static void test_reports(void **state)
{
    (void)state;
    const struct probes_report *report = &probes.reports[7];
    assert_int_equal(report->heard_ms, 1000);
    assert_null(report->words);
    assert_null(report->call);
    say(7, GPUL__PROBE_PHASE__STATE__STATE_INSIDE, 5, "waiting", "ncclSend");
    say(7, GPUL__PROBE_PHASE__STATE__STATE_STOPPED, 0, "", "");
    assert_int_equal(report->state, GPUL__PROBE_PHASE__STATE__STATE_STOPPED);
    assert_int_equal(report->progress, 5);
    assert_int_equal(report->since_ms, 70);
    assert_int_equal(report->heard_ms, 2000);
    assert_string_equal(report->words, "waiting");
    assert_string_equal(report->call, "ncclSend");
    say(7, GPUL__PROBE_PHASE__STATE__STATE_WAITS, 0, "checking", "");
    assert_int_equal(report->progress, 0);
    assert_string_equal(report->words, "checking");
}

/* Long words are cut between characters. */
static void test_words(void **state)
{
    (void)state;
    char words[PROBES_WORDS_BYTES_MAX + 8];
    memset(words, 'a', sizeof(words));
    words[sizeof(words) - 1] = 0;
    memcpy(words + PROBES_WORDS_BYTES_MAX - 1, "\xe2\x82\xac", 3);
    say(0, GPUL__PROBE_PHASE__STATE__STATE_NONE, 0, words, "");
    assert_int_equal(strlen(probes.reports[0].words),
                     PROBES_WORDS_BYTES_MAX - 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_steps),
        TEST(test_reports),
        TEST(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
