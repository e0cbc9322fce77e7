/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker as a program: what the ranks write, whatever they do with it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "desk.h"
#include "proto/limits.h"

enum { FLOOD_BYTES = 100 << 20 };

static uint64_t hash_file(const char *path, uint64_t *bytes)
{
    static unsigned char buffer[1 << 16];
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    *bytes = 0;
    for (ssize_t n; (n = read(fd, buffer, sizeof(buffer))) > 0;) {
        for (ssize_t i = 0; i < n; i++) {
            hash = (hash ^ buffer[i]) * UINT64_C(0x100000001b3);
        }
        *bytes += (uint64_t)n;
    }
    close(fd);
    return hash;
}

/* A sanitizer's allocator holds on to what was freed. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED true
#elif defined(__has_feature)
#define IS_SANITIZED                                                           \
    (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define IS_SANITIZED false
#endif

/* Peak resident memory of a process, in KiB. */
static long peak_kib(pid_t pid)
{
    char path[64];
    char line[128];
    long kib = -1;
    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f) != NULL) {
        if (strncmp(line, "VmHWM:", 6) == 0) {
            kib = strtol(line + 6, NULL, 10);
        }
    }
    fclose(f);
    return kib;
}

/* 100 MB of random bytes: the log file and the stream hold exactly what the
 * rank wrote, and the worker stays small. */
static void test_flood(void **state)
{
    (void)state;
    struct desk d;
    char script[300];
    char path[200];
    uint64_t bytes;
    desk_open(&d);
    snprintf(script, sizeof(script), "head -c %d /dev/urandom | tee %s/copy",
             FLOOD_BYTES, d.log_dir);
    desk_prepare(&d, 1, script);
    long before = peak_kib(d.worker);
    desk_launch(&d, 1);
    desk_expect_exits(&d, 1, NULL);
    desk_expect_idle(&d, 0);
    assert_true(IS_SANITIZED || peak_kib(d.worker) - before < 4 << 10);
    assert_int_equal(d.output_bytes, FLOOD_BYTES);
    snprintf(path, sizeof(path), "%s/copy", d.log_dir);
    uint64_t written = hash_file(path, &bytes);
    assert_int_equal(bytes, FLOOD_BYTES);
    assert_true(d.output_hash == written);
    snprintf(path, sizeof(path), "%s/test-job/attempt-1/rank-0.out", d.log_dir);
    assert_true(hash_file(path, &bytes) == written);
    assert_int_equal(bytes, FLOOD_BYTES);
    desk_finish(&d, false);
    desk_close(&d, 0, NULL);
}

static bool has_thousand_more(const struct desk *d)
{
    return d->output_bytes >= GPUL_OUTPUT_WINDOW_BYTES_MAX + 1000;
}

static bool has_window(const struct desk *d)
{
    return d->output_bytes >= GPUL_OUTPUT_WINDOW_BYTES_MAX;
}

/* Without credit the node sends its window and then reads no more; credit
 * brings exactly as much again, and Idle waits until all is out. */
static void test_credit(void **state)
{
    (void)state;
    struct desk d;
    enum { ALL = 3 << 20 };
    desk_open(&d);
    d.gives_credit = false;
    desk_prepare(&d, 1, "head -c 3145728 /dev/zero");
    desk_launch(&d, 1);
    desk_until(&d, has_window);
    /* Its next heartbeats come, and no output between them. */
    desk_await_heartbeats(&d, 2);
    assert_int_equal(d.output_bytes, GPUL_OUTPUT_WINDOW_BYTES_MAX);
    desk_credit(&d, 1000);
    desk_until(&d, has_thousand_more);
    desk_await_heartbeats(&d, 2);
    assert_int_equal(d.output_bytes, GPUL_OUTPUT_WINDOW_BYTES_MAX + 1000);
    d.gives_credit = true;
    desk_credit(&d, d.uncredited - 1000);
    d.uncredited = 0;
    desk_expect_exits(&d, 1, NULL);
    desk_expect_idle(&d, 0);
    assert_int_equal(d.output_bytes, ALL);
    desk_finish(&d, false);
    desk_close(&d, 0, NULL);
}

static bool has_said_all(const struct desk *d)
{
    char path[200];
    snprintf(path, sizeof(path), "%s/said.1", d->log_dir);
    bool is_there = access(path, F_OK) == 0;
    snprintf(path, sizeof(path), "%s/said.0", d->log_dir);
    return is_there && access(path, F_OK) == 0;
}

static bool has_line(const struct desk *d, const char *line)
{
    const struct gpul_buf *b = &d->streams[1];
    return b->used > 0 && memmem(b->data, b->used, line, strlen(line)) != NULL;
}

