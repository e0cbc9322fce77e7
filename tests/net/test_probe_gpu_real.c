/* SPDX-License-Identifier: Apache-2.0
 *
 * Probes with the real libraries of this machine, where it has NCCL and no
 * GPU: what they find is told, and that there is no device, plainly.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <sys/wait.h>

#include <cmocka.h>

#include "tests/lib/gpustage.h"

enum { EXIT_SKIPPED = 77 };

static struct stage stage;

static int teardown(void **state)
{
    (void)state;
    stage_end(&stage);
    return 0;
}

static const struct stage_spec machine = {.nodes = 1, .per_node = 1};

static const Gpul__ProbeFacts *scout(void)
{
    stage_start(&stage, &machine, true);
    stage_until(&stage, 0, stage_is_gone);
    assert_int_equal(WEXITSTATUS(stage.probes[0].status), 0);
    return stage.probes[0].facts->probe_facts;
}

/* Path, version and build ID of NCCL, and then why there is no self-test on
 * GPUs: no driver, or no device. */
static void test_scout(void **state)
{
    (void)state;
    const Gpul__ProbeFacts *facts = scout();
    assert_int_equal(facts->nccl->path[0], '/');
    assert_true(facts->nccl->version_code > 21400);
    assert_non_null(strchr(facts->nccl->version, '.'));
    assert_true(strlen(facts->nccl->build_id) >= 16);
    assert_string_equal(facts->nccl->error, "");
    assert_int_equal(facts->n_devices, 0);
    assert_false(facts->is_simulated);
    assert_string_not_equal(facts->error, "");
    print_message("%s %s, build ID %s; %s\n", facts->nccl->path,
                  facts->nccl->version, facts->nccl->build_id, facts->error);
}

/* A probe that is started all the same says what the scout said, and ends. */
static void test_probe(void **state)
{
    (void)state;
    char expected[1025];
    snprintf(expected, sizeof(expected), "%s", scout()->error);
    stage_end(&stage);
    stage_start(&stage, &machine, false);
    stage_until(&stage, 0, stage_is_gone);
    const Gpul__ProbeResult *result = stage.probes[0].result->probe_result;
    assert_string_equal(result->error, expected);
    assert_string_equal(result->phase, "cuda");
    assert_false(result->is_simulated);
    assert_int_equal(WEXITSTATUS(stage.probes[0].status), 0);
}

/* --nccl-lib names a file that is not there: then nothing else is tried. */
static void test_wrong_library(void **state)
{
    (void)state;
    struct stage_spec spec = machine;
    spec.nccl_library = "/nowhere/libnccl.so.2";
    stage_start(&stage, &spec, true);
    stage_until(&stage, 0, stage_is_gone);
    const Gpul__ProbeFacts *facts = stage.probes[0].facts->probe_facts;
    assert_non_null(strstr(facts->nccl->error, "/nowhere/libnccl.so.2"));
    assert_int_equal(facts->nccl->version_code, 0);
}

/* Why nothing can be tested here, or NULL. */
static const char *reason_to_skip(void)
{
    const Gpul__ProbeFacts *facts = scout();
    const char *reason = NULL;
    if (facts->nccl->version_code == 0) {
        reason = "no NCCL on this machine";
    } else if (facts->n_devices > 0) {
        reason = "this machine has a GPU: see the tests of label gpu";
    }
    stage_end(&stage);
    return reason;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_scout, teardown),
        cmocka_unit_test_teardown(test_probe, teardown),
        cmocka_unit_test_teardown(test_wrong_library, teardown),
    };
    const char *reason = reason_to_skip();
    if (reason != NULL) {
        printf("skipped: %s\n", reason);
        return EXIT_SKIPPED;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
