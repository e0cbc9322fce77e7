/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "worker/library_search.h"

static const char *const nccl_names[] = {"libnccl.so.2", NULL};
static const char *const rccl_names[] = {"librccl.so.1", "librccl.so", NULL};

static struct library_prefix prefixes[LIBRARY_PREFIXES_MAX];

/* The prefixes of `in`, one a line. */
static void assert_prefixes(const struct library_search *in,
                            const char *expected)
{
    char text[4096] = "";
    size_t count = library_search_prefixes(prefixes, in);
    for (size_t i = 0; i < count; i++) {
        strcat(strcat(text, prefixes[i].path), "\n");
        assert_int_equal(prefixes[i].python_count, 0);
    }
    assert_string_equal(text, expected);
}

/* The program's own prefix is first, and the machine's are always last. */
static void test_prefixes(void **state)
{
    (void)state;
    const char *const environment[] = {"VIRTUAL_ENV=/home/u/venv/",
                                       "CONDA_PREFIX=/opt/conda",
                                       "HOME=/home/u", NULL};
    static const struct {
        const char *program;
        const char *expected;
    } cases[] = {
        {"/data/env/bin/torchrun", "/data/env\n/home/u/venv\n"},
        {"/data/env/bin/python3.11", "/data/env\n/home/u/venv\n"},
        {"/home/u/venv/bin/python", "/home/u/venv\n"},
        {"/usr/bin/bash", "/home/u/venv\n"},
        {"/usr/local/bin/mpirun", "/home/u/venv\n"},
        {"/bin/sh", "/home/u/venv\n"},
        {"./train.sh", "/home/u/venv\n"},
        {"env/bin/python", "/home/u/venv\n"},
        {"/srv/train", "/home/u/venv\n"},
        {"/sbin/train", "/home/u/venv\n"},
        {NULL, "/home/u/venv\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct library_search in = {.names = nccl_names,
                                          .program = cases[i].program,
                                          .environment = environment};
        char expected[512];
        snprintf(expected, sizeof(expected), "%s%s", cases[i].expected,
                 "/opt/conda\n/home/u/.local\n/usr/local\n/usr\n");
        assert_prefixes(&in, expected);
    }
}

/* Without an environment, or with relative and empty values, only what every
 * machine has is left. */
static void test_prefixes_of_nothing(void **state)
{
    (void)state;
    struct library_search in = {.names = nccl_names};
    assert_prefixes(&in, "/usr/local\n/usr\n");

    const char *const odd[] = {"VIRTUAL_ENV=venv", "CONDA_PREFIX=", "HOME",
                               NULL};
    in.environment = odd;
    assert_prefixes(&in, "/usr/local\n/usr\n");

    static char longest[PATH_MAX + 64] = "VIRTUAL_ENV=/";
    memset(longest + strlen(longest), 'x', PATH_MAX);
    const char *const too_long[] = {longest, NULL};
    in.environment = too_long;
    assert_prefixes(&in, "/usr/local\n/usr\n");
}

/* The candidates of `in`, one a line. */
static void assert_candidates(const struct library_search *in, size_t count,
                              const char *expected)
{
    char text[8192] = "";
    struct library_candidates c;
    assert_int_equal(library_search(&c, in, prefixes, count, NULL), 0);
    for (size_t i = 0; i < c.count; i++) {
        strcat(strcat(text, c.paths[i]), "\n");
    }
    assert_string_equal(text, expected);
    library_candidates_release(&c);
    assert_int_equal(c.count, 0);
}

static size_t fill_prefixes(const struct library_search *in, const char *path,
                            const char *python)
{
    size_t count = library_search_prefixes(prefixes, in);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(prefixes[i].path, path) == 0) {
            strcpy(prefixes[i].pythons[prefixes[i].python_count++], python);
        }
    }
    return count;
}

/* The wheel of a virtual environment comes before LD_LIBRARY_PATH, and the
 * dynamic linker's own search last. */
