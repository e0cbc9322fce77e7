/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "launcher/sshconfig.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Lines of `ssh -G`, OpenSSH 9.2. */
static const char config[] = "user me\n"
                             "hostname 10.0.0.1\n"
                             "port 22\n"
                             "hostkeyalias other\n"
                             "connecttimeout none\n"
                             "stdinnull no\n";

static void test_value(void **state)
{
    (void)state;
    char value[10];
    assert_true(sshconfig_value(value, sizeof(value), config, "user"));
    assert_string_equal(value, "me");
    assert_true(sshconfig_value(value, sizeof(value), config, "hostname"));
    assert_string_equal(value, "10.0.0.1");
    assert_true(sshconfig_value(value, sizeof(value), config, "stdinnull"));
    assert_string_equal(value, "no");
    assert_false(sshconfig_value(value, 8, config, "hostname"));
    assert_false(sshconfig_value(value, sizeof(value), config, "host"));
    assert_false(sshconfig_value(value, sizeof(value), "", "user"));
}

static void expect(const char *text, const char *expected)
{
    char *words[SSHCONFIG_WORDS_MAX];
    char line[512] = "";
    size_t n = sshconfig_append(words, sshconfig_options(text));
    assert_true(n <= SSHCONFIG_WORDS_MAX);
    for (size_t i = 0; i < n; i += 2) {
        assert_string_equal(words[i], "-o");
        strcat(strcat(line, words[i + 1]), " ");
    }
    assert_string_equal(line, expected);
}

#define EVERY                                                                  \
    "BatchMode=yes ControlMaster=no ClearAllForwardings=yes ForwardX11=no "    \
    "Tunnel=no PermitLocalCommand=no LogLevel=INFO "

/* What not every ssh knows only where this one does. */
static void test_options(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        const char *expected;
    } rows[] = {
        {"", EVERY "ConnectTimeout=20 "},
        {"hostname a\nconnecttimeout none\n", EVERY "ConnectTimeout=20 "},
        {"connecttimeout 7\n", EVERY},
        {"connecttimeout 7\nremotecommand tmux attach\n",
         EVERY "RemoteCommand=none "},
        {"connecttimeout 7\nsessiontype none\n", EVERY "SessionType=default "},
        {"connecttimeout 7\nstdinnull no\n", EVERY "StdinNull=no "},
        {"connecttimeout 7\nforkafterauthentication yes",
         EVERY "ForkAfterAuthentication=no "},
        {"remotecommand x\nsessiontype subsystem\nstdinnull yes\n"
         "forkafterauthentication yes\n",
         EVERY "ConnectTimeout=20 RemoteCommand=none SessionType=default "
               "StdinNull=no ForkAfterAuthentication=no "},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        expect(rows[i].config, rows[i].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_value),
        cmocka_unit_test(test_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
