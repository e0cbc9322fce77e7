/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker as a program: starts, failures to start, environment reports.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "desk.h"

static int reset(void **state)
{
    (void)state;
    desk_edit_job = NULL;
    return 0;
}

/* A job of two ranks: output, exits, idle, and no file left behind. */
static void test_run(void **state)
{
    (void)state;
    struct desk d;
    char path[200];
    desk_open(&d);
    desk_prepare(&d, 2, "echo rank $RANK of $WORLD_SIZE; echo oops >&2");
    desk_launch(&d, 1);
    desk_expect_exits(&d, 2, NULL);
    desk_expect_idle(&d, 0);
    assert_non_null(strstr(desk_output(&d, 0), "rank 0 of 2\n"));
    assert_non_null(strstr(desk_output(&d, 0), "rank 1 of 2\n"));
    assert_string_equal(desk_output(&d, 1), "oops\noops\n");
    snprintf(path, sizeof(path), "%s/test-job/attempt-1/rank-1.out", d.log_dir);
    assert_int_equal(access(path, R_OK), 0);
    desk_finish(&d, false);
    snprintf(path, sizeof(path), "%s/test-job", d.log_dir);
    assert_int_equal(access(path, F_OK), -1);
    desk_close(&d, 0, NULL);
}

/* A quiet success makes no file; a quiet failure has its log, private to
 * the user, and Exit names it. */
static void test_logs(void **state)
{
    (void)state;
    struct desk d;
    struct desk_exit failure = {.rank = 1};
    struct stat st;
    char path[200];
    desk_open(&d);
    desk_prepare(&d, 2, "exit $((RANK * 3))");
    desk_launch(&d, 2);
    desk_expect_exits(&d, 2, &failure);
    desk_expect_idle(&d, 0);
    assert_int_equal(failure.code, 3);
    snprintf(path, sizeof(path), "%s/test-job/attempt-2/rank-1.err", d.log_dir);
    assert_string_equal(failure.log, path);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    snprintf(path, sizeof(path), "%s/test-job/attempt-2", d.log_dir);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    snprintf(path, sizeof(path), "%s/test-job/attempt-2/rank-0.err", d.log_dir);
    assert_int_equal(access(path, F_OK), -1);
    desk_finish(&d, true);
    assert_int_equal(access(failure.log, F_OK), 0);
    desk_close(&d, 0, NULL);
}

/* A rank that ends by a signal is told from one that exits. */
static void test_signaled(void **state)
{
    (void)state;
    struct desk d;
    struct desk_exit failure = {.rank = 0};
    desk_open(&d);
    desk_prepare(&d, 1, "kill -SEGV $$");
    desk_launch(&d, 1);
    desk_expect_exits(&d, 1, &failure);
    assert_int_equal(failure.signal, SIGSEGV);
    assert_int_equal(failure.code, 0);
    desk_expect_idle(&d, 0);
    desk_finish(&d, false);
    desk_close(&d, 0, NULL);
}

static void make_file(const char *path, const char *text, mode_t mode)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    assert_int_equal(chmod(path, mode), 0);
}

/* What cannot be executed is reported at once, for every rank, with errno
 * and text: only a missing command is ENOENT. */
