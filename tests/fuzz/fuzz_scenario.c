/* SPDX-License-Identifier: Apache-2.0
 *
 * A scenario of the doubles of the GPU libraries: read within its bounds, or
 * refused with a line that says what is wrong.
 *
 * Input: the text.
 */
#include <string.h>

#include "tests/doubles/scenario.h"
#include "tests/lib/fuzz.h"

static void check(const struct scenario *s)
{
    FUZZ_CHECK(s->gpu_count <= SCENARIO_GPUS_MAX);
    FUZZ_CHECK(s->gpu_count == 0 || s->gpus != NULL);
    FUZZ_CHECK(s->fault_count >= 0 && s->fault_count <= SCENARIO_FAULTS_MAX);
    FUZZ_CHECK(s->link_count >= 0 && s->link_count <= SCENARIO_LINKS_MAX);
    FUZZ_CHECK(s->hidden_count >= 0 && s->hidden_count <= SCENARIO_HIDDEN_MAX);
    for (uint64_t i = 0; i < s->gpu_count; i++) {
        FUZZ_CHECK(memchr(s->gpus[i].uuid, 0, SCENARIO_TEXT) != NULL);
        FUZZ_CHECK(memchr(s->gpus[i].model, 0, SCENARIO_TEXT) != NULL);
    }
    for (int i = 0; i < s->fault_count; i++) {
        FUZZ_CHECK(s->faults[i].point >= 0 && s->faults[i].point < POINT_COUNT);
        FUZZ_CHECK(s->faults[i].rank >= SCENARIO_ANY);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char error[SCENARIO_ERROR] = "";
    struct scenario s;
    char *text = malloc(n + 1);
    FUZZ_CHECK(text != NULL);
    if (n > 0) {
        memcpy(text, data, n);
    }
    text[n] = 0;
    if (scenario_parse(&s, text, "node-0", error) == 0) {
        check(&s);
        scenario_release(&s);
    } else {
        FUZZ_CHECK(error[0] != 0 && memchr(error, 0, sizeof(error)) != NULL);
    }
    free(text);
    return 0;
}
