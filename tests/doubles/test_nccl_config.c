/* SPDX-License-Identifier: Apache-2.0
 *
 * Configurations between releases: every pair of an old and a new one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/doubles/nccl_config.h"
#include "tests/doubles/nccl_wire.h"

static const int releases[] = {21400, 21800, 22700, 23000};

/* The sizes of ncclConfig_t on a machine of 64 bits. */
static void test_sizes(void **state)
{
    (void)state;
    assert_int_equal(config_bytes(21400), 24);
    assert_int_equal(config_bytes(21800), 48);
    assert_int_equal(config_bytes(22700), 72);
    assert_int_equal(config_bytes(22800), 80);
    assert_int_equal(config_bytes(23000), 96);
}

/* What the product hands over is read by each release: it does not block,
 * and nothing else is set. */
static void test_ours(void **state)
{
    struct nccl_config given = nccl_config_nonblocking();
    struct config_full read;

    (void)state;
    for (size_t i = 0; i < sizeof releases / sizeof releases[0]; i++) {
        assert_int_equal(config_read(&read, &given, releases[i]), NCCL_SUCCESS);
        assert_int_equal(read.blocking, 0);
        assert_int_equal(read.min_ctas, NCCL_UNSET_INT);
        assert_null(read.net_name);
        assert_int_equal(read.traffic_class, NCCL_UNSET_INT);
        assert_int_equal(read.nvls_ctas, NCCL_UNSET_INT);
        assert_int_equal(read.max_p2p_peers, NCCL_UNSET_INT);
        assert_false(config_is_blocking(&read));
    }
}

/* A full configuration of the newest release: an older one reads its own
 * part and no byte more. */
static void test_newer_caller(void **state)
{
    struct config_full given, read;

    (void)state;
    memset(&given, 0, sizeof given);
    given.size = sizeof given;
    given.magic = NCCL_CONFIG_MAGIC;
    given.version = 23005;
    given.cga_cluster_size = 2;
    given.min_ctas = given.max_ctas = given.nvls_ctas = 4;
    given.channels_per_net_peer = given.traffic_class = 1;
    given.max_p2p_peers = 9;
    assert_int_equal(config_read(&read, &given, 21400), NCCL_SUCCESS);
    assert_int_equal(read.blocking, 0);
    assert_int_equal(read.min_ctas, NCCL_UNSET_INT);
    assert_int_equal(config_read(&read, &given, 21800), NCCL_SUCCESS);
    assert_int_equal(read.min_ctas, 4);
    assert_int_equal(read.nvls_ctas, NCCL_UNSET_INT);
    assert_int_equal(config_read(&read, &given, 22700), NCCL_SUCCESS);
    assert_int_equal(read.nvls_ctas, 4);
    assert_int_equal(read.max_p2p_peers, NCCL_UNSET_INT);
    assert_int_equal(config_read(&read, &given, 23005), NCCL_SUCCESS);
    assert_int_equal(read.max_p2p_peers, 9);
}

/* Fields behind the version that a caller declares are its stack, not its
 * wish: they are reset, whatever its size says. */
static void test_older_version(void **state)
{
    struct config_full given, read;

    (void)state;
    memset(&given, 0x7f, sizeof given);
    given.size = sizeof given;
    given.magic = NCCL_CONFIG_MAGIC;
    given.version = 21400;
    given.blocking = 1;
    given.split_share = 0;
    assert_int_equal(config_read(&read, &given, 23000), NCCL_SUCCESS);
    assert_int_equal(read.blocking, 1);
    assert_int_equal(read.cga_cluster_size, NCCL_UNSET_INT);
    assert_null(read.net_name);
    assert_int_equal(read.collnet_enable, NCCL_UNSET_INT);
    given.version = 21300;
    given.blocking = 7; /* not even looked at */
    assert_int_equal(config_read(&read, &given, 23000), NCCL_SUCCESS);
    assert_int_equal(read.blocking, NCCL_UNSET_INT);
    assert_true(config_is_blocking(&read));
}

/* What NCCL refuses, in its words. */
static void test_refused(void **state)
{
    struct nccl_config given = nccl_config_nonblocking();
    struct config_full read;

    (void)state;
    given.magic = 0;
    assert_int_equal(config_read(&read, &given, 22800), NCCL_INVALID_ARGUMENT);
    assert_string_equal(nccl_last_error(),
                        "ncclConfig_t argument not initialized via "
                        "NCCL_CONFIG_INITIALIZER");
    given = nccl_config_nonblocking();
    given.blocking = 2;
    assert_int_equal(config_read(&read, &given, 22800), NCCL_INVALID_ARGUMENT);
    assert_string_equal(nccl_last_error(),
                        "Invalid config blocking attribute value 2");
    given = nccl_config_nonblocking();
    given.max_ctas = 0;
    assert_int_equal(config_read(&read, &given, 22800), NCCL_INVALID_ARGUMENT);
    given = nccl_config_nonblocking();
    given.split_share = 3;
    assert_int_equal(config_read(&read, &given, 21800), NCCL_INVALID_ARGUMENT);
    assert_int_equal(config_read(&read, &given, 21400), NCCL_SUCCESS);
}

/* The environment has the last word. */
static void test_environment(void **state)
{
    struct nccl_config given = nccl_config_nonblocking();
    struct config_full read;

    (void)state;
    assert_int_equal(config_read(&read, &given, 22800), NCCL_SUCCESS);
    assert_int_equal(setenv("NCCL_COMM_BLOCKING", "1", 1), 0);
    assert_true(config_is_blocking(&read));
    assert_int_equal(config_read(&read, NULL, 22800), NCCL_SUCCESS);
    assert_int_equal(setenv("NCCL_COMM_BLOCKING", "0", 1), 0);
    assert_false(config_is_blocking(&read));
    assert_int_equal(unsetenv("NCCL_COMM_BLOCKING"), 0);
    assert_true(config_is_blocking(&read));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_ours),
        cmocka_unit_test(test_newer_caller),
        cmocka_unit_test(test_older_version),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_environment),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
