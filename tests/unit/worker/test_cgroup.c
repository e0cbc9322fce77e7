/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/cgroup.h"

/* ---- a host made of files ------------------------------------------------ */

static char root[] = "/tmp/test_cgroup.XXXXXX";

/* Also makes the folders above it. */
static void put_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", root, name);
    for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')) != NULL;
         at++) {
        *at = 0;
        mkdir(path, 0755);
        *at = '/';
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(root) != NULL ? 0 : 1;
}

static int tear_down(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof(command), "rm -r %s", root);
    int rc = system(command); /* NOLINT: a path of our own */
    strcpy(root, "/tmp/test_cgroup.XXXXXX");
    return rc;
}

/* No cgroups, cgroups of version 1 only, or a leaf that nobody can enter. */
static void test_none(void **state)
{
    (void)state;
    struct cgroup g;
    assert_false(cgroup_make(&g, root, "leaf"));
    put_file("proc/self/cgroup", "4:memory:/user\n0::/\n");
    assert_false(cgroup_make(&g, root, "leaf"));
    put_file("sys/fs/cgroup/unified/cgroup.controllers", "");
    assert_false(cgroup_make(&g, root, "leaf"));
    assert_string_equal(g.path, "");
    assert_int_equal(g.procs, 0);
    cgroup_kill(&g);
    assert_false(cgroup_is_populated(&g));
    assert_true(cgroup_remove(&g, 0));
}

/* Version 2's count is that of our own cgroup, and only what comes after the
 * start counts; each kill once. */
static void test_oom_v2(void **state)
{
    (void)state;
    struct cgroup_oom o;
    put_file("proc/self/cgroup", "0::/a/b\n");
    put_file("sys/fs/cgroup/cgroup.controllers", "memory");
    put_file("sys/fs/cgroup/a/b/memory.events",
             "low 0\nhigh 7\nmax 8\noom 3\noom_kill 2\n");
    cgroup_oom_open(&o, root);
    assert_true(o.fd > 0);
    assert_false(cgroup_oom_take(&o));
    put_file("sys/fs/cgroup/a/b/memory.events",
             "low 0\nhigh 7\nmax 9\noom 4\noom_kill 4\noom_group_kill 0\n");
    assert_true(cgroup_oom_take(&o));
    assert_true(cgroup_oom_take(&o));
    assert_false(cgroup_oom_take(&o));
    put_file("sys/fs/cgroup/a/b/memory.events", "oom_kill 5\n");
    cgroup_oom_skip(&o);
    assert_false(cgroup_oom_take(&o));
    cgroup_oom_close(&o);
    assert_false(cgroup_oom_take(&o));
}

/* Version 1's, also among several controllers, and where a container has its
 * own cgroup mounted as the root. */
static void test_oom_v1(void **state)
{
    (void)state;
    struct cgroup_oom o;
    put_file("proc/self/cgroup",
             "9:name=memory:/no\n8:cpu,memory:/docker/12ab\n0::/\n");
    put_file("sys/fs/cgroup/memory/memory.oom_control",
             "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
    cgroup_oom_open(&o, root);
    assert_int_equal(o.seen, 1);
    cgroup_oom_close(&o);
    put_file("sys/fs/cgroup/memory/docker/12ab/memory.oom_control",
             "oom_kill_disable 0\nunder_oom 0\noom_kill 6\n");
    cgroup_oom_open(&o, root);
    assert_int_equal(o.seen, 6);
    cgroup_oom_close(&o);
}

/* A kernel that does not count has nothing to tell. */
static void test_oom_unknown(void **state)
{
    (void)state;
    struct cgroup_oom o;
    cgroup_oom_open(&o, root);
    assert_int_equal(o.fd, 0);
    assert_false(cgroup_oom_take(&o));
    put_file("proc/self/cgroup", "3:memory:/\n");
    put_file("sys/fs/cgroup/memory/memory.oom_control",
             "oom_kill_disable 0\nunder_oom 0\n");
    cgroup_oom_open(&o, root);
    assert_false(cgroup_oom_take(&o));
    cgroup_oom_close(&o);
}

/* ---- the host itself ----------------------------------------------------- */

/* A leaf, a process in it with a child in another session, one write that
 * ends both, and the leaf is gone. */
static void test_real(void **state)
{
    (void)state;
    struct cgroup g;
    char name[64];
    char byte;
    int ready[2];
    snprintf(name, sizeof(name), "test_cgroup-%d", getpid());
    if (!cgroup_make(&g, "", name)) {
        print_message("no cgroup v2 that can be written here\n");
        skip();
    }
    assert_false(cgroup_is_populated(&g));
    assert_int_equal(pipe(ready), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        bool is_in = write(g.procs, "0", 1) == 1;
        if (is_in && fork() == 0) {
            setsid();
            signal(SIGTERM, SIG_IGN);
            is_in = write(ready[1], "x", 1) == 1;
        }
        _exit(is_in ? pause() : 1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_true(cgroup_is_populated(&g));
    assert_false(cgroup_remove(&g, 0));
    cgroup_kill(&g);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WTERMSIG(status), SIGKILL);
    assert_true(cgroup_remove(&g, 20000));
    close(ready[0]);
    close(ready[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_none, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_oom_v2, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_oom_v1, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_oom_unknown, set_up, tear_down),
        cmocka_unit_test(test_real),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
