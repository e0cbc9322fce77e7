/* SPDX-License-Identifier: Apache-2.0
 *
 * GPUs as the double of NVML has them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/worker/survey_stage.h"

/* The double reads its scenario once: each look is in a process of its own,
 * as all of them are in the program. */
static void look(const char *scenario, const char *visible)
{
    char path[128], libraries[512], choice[128];
    snprintf(path, sizeof(path), "%s/scenario", stage_root);
    snprintf(libraries, sizeof(libraries), "LD_LIBRARY_PATH=%s", DOUBLES_DIR);
    snprintf(choice, sizeof(choice), "CUDA_VISIBLE_DEVICES=%s",
             visible != NULL ? visible : "");
    const char *const environment[] = {libraries,
                                       visible != NULL ? choice : NULL, NULL};
    stage_put("/scenario", scenario);
    setenv("GPULAUNCH_DOUBLE_SCENARIO", path, 1);
    setenv("GPULAUNCH_NODE_NAME", "n0", 1);
    stage_request.environment = environment;
    survey_release(&stage_survey);
    assert_int_equal(survey_read(&stage_survey, &stage_request, NULL), 0);
    stage_request.environment = NULL;
}

#define TWO "node * gpus 2 model \"NVIDIA H100\" memory 80GiB"

static void test_two(void **state)
{
    (void)state;
    look(TWO "\n", NULL);
    stage_expect("gpu.count", "2");
    stage_expect("gpu.models", "NVIDIA_H100");
    stage_expect("gpu.memory", "171798691840");
    stage_expect("gpu.memories", "85899345920");
    stage_expect("gpu.ecc", "on");
    stage_expect("gpu.mig", "off");
    stage_expect("gpu.simulated", "yes");
    stage_expect_absent("gpu.finding.0");
    stage_expect_absent("gpu.refused");
}

/* Only what ranks would use. */
static void test_visible(void **state)
{
    (void)state;
    look(TWO "\n", "1,7");
    stage_expect("gpu.count", "1");
    stage_expect("gpu.memory", "85899345920");
    stage_expect("gpu.refused", "7");
    look(TWO "\n", "");
    stage_expect("gpu.count", "0");
    stage_expect("gpu.memory", "none");
}

static void test_findings(void **state)
{
    (void)state;
    look(TWO " ecc-uncorrected 3 pcie-width 8\n", "0");
    const char *first = stage_value("gpu.finding.0");
    assert_memory_equal(first, "GPU-231 3 uncorrected ECC errors", 32);
    assert_non_null(strstr(first, "(GPU 0000"));
    assert_memory_equal(stage_value("gpu.finding.1"), "PCI-513 ", 8);
    look(TWO " ecc none\n", "0");
    stage_expect("gpu.ecc", "unknown");
    stage_expect_unknown("gpu.finding.0", "could not be read: ECC errors");
}

static void test_no_driver(void **state)
{
    (void)state;
    look(TWO " nvml-init 9\n", NULL);
    stage_expect("gpu.count", "0");
    look(TWO " nvml-init 999\n", NULL);
    stage_expect_unknown("gpu.memory", "NVML: ");
    stage_expect_unknown("gpu.count", "NVML: ");
}

#define TEST(function)                                                         \
    cmocka_unit_test_setup_teardown(function, stage_set, stage_clear)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_two),
        TEST(test_visible),
        TEST(test_findings),
        TEST(test_no_driver),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
