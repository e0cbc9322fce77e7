/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "launcher/sshwords.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Words of OpenSSH 9.2, of dash, bash, csh and fish, and of the loader. */
static void test_faults(void **state)
{
    (void)state;
    static const struct {
        int code;
        const char *words;
        bool has_greeted;
        enum ssh_fault fault;
    } rows[] = {
        {255, "ssh: Could not resolve hostname n1: Name or service not known",
         false, SSH_FAULT_NAME},
        {255,
         "ssh: Could not resolve hostname n1: Temporary failure in name "
         "resolution",
         false, SSH_FAULT_NAME},
        {255, "ssh: connect to host n1 port 22: Connection refused", false,
         SSH_FAULT_REFUSED},
        {255, "ssh: connect to host n1 port 22: Connection timed out", false,
         SSH_FAULT_SILENT},
        {255, "Connection timed out during banner exchange", false,
         SSH_FAULT_SILENT},
        {255, "ssh: connect to host n1 port 22: No route to host", false,
         SSH_FAULT_ROUTE},
        {255, "ssh: connect to host n1 port 22: Network is unreachable", false,
         SSH_FAULT_ROUTE},
        {255,
         "kex_exchange_identification: Connection closed by remote host\n"
         "Connection closed by 10.0.0.1 port 22",
         false, SSH_FAULT_DROPPED},
        {255,
         "kex_exchange_identification: read: Connection reset by peer\n"
         "Connection reset by 10.0.0.1 port 22",
         false, SSH_FAULT_DROPPED},
        {255, "ssh_exchange_identification: Exceeded MaxStartups", false,
         SSH_FAULT_DROPPED},
        {255, "me@n1: Permission denied (publickey,password).", false,
         SSH_FAULT_LOGIN},
        {255,
         "Received disconnect from 10.0.0.1 port 22:2: Too many "
         "authentication failures",
         false, SSH_FAULT_LOGIN},
        {255,
         "No ED25519 host key is known for n1 and you have requested strict "
         "checking.\nHost key verification failed.",
         false, SSH_FAULT_HOST_KEY},
        {255,
         "Host key for n1 has changed and you have requested strict checking.\n"
         "Host key verification failed.",
         false, SSH_FAULT_NEW_HOST_KEY},
        {255, "command-line: line 0: Bad configuration option: foo", false,
         SSH_FAULT_CONFIG},
        {255, "unknown option -- Z", false, SSH_FAULT_CONFIG},
        {255, "Cannot execute command-line and remote command.", false,
         SSH_FAULT_CONFIG},
        {255,
         "/root/.ssh/config: line 2: Bad configuration option: foo\n"
         "/root/.ssh/config: terminating, 1 bad configuration options",
         false, SSH_FAULT_CONFIG},
        {255, "ssh: connect to host n1 port 22: Permission denied", false,
         SSH_FAULT_ROUTE},
        {255, "Timeout, server n1 not responding.", false, SSH_FAULT_SILENT},
        {255, "fork failed: Resource temporarily unavailable", false,
         SSH_FAULT_NOT_STARTED},
        {255, "xmalloc: out of memory (allocating 16 bytes)", false,
         SSH_FAULT_NOT_STARTED},
        {255,
         "ssh: connect to host n1 port 22: Resource temporarily unavailable",
         false, SSH_FAULT_NOT_STARTED},
        {255, "something new", false, SSH_FAULT_OTHER},
        {127, "sh: 1: exec: gpulaunch-worker: not found", false,
         SSH_FAULT_MISSING},
        {127, "", false, SSH_FAULT_MISSING},
        {126, "sh: 1: exec: /opt/w: Permission denied", false,
         SSH_FAULT_NOT_EXECUTABLE},
        {127,
         "Error loading shared library libuv.so.1: No such file or directory "
         "(needed by /opt/w)",
         false, SSH_FAULT_LIBRARY},
        {127,
         "/opt/w: error while loading shared libraries: libuv.so.1: cannot "
         "open shared object file: No such file or directory",
         false, SSH_FAULT_LIBRARY},
        {125,
         "head: error writing 'standard output': No space left on device\n"
         "gpulaunch-worker was not copied: 4096 of 9000 bytes came",
         false, SSH_FAULT_NOT_COPIED},
        {0, "", false, SSH_FAULT_NO_GREETING},
        {125, "gpulaunch-worker: unexpected argument \"remote\"", false,
         SSH_FAULT_NO_GREETING},
        {128 + 9, "", false, SSH_FAULT_OTHER},
        {40,
         "gpulaunch-worker: n1: no connection to the coordinator at "
         "10.0.0.9:1 within 30 s: connection refused",
         true, SSH_FAULT_COORDINATOR},
        {255, "Connection to n1 closed by remote host.", true, SSH_FAULT_OTHER},
        {125, "gpulaunch-worker: n1: refused", true, SSH_FAULT_OTHER},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(
            ssh_judge(rows[i].code, rows[i].words, rows[i].has_greeted),
            rows[i].fault);
    }
}

