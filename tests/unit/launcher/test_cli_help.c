/* SPDX-License-Identifier: Apache-2.0
 *
 * The help texts are pinned byte for byte in help*.txt beside this file (to
 * renew one: gpulaunch --help > FILE, and read the difference), and the man
 * page has every option.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "launcher/cli.h"
#include "launcher/cli_manifest.h"
#include "launcher/cli_report.h"
#include "launcher/cli_scale.h"

enum { TEXT_BYTES = 1 << 16, PATH_BYTES = 4096 };

static char text[TEXT_BYTES];

/* Reads a file named relative to the folder of this source. */
static const char *read_beside(const char *name)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "%s/tests/unit/launcher/%s", SOURCE_DIR, name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof(text) - 1, f);
    fclose(f);
    text[n] = '\0';
    return text;
}

static void check_help(enum plan_verb topic, const char *file)
{
    struct gpul_buf out;
    gpul_buf_init(&out, TEXT_BYTES);
    assert_int_equal(cli_help(&out, topic), 0);
    assert_string_equal(gpul_buf_text(&out), read_beside(file));
    gpul_buf_release(&out);
}

/* What --help prints is what the pinned files hold. */
static void test_pinned(void **state)
{
    (void)state;
    check_help(0, "help.txt");
    check_help(PLAN_RUN, "help-run.txt");
    check_help(PLAN_ENV, "help-env.txt");
    check_help(PLAN_CHECK, "help-check.txt");
    check_help(PLAN_DOCTOR, "help-doctor.txt");
    check_help(PLAN_SECRET, "help-secret.txt");
    check_help(PLAN_JOIN, "help-join.txt");
    check_help(PLAN_MANIFEST, "help-manifest.txt");
    check_help(PLAN_REPORT, "help-report.txt");
    check_help(PLAN_DIFF, "help-diff.txt");
    check_help(PLAN_SCALE, "help-scale.txt");
}

/* No line of the help is wider than a terminal of 80 columns. */
static void test_width(void **state)
{
    (void)state;
    struct gpul_buf out;
    gpul_buf_init(&out, TEXT_BYTES);
    assert_int_equal(cli_help(&out, 0), 0);
    for (const char *at = gpul_buf_text(&out); *at != '\0';) {
        size_t n = strcspn(at, "\n");
        assert_true(n <= 80);
        at += n + (at[n] == '\n');
    }
    gpul_buf_release(&out);
}

static void check_named(const char *page, const struct gpul_option *option)
{
    char name[64] = "\\-\\-", letter[8];
    size_t n = strlen(name);
    for (const char *c = option->name; *c != '\0'; c++) {
        n += (size_t)snprintf(name + n, sizeof(name) - n, "%s%c",
                              *c == '-' ? "\\" : "", *c);
    }
    if (strstr(page, name) == NULL) {
        fail_msg("the man page lacks --%s", option->name);
    }
    snprintf(letter, sizeof(letter), "\\-%c", option->letter);
    if (option->letter != 0 && strstr(page, letter) == NULL) {
        fail_msg("the man page lacks -%c", option->letter);
    }
    if (option->environment != NULL &&
        strstr(page, option->environment) == NULL) {
        fail_msg("the man page lacks %s", option->environment);
    }
}

/* The man page names every option, its letter and its environment variable;
 * the hyphens there are escaped for troff. */
static void test_man_page(void **state)
{
    (void)state;
    const char *page = read_beside("../../../docs/man/gpulaunch.1");
    size_t count = 0;
    const struct gpul_option *table = option_table(&count);
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        check_named(page, &table[i]);
    }
    table = cli_manifest_options(&count);
    for (size_t i = 0; i < count; i++) {
        check_named(page, &table[i]);
    }
    table = cli_report_options(&count);
    for (size_t i = 0; i < count; i++) {
        check_named(page, &table[i]);
    }
    table = cli_scale_options(&count);
    for (size_t i = 0; i < count; i++) {
        check_named(page, &table[i]);
    }
}

/* Every option of ours has a heading and a sentence; every hidden one has a
 * hint; no name, alias or letter stands for two options. */
static void test_table(void **state)
{
    (void)state;
    size_t count = 0;
    const struct gpul_option *table = option_table(&count);
    for (size_t i = 0; i < count; i++) {
        assert_non_null(table[i].help);
        assert_int_equal(table[i].is_hidden, i >= OPTION_COUNT);
        assert_int_equal(table[i].group == NULL, table[i].is_hidden);
        for (size_t k = 0; k < i; k++) {
            assert_string_not_equal(table[i].name, table[k].name);
            if (table[i].letter != 0) {
                assert_int_not_equal(table[i].letter, table[k].letter);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pinned),
        cmocka_unit_test(test_width),
        cmocka_unit_test(test_man_page),
        cmocka_unit_test(test_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
