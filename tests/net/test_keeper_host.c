/* SPDX-License-Identifier: Apache-2.0
 *
 * The keeper and its host: memory it does not take, cgroups, the end of a
 * rank for want of memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/keeperstage.h"

enum { LONG_MS = 600000 };

static struct keeperstage s;
static struct keeper_mail mail;

static void open_stage(void)
{
    stage_open(&s);
    stage_take_agent(&s, &mail);
}

/* ---- no allocation ------------------------------------------------------- */

/* Shared with the keeper's process: which one it is, and how often it asked
 * for memory. */
static struct {
    volatile pid_t watched;
    volatile unsigned long count;
} * watch;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_OWN_MALLOC 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_OWN_MALLOC 0
#endif
#endif
#ifndef HAS_OWN_MALLOC
#define HAS_OWN_MALLOC 1
#endif

#if HAS_OWN_MALLOC
/* glibc's own, under the names that a program may take over. */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t count, size_t n);
void *__libc_realloc(void *p, size_t n);

static void note(void)
{
    if (watch != NULL && watch->watched == getpid()) {
        watch->count++;
    }
}

__attribute__((visibility("default"))) void *malloc(size_t n)
{
    note();
    return __libc_malloc(n);
}

__attribute__((visibility("default"))) void *calloc(size_t count, size_t n)
{
    note();
    return __libc_calloc(count, n);
}

__attribute__((visibility("default"))) void *realloc(void *p, size_t n)
{
    note();
    return __libc_realloc(p, n);
}
#endif

static void watch_memory(void)
{
    watch->watched = getpid();
    watch->count = 0;
    void *p = malloc(1); /* it is watched indeed */
    watch->count += p == NULL;
    free(p);
}

/* A whole life: agents that die, ranks that run, fail and are killed, one
 * that is abandoned. The one allocation is that of watch_memory. */
static void test_no_allocation(void **state)
{
    (void)state;
    if (!HAS_OWN_MALLOC) {
        print_message("the sanitizer has malloc for itself\n");
        skip();
    }
    char none[] = "/no/such/program";
    char *list[] = {none, NULL};
    struct startspec spec = {
        .path = none, .arguments = list, .environment = list + 1};
    watch = mmap(NULL, sizeof(*watch), PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(watch, MAP_FAILED);
    stage_init(&s);
    s.in_keeper = watch_memory;
    open_stage();
    stage_begin(&s, 3, LONG_MS);
    stage_start(&s, 0, "(setsid sleep 1000 &) ; exit 1", NULL);
    stage_start(&s, 1, "trap '' TERM; while :; do sleep 1; done", NULL);
    stage_start_spec(&s, 2, &spec);
    for (int i = 0; i < 3; i++) {
        stage_kill_agent(&s);
        stage_take_agent(&s, &mail);
        stage_say(&s, KEEPER_ATTACHED, 0);
    }
    stage_say(&s, KEEPER_PASS, SIGWINCH);
    stage_say(&s, KEEPER_STOP, SIGTERM);
    stage_say(&s, KEEPER_ABANDON, 0);
    struct keeper_packet leave = {.type = KEEPER_LEAVE};
    stage_send(&s, &leave);
    stage_kill_agent(&s);
    assert_int_equal(stage_wait(&s), 0);
    assert_int_equal(watch->count, 1);
    munmap(watch, sizeof(*watch));
    watch = NULL;
}

/* ---- cgroups ------------------------------------------------------------- */

static bool has_writable_v2(void)
{
    return access("/sys/fs/cgroup/unified/cgroup.kill", F_OK) == 0 ||
           access("/sys/fs/cgroup/unified/cgroup.procs", W_OK) == 0 ||
           access("/sys/fs/cgroup/cgroup.procs", W_OK) == 0;
}

static void read_cgroup(char *text, size_t bytes, pid_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    ssize_t n = read(fd, text, bytes - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
}

/* Where it can be had, ranks are in a cgroup of their own, the keeper is not,
 * and it is gone in the end. */
static void test_cgroup(void **state)
{
    (void)state;
    char text[4096];
    char name[64];
    if (!has_writable_v2()) {
        print_message("no cgroup v2 that can be written here\n");
        skip();
    }
    stage_init(&s);
    open_stage();
    stage_begin(&s, 1, LONG_MS);
    stage_start(&s, 0, "exec sleep 1000", NULL);
    stage_expect(&s, &mail, KEEPER_STARTED);
    snprintf(name, sizeof(name), "/gpulaunch-%d-1\n", s.keeper);
    read_cgroup(text, sizeof(text), mail.packet.pid);
    assert_non_null(strstr(text, name));
    read_cgroup(text, sizeof(text), s.keeper);
    assert_null(strstr(text, name));
    stage_say(&s, KEEPER_STOP, SIGKILL);
    stage_expect(&s, &mail, KEEPER_EXIT);
    stage_expect(&s, &mail, KEEPER_GONE);
    char path[128];
    snprintf(path, sizeof(path), "/sys/fs/cgroup/unified/gpulaunch-%d-1",
             s.keeper);
    assert_int_not_equal(access(path, F_OK), 0);
    stage_leave(&s, 0);
}

/* On a host without cgroups all else is as ever. */
static void test_without_cgroup(void **state)
{
    (void)state;
    stage_init(&s);
    s.root = "/no/such/root";
    open_stage();
    stage_begin(&s, 1, LONG_MS);
    stage_start(&s, 0, "(setsid sleep 1000 &) ; exec sleep 1000", NULL);
    stage_expect(&s, &mail, KEEPER_STARTED);
    stage_say(&s, KEEPER_STOP, SIGKILL);
    stage_expect(&s, &mail, KEEPER_EXIT);
    assert_false(mail.packet.is_out_of_memory);
    stage_expect(&s, &mail, KEEPER_GONE);
    assert_int_equal(stage_count(&s), 0);
    stage_leave(&s, 0);
}

/* ---- out of memory ------------------------------------------------------- */

/* A cgroup with a limit of memory, below the one that this test is in. */
static char group[256];
static const char memory_limit[] = "67108864";

static bool write_file(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", group, name);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool is_done =
        fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0) {
        close(fd);
    }
    return is_done;
}

/* In the hierarchy that is mounted there, and has this mark in /proc. */
static bool make_group(const char *mount, const char *mark)
{
    char text[4096];
    text[0] = '\n';
    read_cgroup(text + 1, sizeof(text) - 1, getpid());
    char *own = strstr(text, mark);
    if (own == NULL) {
        return false;
    }
    own += strlen(mark);
    own[strcspn(own, "\n")] = 0;
    snprintf(group, sizeof(group), "%s%.150s/keeper-%d", mount,
             strcmp(own, "/") == 0 ? "" : own, getpid());
    return mkdir(group, 0755) == 0;
}

static bool make_group_v1(void)
{
    return make_group("/sys/fs/cgroup/memory", ":memory:") &&
           write_file("memory.limit_in_bytes", memory_limit);
}

/* The controller of memory is in one of the versions: here, or in the other. */
static bool make_group_v2(void)
{
    static const char *const mounts[] = {"/sys/fs/cgroup/unified",
                                         "/sys/fs/cgroup"};
    for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
        char path[128];
        snprintf(path, sizeof(path), "%s/cgroup.controllers", mounts[i]);
        if (access(path, F_OK) != 0 || !make_group(mounts[i], "\n0::")) {
            continue;
        }
        if (write_file("memory.max", memory_limit)) {
            write_file("memory.swap.max", "0");
            return true;
        }
        rmdir(group);
    }
    return false;
}

