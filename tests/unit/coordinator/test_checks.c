/* SPDX-License-Identifier: Apache-2.0
 *
 * Findings as a whole: who is named, in which order, what is no pass.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/rng.h"
#include "tests/unit/coordinator/checks_stage.h"

static int end(void **state)
{
    (void)state;
    stage_end();
    return 0;
}

/* Equal nodes that are well: every check that applies has passed. */
static void test_well(void **state)
{
    (void)state;
    stage_begin(4);
    stage_judge();
    for (size_t i = 0; i < checks.finding_count; i++) {
        if (checks.findings[i].severity != CHECK_PASS) {
            fail_msg("%s: %s", check_id(checks.findings[i].check),
                     checks.findings[i].text);
        }
    }
    assert_true(checks.counts[CHECK_PASS] > 45);
    stage_expect_pass("VER-304");
    stage_expect_pass("HOST-510");
    stage_expect_none("GPU-201");
}

/* "15 nodes have 570.x; node c has 565.x". */
static void test_minority(void **state)
{
    (void)state;
    stage_begin(16);
    stage_say(11, "nvidia.driver", "565.57.01");
    stage_judge();
    stage_expect("VER-304", CHECK_WARN, "n11",
                 "NVIDIA driver differs: n11 has 565.57.01; 15 nodes have "
                 "570.86.15");
    const struct checks_finding *f = stage_find("VER-304");
    assert_string_equal(f->value, "565.57.01");
    assert_string_equal(f->expected, "570.86.15");
}

static void test_tie(void **state)
{
    (void)state;
    stage_begin(4);
    stage_say(1, "os.kernel", "6.8.0");
    stage_say(3, "os.kernel", "6.8.0");
    stage_judge();
    stage_expect("VER-305", CHECK_WARN, "n0 n1 n2 n3",
                 "n[0,2] have 6.1.0-18-amd64, n[1,3] have 6.8.0; no majority");
    assert_string_equal(stage_find("VER-305")->expected, "");
}

static void test_missing_words(void **state)
{
    (void)state;
    stage_begin(3);
    stage_say(2, "nvidia.count", "1");
    stage_say(2, "nvidia.bus_ids", "0000:1b:00.0");
    stage_judge();
    stage_expect("GPU-202", CHECK_WARN, "n2",
                 "n2 has 1; 2 nodes have 2; not on n2: 0000:43:00.0");
}

static void test_variables(void **state)
{
    (void)state;
    stage_begin(3);
    stage_forget(0, "env.NCCL_DEBUG");
    stage_say(1, "env.NCCL_ALGO", "Ring");
    stage_judge();
    stage_expect("ENV-130", CHECK_WARN, "n0",
                 "environment variable NCCL_DEBUG differs: n0 has it not set");
    stage_expect("ENV-130", CHECK_WARN, "n1",
                 "NCCL_ALGO differs: n1 has Ring; 2 nodes have it not set");
}

/* An interface that only some have is not compared there. */
static void test_mtu(void **state)
{
    (void)state;
    stage_begin(3);
    stage_say(0, "net.mtu.eth1", "1500");
    stage_judge();
    stage_expect_pass("NET-160");
    stage_say(1, "net.mtu.eth0", "1500");
    stage_judge();
    stage_expect("NET-160", CHECK_WARN, "n1",
                 "MTU of eth0 differs: n1 has 1500; 2 nodes have 9000");
}

/* What could not be read, and what was not told, is never a pass. */
static void test_unknown(void **state)
{
    (void)state;
    stage_begin(3);
    stage_unknown(1, "nvidia.driver", "no answer within 5 s");
    stage_forget(2, "limit.memlock.hard");
    stage_unknown(2, "survey.limit", "ended by signal 9");
    stage_judge();
    stage_expect("VER-304", CHECK_UNKNOWN, "n1",
                 "NVIDIA driver: n1: no answer within 5 s");
    stage_expect("HOST-502", CHECK_UNKNOWN, "n2",
                 "limit.memlock.hard: ended by signal 9");
    assert_int_equal(checks.counts[CHECK_UNKNOWN], 2);
    assert_int_equal(checks.counts[CHECK_FAIL], 0);
}

