/* SPDX-License-Identifier: Apache-2.0
 *
 * The children are this very program, called with the name of a report.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/spawn.h"

static char directory[] = "/tmp/test_spawn.XXXXXX";

/* ---- what the children report -------------------------------------------- */

static void report_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    bool is_open[64] = {false};
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        int fd = atoi(e->d_name);
        if (e->d_name[0] != '.' && fd != dirfd(d) && fd < 64) {
            is_open[fd] = true;
        }
    }
    closedir(d);
    for (int fd = 0; fd < 64; fd++) {
        if (is_open[fd]) {
            dprintf(1, "%d ", fd);
        }
    }
}

/* Handlers cannot outlive an exec; what is ignored or blocked does. */
static void report_signals(void)
{
    FILE *f = fopen("/proc/self/status", "re");
    char line[256];
    while (fgets(line, sizeof(line), f) != NULL) {
        if (strncmp(line, "SigBlk:", 7) == 0 ||
            strncmp(line, "SigIgn:", 7) == 0) {
            dprintf(1, "%s", line);
        }
    }
    fclose(f);
}

static int report(const char *what)
{
    if (strcmp(what, "fds") == 0) {
        report_fds();
    } else if (strcmp(what, "signals") == 0) {
        report_signals();
    } else if (strcmp(what, "place") == 0) {
        char cwd[256];
        dprintf(1, "%s %s", getpgid(0) == getpid() ? "leader" : "member",
                getcwd(cwd, sizeof(cwd)));
    } else if (strcmp(what, "environment") == 0) {
        for (char **e = environ; *e != NULL; e++) {
            dprintf(1, "%s ", *e);
        }
    } else if (strcmp(what, "cat3") == 0) {
        char text[64];
        ssize_t n = read(3, text, sizeof(text));
        return n > 0 && write(1, text, (size_t)n) == n ? 0 : 1;
    } else if (strcmp(what, "wait") == 0) {
        dprintf(1, "%d", (int)getpid());
        pause();
    }
    return 0;
}

/* ---- helpers ------------------------------------------------------------- */

static const struct gpul_spawn_fd std_fds[] = {{0, 0}, {1, 1}, {2, 2}};
static char *no_environment[] = {NULL};

static struct gpul_spawn spec_for(char **arguments)
{
    return (struct gpul_spawn){
        .path = arguments[0],
        .arguments = arguments,
        .environment = no_environment,
        .fds = std_fds,
        .fd_count = 3,
    };
}

/* Run a report of ours with stdout in a pipe, and give its text. */
static void run_report(char *text, size_t size, const char *what,
                       struct gpul_spawn *spec, struct gpul_spawn_fd *fds)
{
    int out[2];
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    char name[64];
    snprintf(name, sizeof(name), "--report=%s", what);
    char self[] = "/proc/self/exe";
    char *arguments[] = {self, name, NULL};
    spec->path = self;
    spec->arguments = arguments;
    fds[1] = (struct gpul_spawn_fd){out[1], 1};
    spec->fds = fds;
    pid_t pid;
    int exec_errno;
    assert_int_equal(gpul_spawn(&pid, &exec_errno, spec, NULL), 0);
    close(out[1]);
    size_t used = 0;
    for (ssize_t n; (n = read(out[0], text + used, size - 1 - used)) > 0;) {
        used += (size_t)n;
    }
    text[used] = 0;
    close(out[0]);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static char *make_file(const char *name, const char *content, mode_t mode)
{
    char *path = NULL;
    assert_true(asprintf(&path, "%s/%s", directory, name) > 0);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    size_t n = strlen(content);
    assert_int_equal(write(fd, content, n), n);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
    return path;
}

/* ---- tests --------------------------------------------------------------- */

/* Every reason for which a file cannot be executed is told apart, by errno
 * and by a sentence, and no child is left behind. */
static void test_exec_errors(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *content; /* NULL: no such file */
        mode_t mode;
        int exec_errno;
        const char *text; /* after "cannot execute <path>: " */
    } rows[] = {
        {"missing", NULL, 0, ENOENT, "No such file or directory"},
        {"plain", "#!/bin/sh\n", 0600, EACCES, "Permission denied"},
        {"bare", "true\n", 0700, ENOEXEC,
         "neither a program for this machine nor a script with a #! line"},
        {"lost", "#! /no/such/python -u\n", 0700, ENOENT,
         "its interpreter /no/such/python does not exist"},
        {"file/x", NULL, 0, ENOTDIR, "Not a directory"},
    };
    free(make_file("file", "", 0600));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char path[128];
        char expected[512];
        snprintf(path, sizeof(path), "%s/%s", directory, rows[i].name);
        if (rows[i].content != NULL) {
            free(make_file(rows[i].name, rows[i].content, rows[i].mode));
        }
        snprintf(expected, sizeof(expected), "cannot execute %s: %s", path,
                 rows[i].text);
        char *arguments[] = {path, NULL};
        struct gpul_spawn spec = spec_for(arguments);
        struct gpul_error err = {0};
        pid_t pid = 1;
        int exec_errno = 0;
        assert_int_equal(gpul_spawn(&pid, &exec_errno, &spec, &err), GPUL_ESYS);
        assert_int_equal(exec_errno, rows[i].exec_errno);
        assert_string_equal(err.text, expected);
        assert_int_equal(pid, 0);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        assert_int_equal(errno, ECHILD);
    }
}