/* A banner may say anything, and a program there, too: what ssh writes about
 * itself decides, with the words of a banner in it or without. */
static void test_banners(void **state)
{
    (void)state;
    static const char banner[] =
        "AUTHORIZED USE ONLY: Permission denied to all others\n"
        "Connection refused, Connection timed out, No route to host\n"
        "the host key has changed: Host key verification failed\n"
        "for shared libraries see /opt; Bad configuration option; usage: ssh\n"
        "Could not resolve hostname\n";
    static const struct {
        int code;
        const char *words;
        enum ssh_fault fault;
    } rows[] = {
        {255, "me@n1: Permission denied (publickey).", SSH_FAULT_LOGIN},
        {255, "Connection closed by 10.0.0.1 port 22", SSH_FAULT_DROPPED},
        {255, "Connection to n1 closed by remote host.", SSH_FAULT_DROPPED},
        {255, "Timeout, server n1 not responding.", SSH_FAULT_SILENT},
        {255, "bash: /etc/profile.d/x: Permission denied", SSH_FAULT_OTHER},
        {255, "", SSH_FAULT_OTHER},
        {127, "sh: 1: exec: gpulaunch-worker: not found", SSH_FAULT_MISSING},
        {126, "sh: 1: exec: /opt/w: Permission denied",
         SSH_FAULT_NOT_EXECUTABLE},
        {1, "no", SSH_FAULT_NO_GREETING},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char lines[1000], words[1000];
        snprintf(lines, sizeof(lines), "%s%s", banner, rows[i].words);
        assert_int_equal(ssh_judge(rows[i].code, lines, false), rows[i].fault);
        ssh_choose_words(words, sizeof(words), rows[i].code, lines, false);
        assert_true(strstr(words, "AUTHORIZED") == NULL ||
                    rows[i].fault == SSH_FAULT_OTHER || rows[i].code == 1);
        assert_non_null(strstr(words, rows[i].words));
    }
}

/* What a jump host was told says more than that the way through it closed. */
static void test_jump_host(void **state)
{
    (void)state;
    static const struct {
        const char *words;
        enum ssh_fault fault;
    } rows[] = {
        {"me@jump: Permission denied (publickey).", SSH_FAULT_LOGIN},
        {"Host key verification failed.", SSH_FAULT_HOST_KEY},
        {"channel 0: open failed: connect failed: Connection refused\n"
         "stdio forwarding failed",
         SSH_FAULT_REFUSED},
        {"channel 0: open failed: connect failed: Name or service not known\n"
         "stdio forwarding failed",
         SSH_FAULT_NAME},
        {"nc: Permission denied", SSH_FAULT_DROPPED},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char lines[1000];
        snprintf(lines, sizeof(lines),
                 "%s\nkex_exchange_identification: Connection closed by remote "
                 "host\nConnection closed by UNKNOWN port 65535",
                 rows[i].words);
        assert_int_equal(ssh_judge(255, lines, false), rows[i].fault);
    }
}