static void test_order(void **state)
{
    (void)state;
    const char *const environment[] = {"PATH=/bin",
                                       "LD_LIBRARY_PATH=/opt/nccl/lib:/opt/b",
                                       "VIRTUAL_ENV=/v", NULL};
    const struct library_search in = {.names = nccl_names,
                                      .wheel = "nvidia/nccl/lib",
                                      .environment = environment};
    size_t count = fill_prefixes(&in, "/v", "python3.11");
    assert_candidates(
        &in, count,
        "/v/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2\n"
        "/v/lib/python3.11/dist-packages/nvidia/nccl/lib/libnccl.so.2\n"
        "/opt/nccl/lib/libnccl.so.2\n"
        "/opt/b/libnccl.so.2\n"
        "libnccl.so.2\n");
}

/* What the user chose is the only candidate. */
static void test_chosen(void **state)
{
    (void)state;
    const char *const environment[] = {"LD_LIBRARY_PATH=/opt/b", NULL};
    const struct library_search in = {.names = nccl_names,
                                      .wheel = "nvidia/nccl/lib",
                                      .chosen = "/mine/libnccl.so.2",
                                      .environment = environment};
    size_t count = fill_prefixes(&in, "/usr", "python3");
    assert_candidates(&in, count, "/mine/libnccl.so.2\n");
}

/* Conda has libraries in <prefix>/lib, behind the wheels of its Python. */
static void test_conda(void **state)
{
    (void)state;
    const char *const environment[] = {"CONDA_PREFIX=/c", NULL};
    const struct library_search in = {.names = nccl_names,
                                      .wheel = "nvidia/nccl/lib",
                                      .environment = environment};
    size_t count = fill_prefixes(&in, "/c", "python3.12");
    assert_candidates(
        &in, count,
        "/c/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2\n"
        "/c/lib/python3.12/dist-packages/nvidia/nccl/lib/libnccl.so.2\n"
        "/c/lib/libnccl.so.2\n"
        "libnccl.so.2\n");
}

/* Each name is tried in one folder before the next folder. */
static void test_names(void **state)
{
    (void)state;
    const char *const environment[] = {"LD_LIBRARY_PATH=/a;/b", NULL};
    const struct library_search in = {.names = rccl_names,
                                      .environment = environment};
    assert_candidates(&in, 0,
                      "/a/librccl.so.1\n/a/librccl.so\n"
                      "/b/librccl.so.1\n/b/librccl.so\n"
                      "librccl.so.1\nlibrccl.so\n");
}

/* LD_LIBRARY_PATH as ld.so(8) reads it: an empty entry is the working
 * directory, and a template is left to the dynamic linker. */
static void test_linker_path(void **state)
{
    (void)state;
    static const struct {
        const char *variable;
        const char *expected;
    } cases[] = {
        {"LD_LIBRARY_PATH=", ""},
        {"LD_LIBRARY_PATH=/a:", "/a/libnccl.so.2\n./libnccl.so.2\n"},
        {"LD_LIBRARY_PATH=:/a", "./libnccl.so.2\n/a/libnccl.so.2\n"},
        {"LD_LIBRARY_PATH=$ORIGIN/lib:/a", "/a/libnccl.so.2\n"},
        {"LD_LIBRARY_PATH_64=/a", ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *const environment[] = {cases[i].variable, NULL};
        const struct library_search in = {.names = nccl_names,
                                          .environment = environment};
        char expected[256];
        snprintf(expected, sizeof(expected), "%slibnccl.so.2\n",
                 cases[i].expected);
        assert_candidates(&in, 0, expected);
    }
}

/* An endless LD_LIBRARY_PATH is refused, and nothing is left to free. */
static void test_limit(void **state)
{
    (void)state;
    static char variable[32 + 3 * (LIBRARY_CANDIDATES_MAX + 1)] =
        "LD_LIBRARY_PATH=";
    for (size_t i = 0; i <= LIBRARY_CANDIDATES_MAX; i++) {
        strcat(variable, "/a:");
    }
    const char *const environment[] = {variable, NULL};
    const struct library_search in = {.names = nccl_names,
                                      .environment = environment};
    struct library_candidates c;
    struct gpul_error err;
    assert_int_equal(library_search(&c, &in, NULL, 0, &err), GPUL_ELIMIT);
    assert_string_equal(err.text, "over 4096 places to look for a library: is "
                                  "LD_LIBRARY_PATH right?");
    assert_null(c.paths);
    assert_int_equal(c.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prefixes),
        cmocka_unit_test(test_prefixes_of_nothing),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_chosen),
        cmocka_unit_test(test_conda),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_linker_path),
        cmocka_unit_test(test_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