static bool has_both_lines(const struct desk *d)
{
    return has_line(d, "quiet 0\n") && has_line(d, "quiet 1\n");
}

/* Ranks that flood do not take all of a small credit again and again: a line
 * on another pipe of any rank has its turn. */
static void test_fair(void **state)
{
    (void)state;
    struct desk d;
    enum { SMALL = 64 << 10 }; /* what one read of a pipe can take */
    char script[700];
    char path[200];
    desk_open(&d);
    d.gives_credit = false;
    snprintf(script, sizeof(script),
             "head -c 3145728 /dev/zero & until [ -e %s/go ]; do sleep 0.01;"
             " done; echo quiet $RANK >&2; : >%s/said.$RANK; wait",
             d.log_dir, d.log_dir);
    desk_prepare(&d, 2, script);
    desk_launch(&d, 1);
    desk_until(&d, has_window);
    snprintf(path, sizeof(path), "%s/go", d.log_dir);
    close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    desk_until(&d, has_said_all);
    desk_credit(&d, SMALL);
    desk_until(&d, has_both_lines); /* it gets no more credit for them */
    d.gives_credit = true;
    desk_credit(&d, d.uncredited - SMALL);
    d.uncredited = 0;
    desk_expect_exits(&d, 2, NULL);
    desk_expect_idle(&d, 0);
    unlink(path);
    snprintf(path, sizeof(path), "%s/said.0", d.log_dir);
    unlink(path);
    snprintf(path, sizeof(path), "%s/said.1", d.log_dir);
    unlink(path);
    desk_finish(&d, false);
    desk_close(&d, 0, NULL);
}

/* Exit does not wait for output, Idle does. */
static void test_exit_before_output(void **state)
{
    (void)state;
    struct desk d;
    desk_open(&d);
    d.gives_credit = false;
    /* The window, and less than a pipe holds on top of it. */
    desk_prepare(&d, 1, "head -c 1100000 /dev/zero");
    desk_launch(&d, 1);
    desk_expect_exits(&d, 1, NULL);
    desk_await_heartbeats(&d, 2);
    d.gives_credit = true;
    desk_credit(&d, d.uncredited);
    desk_expect_idle(&d, 0);
    assert_int_equal(d.output_bytes, 1100000);
    desk_finish(&d, false);
    desk_close(&d, 0, NULL);
}

/* After a Stop, output that nobody gives credit for is discarded in the end,
 * but not that of the next generation. */
static void test_discarded(void **state)
{
    (void)state;
    struct desk d;
    struct desk_exit end = {.rank = 0};
    desk_open(&d);
    d.gives_credit = false;
    desk_prepare(&d, 1,
                 "[ $GPULAUNCH_GENERATION = 2 ] && echo again ||"
                 "exec head -c 3145728 /dev/zero");
    desk_launch(&d, 1);
    desk_until(&d, has_window);
    desk_stop(&d, SIGKILL, 0);
    desk_expect_exits(&d, 1, &end);
    assert_int_equal(end.signal, SIGKILL);
    desk_expect_idle(&d, 0);
    assert_int_equal(d.output_bytes, GPUL_OUTPUT_WINDOW_BYTES_MAX);
    d.gives_credit = true;
    desk_credit(&d, d.uncredited);
    desk_assign(&d, 1);
    desk_launch(&d, 2);
    desk_expect_exits(&d, 1, NULL);
    desk_expect_idle(&d, 0);
    assert_int_equal(d.output_bytes, GPUL_OUTPUT_WINDOW_BYTES_MAX + 6);
    desk_finish(&d, false);
    desk_close(&d, 0, NULL);
}

static void no_output(Gpul__Job *job)
{
    job->forwards_output = false;
}

/* Output that nobody wants to see needs no credit and is in its file. */
static void test_not_forwarded(void **state)
{
    (void)state;
    struct desk d;
    char path[200];
    uint64_t bytes;
    desk_edit_job = no_output;
    desk_open(&d);
    d.gives_credit = false;
    desk_prepare(&d, 1, "head -c 3145728 /dev/zero");
    desk_launch(&d, 1);
    desk_expect_exits(&d, 1, NULL);
    desk_expect_idle(&d, 0);
    assert_int_equal(d.output_bytes, 0);
    snprintf(path, sizeof(path), "%s/test-job/attempt-1/rank-0.out", d.log_dir);
    hash_file(path, &bytes);
    assert_int_equal(bytes, 3145728);
    desk_edit_job = NULL;
    desk_finish(&d, true);
    assert_int_equal(access(path, F_OK), 0);
    desk_close(&d, 0, NULL);
}

/* A daemon that a rank leaves behind holds its stdout: nobody waits for it,
 * it is stopped, and what it wrote is not lost. */
