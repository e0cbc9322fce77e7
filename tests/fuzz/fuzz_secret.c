/* SPDX-License-Identifier: Apache-2.0
 *
 * A text is a secret that is written back as the same digits, or no secret:
 * then nothing is left of it, and what is said does not repeat it.
 *
 * Input: the text.
 */
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "proto/secret.h"
#include "tests/lib/fuzz.h"

static bool is_wiped(const struct gpul_secret *secret)
{
    static const struct gpul_secret none;
    return memcmp(secret, &none, sizeof(none)) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = malloc(n + 1);
    char written[GPUL_SECRET_TEXT_BYTES];
    struct gpul_secret secret, again;
    struct gpul_error err = {0};
    FUZZ_CHECK(text != NULL);
    if (n > 0) {
        memcpy(text, data, n);
    }
    memset(&secret, 1, sizeof(secret));
    if (gpul_secret_parse(&secret, text, n, &err) == 0) {
        gpul_secret_format(written, &secret);
        FUZZ_CHECK(strncasecmp(written, text, GPUL_SECRET_TEXT_BYTES - 2) == 0);
        FUZZ_CHECK(gpul_secret_parse(&again, written, strlen(written), NULL) ==
                   0);
        FUZZ_CHECK(memcmp(&again, &secret, sizeof(secret)) == 0);
    } else {
        text[n] = 0;
        FUZZ_CHECK(is_wiped(&secret));
        FUZZ_CHECK(err.text[0] != 0);
        FUZZ_CHECK(strlen(text) < 16 || strstr(err.text, text) == NULL);
    }
    free(text);
    return 0;
}