static void test_exec_failures(void **state)
{
    (void)state;
    static const struct {
        const char *name; /* of a file in the log folder, or a command */
        const char *content;
        mode_t mode;
        uint32_t exec_errno;
        const char *text; /* %s: the path */
    } table[] = {
        {"no-such-command", NULL, 0, ENOENT,
         "command \"no-such-command\" not found in PATH"},
        {"/no/such/file", NULL, 0, ENOENT,
         "cannot execute /no/such/file: No such file or directory"},
        {"plain", "#!/bin/sh\n", 0644, EACCES,
         "cannot execute %s: Permission denied"},
        {"lost", "#!/no/such/interpreter\n", 0755, ENOEXEC,
         "cannot execute %s: its interpreter /no/such/interpreter does not "
         "exist"},
        {"text", "echo hello\n", 0755, ENOEXEC,
         "cannot execute %s: neither a program for this machine nor a script "
         "with a #! line"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct desk d;
        struct desk_exit failure = {.rank = 1};
        char path[200];
        char expected[300];
        desk_open(&d);
        snprintf(path, sizeof(path), "%s", table[i].name);
        if (table[i].content != NULL) {
            snprintf(path, sizeof(path), "%s/%s", d.log_dir, table[i].name);
            make_file(path, table[i].content, table[i].mode);
        }
        const char *argv[] = {path};
        desk_prepare_command(&d, 2, 1, argv);
        desk_launch(&d, 1);
        desk_expect_exits(&d, 2, &failure);
        assert_int_equal(failure.exec_errno, table[i].exec_errno);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(expected, sizeof(expected), table[i].text, path);
#pragma GCC diagnostic pop
        assert_string_equal(failure.text, expected);
        desk_expect_idle(&d, 0);
        desk_finish(&d, false);
        desk_close(&d, 0, NULL);
    }
}

static void set_directory(Gpul__Job *job)
{
    static char missing[] = "/no/such/directory";
    job->command->working_directory.data = (uint8_t *)missing;
    job->command->working_directory.len = strlen(missing);
}

/* A working directory that does not exist is not a missing command. */
static void test_working_directory(void **state)
{
    (void)state;
    struct desk d;
    struct desk_exit failure = {.rank = 0};
    desk_edit_job = set_directory;
    desk_open(&d);
    desk_prepare(&d, 1, "true");
    desk_launch(&d, 1);
    desk_expect_exits(&d, 1, &failure);
    assert_int_equal(failure.exec_errno, ENOTDIR);
    assert_string_equal(failure.text,
                        "cannot enter directory /no/such/directory: No such "
                        "file or directory");
    desk_expect_idle(&d, 0);
    desk_finish(&d, false);
    desk_close(&d, 0, NULL);
}

/* A rank that finds its port taken says so in its way; the node reports a
 * bind error, and runs a second generation on ports of its own choice. */
static void test_bind_error(void **state)
{
    (void)state;
    struct desk d;
    struct desk_exit failure = {.rank = 1};
    desk_open(&d);
    desk_prepare(&d, 2,
                 "[ $GPULAUNCH_GENERATION = 2 ] || [ $RANK = 0 ] ||"
                 "{ echo \"bind: Address already in use ($MASTER_PORT)\" >&2;"
                 "exit 1; }");
    desk_launch(&d, 1);
    desk_expect_exits(&d, 2, &failure);
    assert_int_equal(failure.code, 1);
    assert_true(failure.is_bind_error);
    desk_expect_idle(&d, 0);
    desk_assign(&d, 2);
    desk_launch(&d, 2);
    desk_expect_exits(&d, 2, NULL);
    desk_expect_idle(&d, 0);
    desk_finish(&d, false);
    desk_close(&d, 0, NULL);
}

/* Many ranks on one node, with a low limit of open files: the limit is
 * raised as far as needed. */
static void test_many_ranks(void **state)
{
    (void)state;
    struct desk d;
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit low = {.rlim_cur = 64, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    desk_open(&d);
    setrlimit(RLIMIT_NOFILE, &before);
    desk_prepare(&d, 100, "read line; echo $RANK");
    desk_launch(&d, 1);
    desk_expect_exits(&d, 100, NULL);
    desk_expect_idle(&d, 0);
    int lines = 0;
    for (const char *at = desk_output(&d, 0); *at != 0; at++) {
        lines += *at == '\n';
    }
    assert_int_equal(lines, 100);
    desk_finish(&d, false);
    desk_close(&d, 0, NULL);
}

/* ---- mode ENV ------------------------------------------------------------ */

static void ask_for_rank_1(Gpul__Job *job)
{
    job->mode = GPUL__JOB__MODE__ENV;
    job->report_rank = 1;
}

static const Gpul__EnvEntry *find_entry(const Gpul__EnvReport *report,
                                        const char *name)
{
    for (size_t i = 0; i < report->n_entries; i++) {
        const ProtobufCBinaryData *have = &report->entries[i]->name;
        if (have->len == strlen(name) &&
            memcmp(have->data, name, have->len) == 0) {
            return report->entries[i];
        }
    }
    return NULL;
}

/* Mode ENV reports the asked rank, starts nothing, and ends by a Stop. */
static void test_env_report(void **state)
{
    (void)state;
    struct desk d;
    desk_edit_job = ask_for_rank_1;
    desk_open(&d);
    desk_prepare(&d, 2, "echo never");
    desk_launch(&d, 1);
    Gpul__Frame *frame = desk_expect(&d, GPUL__FRAME__BODY_ENV_REPORT);
    assert_int_equal(frame->env_report->rank, 1);
    assert_true(frame->env_report->is_last);
    const Gpul__EnvEntry *rank = find_entry(frame->env_report, "RANK");
    assert_non_null(rank);
    assert_int_equal(rank->value.len, 1);
    assert_int_equal(rank->value.data[0], '1');
    assert_int_equal(rank->action, GPUL__ENV_ENTRY__ACTION__SET);
    gpul_message_release(frame);
    desk_stop(&d, SIGTERM, 100);
    desk_expect_idle(&d, 0);
    assert_string_equal(desk_output(&d, 0), "");
    desk_finish(&d, false);
    desk_close(&d, 0, NULL);
}

static void add_bad_roles(Gpul__Job *job)
{
    static char name[] = "worker";
    static Gpul__Role role;
    static Gpul__Role *roles[] = {&role};
    gpul__role__init(&role);
    role.name = name;
    role.count = 3;
    job->roles = roles;
    job->n_roles = 1;
}

/* An environment that cannot be built ends every rank with the reason. */
static void test_no_environment(void **state)
{
    (void)state;
    struct desk d;
    struct desk_exit failure = {.rank = 1};
    desk_edit_job = add_bad_roles;
    desk_open(&d);
    desk_prepare(&d, 2, "echo never");
    desk_launch(&d, 1);
    desk_expect_exits(&d, 2, &failure);
    assert_int_equal(failure.exec_errno, EINVAL);
    assert_non_null(strstr(failure.text, "roles"));
    desk_expect_idle(&d, 0);
    desk_finish(&d, false);
    desk_close(&d, 0, NULL);
}

static void add_tf_config_file(Gpul__Job *job)
{
    job->environment->tf_config = GPUL__ENVIRONMENT__TF_CONFIG__FILE;
}

/* TF_CONFIG in a file: it is there before the rank, only the user can read
 * it, and it goes with the logs. */
static void test_tf_config_file(void **state)
{
    (void)state;
    struct desk d;
    char path[200];
    desk_edit_job = add_tf_config_file;
    desk_open(&d);
    desk_prepare(&d, 2,
                 "stat -c %a $GPULAUNCH_TF_CONFIG_FILE;"
                 "head -c 11 $GPULAUNCH_TF_CONFIG_FILE; echo");
    desk_launch(&d, 1);
    desk_expect_exits(&d, 2, NULL);
    desk_expect_idle(&d, 0);
    assert_non_null(strstr(desk_output(&d, 0), "600\n{\"cluster\":"));
    desk_finish(&d, false);
    snprintf(path, sizeof(path), "%s/test-job", d.log_dir);
    assert_int_equal(access(path, F_OK), -1);
    desk_close(&d, 0, NULL);
}

/* While ranks run, node rank 0 answers at the Horovod rendezvous. */
static void test_horovod_rendezvous(void **state)
{
    (void)state;
    struct desk d;
    const char *const argv[] = {
        "bash", "-c",
        "[ $RANK = 1 ] || { exec 3<>/dev/tcp/$HOROVOD_GLOO_RENDEZVOUS_ADDR/"
        "$HOROVOD_GLOO_RENDEZVOUS_PORT &&"
        "printf 'GET /scope/key HTTP/1.1\\r\\n\\r\\n' >&3 && head -n 1 <&3; }"};
    desk_open(&d);
    desk_prepare_command(&d, 2, 3, argv);
    desk_launch(&d, 1);
    desk_expect_exits(&d, 2, NULL);
    desk_expect_idle(&d, 0);
    assert_memory_equal(desk_output(&d, 0), "HTTP/1.1 404", 12);
    desk_finish(&d, false);
    desk_close(&d, 0, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_run, reset),
        cmocka_unit_test_setup(test_logs, reset),
        cmocka_unit_test_setup(test_signaled, reset),
        cmocka_unit_test_setup(test_exec_failures, reset),
        cmocka_unit_test_setup(test_working_directory, reset),
        cmocka_unit_test_setup(test_bind_error, reset),
        cmocka_unit_test_setup(test_many_ranks, reset),
        cmocka_unit_test_setup(test_horovod_rendezvous, reset),
        cmocka_unit_test_setup(test_env_report, reset),
        cmocka_unit_test_setup(test_no_environment, reset),
        cmocka_unit_test_setup(test_tf_config_file, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
