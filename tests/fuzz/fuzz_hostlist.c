/* SPDX-License-Identifier: Apache-2.0
 *
 * Any text either expands within the bound and survives being folded and
 * expanded again, or leaves the list as it was with a reason.
 *
 * Input: the expression.
 */
#include <string.h>

#include "common/hostlist.h"
#include "tests/lib/fuzz.h"

enum { NAMES_MAX = 2000, FOLDED_BYTES_MAX = 1 << 20 };

static void check_same(const struct gpul_hostlist *a,
                       const struct gpul_hostlist *b)
{
    FUZZ_CHECK(a->count == b->count);
    for (size_t i = 0; i < a->count; i++) {
        FUZZ_CHECK(strcmp(a->names[i], b->names[i]) == 0);
        FUZZ_CHECK(gpul_hostlist_compare(a->names[i], b->names[i]) == 0);
    }
}

static void check_folding(const struct gpul_hostlist *names)
{
    struct gpul_buf folded;
    gpul_buf_init(&folded, FOLDED_BYTES_MAX);
    FUZZ_CHECK(gpul_hostlist_fold(&folded, names, 0, names->count) == 0);
    struct gpul_hostlist again;
    gpul_hostlist_init(&again);
    FUZZ_CHECK(gpul_hostlist_expand(&again, gpul_buf_text(&folded), NAMES_MAX,
                                    NULL) == 0);
    check_same(names, &again);
    gpul_hostlist_release(&again);
    gpul_buf_release(&folded);
}

static void check_order(const struct gpul_hostlist *names)
{
    for (size_t i = 1; i < names->count; i++) {
        const char *a = names->names[i - 1];
        const char *b = names->names[i];
        int forth = gpul_hostlist_compare(a, b);
        int back = gpul_hostlist_compare(b, a);
        FUZZ_CHECK((forth > 0) == (back < 0) && (forth < 0) == (back > 0));
        FUZZ_CHECK((forth == 0) == (strcmp(a, b) == 0));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = malloc(n + 1);
    FUZZ_CHECK(text != NULL);
    if (n > 0) {
        memcpy(text, data, n);
    }
    text[n] = 0;
    struct gpul_hostlist names;
    struct gpul_error err = {0};
    gpul_hostlist_init(&names);
    if (gpul_hostlist_expand(&names, text, NAMES_MAX, &err) == 0) {
        FUZZ_CHECK(names.count > 0 && names.count <= NAMES_MAX);
        check_folding(&names);
        check_order(&names);
    } else {
        FUZZ_CHECK(names.count == 0);
        FUZZ_CHECK(err.text[0] != 0);
    }
    gpul_hostlist_release(&names);
    free(text);
    return 0;
}
