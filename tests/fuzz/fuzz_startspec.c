/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes are either refused with a reason, or make a specification that
 * can be walked to its ends, within the bytes, and that survives being
 * encoded and decoded once more.
 *
 * Input: the encoded form.
 */
#include <string.h>

#include "tests/lib/fuzz.h"
#include "worker/startspec.h"

static size_t walk(char *const *list)
{
    size_t bytes = 0;
    for (; *list != NULL; list++) {
        bytes += strlen(*list);
    }
    return bytes;
}

static void check_same(char *const *a, char *const *b)
{
    for (; *a != NULL && *b != NULL; a++, b++) {
        FUZZ_CHECK(strcmp(*a, *b) == 0);
    }
    FUZZ_CHECK(*a == NULL && *b == NULL);
}

static void check_again(const struct startspec *spec)
{
    struct gpul_buf out;
    struct startspec again;
    gpul_buf_init(&out, STARTSPEC_BYTES_MAX);
    /* Strings that share bytes take more when they no longer do. */
    if (startspec_encode(&out, spec, NULL) == 0) {
        FUZZ_CHECK(startspec_decode(&again, out.data, out.used, NULL) == 0);
        FUZZ_CHECK(strcmp(again.path, spec->path) == 0);
        check_same(again.arguments, spec->arguments);
        check_same(again.environment, spec->environment);
        FUZZ_CHECK(again.has_cpus == spec->has_cpus);
        FUZZ_CHECK(memcmp(again.cpus, spec->cpus, sizeof(spec->cpus)) == 0);
    }
    gpul_buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *bytes = malloc(n > 0 ? n : 1); /* exact, for the sanitizer */
    FUZZ_CHECK(bytes != NULL);
    if (n > 0) {
        memcpy(bytes, data, n);
    }
    struct startspec spec;
    struct gpul_error err = {0};
    if (startspec_decode(&spec, bytes, n, &err) == 0) {
        FUZZ_CHECK(spec.arguments[0] != NULL);
        FUZZ_CHECK(walk(spec.arguments) + walk(spec.environment) < n * n);
        FUZZ_CHECK(spec.path >= bytes && spec.path < bytes + n);
        check_again(&spec);
    } else {
        FUZZ_CHECK(err.text[0] != 0);
    }
    free(bytes);
    return 0;
}
