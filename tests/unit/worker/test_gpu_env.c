/* SPDX-License-Identifier: Apache-2.0
 *
 * The environment of a probe, line by line.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proto/text.h"
#include "worker/gpu_env.h"

/* "NAME=VALUE NAME=VALUE" of what is set beside the user's environment. */
static const char *additions(const char *const *environment,
                             const char *interface, const char *debug_file)
{
    static char text[GPU_ENV_ADDITIONS_MAX * 128];
    struct gpu_env_addition out[GPU_ENV_ADDITIONS_MAX];
    size_t count = gpu_env_additions(out, environment, interface, debug_file);
    size_t n = 0;
    text[0] = 0;
    for (size_t i = 0; i < count; i++) {
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s=%s",
                              i == 0 ? "" : " ", out[i].name, out[i].value);
    }
    return text;
}

/* What is not known is not set; an interface is named exactly. */
static void test_additions(void **state)
{
    (void)state;
    static const char *const none[] = {"PATH=/bin", "NCCL_DEBUGS=x", NULL};
    assert_string_equal(additions(none, "", ""), "NCCL_IGNORE_NET_MISMATCH=0");
    assert_string_equal(
        additions(none, "eth0", "/l/nccl-3.log"),
        "NCCL_SOCKET_IFNAME==eth0 NCCL_IGNORE_NET_MISMATCH=0 NCCL_DEBUG=INFO "
        "NCCL_DEBUG_FILE=/l/nccl-3.log");
}

/* What the user has set, an empty value too, stays as it is; either variable
 * of the log is enough to leave both alone. */
static void test_user_wins(void **state)
{
    (void)state;
    static const char *const all[] = {
        "NCCL_SOCKET_IFNAME=ib0",
        "NCCL_IGNORE_NET_MISMATCH=", "NCCL_DEBUG=WARN", NULL};
    static const char *const file[] = {"NCCL_DEBUG_FILE=/mine", NULL};
    assert_string_equal(additions(all, "eth0", "/l/nccl.log"), "");
    assert_string_equal(additions(file, "", "/l/nccl.log"),
                        "NCCL_IGNORE_NET_MISMATCH=0");
}

/* All NCCL_* are shown, nothing else, each as one line that fits. */
static void test_settings(void **state)
{
    (void)state;
    char long_value[400] = "NCCL_TOPO_FILE=";
    memset(long_value + strlen(long_value), 'x', 300);
    const char *const environment[] = {"HOME=/root",
                                       "NCCL_ALGO=Ring",
                                       "XNCCL_A=1",
                                       "NCCL_X=a\nb\x01\xff",
                                       long_value,
                                       "NCCL",
                                       "NCCL_SOCKET_MAGIC=0x1",
                                       NULL};
    char out[GPUL_SETTINGS_MAX][GPU_ENV_SETTING_BYTES];
    assert_int_equal(gpu_env_settings(out, environment), 3);
    assert_string_equal(out[0], "NCCL_ALGO=Ring");
    assert_string_equal(out[1], "NCCL_X=a?b??");
    assert_int_equal(strlen(out[2]), GPUL_FINDING_BYTES_MAX);
    for (size_t i = 0; i < 3; i++) {
        assert_true(gpul_text_is_valid(out[i], GPUL_TEXT_LINE));
    }
}

/* More than a report holds are left out. */
static void test_many_settings(void **state)
{
    (void)state;
    const char *environment[GPUL_SETTINGS_MAX + 10];
    char out[GPUL_SETTINGS_MAX][GPU_ENV_SETTING_BYTES];
    for (size_t i = 0; i < GPUL_SETTINGS_MAX + 9; i++) {
        environment[i] = "NCCL_A=1";
    }
    environment[GPUL_SETTINGS_MAX + 9] = NULL;
    assert_int_equal(gpu_env_settings(out, environment), GPUL_SETTINGS_MAX);
}

/* Three variables are warned of, each by name; others are not. */
static void test_warnings(void **state)
{
    (void)state;
    static const char *const names[] = {"NCCL_COMM_BLOCKING", "NCCL_COMM_ID",
                                        "NCCL_IB_GID_INDEX"};
    static const char *const all[] = {"NCCL_IB_GID_INDEX=3", "NCCL_ALGO=Ring",
                                      "NCCL_COMM_ID=10.0.0.1:99",
                                      "NCCL_COMM_BLOCKING=1", NULL};
    static const char *const none[] = {"NCCL_ALGO=Ring", NULL};
    const char *out[GPU_ENV_WARNINGS_MAX];
    assert_int_equal(gpu_env_warnings(out, all), 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(strncmp(out[i], names[i], strlen(names[i])), 0);
    }
    assert_int_equal(gpu_env_warnings(out, none), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_additions), cmocka_unit_test(test_user_wins),
        cmocka_unit_test(test_settings),  cmocka_unit_test(test_many_settings),
        cmocka_unit_test(test_warnings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