static void assert_too_big(char *const *environment, const char *expected)
{
    char path[] = "/bin/true";
    char *arguments[] = {path, NULL};
    const struct gpul_spawn spec = {
        .path = path, .arguments = arguments, .environment = environment};
    struct gpul_error err;
    pid_t pid;
    int exec_errno;
    assert_int_equal(gpul_spawn(&pid, &exec_errno, &spec, &err), GPUL_ESYS);
    assert_int_equal(exec_errno, E2BIG);
    assert_string_equal(err.text, expected);
}

/* Too much to pass on: the message says which limit it was, and the sizes. */
static void test_too_big(void **state)
{
    (void)state;
    enum { BYTES = 200000 };
    char *large = malloc(BYTES);
    char *environment[] = {large, large, large, NULL};
    struct rlimit before;
    assert_non_null(large);
    memset(large, 'x', BYTES);
    memcpy(large, "BIG=", 4);
    large[BYTES - 1] = 0;
    assert_too_big(environment,
                   "cannot execute /bin/true: the string \"BIG="
                   "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...\" of its arguments "
                   "and environment has 200000 bytes, and Linux allows 131072; "
                   "shorten it");

    assert_int_equal(getrlimit(RLIMIT_STACK, &before), 0);
    struct rlimit small = {1 << 20, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_STACK, &small), 0);
    large[100000 - 1] = 0;
    assert_too_big(environment,
                   "cannot execute /bin/true: its arguments and environment "
                   "take 300042 bytes, and Linux allows 262144; shorten them, "
                   "or raise ulimit -s");
    assert_int_equal(setrlimit(RLIMIT_STACK, &before), 0);
    free(large);
}

/* A working directory that is not there is named instead of the command. */
static void test_bad_directory(void **state)
{
    (void)state;
    char path[] = "/bin/true";
    char *arguments[] = {path, NULL};
    struct gpul_spawn spec = spec_for(arguments);
    spec.working_directory = "/no/such/place";
    struct gpul_error err = {0};
    pid_t pid;
    int exec_errno = 0;
    assert_int_equal(gpul_spawn(&pid, &exec_errno, &spec, &err), GPUL_ESYS);
    assert_int_equal(exec_errno, ENOENT);
    assert_string_equal(err.text, "cannot enter directory /no/such/place: No "
                                  "such file or directory");
}

/* A descriptor that is not open is a failure of ours, said as such. */
static void test_bad_descriptor(void **state)
{
    (void)state;
    char path[] = "/bin/true";
    char *arguments[] = {path, NULL};
    struct gpul_spawn spec = spec_for(arguments);
    const struct gpul_spawn_fd fds[] = {{0, 0}, {777, 1}};
    spec.fds = fds;
    spec.fd_count = 2;
    struct gpul_error err = {0};
    pid_t pid;
    int exec_errno = 0;
    assert_int_equal(gpul_spawn(&pid, &exec_errno, &spec, &err), GPUL_ESYS);
    assert_int_equal(exec_errno, EBADF);
    assert_string_equal(err.text, "cannot pass descriptors to /bin/true: Bad "
                                  "file descriptor");
}

/* The child has the descriptors of the list and no other, even those that
 * lack close-on-exec. */
static void test_only_listed_descriptors(void **state)
{
    (void)state;
    int leaky = dup(2); /* without close-on-exec */
    assert_true(leaky >= 0);
    struct gpul_spawn_fd fds[4] = {{0, 0}, {0, 1}, {2, 2}, {leaky, 3}};
    struct gpul_spawn spec = {.environment = no_environment, .fd_count = 3};
    char text[256];
    run_report(text, sizeof(text), "fds", &spec, fds);
    assert_string_equal(text, "0 1 2 ");
    spec.fd_count = 4;
    run_report(text, sizeof(text), "fds", &spec, fds);
    assert_string_equal(text, "0 1 2 3 ");
    close(leaky);
}

