/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/localaddr.h"
#include "launcher/sshconfig.h"

static char folder[] = "/tmp/gpulaunch-localaddr-XXXXXX";
static char script[64];

/* An ssh that answers -G as this shell text says; $3 is the host. */
static void put_ssh(const char *text)
{
    FILE *f = fopen(script, "w");
    assert_non_null(f);
    fprintf(f, "#!/bin/sh\n%s\n", text);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(script, 0700), 0);
}

static void find(struct localaddr *out, const char *hosts)
{
    char *const ssh[] = {script, NULL};
    struct nodes nodes = {0};
    assert_int_equal(
        nodes_parse_list(&nodes, NODES_LIST, hosts, "--hosts", NULL), 0);
    assert_int_equal(localaddr_find(out, &nodes, ssh, NULL), 0);
    nodes_release(&nodes);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nobody is left */
}

/* The host that ssh would connect to counts, not the one that was named. */
static void test_ssh_configuration(void **state)
{
    (void)state;
    struct localaddr found[40];
    put_ssh("[ \"$2\" = -G ] && echo user me && echo hostname 127.0.0.1 && "
            "echo connecttimeout 7");
    find(found, "nosuch[1-40].invalid");
    for (int i = 0; i < 40; i++) {
        assert_string_equal(found[i].address, "127.0.0.1");
        assert_true(found[i].options == sshconfig_options("connecttimeout 7"));
    }
    put_ssh("echo connecttimeout none; echo hostname ::1");
    find(found, "a");
    assert_string_equal(found[0].address, "::1");
    assert_true(found[0].options == sshconfig_options(""));
    put_ssh("echo remotecommand a b; echo hostname 127.0.0.1");
    find(found, "a");
    assert_true(found[0].options == sshconfig_options("remotecommand a b"));
}

/* What waits on our standard input is not for ssh to read. */
static void test_standard_input(void **state)
{
    (void)state;
    struct localaddr found[1];
    int ends[2], before = dup(0);
    char got[4] = "";
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "abc", 3), 3);
    assert_int_equal(dup2(ends[0], 0), 0);
    put_ssh("read -r line; echo hostname 127.0.0.${line:-1}");
    find(found, "a");
    assert_int_equal(dup2(before, 0), 0);
    assert_string_equal(found[0].address, "127.0.0.1");
    assert_int_equal(read(ends[0], got, 3), 3);
    assert_string_equal(got, "abc");
    close(before);
    close(ends[0]);
    close(ends[1]);
}

/* That no process can be had is told as that, not as a fault of the hosts. */
static void test_shortage(void **state)
{
    (void)state;
    struct localaddr found[40];
    char *const ssh[] = {script, NULL};
    struct nodes nodes = {0};
    struct gpul_error err = {0};
    struct rlimit before, few;
    put_ssh("echo hostname 127.0.0.1");
    assert_int_equal(
        nodes_parse_list(&nodes, NODES_LIST, "n[1-40]", "--hosts", NULL), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){12, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    int rc = localaddr_find(found, &nodes, ssh, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(rc, GPUL_ESYS);
    assert_non_null(strstr(err.text, "Too many open files; raise ulimit -n"));
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    nodes_release(&nodes);
}

/* Without an answer of ssh's the name itself; literals are not looked up. */
static void test_without_ssh(void **state)
{
    (void)state;
    struct localaddr found[2];
    put_ssh("exit 1");
    find(found, "127.0.0.1,nosuch.invalid");
    assert_string_equal(found[0].address, "127.0.0.1");
    assert_string_equal(found[1].address, "");
    assert_false(found[1].is_known);
    assert_true(found[1].words[0] != '\0');
}

/* What hangs is ended, and does not hold up the others. */
static void test_hanging(void **state)
{
    (void)state;
    struct localaddr found[2];
    put_ssh("case $3 in slow*) sleep 300 ;; esac; echo hostname 127.0.0.1");
    find(found, "slow,fast");
    assert_string_equal(found[0].address, "");
    assert_true(found[0].options == sshconfig_options(""));
    assert_string_equal(found[0].words, "looking it up took longer than 5 s");
    assert_string_equal(found[1].address, "127.0.0.1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ssh_configuration),
        cmocka_unit_test(test_standard_input),
        cmocka_unit_test(test_shortage),
        cmocka_unit_test(test_without_ssh),
        cmocka_unit_test(test_hanging),
    };
    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    snprintf(script, sizeof(script), "%s/ssh", folder);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(script);
    rmdir(folder);
    return failures;
}
