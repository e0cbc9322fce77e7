/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/buf.h"
#include "launcher/envtext.h"

static Gpul__EnvEntry entry(const char *name, const char *value,
                            Gpul__EnvEntry__Action action, const char *rule)
{
    union {
        const char *text;
        uint8_t *bytes;
    } n = {name}, v = {value};
    Gpul__EnvEntry e = {.action = action};
    e.name = (ProtobufCBinaryData){strlen(name), n.bytes};
    e.value = (ProtobufCBinaryData){strlen(value), v.bytes};
    union {
        const char *text;
        char *borrowed;
    } r = {rule};
    e.rule = r.borrowed;
    return e;
}

struct list {
    Gpul__EnvEntry entries[6];
    Gpul__EnvEntry *pointers[6];
};

static void fill(struct list *l)
{
    l->entries[0] = entry("BASH_FUNC_f%%", "() { :; }",
                          GPUL__ENV_ENTRY__ACTION__INHERITED, "");
    l->entries[1] =
        entry("HOME", "/root", GPUL__ENV_ENTRY__ACTION__INHERITED, "inherited");
    l->entries[2] = entry("OMP_NUM_THREADS", "4", GPUL__ENV_ENTRY__ACTION__KEPT,
                          "yours is kept");
    l->entries[3] = entry("PMI_RANK", "9", GPUL__ENV_ENTRY__ACTION__DROPPED,
                          "left by another launcher");
    l->entries[4] = entry("TEXT", "it's\ntwo", GPUL__ENV_ENTRY__ACTION__SET,
                          "given with -x");
    l->entries[5] = entry("RANK", "", GPUL__ENV_ENTRY__ACTION__REPLACED, "who");
    for (size_t i = 0; i < 6; i++) {
        l->pointers[i] = &l->entries[i];
    }
}

/* Assignments can be read by a shell; dropped variables are not in them. */
static void test_assignments(void **state)
{
    (void)state;
    struct list l;
    fill(&l);
    struct gpul_buf out;
    gpul_buf_init(&out, 4096);
    assert_int_equal(envtext_assignments(&out, l.pointers, 6, false), 0);
    assert_string_equal(gpul_buf_text(&out), "HOME=/root\n"
                                             "OMP_NUM_THREADS=4\n"
                                             "TEXT='it'\\''s\ntwo'\n"
                                             "RANK=\n");
    gpul_buf_clear(&out);
    assert_int_equal(envtext_assignments(&out, l.pointers, 6, true), 0);
    assert_string_equal(gpul_buf_text(&out), "OMP_NUM_THREADS=4\n"
                                             "TEXT='it'\\''s\ntwo'\n"
                                             "RANK=\n");
    gpul_buf_release(&out);
}

/* The table shows every variable, dropped ones too, one line each. */
static void test_explain(void **state)
{
    (void)state;
    struct list l;
    fill(&l);
    struct gpul_buf out;
    gpul_buf_init(&out, 4096);
    assert_int_equal(envtext_explain(&out, l.pointers, 6), 0);
    assert_string_equal(gpul_buf_text(&out),
                        "inherited BASH_FUNC_f%%=() { :; }\n"
                        "inherited HOME=/root\n"
                        "kept      OMP_NUM_THREADS=4  # yours is kept\n"
                        "dropped   PMI_RANK=9  # left by another launcher\n"
                        "set       TEXT=it's\\x0atwo  # given with -x\n"
                        "replaced  RANK=  # who\n");
    gpul_buf_release(&out);
}

/* A long value is cut in the table and its length is said. */
static void test_long_value(void **state)
{
    (void)state;
    char value[1001];
    memset(value, 'v', sizeof(value) - 1);
    value[sizeof(value) - 1] = '\0';
    Gpul__EnvEntry e =
        entry("LONG", value, GPUL__ENV_ENTRY__ACTION__INHERITED, "");
    Gpul__EnvEntry *list[] = {&e};
    struct gpul_buf out;
    gpul_buf_init(&out, 4096);
    assert_int_equal(envtext_explain(&out, list, 1), 0);
    assert_non_null(strstr(gpul_buf_text(&out), "vvv... (1000 bytes)\n"));
    assert_true(out.used < 500);
    gpul_buf_release(&out);
}

/* Only what a shell would touch is quoted. */
static void test_quote(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *expected;
    } cases[] = {
        {"", "''"},
        {"a-b_c.d/e:f,g=h@i%j+k", "a-b_c.d/e:f,g=h@i%j+k"},
        {"a b", "'a b'"},
        {"$HOME", "'$HOME'"},
        {"'", "''\\'''"},
        {"~", "'~'"},
        {"\xc3\xa4", "'\xc3\xa4'"},
        {"{\"a\":1}", "'{\"a\":1}'"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gpul_buf out;
        gpul_buf_init(&out, 256);
        envtext_quote(&out, (const uint8_t *)cases[i].text,
                      strlen(cases[i].text));
        assert_string_equal(gpul_buf_text(&out), cases[i].expected);
        gpul_buf_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_assignments),
        cmocka_unit_test(test_explain),
        cmocka_unit_test(test_long_value),
        cmocka_unit_test(test_quote),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