static void test_held_pipe(void **state)
{
    (void)state;
    struct desk d;
    char daemon[32];
    char script[1024];
    desk_open(&d);
    snprintf(daemon, sizeof(daemon), "987.%ds", (int)getpid());
    snprintf(script, sizeof(script),
             "(setsid sh -c 'echo from the daemon; : >%s/said;"
             " exec sleep %s' &);"
             "until [ -e %s/said ]; do sleep 0.01; done; rm %s/said;"
             "echo from the rank",
             d.log_dir, daemon, d.log_dir, d.log_dir);
    desk_prepare(&d, 1, script);
    desk_launch(&d, 1);
    desk_expect_exits(&d, 1, NULL);
    desk_expect_idle(&d, 0);
    assert_string_equal(desk_output(&d, 0), "from the daemon\nfrom the rank\n");
    assert_false(desk_sees_process(daemon));
    desk_finish(&d, false);
    desk_close(&d, 0, NULL);
}

/* A filter that a rank writes through outlives it by a moment, and may say
 * its last words. */
static void test_filter(void **state)
{
    (void)state;
    struct desk d;
    const char *const argv[] = {
        "bash", "-c",
        "exec > >(cat; echo from the filter); echo from the rank"};
    desk_open(&d);
    desk_prepare_command(&d, 1, 3, argv);
    desk_launch(&d, 1);
    desk_expect_exits(&d, 1, NULL);
    desk_expect_idle(&d, 0);
    assert_string_equal(desk_output(&d, 0), "from the rank\nfrom the filter\n");
    desk_finish(&d, false);
    desk_close(&d, 0, NULL);
}

static char full_log_dir[64];

static void log_to_full(Gpul__Job *job)
{
    job->log_dir = full_log_dir;
}

/* A log that cannot be written costs one notice; the console has it all. */
static void test_disk_full(void **state)
{
    (void)state;
    struct desk d;
    char folder[32] = "/tmp/gpul-full-XXXXXX";
    assert_non_null(mkdtemp(folder));
    if (mount("tmpfs", folder, "tmpfs", 0, "size=64k") != 0) {
        rmdir(folder);
        skip(); /* needs root */
    }
    snprintf(full_log_dir, sizeof(full_log_dir), "%s/test-job", folder);
    desk_edit_job = log_to_full;
    desk_open(&d);
    desk_prepare(&d, 2, "head -c 300000 /dev/zero");
    desk_launch(&d, 1);
    desk_expect_exits(&d, 2, NULL);
    desk_expect_idle(&d, 0);
    assert_int_equal(d.output_bytes, 600000);
    const char *notices = gpul_buf_text(&d.notices);
    assert_non_null(strstr(notices, "log files are incomplete, output goes on "
                                    "here: /tmp/gpul-full-"));
    assert_non_null(strstr(notices, ": No space left on device\n"));
    const char *first = strstr(notices, "log files");
    assert_null(strstr(first + 1, "log files"));
    desk_finish(&d, false);
    assert_int_equal(access(full_log_dir, F_OK), -1);
    desk_close(&d, 0, NULL);
    assert_int_equal(umount(folder), 0);
    rmdir(folder);
}

/* A file that is in a log's place is left alone, a link not followed. */
static void test_log_in_the_way(void **state)
{
    (void)state;
    struct desk d;
    char path[300];
    char target[200];
    desk_open(&d);
    snprintf(target, sizeof(target), "%s/target", d.log_dir);
    snprintf(path, sizeof(path), "%s/test-job", d.log_dir);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/test-job/attempt-1", d.log_dir);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/test-job/attempt-1/rank-0.out", d.log_dir);
    assert_int_equal(symlink(target, path), 0);
    desk_prepare(&d, 1, "echo hello");
    desk_launch(&d, 1);
    desk_expect_exits(&d, 1, NULL);
    desk_expect_idle(&d, 0);
    assert_string_equal(desk_output(&d, 0), "hello\n");
    assert_non_null(
        strstr(gpul_buf_text(&d.notices), "rank-0.out: File exists"));
    assert_int_equal(access(target, F_OK), -1);
    desk_finish(&d, false);
    desk_close(&d, 0, NULL);
}

static int reset(void **state)
{
    (void)state;
    desk_edit_job = NULL;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_flood, reset),
        cmocka_unit_test_setup(test_credit, reset),
        cmocka_unit_test_setup(test_fair, reset),
        cmocka_unit_test_setup(test_exit_before_output, reset),
        cmocka_unit_test_setup(test_discarded, reset),
        cmocka_unit_test_setup(test_not_forwarded, reset),
        cmocka_unit_test_setup(test_held_pipe, reset),
        cmocka_unit_test_setup(test_filter, reset),
        cmocka_unit_test_setup(test_disk_full, reset),
        cmocka_unit_test_setup(test_log_in_the_way, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
