/* SPDX-License-Identifier: Apache-2.0
 *
 * Any text either gives a map in which every rank has one role and the ranks
 * of a role are a run, or is refused with a reason and gives an empty map.
 *
 * Input: the text.
 */
#include <string.h>

#include "common/rolemap.h"
#include "tests/lib/fuzz.h"

/* The first and the last rank of every role that has ranks. */
static void check_ranks(const struct gpul_rolemap *m)
{
    uint32_t total = 0;
    for (unsigned r = 0; r < GPUL_ROLE_COUNT; r++) {
        uint32_t count = m->counts[r];
        FUZZ_CHECK(count == 0 ||
                   gpul_rolemap_first(m, (enum gpul_role)r) == total);
        for (uint32_t i = 0; i < count; i = i + 1 < count ? count - 1 : count) {
            uint32_t index;
            FUZZ_CHECK(gpul_rolemap_role(m, total + i, &index) == r);
            FUZZ_CHECK(index == i);
        }
        total += count;
    }
    FUZZ_CHECK(total > 0 && total == gpul_rolemap_total(m));
}

/* Some rank decides success. */
static void check_decides(const struct gpul_rolemap *m)
{
    uint32_t chief = gpul_rolemap_first(m, GPUL_ROLE_CHIEF);
    uint32_t worker = gpul_rolemap_first(m, GPUL_ROLE_WORKER);
    FUZZ_CHECK(m->counts[GPUL_ROLE_CHIEF] > 0
                   ? gpul_rolemap_decides(m, chief)
                   : gpul_rolemap_decides(m, worker));
}

static void check_again(const struct gpul_rolemap *m)
{
    struct gpul_rolemap again = {0};
    for (unsigned r = 0; r < GPUL_ROLE_COUNT; r++) {
        FUZZ_CHECK(gpul_rolemap_add(&again, gpul_role_name((enum gpul_role)r),
                                    m->counts[r], NULL) == 0);
    }
    FUZZ_CHECK(gpul_rolemap_check(&again, NULL) == 0);
    FUZZ_CHECK(memcmp(&again, m, sizeof(again)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = malloc(n + 1);
    FUZZ_CHECK(text != NULL);
    if (n > 0) {
        memcpy(text, data, n);
    }
    text[n] = 0;
    struct gpul_rolemap m;
    struct gpul_error err = {0};
    if (gpul_rolemap_parse(&m, text, &err) == 0) {
        check_ranks(&m);
        check_decides(&m);
        check_again(&m);
    } else {
        FUZZ_CHECK(err.text[0] != 0);
        FUZZ_CHECK(gpul_rolemap_total(&m) == 0);
    }
    free(text);
    return 0;
}