/* Sources may have the numbers of other targets, crosswise too. */
static void test_overlapping_descriptors(void **state)
{
    (void)state;
    int in[2];
    assert_int_equal(pipe(in), 0);
    assert_int_equal(write(in[1], "through", 7), 7);
    int saved[2] = {dup(0), dup(2)};
    assert_int_equal(dup2(in[0], 2), 2); /* what shall be 3 is now 2 */
    struct gpul_spawn_fd fds[4] = {{2, 0}, {0, 1}, {0, 2}, {2, 3}};
    struct gpul_spawn spec = {.environment = no_environment, .fd_count = 4};
    char text[256];
    run_report(text, sizeof(text), "cat3", &spec, fds);
    assert_int_equal(dup2(saved[1], 2), 2);
    assert_string_equal(text, "through");
    for (int i = 0; i < 2; i++) {
        close(saved[i]);
        close(in[i]);
    }
}

static void on_signal(int number)
{
    (void)number;
}

/* Ignored, handled and blocked signals of the parent do not reach the child,
 * and the parent keeps its own. */
static void test_signals_reset(void **state)
{
    (void)state;
    struct sigaction handled = {.sa_handler = on_signal};
    struct sigaction ignored = {.sa_handler = SIG_IGN};
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigset_t blocked;
    sigset_t before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    sigaction(SIGUSR1, &handled, NULL);
    sigaction(SIGPIPE, &ignored, NULL);
    sigprocmask(SIG_BLOCK, &blocked, &before);

    struct gpul_spawn_fd fds[3] = {{0, 0}, {0, 1}, {2, 2}};
    struct gpul_spawn spec = {.environment = no_environment, .fd_count = 3};
    char text[256];
    run_report(text, sizeof(text), "signals", &spec, fds);
    assert_string_equal(text, "SigBlk:\t0000000000000000\n"
                              "SigIgn:\t0000000000000000\n");

    sigset_t after;
    sigprocmask(SIG_SETMASK, &before, &after);
    assert_true(sigismember(&after, SIGUSR2));
    assert_false(sigismember(&after, SIGTERM));
    struct sigaction kept;
    sigaction(SIGUSR1, &standard, &kept);
    assert_ptr_equal(kept.sa_handler, on_signal);
    sigaction(SIGPIPE, &standard, NULL);
}

/* The child leads its own process group, in the directory and with exactly the
 * environment that were asked for. */
static void test_place_and_environment(void **state)
{
    (void)state;
    struct gpul_spawn_fd fds[3] = {{0, 0}, {0, 1}, {2, 2}};
    struct gpul_spawn spec = {.environment = no_environment,
                              .fd_count = 3,
                              .working_directory = directory};
    char text[256];
    char expected[256];
    run_report(text, sizeof(text), "place", &spec, fds);
    snprintf(expected, sizeof(expected), "leader %s", directory);
    assert_string_equal(text, expected);

    char variable[] = "RANK=3";
    char *environment[] = {variable, NULL};
    spec.environment = environment;
    run_report(text, sizeof(text), "environment", &spec, fds);
    assert_string_equal(text, "RANK=3 ");
}

/* The middle process starts a child that waits for ever, and dies. */
static void middle_process(int out)
{
    char self[] = "/proc/self/exe";
    char name[] = "--report=wait";
    char *arguments[] = {self, name, NULL};
    struct gpul_spawn_fd fds[] = {{0, 0}, {out, 1}, {2, 2}};
    struct gpul_spawn spec = {.path = self,
                              .arguments = arguments,
                              .environment = no_environment,
                              .fds = fds,
                              .fd_count = 3,
                              .parent_death_signal = SIGKILL};
    pid_t pid;
    int exec_errno;
    int rc = gpul_spawn(&pid, &exec_errno, &spec, NULL);
    pause();
    _exit(rc == 0 ? 0 : 1);
}

/* With a death signal of SIGKILL the child is killed when its parent is. */
static void test_parent_death_signal(void **state)
{
    (void)state;
    int out[2];
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    pid_t middle = fork();
    assert_true(middle >= 0);
    if (middle == 0) {
        middle_process(out[1]);
    }
    close(out[1]);
    char text[32] = {0};
    assert_true(read(out[0], text, sizeof(text) - 1) > 0);
    close(out[0]);
    pid_t child = (pid_t)atoi(text);
    assert_int_equal(kill(middle, SIGKILL), 0);
    assert_int_equal(waitpid(middle, NULL, 0), middle);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
}

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(directory) != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    static const char *const names[] = {"plain", "bare", "lost", "file"};
    char path[96];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
        unlink(path);
    }
    return rmdir(directory);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strncmp(argv[1], "--report=", 9) == 0) {
        return report(argv[1] + 9);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exec_errors),
        cmocka_unit_test(test_too_big),
        cmocka_unit_test(test_bad_directory),
        cmocka_unit_test(test_bad_descriptor),
        cmocka_unit_test(test_only_listed_descriptors),
        cmocka_unit_test(test_overlapping_descriptors),
        cmocka_unit_test(test_signals_reset),
        cmocka_unit_test(test_place_and_environment),
        cmocka_unit_test(test_parent_death_signal),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
