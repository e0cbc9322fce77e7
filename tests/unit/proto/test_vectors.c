/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proto/limits.h"
#include "tests/lib/print.h"
#include "tests/lib/samples.h"

static struct gpul_buf read_vector(const char *name)
{
    char path[4096];
    snprintf(path, sizeof(path), TESTS_DIR "/vectors/v1/%s", name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    struct gpul_buf b;
    gpul_buf_init(&b, 1u << 20);
    char bytes[4096];
    size_t n;
    while ((n = fread(bytes, 1, sizeof(bytes), file)) > 0) {
        assert_int_equal(gpul_buf_append(&b, bytes, n), 0);
    }
    fclose(file);
    return b;
}

/* Decode a frozen frame, append "== name" and its text, and see that it is
 * encoded to the same bytes again. */
static void thaw(struct gpul_buf *text, uint32_t type)
{
    char name[64];
    snprintf(name, sizeof(name), "%s.bin", gpul_message_rule(type)->name);
    struct gpul_buf frozen = read_vector(name);
    assert_true(frozen.used > GPUL_FRAME_PREFIX_BYTES);
    Gpul__Frame *frame;
    struct gpul_error err = {0};
    int rc = gpul_message_decode(&frame, frozen.data + GPUL_FRAME_PREFIX_BYTES,
                                 frozen.used - GPUL_FRAME_PREFIX_BYTES,
                                 sample_sender(type), &err);
    assert_string_equal(err.text, "");
    assert_int_equal(rc, 0);
    gpul_buf_appendf(text, "== %s\n", name);
    message_print(text, &frame->base);

    struct gpul_buf again;
    gpul_buf_init(&again, 1u << 20);
    assert_int_equal(gpul_message_encode(&again, frame, NULL), 0);
    assert_int_equal(again.used, frozen.used);
    assert_memory_equal(again.data, frozen.data, frozen.used);
    gpul_buf_release(&again);
    gpul_message_release(frame);
    gpul_buf_release(&frozen);
}

/* Every frame of protocol version 1 still means what it meant when it was
 * frozen, and is still written with the same bytes. */
static void test_version_1(void **state)
{
    (void)state;
    struct gpul_buf got;
    gpul_buf_init(&got, 1u << 20);
    for (uint32_t type = 1; type != 0; type = sample_next(type)) {
        thaw(&got, type);
    }
    struct gpul_buf manifest = read_vector("manifest.txt");
    assert_string_equal(gpul_buf_text(&got), gpul_buf_text(&manifest));
    gpul_buf_release(&manifest);
    gpul_buf_release(&got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version_1),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
