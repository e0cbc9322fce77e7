/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/jobsecret.h"

#define DIGITS                                                                 \
    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define OTHER_DIGITS                                                           \
    "f00102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define VARIABLE_WARNING                                                       \
    "gpulaunch: warning: GPULAUNCH_SECRET: what stands in an environment is "  \
    "copied into many places; put the secret into a file and name it by "      \
    "--secret-file\n"
#define INSECURE_WARNING                                                       \
    "gpulaunch: warning: --insecure: the control channel is neither "          \
    "authenticated nor encrypted; other users of this machine could run "      \
    "commands as you\n"

static char folder[64];
static char path[PATH_MAX];

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/test-jobsecret-XXXXXX");
    if (mkdtemp(folder) == NULL) {
        return -1;
    }
    snprintf(path, sizeof(path), "%s/job.secret", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void write_file(const char *text, mode_t mode)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    fclose(f);
    assert_int_equal(chmod(path, mode), 0);
}

/* jobsecret_get; what it wrote to standard error goes to `said`. */
static int get(struct gpul_secret *out, bool *is_sealed,
               const struct jobsecret_request *request, struct gpul_error *err,
               char said[1024])
{
    int fds[2], kept = dup(STDERR_FILENO);
    assert_int_equal(pipe(fds), 0);
    dup2(fds[1], STDERR_FILENO);
    int rc = jobsecret_get(out, is_sealed, request, err);
    dup2(kept, STDERR_FILENO);
    close(fds[1]);
    close(kept);
    ssize_t n = read(fds[0], said, 1023);
    said[n > 0 ? n : 0] = '\0';
    close(fds[0]);
    return rc;
}

static bool is_wiped(const struct gpul_secret *secret)
{
    static const struct gpul_secret none;
    return memcmp(secret, &none, sizeof(none)) == 0;
}

/* A file wins over the variable, the variable over the kernel; only the
 * variable is warned of, and its text is gone afterwards. */
static void test_precedence(void **state)
{
    (void)state;
    static const struct {
        bool has_file, has_text, is_quiet;
        uint8_t first; /* byte of the secret */
        const char *said;
    } cases[] = {
        {true, true, false, 0x00, ""},
        {true, false, false, 0x00, ""},
        {false, true, false, 0xf0, VARIABLE_WARNING},
        {false, true, true, 0xf0, ""},
    };
    write_file(DIGITS "\n", 0600);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[JOBSECRET_TEXT_BYTES] = OTHER_DIGITS, said[1024];
        struct jobsecret_request request = {
            .file = cases[i].has_file ? path : NULL,
            .file_spelling = "--secret-file",
            .text = cases[i].has_text ? text : NULL,
            .is_loopback = true,
            .is_quiet = cases[i].is_quiet,
        };
        struct gpul_secret secret;
        bool is_sealed = false;
        assert_int_equal(get(&secret, &is_sealed, &request, NULL, said), 0);
        assert_true(is_sealed);
        assert_int_equal(secret.bytes[0], cases[i].first);
        assert_int_equal(secret.bytes[31], 0x1f);
        assert_string_equal(said, cases[i].said);
        assert_int_equal(text[0] == '\0', cases[i].has_text);
    }
}

/* Without either each job has one of its own. */
static void test_drawn(void **state)
{
    (void)state;
    struct jobsecret_request request = {.is_loopback = false};
    struct gpul_secret a, b;
    bool is_sealed = false;
    char said[1024];
    assert_int_equal(get(&a, &is_sealed, &request, NULL, said), 0);
    assert_true(is_sealed && !is_wiped(&a));
    assert_int_equal(get(&b, &is_sealed, &request, NULL, said), 0);
    assert_true(is_sealed && !is_wiped(&b));
    assert_memory_not_equal(&a, &b, sizeof(a));
    assert_string_equal(said, "");
}

/* --insecure: no secret, a line, and never where others reach us; whatever
 * the variable holds is wiped without a look. */