/* What nobody asked for is not missed; what hangs is. */
static void test_not_asked(void **state)
{
    static const char *const data[] = {
        "data.path",        "data.filesystem",
        "data.sequential",  "data.sequential_is_cached",
        "data.small_files", "data.small_files_are_cached"};
    (void)state;
    stage_begin(2);
    stage_forget(STAGE_ALL, "command.path");
    for (size_t i = 0; i < sizeof(data) / sizeof(data[0]); i++) {
        stage_forget(STAGE_ALL, data[i]);
    }
    stage_judge();
    stage_expect_none("HOST-530");
    stage_expect_none("HOST-532");
    stage_expect_none("ENV-141");
    stage_unknown(1, "survey.data", "no answer within 25 s");
    stage_unknown(1, "survey.command", "no answer within 5 s");
    stage_judge();
    stage_expect("HOST-530", CHECK_UNKNOWN, "n1", "no answer within 25 s");
    stage_expect("HOST-532", CHECK_UNKNOWN, "n1", "no answer within 25 s");
    stage_expect("ENV-141", CHECK_UNKNOWN, "n1", "no answer within 5 s");
}

/* A node whose survey as a whole went wrong. */
static void test_no_survey(void **state)
{
    (void)state;
    stage_begin(1);
    stage_forget(0, "limit.memlock.hard");
    stage_unknown(0, "survey", "it was ended by signal 9");
    stage_judge();
    stage_expect("HOST-502", CHECK_UNKNOWN, "n0", "it was ended by signal 9");
}

static void test_silence(void **state)
{
    (void)state;
    stage_begin(3);
    stage_silence(1);
    stage_judge();
    stage_expect("HOST-500", CHECK_UNKNOWN, "n1", "nothing came from n1");
    stage_expect_pass("VER-304"); /* the other two agree */
}

/* One node has nobody to be compared with. */
static void test_alone(void **state)
{
    (void)state;
    stage_begin(1);
    stage_judge();
    stage_expect_none("VER-304");
    stage_expect_none("ENV-130");
    stage_expect_pass("HOST-502");
}

static void test_order(void **state)
{
    (void)state;
    stage_begin(4);
    stage_say(3, "limit.memlock.hard", "8388608");
    stage_say(2, "os.governor", "powersave");
    stage_say(0, "os.clock_source", "hpet");
    stage_unknown(1, "shm.size", "permission denied");
    stage_say(1, "limit.stack.soft", "1048576");
    stage_judge();
    static const char *const order[] = {"HOST-502", "HOST-505", "HOST-520",
                                        "HOST-521", "HOST-501"};
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        assert_string_equal(check_id(checks.findings[i].check), order[i]);
    }
    assert_int_equal(checks.findings[5].severity, CHECK_PASS);
}

static void test_sentences(void **state)
{
    (void)state;
    stage_begin(2);
    assert_int_equal(checks_init(&checks, 2, &stage_need), 0);
    uint64_t second = 2;
    assert_int_equal(
        checks_add_sentence(&checks, CHECK_WARN, &second,
                            "GPU-240 the links of the devices differ"),
        0);
    assert_int_equal(checks_add_sentence(&checks, CHECK_FAIL, NULL,
                                         "GPU-201 a device is shared"),
                     0);
    assert_int_equal(
        checks_add_sentence(&checks, CHECK_FAIL, NULL, "NONE-1 is no check"),
        GPUL_ENOTFOUND);
    assert_int_equal(checks_judge(&checks, &stage_roster), 0);
    stage_expect("GPU-240", CHECK_WARN, "n1", "links of the devices differ");
    stage_expect("GPU-201", CHECK_FAIL, "", "a device is shared");
}

/* What GPUs say of themselves has IDs of its own, or none. */
static void test_gpus(void **state)
{
    (void)state;
    stage_begin(3);
    stage_say(1, "gpu.finding.0",
              "GPU-231 3 uncorrected ECC errors (GPU 0000:1B:00.0)");
    stage_say(2, "gpu.finding.0", "2 processes use the GPU already");
    stage_unknown(2, "gpu.finding.1", "0000:1B:00.0: could not be read: ECC");
    stage_say(0, "gpu.ecc", "off");
    stage_judge();
    stage_expect("GPU-231", CHECK_FAIL, "n1",
                 "n1 has 3 uncorrected ECC errors (GPU 0000:1B:00.0)");
    stage_expect("GPU-250", CHECK_WARN, "n2", "2 processes");
    stage_expect("GPU-250", CHECK_UNKNOWN, "n2", "could not be read");
    stage_expect("GPU-205", CHECK_WARN, "n0", "n0 has off; 2 nodes have on");
    stage_expect_none("GPU-232");
}