static void enter_group(void)
{
    if (!write_file("cgroup.procs", "0")) {
        _exit(99);
    }
}

/* A rank that the kernel kills for its memory is told from one that is killed
 * otherwise, before and after. */
static void check_out_of_memory(void)
{
    stage_init(&s);
    s.in_keeper = enter_group;
    open_stage();
    stage_begin(&s, 3, LONG_MS);
    static const char *const scripts[] = {"kill -9 $$", "exec tail /dev/zero",
                                          "exec sleep 1000"};
    for (uint32_t i = 0; i < 3; i++) {
        stage_start(&s, i, scripts[i], NULL);
        stage_expect(&s, &mail, KEEPER_STARTED);
        if (i == 2) {
            stage_say(&s, KEEPER_STOP, SIGKILL);
        }
        stage_expect(&s, &mail, KEEPER_EXIT);
        assert_int_equal(WTERMSIG(mail.packet.status), SIGKILL);
        assert_int_equal(mail.packet.is_out_of_memory, i == 1);
    }
    stage_expect(&s, &mail, KEEPER_GONE);
    stage_leave(&s, 137);
    assert_int_equal(rmdir(group), 0);
}

static void test_out_of_memory_v1(void **state)
{
    (void)state;
    if (!make_group_v1()) {
        print_message("no memory cgroup (v1) that can be written here\n");
        skip();
    }
    check_out_of_memory();
}

static void test_out_of_memory_v2(void **state)
{
    (void)state;
    if (!make_group_v2()) {
        print_message("no cgroup v2 with the memory controller that can be "
                      "written here\n");
        skip();
    }
    check_out_of_memory();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_allocation),
        cmocka_unit_test(test_cgroup),
        cmocka_unit_test(test_without_cgroup),
        cmocka_unit_test(test_out_of_memory_v1),
        cmocka_unit_test(test_out_of_memory_v2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