static void test_insecure(void **state)
{
    (void)state;
    char text[JOBSECRET_TEXT_BYTES] = "rubbish", said[1024];
    struct jobsecret_request request = {
        .text = text, .is_insecure = true, .is_loopback = true};
    struct gpul_secret secret;
    struct gpul_error err = {0};
    bool is_sealed = true;
    memset(&secret, 1, sizeof(secret));
    assert_int_equal(get(&secret, &is_sealed, &request, NULL, said), 0);
    assert_true(!is_sealed && is_wiped(&secret));
    assert_string_equal(said, INSECURE_WARNING);
    assert_string_equal(text, "");

    request.is_loopback = false;
    memset(&secret, 1, sizeof(secret));
    assert_int_equal(get(&secret, &is_sealed, &request, &err, said),
                     GPUL_EINVAL);
    assert_true(!is_sealed && is_wiped(&secret));
    assert_string_equal(err.text,
                        "--insecure: other machines could reach the "
                        "coordinator, and run commands as you; leave it out");
    assert_string_equal(said, "");
}

/* What holds no secret ends the start, and is not shown. */
static void test_refused(void **state)
{
    (void)state;
    char text[JOBSECRET_TEXT_BYTES] = "hunter2", said[1024];
    char expected[PATH_MAX + 200];
    struct jobsecret_request request = {.text = text, .is_loopback = true};
    struct gpul_secret secret;
    struct gpul_error err = {0};
    bool is_sealed = true;
    assert_int_equal(get(&secret, &is_sealed, &request, &err, said),
                     GPUL_EINVAL);
    assert_string_equal(err.text,
                        "GPULAUNCH_SECRET: a secret is one line of 64 "
                        "hexadecimal digits; \"gpulaunch secret\" makes one");
    assert_true(!is_sealed && is_wiped(&secret));
    assert_string_equal(text, "");

    write_file(DIGITS "\n", 0644);
    request =
        (struct jobsecret_request){.file = path,
                                   .file_spelling = "GPULAUNCH_SECRET_FILE",
                                   .is_loopback = true};
    err = (struct gpul_error){0};
    assert_int_equal(get(&secret, &is_sealed, &request, &err, said),
                     GPUL_EINVAL);
    snprintf(expected, sizeof(expected),
             "GPULAUNCH_SECRET_FILE: %s may be used by others (mode 644): "
             "chmod 600 it, and if others may have read it make a new one",
             path);
    assert_string_equal(err.text, expected);
    assert_true(!is_sealed && is_wiped(&secret));
}

/* The variable is gone, for this process and for /proc; of two of the name
 * none is left either. */
static void test_take(void **state)
{
    (void)state;
    char text[JOBSECRET_TEXT_BYTES];
    assert_null(jobsecret_take(text));

    char first[] = "GPULAUNCH_SECRET=" DIGITS;
    char second[] = "GPULAUNCH_SECRET=" OTHER_DIGITS;
    char like[] = "GPULAUNCH_SECRETS=kept";
    char *list[] = {like, first, second, NULL};
    char **kept = environ;
    environ = list;
    char *taken = jobsecret_take(text);
    assert_ptr_equal(taken, text);
    assert_string_equal(text, DIGITS);
    assert_null(getenv("GPULAUNCH_SECRET"));
    assert_string_equal(getenv("GPULAUNCH_SECRETS"), "kept");
    environ = kept;
    for (size_t i = sizeof("GPULAUNCH_SECRET="); i < sizeof(first); i++) {
        assert_int_equal(first[i - 1], 0);
        assert_int_equal(second[i - 1], 0);
    }

    setenv("GPULAUNCH_SECRET", "", 1);
    assert_null(jobsecret_take(text));
    assert_null(getenv("GPULAUNCH_SECRET"));

    char long_value[1000];
    memset(long_value, 'a', sizeof(long_value));
    long_value[sizeof(long_value) - 1] = '\0';
    setenv("GPULAUNCH_SECRET", long_value, 1);
    assert_non_null(jobsecret_take(text));
    assert_int_equal(strlen(text), JOBSECRET_TEXT_BYTES - 1);
}

/* What the plan says is what is asked for. */
static void test_asked(void **state)
{
    (void)state;
    char text[] = "t";
    struct plan plan = {
        .secret_file = "f", .secret_text = text, .is_quiet = true};
    snprintf(plan.settings[OPTION_SECRET_FILE].spelling, PLAN_SPELLING_BYTES,
             "--secret_file");
    struct jobsecret_request r = jobsecret_asked(&plan);
    assert_string_equal(r.file, "f");
    assert_string_equal(r.file_spelling, "--secret_file");
    assert_ptr_equal(r.text, text);
    assert_true(!r.is_insecure && r.is_loopback && r.is_quiet);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_precedence, set_up, tear_down),
        cmocka_unit_test(test_drawn),
        cmocka_unit_test(test_insecure),
        cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
        cmocka_unit_test(test_take),
        cmocka_unit_test(test_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
