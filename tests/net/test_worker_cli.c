/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker's command line, by the real program.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

enum { OUTPUT_BYTES = 4096 };

/* Run the worker with these arguments (shell words); its stdout and stderr
 * together into `output`. Returns the exit code. */
static int run(char output[OUTPUT_BYTES], const char *arguments)
{
    char command[512];
    snprintf(command, sizeof(command), "'%s' %s 2>&1", GPUL_TEST_WORKER,
             arguments);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    size_t n = fread(output, 1, OUTPUT_BYTES - 1, f);
    output[n] = 0;
    int status = pclose(f);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Help names every option; the version is one line. */
static void test_help(void **state)
{
    (void)state;
    char output[OUTPUT_BYTES];
    assert_int_equal(run(output, "--help"), 0);
    assert_memory_equal(output, "Usage: gpulaunch-worker --connect", 33);
    assert_non_null(strstr(output, "\n      --join-timeout SECONDS\n"));
    assert_int_equal(run(output, "--version"), 0);
    assert_string_equal(output, "gpulaunch-worker " GPULAUNCH_VERSION "\n");
}

/* What is wrong is said in one line, with what would be right. */
static void test_usage(void **state)
{
    (void)state;
    static const struct {
        const char *arguments;
        const char *line; /* after "gpulaunch-worker: " */
    } table[] = {
        {"", "--connect, --job and --name are needed; gpulaunch starts this "
             "program itself"},
        {"--job j --name n", "--connect, --job and --name are needed; "
                             "gpulaunch starts this program itself"},
        {"--conect 127.0.0.1:1",
         "unknown option --conect; did you mean --connect?"},
        {"--job 'a b'",
         "--job: not 1 to 64 printable characters without spaces"},
        {"--name ''",
         "--name: not 1 to 253 printable characters without spaces"},
        {"--connect localhost:1 --job j --name n",
         "--connect: \"localhost\" is not a literal address"},
        {"--connect 127.0.0.1:1 --job j --name n extra",
         "unexpected argument \"extra\""},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        char output[OUTPUT_BYTES];
        char expected[256];
        snprintf(expected, sizeof(expected), "gpulaunch-worker: %s\n",
                 table[i].line);
        assert_int_equal(run(output, table[i].arguments), 125);
        assert_string_equal(output, expected);
    }
}

/* Values that cannot be read name their option. */
static void test_values(void **state)
{
    (void)state;
    static const char *const table[][2] = {
        {"--connect 127.0.0.1", "gpulaunch-worker: --connect: "},
        {"--join-timeout soon", "gpulaunch-worker: --join-timeout: "},
    };
    for (size_t i = 0; i < 2; i++) {
        char output[OUTPUT_BYTES];
        assert_int_equal(run(output, table[i][0]), 125);
        assert_memory_equal(output, table[i][1], strlen(table[i][1]));
    }
}

/* Nobody there: the bound is kept, and what was tried is named. */
static void test_nobody_there(void **state)
{
    (void)state;
    char output[OUTPUT_BYTES];
    /* A port that is never assigned to anybody. */
    assert_int_equal(run(output,
                         "--connect 127.0.0.1:1 --job j --name n --insecure "
                         "--join-timeout 200ms"),
                     40);
    assert_string_equal(output,
                        "gpulaunch-worker: n: no connection to the "
                        "coordinator at 127.0.0.1:1 within 200 ms: connecting: "
                        "connection refused\n");
    assert_int_equal(run(output,
                         "--connect '[::1]:1' --job j --name n --insecure "
                         "--join-timeout 1"),
                     40);
    assert_non_null(strstr(output, "coordinator at [::1]:1 within 1 s: "));
}

/* `run` behind a pipe with this text, as ssh would write it. */
static int run_remote(char output[OUTPUT_BYTES], const char *orders)
{
    char command[1024];
    snprintf(command, sizeof(command), "printf '%s' | '%s' remote 2>&1", orders,
             GPUL_TEST_WORKER);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    size_t n = fread(output, 1, OUTPUT_BYTES - 1, f);
    output[n] = 0;
    int status = pclose(f);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

#define ORDERS                                                                 \
    "orders 1\\njob j\\nnode n\\njoin-timeout-ms 20000\\n"                     \
    "coordinator 127.0.0.1:1\\n"

/* A remote worker greets first; orders that are cut off, or are none, end it
 * with words, and so does the end of its session before it has joined. */
static void test_remote(void **state)
{
    (void)state;
    static const struct {
        const char *orders;
        int code;
        const char *words;
    } rows[] = {
        {"", 125,
         "standard input ended before the orders did; gpulaunch starts this "
         "program itself"},
        {ORDERS, 125,
         "standard input ended before the orders did; gpulaunch starts this "
         "program itself"},
        {"hello\\n", 125,
         "an order of the front end makes no sense here: hello; install the "
         "same release on both"},
        {ORDERS "end\\n", 125,
         "the orders of the front end are not whole; install the same release "
         "on both"},
        {ORDERS "key none\\nend\\n", 128 + 1, ""},
        {ORDERS "key none\\nend\\nstop\\n", 128 + 15, ""},
    };
    char greeting[128];
    int n = snprintf(greeting, sizeof(greeting),
                     "gpulaunch-worker remote 1 " GPULAUNCH_VERSION " ");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char output[OUTPUT_BYTES];
        assert_int_equal(run_remote(output, rows[i].orders), rows[i].code);
        assert_memory_equal(output, greeting, (size_t)n);
        assert_non_null(strstr(output, rows[i].words));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_help),   cmocka_unit_test(test_usage),
        cmocka_unit_test(test_values), cmocka_unit_test(test_nobody_there),
        cmocka_unit_test(test_remote),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