/* The survey's own word of an ID counts, not a second one. */
static void test_twice(void **state)
{
    (void)state;
    stage_begin(3);
    Gpul__Survey survey = GPUL__SURVEY__INIT;
    Gpul__Fact driver = GPUL__FACT__INIT;
    Gpul__Fact *facts[] = {&driver};
    driver.key = wire_text("nvidia.driver");
    survey.facts = facts;
    survey.n_facts = 1;
    assert_int_equal(checks_init(&checks, 3, &stage_need), 0);
    for (uint32_t i = 0; i < 3; i++) {
        driver.value = wire_text(i == 0 ? "565.57.01" : "570.86.15");
        assert_int_equal(checks_add(&checks, i, &survey), 0);
    }
    assert_int_equal(checks_add_sentence(&checks, CHECK_WARN, NULL,
                                         "VER-304 the kernel drivers differ"),
                     0);
    assert_int_equal(checks_judge(&checks, &stage_roster), 0);
    size_t count = 0;
    for (size_t i = 0; i < checks.finding_count; i++) {
        count += strcmp(check_id(checks.findings[i].check), "VER-304") == 0;
    }
    assert_int_equal(count, 1);
    stage_expect("VER-304", CHECK_WARN, "n0", "n0 has 565.57.01");
}

/* Whatever the nodes say: exactly those outside the largest group are named,
 * and all of them where no group is the largest. */
static void test_any_minority(void **state)
{
    (void)state;
    static const char *const values[] = {"a", "b", "c", "d"};
    struct gpul_rng rng;
    gpul_rng_init(&rng, 20261201);
    for (int round = 0; round < 300; round++) {
        uint32_t nodes = 2 + (uint32_t)gpul_rng_below(&rng, 63);
        uint32_t kinds = 1 + (uint32_t)gpul_rng_below(&rng, 4);
        uint32_t chosen[64], counts[4] = {0};
        stage_begin(nodes);
        for (uint32_t i = 0; i < nodes; i++) {
            chosen[i] = (uint32_t)gpul_rng_below(&rng, kinds);
            counts[chosen[i]]++;
            stage_say(i, "os.thp", values[chosen[i]]);
        }
        uint32_t most = 0, leaders = 0, groups = 0;
        for (uint32_t k = 0; k < 4; k++) {
            most = counts[k] > most ? counts[k] : most;
            groups += counts[k] > 0;
        }
        for (uint32_t k = 0; k < 4; k++) {
            leaders += counts[k] == most;
        }
        stage_judge();
        const struct checks_finding *f = stage_find("HOST-522");
        assert_non_null(f);
        assert_int_equal(f->severity, groups > 1 ? CHECK_WARN : CHECK_PASS);
        for (uint32_t i = 0; i < nodes; i++) {
            bool is_named =
                groups > 1 && (leaders > 1 || counts[chosen[i]] < most);
            assert_int_equal(checks_names(f, i), is_named);
        }
    }
}

/* Every node differs in something, and 10,000 are judged as one is. */
static void test_many(void **state)
{
    (void)state;
    enum { NODES = 10000 };
    static char values[NODES][24];
    stage_begin(NODES);
    for (uint32_t i = 0; i < NODES; i++) {
        snprintf(values[i], sizeof(values[i]), "%u", i);
        stage_say(i, "env.NCCL_DEBUG", values[i]);
        stage_say(i, "shm.free", values[i]);
    }
    stage_say(4711, "nvidia.driver", "565.57.01");
    stage_judge();
    stage_expect("VER-304", CHECK_WARN, "n4711", "9999 nodes have 570.86.15");
    const struct checks_finding *f = stage_find("HOST-501");
    assert_int_equal(f->severity, CHECK_FAIL);
    for (uint32_t i = 0; i < NODES; i++) {
        assert_true(checks_names(f, i));
    }
    assert_true(strlen(f->text) < GPUL_TEXT_BYTES_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_well, end),
        cmocka_unit_test_teardown(test_minority, end),
        cmocka_unit_test_teardown(test_tie, end),
        cmocka_unit_test_teardown(test_missing_words, end),
        cmocka_unit_test_teardown(test_variables, end),
        cmocka_unit_test_teardown(test_mtu, end),
        cmocka_unit_test_teardown(test_unknown, end),
        cmocka_unit_test_teardown(test_not_asked, end),
        cmocka_unit_test_teardown(test_no_survey, end),
        cmocka_unit_test_teardown(test_silence, end),
        cmocka_unit_test_teardown(test_alone, end),
        cmocka_unit_test_teardown(test_order, end),
        cmocka_unit_test_teardown(test_sentences, end),
        cmocka_unit_test_teardown(test_gpus, end),
        cmocka_unit_test_teardown(test_twice, end),
        cmocka_unit_test_teardown(test_any_minority, end),
        cmocka_unit_test_teardown(test_many, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
