/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a child is put: processors, memory, limits, cgroup. The children are
 * this very program, called with the name of a report.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/spawn.h"

/* ---- what the children report -------------------------------------------- */

/* Where the process was put. */
static void report_binding(void)
{
    FILE *f = fopen("/proc/self/status", "re");
    char line[256];
    while (fgets(line, sizeof(line), f) != NULL) {
        if (strncmp(line, "Cpus_allowed_list:", 18) == 0) {
            dprintf(1, "%s", line);
        }
    }
    fclose(f);
    int policy = -1;
    uint64_t nodes[16] = {0};
    if (syscall(SYS_get_mempolicy, &policy, nodes, 1025, NULL, 0) == 0) {
        dprintf(1, "policy %d nodes %llx\n", policy,
                (unsigned long long)nodes[0]);
    }
}

static void report_limits(void)
{
    static const __rlimit_resource_t which[] = {RLIMIT_NOFILE, RLIMIT_MEMLOCK};
    for (int i = 0; i < 2; i++) {
        struct rlimit limit;
        getrlimit(which[i], &limit);
        dprintf(1, "%s ", limit.rlim_cur == limit.rlim_max ? "hard" : "soft");
    }
}

static void report_cgroup(void)
{
    char text[4096];
    int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, text, sizeof(text));
    close(fd);
    _exit(n > 0 && write(1, text, (size_t)n) == n ? 0 : 1);
}

static int report(const char *what)
{
    if (strcmp(what, "binding") == 0) {
        report_binding();
    } else if (strcmp(what, "limits") == 0) {
        report_limits();
    } else {
        report_cgroup();
    }
    return 0;
}

/* ---- helpers ------------------------------------------------------------- */

static char *no_environment[] = {NULL};

/* Run a report of ours as `spec` says, and give its text. */
static void run_report(char *text, size_t size, const char *what,
                       struct gpul_spawn *spec)
{
    int out[2];
    char name[64];
    char self[] = "/proc/self/exe";
    char *arguments[] = {self, name, NULL};
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    const struct gpul_spawn_fd fds[] = {{0, 0}, {out[1], 1}, {2, 2}};
    snprintf(name, sizeof(name), "--report=%s", what);
    spec->path = self;
    spec->arguments = arguments;
    spec->environment = no_environment;
    spec->fds = fds;
    spec->fd_count = 3;
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

/* ---- tests --------------------------------------------------------------- */

/* The last processor that this process may use. */
static int last_processor(void)
{
    cpu_set_t set;
    int last = -1;
    assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        last = CPU_ISSET(cpu, &set) ? (int)cpu : last;
    }
    assert_true(last >= 0);
    return last;
}

/* The child runs where it is told to, and the parent where it was. */
static void test_processors(void **state)
{
    (void)state;
    int cpu = last_processor();
    uint64_t mask[128] = {0}; /* more than the kernel has: as good */
    mask[cpu / 64] = 1ull << cpu % 64;
    struct gpul_spawn spec = {.cpus = mask, .cpu_words = 128};
    cpu_set_t before;
    cpu_set_t after;
    char text[256];
    char expected[64];
    sched_getaffinity(0, sizeof(before), &before);
    run_report(text, sizeof(text), "binding", &spec);
    snprintf(expected, sizeof(expected), "Cpus_allowed_list:\t%d\n", cpu);
    assert_memory_equal(text, expected, strlen(expected));
    sched_getaffinity(0, sizeof(after), &after);
    assert_true(CPU_EQUAL(&before, &after));
}

/* Its memory comes from where it is told to. */
static void test_memory_nodes(void **state)
{
    (void)state;
    uint64_t mask[16] = {1};
    int policy;
    if (syscall(SYS_get_mempolicy, &policy, NULL, 0, NULL, 0) != 0) {
        print_message("no memory policies here: %s\n", strerror(errno));
        skip();
    }
    struct gpul_spawn spec = {.nodes = mask, .node_words = 16};
    char text[256];
    run_report(text, sizeof(text), "binding", &spec);
    assert_non_null(strstr(text, "policy 2 nodes 1\n"));
    assert_int_equal(syscall(SYS_get_mempolicy, &policy, NULL, 0, NULL, 0), 0);
    assert_int_equal(policy, 0);
}

/* Soft limits become the hard ones when asked for, else they stay. */
static void test_limits(void **state)
{
    (void)state;
    struct rlimit before[2];
    static const __rlimit_resource_t which[] = {RLIMIT_NOFILE, RLIMIT_MEMLOCK};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(getrlimit(which[i], &before[i]), 0);
        struct rlimit low = {256, before[i].rlim_max};
        assert_int_equal(setrlimit(which[i], &low), 0);
    }
    struct gpul_spawn spec = {.raises_limits = false};
    char text[256];
    run_report(text, sizeof(text), "limits", &spec);
    assert_string_equal(text, "soft soft ");
    spec.raises_limits = true;
    run_report(text, sizeof(text), "limits", &spec);
    assert_string_equal(text, "hard hard ");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(setrlimit(which[i], &before[i]), 0);
    }
}

/* The child is in the group before it is executed. */
static void test_cgroup(void **state)
{
    (void)state;
    static const char *const roots[] = {"/sys/fs/cgroup/unified",
                                        "/sys/fs/cgroup"};
    char path[96] = "";
    char group[64];
    snprintf(group, sizeof(group), "test_spawn.%d", getpid());
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/cgroup.procs", roots[i]);
        bool is_v2 = access(path, W_OK) == 0;
        snprintf(path, sizeof(path), "%s/%s", roots[i], group);
        if (is_v2 && mkdir(path, 0755) == 0) {
            break;
        }
        path[0] = 0;
    }
    if (path[0] == 0) {
        print_message("no cgroup v2 that can be written here\n");
        skip();
    }
    char procs[128];
    snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
    struct gpul_spawn spec = {.cgroup_procs =
                                  open(procs, O_WRONLY | O_CLOEXEC)};
    char text[4096];
    run_report(text, sizeof(text), "cgroup", &spec);
    close(spec.cgroup_procs);
    assert_int_equal(rmdir(path), 0);
    assert_non_null(strstr(text, group));
}

/* What cannot be had is named: which step it was, and of what. */
static void test_bad_places(void **state)
{
    (void)state;
    static const uint64_t none[16] = {0};
    char path[] = "/bin/true";
    char *arguments[] = {path, NULL};
    struct gpul_spawn specs[2] = {
        {.path = path, .arguments = arguments, .environment = no_environment},
        {.path = path, .arguments = arguments, .environment = no_environment}};
    specs[0].cpus = none;
    specs[0].cpu_words = 16;
    specs[1].cgroup_procs = 777;
    static const char *const expected[] = {
        "cannot bind /bin/true to its processors: Invalid argument",
        "cannot put /bin/true into its cgroup: Bad file descriptor",
    };
    for (int i = 0; i < 2; i++) {
        struct gpul_error err;
        pid_t pid;
        int exec_errno;
        assert_int_equal(gpul_spawn(&pid, &exec_errno, &specs[i], &err),
                         GPUL_ESYS);
        assert_string_equal(err.text, expected[i]);
        assert_int_equal(exec_errno, i == 0 ? EINVAL : EBADF);
    }
}

int main(int argc, char **argv)
{
    if (argc == 2 && strncmp(argv[1], "--report=", 9) == 0) {
        return report(argv[1] + 9);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_processors), cmocka_unit_test(test_memory_nodes),
        cmocka_unit_test(test_limits),     cmocka_unit_test(test_cgroup),
        cmocka_unit_test(test_bad_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
