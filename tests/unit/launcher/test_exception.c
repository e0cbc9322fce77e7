/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "launcher/exception.h"

static struct exception x;

static bool parse(const char *json)
{
    return exception_parse(&x, (const uint8_t *)json, strlen(json));
}

/* As PyTorch 2.x writes it: its own wrapper is no frame of the user's. */
static void test_of_torch(void **state)
{
    (void)state;
    assert_true(parse(
        "{\"message\": {\"message\": \"RuntimeError: shape mismatch\\nin "
        "layer 3\", \"extraInfo\": {\"py_callstack\": \"Traceback (most recent "
        "call last):\\n  File \\\"/usr/lib/python3/torch/distributed/elastic/"
        "multiprocessing/errors/__init__.py\\\", line 355, in wrapper\\n    "
        "return f(*args, **kwargs)\\n  File \\\"/job/train.py\\\", line 12, in "
        "main\\n    step(x)\\n  File \\\"/job/model.py\\\", line 40, in forward"
        "\\n    raise RuntimeError(m)\\nRuntimeError: shape mismatch\\n\", "
        "\"timestamp\": \"1796077000\"}}}"));
    assert_string_equal(x.type, "RuntimeError");
    assert_string_equal(x.message, "shape mismatch");
    assert_string_equal(x.first, "/job/train.py:12 in main");
    assert_string_equal(x.last, "/job/model.py:40 in forward");
    assert_non_null(strstr(x.traceback, "    step(x)\n"));
}

/* Of two tracebacks the last one ended the program. */
static void test_of_two(void **state)
{
    (void)state;
    assert_true(parse(
        "{\"message\":{\"message\":\"a.b.Error\",\"extraInfo\":{"
        "\"py_callstack\":\"Traceback (most recent call last):\\n  File \\\"a\\"
        "\", line 1, in f\\n\\nDuring handling\\n\\nTraceback (most recent "
        "call last):\\n  File \\\"b\\\", line 2\\n  File \\\"c\"}}}"));
    assert_string_equal(x.type, "a.b.Error");
    assert_string_equal(x.message, "");
    assert_string_equal(x.first, "b:2");
    assert_string_equal(x.last, "b:2");
}

static void test_other_forms(void **state)
{
    (void)state;
    assert_true(parse("{\"message\": \"it went wrong: badly\"}"));
    assert_string_equal(x.type, "");
    assert_string_equal(x.message, "it went wrong: badly");
    assert_string_equal(x.first, "");
    assert_string_equal(x.traceback, "");
    /* Nothing of it moves a cursor. */
    assert_true(parse("{\"message\":\"E: \\u001b[2Ja\\u0007\\tb\"}"));
    assert_string_equal(x.type, "E");
    assert_string_equal(x.message, "?[2Ja??b");
}

/* What a program may put there instead. */
static void test_nonsense(void **state)
{
    (void)state;
    static const char *const all[] = {
        "",
        "{",
        "[]",
        "7",
        "{}",
        "{\"message\": 7}",
        "{\"message\": {}}",
        "{\"message\": \"\"}",
        "{\"message\": {\"message\": null, \"extraInfo\": []}}",
        "{\"message\": \"a\xff\"}",
        "{\"message\": \"nul \\u0000\"}",
        "{\"message\": \"cut o",
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        assert_false(parse(all[i]));
    }
    static char deep[16 << 10];
    memset(deep, '[', sizeof(deep));
    assert_false(exception_parse(&x, (const uint8_t *)deep, sizeof(deep)));
    assert_false(exception_parse(&x, NULL, 0));
}

/* Long texts are cut. */
static void test_bounds(void **state)
{
    (void)state;
    static char json[16 << 10];
    int n = snprintf(json, sizeof(json), "{\"message\": \"%08000d\"}", 0);
    assert_true(exception_parse(&x, (const uint8_t *)json, (size_t)n));
    assert_int_equal(strlen(x.message), EXCEPTION_MESSAGE_BYTES - 1);
    n = snprintf(json, sizeof(json),
                 "{\"message\":{\"message\":\"E\",\"extraInfo\":{"
                 "\"py_callstack\":\"  File \\\"%08000d\\\", line 9, in "
                 "%05000d\"}}}",
                 0, 0);
    assert_true(exception_parse(&x, (const uint8_t *)json, (size_t)n));
    assert_in_range(strlen(x.last), 256, EXCEPTION_FRAME_BYTES - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_of_torch),    cmocka_unit_test(test_of_two),
        cmocka_unit_test(test_other_forms), cmocka_unit_test(test_nonsense),
        cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
