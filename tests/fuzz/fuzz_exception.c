/* SPDX-License-Identifier: Apache-2.0
 *
 * The file that torch writes an exception to, or a rank anything: what is
 * found in it can be shown, whatever it was, and the same each time.
 *
 * Input: the file.
 */
#include <string.h>

#include "launcher/exception.h"
#include "proto/text.h"
#include "tests/lib/fuzz.h"

static void check_text(const char *text, size_t room, enum gpul_text_kind kind)
{
    FUZZ_CHECK(memchr(text, 0, room) != NULL);
    FUZZ_CHECK(gpul_text_is_valid(text, kind));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct exception out, again;
    uint8_t *bytes = malloc(n > 0 ? n : 1); /* exact, for the sanitizer */
    FUZZ_CHECK(bytes != NULL);
    if (n > 0) {
        memcpy(bytes, data, n);
    }
    if (exception_parse(&out, bytes, n)) {
        check_text(out.type, sizeof(out.type), GPUL_TEXT_LINE);
        check_text(out.message, sizeof(out.message), GPUL_TEXT_LINE);
        check_text(out.first, sizeof(out.first), GPUL_TEXT_LINE);
        check_text(out.last, sizeof(out.last), GPUL_TEXT_LINE);
        check_text(out.traceback, sizeof(out.traceback), GPUL_TEXT_LINES);
        FUZZ_CHECK(exception_parse(&again, bytes, n));
        FUZZ_CHECK(strcmp(again.message, out.message) == 0);
    }
    free(bytes);
    return 0;
}
