/* SPDX-License-Identifier: Apache-2.0
 *
 * More ranks than one unique ID serves, each a process of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/wait.h>

#include <cmocka.h>

#include "tests/lib/gpustage.h"

static struct stage stage;

static int teardown(void **state)
{
    (void)state;
    stage_end(&stage);
    return 0;
}

/* 300 ranks on 38 nodes use three IDs, made by ranks 0, 100 and 200, and all
 * come to a good end. A size of 8 bytes leaves out what needs a connection
 * between any two of them. */
static void test_300_ranks(void **state)
{
    (void)state;
    Gpul__Sweep sweep = GPUL__SWEEP__INIT;
    sweep.bytes_min = 8;
    sweep.bytes_max = 8;
    sweep.iterations = 1;
    sweep.warmup = 1; /* none */
    const struct stage_spec spec = {.scenario = "",
                                    .nodes = 38,
                                    .per_node = 8,
                                    .count = 300,
                                    .id_count = 3,
                                    .sweep = &sweep};
    stage_start(&stage, &spec, false);
    stage_until(&stage, 0, stage_is_gone);
    for (uint32_t i = 0; i < 300; i++) {
        const Gpul__ProbeResult *result = stage.probes[i].result->probe_result;
        assert_string_equal(result->error, "");
        assert_string_equal(result->phase, "end");
        assert_int_equal(result->wrong_elements, 0);
        assert_int_equal(result->n_rows, 3);
        assert_int_equal(WEXITSTATUS(stage.probes[i].status), 0);
        assert_int_equal(stage.probes[i].id != NULL, i % 100 == 0);
        if (i % 100 == 0) {
            assert_int_equal(stage.probes[i].id->probe_id->index, i / 100);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_300_ranks, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
