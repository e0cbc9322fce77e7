/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/probes.h"

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
    return probes_init(&probes, RANKS);
}

static int teardown(void **state)
{
    (void)state;
    probes_release(&probes);
    facts_release(&facts);
    roster_release(&roster);
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

/* Bits of the ranks that are missing. */
static bool is_missing(const struct probes *p, uint32_t rank, const void *arg)
{
    (void)p;
    const uint32_t *bits = arg;
    return (*bits >> rank & 1u) != 0;
}

static const char *missing(uint32_t bits)
{
    probes_missing(&text, &probes, &facts, &roster, is_missing, &bits);
    return text.bytes;
}

/* One rank with its device and words; several as ranges, the first of them
 * with its words; more than ten ranges or nodes are counted. */
static void test_missing(void **state)
{
    (void)state;
    assert_string_equal(missing(1u << 7), "rank 7 (node n3, device GPU-7)");
    assert_string_equal(missing(0x38), "ranks 3-5 (nodes n[1-2])");
    assert_string_equal(missing(0x0c), "ranks 2-3 (node n1)");
    assert_int_equal(probes_say(&probes, 7, "waiting"), 0);
    assert_int_equal(probes_say(&probes, 7, "connecting to 10.0.0.1"), 0);
    assert_string_equal(missing(1u << 7),
                        "rank 7 (node n3, device GPU-7); it said last: "
                        "connecting to 10.0.0.1");
    assert_string_equal(missing(0x380),
                        "ranks 7-9 (nodes n[3-4]); rank 7, device GPU-7, said "
                        "last: connecting to 10.0.0.1");
    assert_string_equal(missing(0x555555),
                        "ranks 0,2,4,6,8,10,12,14,16,18 and 2 more (nodes "
                        "n[0-9] and 2 more)");
}

/* Long words are cut between characters. */
static void test_words(void **state)
{
    (void)state;
    char words[PROBES_WORDS_BYTES_MAX + 8];
    memset(words, 'a', sizeof(words));
    words[sizeof(words) - 1] = 0;
    memcpy(words + PROBES_WORDS_BYTES_MAX - 1, "\xe2\x82\xac", 3);
    assert_int_equal(probes_say(&probes, 0, words), 0);
    assert_int_equal(strlen(probes.words[0]), PROBES_WORDS_BYTES_MAX - 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_steps),
        TEST(test_missing),
        TEST(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
