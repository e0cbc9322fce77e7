/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/children.h"

enum { CHILDREN = 3 };

static pid_t start_child(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        _exit(pause());
    }
    assert_true(pid > 0);
    return pid;
}

static int by_pid(const void *a, const void *b)
{
    return *(const pid_t *)a - *(const pid_t *)b;
}

/* The kernel's list and the scan see the same children, dead ones too. */
static void test_find(void **state)
{
    (void)state;
    pid_t children[CHILDREN];
    pid_t found[CHILDREN + 1];
    assert_int_equal(gpul_children_find(found, CHILDREN + 1), 0);
    for (int i = 0; i < CHILDREN; i++) {
        children[i] = start_child();
    }
    siginfo_t info;
    kill(children[0], SIGKILL);
    waitid(P_PID, (id_t)children[0], &info, WEXITED | WNOWAIT);
    qsort(children, CHILDREN, sizeof(pid_t), by_pid);
    size_t (*const ways[])(pid_t *, size_t) = {gpul_children_find,
                                               gpul_children_scan};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ways[i](found, CHILDREN + 1), CHILDREN);
        qsort(found, CHILDREN, sizeof(pid_t), by_pid);
        assert_memory_equal(found, children, sizeof(children));
        assert_int_equal(ways[i](found, 2), 2);
    }
    for (int i = 0; i < CHILDREN; i++) {
        kill(children[i], SIGKILL);
        assert_int_equal(waitpid(children[i], NULL, 0), children[i]);
    }
}

/* Whoever adopts gets the orphan of a child that ends. */
static void test_adopt(void **state)
{
    (void)state;
    int told[2];
    pid_t orphan = 0;
    pid_t found[2];
    assert_int_equal(pipe(told), 0);
    gpul_children_adopt();
    pid_t child = fork();
    if (child == 0) {
        orphan = fork();
        if (orphan == 0) {
            _exit(pause());
        }
        _exit(write(told[1], &orphan, sizeof(orphan)) < 0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(read(told[0], &orphan, sizeof(orphan)), sizeof(orphan));
    assert_int_equal(gpul_children_find(found, 2), 1);
    assert_int_equal(found[0], orphan);
    kill(orphan, SIGKILL);
    assert_int_equal(waitpid(orphan, NULL, 0), orphan);
    close(told[0]);
    close(told[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_adopt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