/* On one line, without what was said before it, and the end rather than the
 * beginning. */
static void test_choice(void **state)
{
    (void)state;
    static const struct {
        int code;
        bool has_greeted;
        size_t bytes;
        const char *lines;
        const char *expected;
    } rows[] = {
        {255, false, 100,
         "Warning: Permanently added 'n1' (ED25519) to the list\n"
         "kex_exchange_identification: read: Connection reset by peer\n"
         "Connection reset by 10.0.0.1 port 22",
         "kex_exchange_identification: read: Connection reset by peer "
         "Connection reset by 10.0.0.1 port 22"},
        {255, false, 60, "hello\n\nsomething new", "hello something new"},
        {127, false, 60, "hello\nsh: not found", "sh: not found"},
        {1, false, 60, "hello\nsh: not found", "hello sh: not found"},
        {127, true, 60, "one\ntwo", "one two"},
        {1, false, 16, "hello there\none\nand more", "one and more"},
        {1, false, 5, "hello\nso long a line", "so l"},
        {1, false, 5, "abc\303\244", "abc?"},
        {0, false, 5, "", ""},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char words[1000];
        ssh_choose_words(words, rows[i].bytes, rows[i].code, rows[i].lines,
                         rows[i].has_greeted);
        assert_string_equal(words, rows[i].expected);
    }
}

/* Only what may pass by itself is tried again. */
static void test_transient(void **state)
{
    (void)state;
    for (int i = 0; i < SSH_FAULT_COUNT; i++) {
        assert_int_equal(ssh_is_transient((enum ssh_fault)i),
                         i == SSH_FAULT_DROPPED || i == SSH_FAULT_SILENT);
    }
}

/* Each is told with ssh's own words and with what to do. */
static void test_words(void **state)
{
    (void)state;
    static const struct {
        enum ssh_fault fault;
        const char *words;
        const char *expected;
    } rows[] = {
        {SSH_FAULT_REFUSED, "refused",
         "nothing listens on its ssh port (refused); start sshd there, or give "
         "its Port in ~/.ssh/config"},
        {SSH_FAULT_LOGIN, "denied",
         "ssh was not let in (denied); see ssh -o BatchMode=yes n1 true; "
         "log-in must need no password: ssh-copy-id, or a key in ssh-agent"},
        {SSH_FAULT_MISSING, "",
         "gpulaunch-worker is not there; install gpulaunch on it, or give "
         "--worker-path or --copy-worker"},
        {SSH_FAULT_OTHER, "what", "its ssh session ended (what)"},
        {SSH_FAULT_NOT_TRIED, "2 sessions",
         "it was not tried, since its turn had not come (2 sessions); try by "
         "hand why the others take so long; --join-timeout gives them longer"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gpul_buf out;
        gpul_buf_init(&out, 1000);
        ssh_explain(&out, rows[i].fault, "n1", rows[i].words);
        assert_string_equal(gpul_buf_text(&out), rows[i].expected);
        gpul_buf_release(&out);
    }
    for (int i = 0; i < SSH_FAULT_COUNT; i++) {
        struct gpul_buf out;
        gpul_buf_init(&out, 1000);
        ssh_explain(&out, (enum ssh_fault)i, "n1", "words");
        assert_non_null(strstr(gpul_buf_text(&out), " (words)"));
        assert_true(i == SSH_FAULT_OTHER ||
                    strstr(gpul_buf_text(&out), "; ") != NULL);
        assert_int_equal(ssh_why((enum ssh_fault)i) ==
                             GPUL__NODE_GONE__WHY__ENDED,
                         i == SSH_FAULT_OTHER);
        gpul_buf_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults),    cmocka_unit_test(test_banners),
        cmocka_unit_test(test_jump_host), cmocka_unit_test(test_choice),
        cmocka_unit_test(test_transient), cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
