/* SPDX-License-Identifier: Apache-2.0
 *
 * The first bytes of a stranger, as they come one by one: a judgement once
 * passed stands when more bytes come, a size that is asked for is within the
 * bound, and whatever is refused has a kind.
 *
 * Input: the bytes.
 */
#include <string.h>

#include "proto/limits.h"
#include "proto/opening.h"
#include "tests/lib/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    int before = 0;
    enum gpul_stranger kind_before = GPUL_STRANGER_NONE;
    size_t most =
        n < GPUL_FIRST_RECORD_BYTES_MAX ? n : GPUL_FIRST_RECORD_BYTES_MAX;
    for (size_t used = 0; used <= most; used++) {
        enum gpul_stranger kind;
        uint8_t *bytes = malloc(used + 1); /* exact, for the sanitizer */
        FUZZ_CHECK(bytes != NULL);
        if (used > 0) {
            memcpy(bytes, data, used);
        }
        int size = gpul_opening_judge(&kind, bytes, used);
        free(bytes);
        FUZZ_CHECK((size < 0) == (kind != GPUL_STRANGER_NONE));
        FUZZ_CHECK(gpul_stranger_words(kind) != NULL);
        FUZZ_CHECK(size <= (int)GPUL_FIRST_RECORD_BYTES_MAX);
        FUZZ_CHECK((size == 0) == (used < GPUL_OPENING_BYTES));
        FUZZ_CHECK(before >= 0 || (size < 0 && kind == kind_before));
        FUZZ_CHECK(before <= 0 || size < 0 || size == before);
        before = size;
        kind_before = kind;
    }
    return 0;
}
