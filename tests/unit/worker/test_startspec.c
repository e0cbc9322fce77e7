/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "worker/startspec.h"

static char python[] = "/usr/bin/python3";
static char name[] = "python3";
static char script[] = "train.py";
static char empty[] = "";
static char rank[] = "RANK=3";
static char folder[] = "/data/my run";

static char *arguments[] = {name, script, empty, NULL};
static char *environment[] = {rank, NULL};
static char *nothing[] = {NULL};

static struct startspec sample(void)
{
    struct startspec spec = {
        .path = python,
        .arguments = arguments,
        .environment = environment,
        .working_directory = folder,
        .has_cpus = true,
        .raises_limits = true,
    };
    spec.cpus[0] = 0x5555;
    spec.cpus[STARTSPEC_CPU_WORDS - 1] = 1ull << 63;
    spec.nodes[0] = 2;
    return spec;
}

static void encode(struct gpul_buf *out, const struct startspec *spec)
{
    gpul_buf_init(out, STARTSPEC_BYTES_MAX);
    assert_int_equal(startspec_encode(out, spec, NULL), 0);
}

/* What was written is what is read. */
static void test_round(void **state)
{
    (void)state;
    struct startspec spec = sample();
    struct startspec got;
    struct gpul_buf out;
    encode(&out, &spec);
    assert_int_equal(startspec_decode(&got, out.data, out.used, NULL), 0);
    assert_string_equal(got.path, python);
    assert_string_equal(got.arguments[0], name);
    assert_string_equal(got.arguments[1], script);
    assert_string_equal(got.arguments[2], "");
    assert_null(got.arguments[3]);
    assert_string_equal(got.environment[0], rank);
    assert_null(got.environment[1]);
    assert_string_equal(got.working_directory, folder);
    assert_true(got.has_cpus && !got.has_nodes && got.raises_limits);
    assert_memory_equal(got.cpus, spec.cpus, sizeof(spec.cpus));
    assert_memory_equal(got.nodes, spec.nodes, sizeof(spec.nodes));
    gpul_buf_release(&out);
}

/* No environment and no directory are as good as any, behind other bytes. */
static void test_least(void **state)
{
    (void)state;
    struct startspec spec = sample();
    struct startspec got;
    struct gpul_buf out;
    spec.environment = nothing;
    spec.working_directory = NULL;
    gpul_buf_init(&out, STARTSPEC_BYTES_MAX);
    assert_int_equal(gpul_buf_append(&out, "before..", 8), 0);
    assert_int_equal(startspec_encode(&out, &spec, NULL), 0);
    gpul_buf_consume(&out, 8);
    assert_int_equal(startspec_decode(&got, out.data, out.used, NULL), 0);
    assert_null(got.environment[0]);
    assert_null(got.working_directory);
    assert_string_equal(got.arguments[1], script);
    gpul_buf_release(&out);
}

/* What no execve would take is refused here, with the sizes. */
static void test_too_large(void **state)
{
    (void)state;
    struct startspec spec = sample();
    struct gpul_buf out;
    struct gpul_error err = {0};
    char *large = malloc(STARTSPEC_BYTES_MAX);
    assert_non_null(large);
    memset(large, 'x', STARTSPEC_BYTES_MAX);
    large[STARTSPEC_BYTES_MAX - 1] = 0;
    char *list[] = {large, NULL};
    spec.arguments = list;
    gpul_buf_init(&out, 2 * (size_t)STARTSPEC_BYTES_MAX);
    assert_int_equal(startspec_encode(&out, &spec, &err), GPUL_ELIMIT);
    assert_non_null(strstr(err.text, "16777216 at most"));
    assert_int_equal(out.used, 0);
    free(large);
    gpul_buf_release(&out);
}

/* A buffer without room is told, not written. */
static void test_no_room(void **state)
{
    (void)state;
    struct startspec spec = sample();
    struct gpul_buf out;
    gpul_buf_init(&out, 100);
    assert_int_equal(startspec_encode(&out, &spec, NULL), GPUL_ENOMEM);
    gpul_buf_release(&out);
}

/* Words of the head that a hostile writer might set, and to what. */
enum { MAGIC, BYTES, FLAGS, ARGUMENTS, VARIABLES, PATH, DIRECTORY };

static void test_hostile(void **state)
{
    (void)state;
    static const struct {
        size_t word;
        uint64_t value;
        const char *text;
    } rows[] = {
        {MAGIC, 0, "its head"},
        {BYTES, 1, "its head"},
        {BYTES, UINT64_MAX, "its head"},
        {FLAGS, 8, "its flags"},
        {ARGUMENTS, 0, "its counts"},
        {ARGUMENTS, UINT64_MAX, "its counts"},
        {ARGUMENTS, UINT64_MAX / 8 - 1, "its counts"},
        {VARIABLES, UINT64_MAX - 4, "its counts"},
        {VARIABLES, 150, "its counts"},
        {VARIABLES, 2, "out of range"},
        {PATH, 0, "out of range"},
        {PATH, 8, "out of range"},
        {PATH, UINT64_MAX, "out of range"},
        {DIRECTORY, 1, "out of range"},
        {DIRECTORY, 1 << 20, "out of range"},
    };
    struct startspec spec = sample();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gpul_buf out;
        struct startspec got;
        struct gpul_error err = {0};
        encode(&out, &spec);
        memcpy(out.data + rows[i].word * 8, &rows[i].value, 8);
        assert_int_equal(startspec_decode(&got, out.data, out.used, &err),
                         GPUL_EINVAL);
        assert_non_null(strstr(err.text, rows[i].text));
        gpul_buf_release(&out);
    }
}

/* Cut anywhere, without its last NUL, or at an odd place: refused. */
static void test_cut(void **state)
{
    (void)state;
    struct startspec spec = sample();
    struct startspec got;
    struct gpul_buf out;
    encode(&out, &spec);
    for (size_t n = 0; n < out.used; n++) {
        assert_int_equal(startspec_decode(&got, out.data, n, NULL),
                         GPUL_EINVAL);
    }
    char *odd = malloc(out.used + 1);
    assert_non_null(odd);
    memcpy(odd + 1, out.data, out.used);
    assert_int_equal(startspec_decode(&got, odd + 1, out.used, NULL),
                     GPUL_EINVAL);
    free(odd);
    out.data[out.used - 1] = 'x';
    assert_int_equal(startspec_decode(&got, out.data, out.used, NULL),
                     GPUL_EINVAL);
    gpul_buf_release(&out);
}

/* Decoded already: its pointers are no offsets. */
static void test_once(void **state)
{
    (void)state;
    struct startspec spec = sample();
    struct startspec got;
    struct gpul_buf out;
    encode(&out, &spec);
    assert_int_equal(startspec_decode(&got, out.data, out.used, NULL), 0);
    assert_int_equal(startspec_decode(&got, out.data, out.used, NULL),
                     GPUL_EINVAL);
    gpul_buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round),     cmocka_unit_test(test_least),
        cmocka_unit_test(test_too_large), cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_hostile),   cmocka_unit_test(test_cut),
        cmocka_unit_test(test_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
