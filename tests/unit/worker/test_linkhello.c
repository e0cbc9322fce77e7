/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "worker/linkhello.h"

static void test_round(void **state)
{
    (void)state;
    const struct linkhello in = {
        .token = UINT64_C(0x0123456789abcdef), .from = 7, .to = 131071};
    uint8_t bytes[LINKHELLO_BYTES];
    struct linkhello out;
    linkhello_write(bytes, &in);
    assert_memory_equal(bytes,
                        "gpulink1\x01\x23\x45\x67\x89\xab\xcd\xef"
                        "\0\0\0\x07\0\x01\xff\xff",
                        sizeof(bytes));
    assert_true(linkhello_read(&out, bytes));
    assert_true(out.token == in.token && out.from == 7 && out.to == 131071);
}

static void test_stranger(void **state)
{
    (void)state;
    uint8_t bytes[LINKHELLO_BYTES] = "GET / HTTP/1.1\r\n";
    struct linkhello out;
    assert_false(linkhello_read(&out, bytes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round),
        cmocka_unit_test(test_stranger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
