/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/worker/env_fixture.h"

/* All that the rank gets, one line each, as exec gets it. */
static char *dump(const struct env *e)
{
    size_t bytes = 1;
    for (char **s = e->strings; *s != NULL; s++) {
        bytes += strlen(*s) + 1;
    }
    char *text = calloc(1, bytes);
    assert_non_null(text);
    char *out = text;
    for (char **s = e->strings; *s != NULL; s++) {
        out += sprintf(out, "%s\n", *s);
    }
    return text;
}

static void assert_dump(const struct env_fixture *f, uint32_t local_rank,
                        const char *expected)
{
    struct env_case c;
    env_case_init(&c, f, local_rank);
    char *text = dump(&c.env);
    assert_string_equal(text, expected);
    free(text);
    env_case_release(&c);
}

/* A world of two nodes with two ranks each: everything rank 3 gets. */
static void test_two_by_two(void **state)
{
    (void)state;
    static const char *const inherited[] = {"PATH=/usr/bin", "HOME=/root",
                                            NULL};
    struct env_fixture f;
    env_fixture_init(&f, 2, 2);
    env_fixture_stand_on(&f, 1);
    f.in.inherited = inherited;
    f.in.node.node_name = "node-1";
    f.in.node.interface = "eth0";
    f.in.world.generation = 3;
    f.in.world.restart_count = 2;
    f.in.world.max_restarts = 5;
    assert_dump(&f, 1,
                "GLOO_SOCKET_IFNAME=eth0\n"
                "GPULAUNCH_GENERATION=3\n"
                "GPULAUNCH_JOB_ID=job-1\n"
                "GPULAUNCH_MARKER=job-1/3/3\n"
                "GPULAUNCH_NODE_NAME=node-1\n"
                "GPULAUNCH_NODE_RANK=1\n"
                "GROUP_RANK=1\n"
                "GROUP_WORLD_SIZE=2\n"
                "HOME=/root\n"
                "HOROVOD_CONTROLLER=gloo\n"
                "HOROVOD_CPU_OPERATIONS=gloo\n"
                "HOROVOD_CROSS_RANK=1\n"
                "HOROVOD_CROSS_SIZE=2\n"
                "HOROVOD_GLOO_IFACE=eth0\n"
                "HOROVOD_GLOO_RENDEZVOUS_ADDR=10.0.0.1\n"
                "HOROVOD_GLOO_RENDEZVOUS_PORT=20004\n"
                "HOROVOD_HOSTNAME=node-1\n"
                "HOROVOD_LOCAL_RANK=1\n"
                "HOROVOD_LOCAL_SIZE=2\n"
                "HOROVOD_RANK=3\n"
                "HOROVOD_SIZE=4\n"
                "JAX_COORDINATOR_ADDRESS=10.0.0.1:20003\n"
                "JAX_NUM_PROCESSES=4\n"
                "JAX_PROCESS_ID=3\n"
                "LOCAL_RANK=1\n"
                "LOCAL_WORLD_SIZE=2\n"
                "MASTER_ADDR=10.0.0.1\n"
                "MASTER_PORT=20002\n"
                "NCCL_SOCKET_FAMILY=AF_INET\n"
                "NCCL_SOCKET_IFNAME==eth0\n"
                "NODE_RANK=1\n"
                "OMP_NUM_THREADS=8\n"
                "PATH=/usr/bin\n"
                "PYTHONUNBUFFERED=1\n"
                "RANK=3\n"
                "ROLE_NAME=default\n"
                "ROLE_RANK=3\n"
                "ROLE_WORLD_SIZE=4\n"
                "TF_CONFIG={\"cluster\":{\"worker\":[\"10.0.0.1:20000\","
                "\"10.0.0.1:20001\",\"10.0.0.2:20000\",\"10.0.0.2:20001\"]},"
                "\"task\":{\"type\":\"worker\",\"index\":3}}\n"
                "TORCHELASTIC_MAX_RESTARTS=5\n"
                "TORCHELASTIC_RESTART_COUNT=2\n"
                "TORCHELASTIC_RUN_ID=job-1\n"
                "TORCHELASTIC_USE_AGENT_STORE=False\n"
                "TORCH_NCCL_ASYNC_ERROR_HANDLING=1\n"
                "WORLD_SIZE=4\n");
    env_fixture_release(&f);
}

/* A single rank behind an IPv6 address: brackets where a port follows, none
 * in MASTER_ADDR, no TF_CONFIG. */
static void test_single_ipv6(void **state)
{
    (void)state;
    struct env_fixture f;
    env_fixture_init(&f, 1, 1);
    f.addresses[0] = "fd00::1";
    f.in.node.cores = 3;
    assert_dump(&f, 0,
                "GPULAUNCH_GENERATION=1\n"
                "GPULAUNCH_JOB_ID=job-1\n"
                "GPULAUNCH_MARKER=job-1/1/0\n"
                "GPULAUNCH_NODE_NAME=node-0\n"
                "GPULAUNCH_NODE_RANK=0\n"
                "GROUP_RANK=0\n"
                "GROUP_WORLD_SIZE=1\n"
                "HOROVOD_CONTROLLER=gloo\n"
                "HOROVOD_CPU_OPERATIONS=gloo\n"
                "HOROVOD_CROSS_RANK=0\n"
                "HOROVOD_CROSS_SIZE=1\n"
                "HOROVOD_GLOO_RENDEZVOUS_ADDR=fd00::1\n"
                "HOROVOD_GLOO_RENDEZVOUS_PORT=20003\n"
                "HOROVOD_HOSTNAME=node-0\n"
                "HOROVOD_LOCAL_RANK=0\n"
                "HOROVOD_LOCAL_SIZE=1\n"
                "HOROVOD_RANK=0\n"
                "HOROVOD_SIZE=1\n"
                "JAX_COORDINATOR_ADDRESS=[fd00::1]:20002\n"
                "JAX_COORDINATOR_BIND_ADDRESS=[fd00::1]:20002\n"
                "JAX_NUM_PROCESSES=1\n"
                "JAX_PROCESS_ID=0\n"
                "LOCAL_RANK=0\n"
                "LOCAL_WORLD_SIZE=1\n"
                "MASTER_ADDR=fd00::1\n"
                "MASTER_PORT=20001\n"
                "NODE_RANK=0\n"
                "OMP_NUM_THREADS=3\n"
                "PYTHONUNBUFFERED=1\n"
                "RANK=0\n"
                "ROLE_NAME=default\n"
                "ROLE_RANK=0\n"
                "ROLE_WORLD_SIZE=1\n"
                "TORCHELASTIC_MAX_RESTARTS=0\n"
                "TORCHELASTIC_RESTART_COUNT=0\n"
                "TORCHELASTIC_RUN_ID=job-1\n"
                "TORCHELASTIC_USE_AGENT_STORE=False\n"
                "TORCH_NCCL_ASYNC_ERROR_HANDLING=1\n"
                "WORLD_SIZE=1\n");
    env_fixture_release(&f);
}

/* A value of each rank: an inherited one is right for at most one rank, and
 * one notice says so for all. */
static void test_each_rank(void **state)
{
    (void)state;
    static const char *const inherited[] = {"RANK=1", NULL};
    static const enum env_action actions[] = {ENV_REPLACED, ENV_SET,
                                              ENV_REPLACED};
    struct env_fixture f;
    env_fixture_init(&f, 1, 3);
    f.in.inherited = inherited;
    for (uint32_t l = 0; l < 3; l++) {
        struct env_case c;
        env_case_init(&c, &f, l);
        const char expected[] = {(char)('0' + l), 0};
        assert_string_equal(env_case_value(&c, "RANK"), expected);
        assert_int_equal(env_case_entry(&c, "RANK")->action, actions[l]);
        assert_string_equal(
            env_case_notices(&c),
            "RANK=1 from your environment is replaced by each rank's own\n");
        env_case_release(&c);
    }
    const struct env_variable user[] = {{"RANK", "1"}};
    f.in.user = user;
    f.in.user_count = 1;
    struct env_case c;
    env_case_init(&c, &f, 2);
    assert_string_equal(env_case_value(&c, "RANK"), "1");
    assert_string_equal(env_case_notices(&c),
                        "RANK=1, given with -x, stands in place of each rank's "
                        "own\n");
    env_case_release(&c);
    env_fixture_release(&f);
}

/* What differs between nodes is told in the same words on each: the front end
 * prints equal lines once. */
static void test_each_node(void **state)
{
    (void)state;
    static const char *const inherited[] = {"GROUP_RANK=9",
                                            "HOROVOD_HOSTNAME=x",
                                            "HOROVOD_LOCAL_SIZE=9",
                                            "LOCAL_WORLD_SIZE=9",
                                            "GLOO_SOCKET_IFNAME=x",
                                            "HOROVOD_GLOO_IFACE=x",
                                            "OMP_NUM_THREADS=99",
                                            "RANK=9",
                                            NULL};
    static const struct env_variable user[] = {{"NODE_RANK", "9"}};
    static const char expected[] =
        "GLOO_SOCKET_IFNAME=x is kept from your environment (gpulaunch's "
        "default is each node's own)\n"
        "GROUP_RANK=9 from your environment is replaced by each node's own\n"
        "HOROVOD_GLOO_IFACE=x is kept from your environment (gpulaunch's "
        "default is each node's own)\n"
        "HOROVOD_HOSTNAME=x from your environment is replaced by each node's "
        "own\n"
        "HOROVOD_LOCAL_SIZE=9 from your environment is replaced by each "
        "node's own\n"
        "LOCAL_WORLD_SIZE=9 from your environment is replaced by each node's "
        "own\n"
        "NODE_RANK=9, given with -x, stands in place of each node's own\n"
        "OMP_NUM_THREADS=99 is kept from your environment (gpulaunch's "
        "default is each node's own)\n"
        "RANK=9 from your environment is replaced by each rank's own\n";
    struct env_fixture f;
    env_fixture_init(&f, 3, 2);
    f.in.inherited = inherited;
    f.in.user = user;
    f.in.user_count = 1;
    f.in.node.interface = "eth0";
    for (uint32_t node = 0; node < 3; node++) {
        struct env_case c;
        env_fixture_stand_on(&f, node);
        env_case_init(&c, &f, 0);
        assert_string_equal(env_case_notices(&c), expected);
        env_case_release(&c);
    }
    env_fixture_release(&f);
}

/* gpulaunch within a rank of gpulaunch: what the outer one had set is one
 * line; what another launcher left is still told. */
static void test_nested(void **state)
{
    (void)state;
    static const char *const inherited[] = {"GPULAUNCH_JOB_ID=outer",
                                            "GPULAUNCH_NODE_RANK=7",
                                            "RANK=7",
                                            "WORLD_SIZE=9",
                                            "OMP_NUM_THREADS=99",
                                            "JAX_COORDINATOR_BIND_ADDRESS=::1",
                                            "PMI_RANK=1",
                                            NULL};
    struct env_fixture f;
    env_fixture_init(&f, 2, 1);
    f.in.inherited = inherited;
    env_fixture_stand_on(&f, 1);
    struct env_case c;
    env_case_init(&c, &f, 0);
    assert_string_equal(
        env_case_notices(&c),
        "within gpulaunch job outer: the place it gave (RANK, TF_CONFIG and "
        "the like) is replaced by this job's, its defaults (OMP_NUM_THREADS "
        "and the like) are kept\n"
        "not passed on to the ranks: PMI_RANK\n");
    assert_string_equal(env_case_value(&c, "RANK"), "1");
    assert_string_equal(env_case_value(&c, "OMP_NUM_THREADS"), "99");
    assert_null(env_case_value(&c, "JAX_COORDINATOR_BIND_ADDRESS"));
    env_case_release(&c);
    env_fixture_release(&f);
}

/* Of equal names the first of an environment counts, as in getenv, and the
 * last -x; what is no variable is left out. */
static void test_repeats(void **state)
{
    (void)state;
    static const char *const inherited[] = {"B=1", "A=1", "B=2",  "nothing",
                                            "=x",  "A=2", "AB=1", NULL};
    static const struct env_variable user[] = {
        {"C", "1"}, {"A", "7"}, {"C", "2"}, {"A", "8"}};
    struct env_fixture f;
    env_fixture_init(&f, 1, 1);
    f.in.inherited = inherited;
    f.in.user = user;
    f.in.user_count = 4;
    struct env_case c;
    env_case_init(&c, &f, 0);
    char *text = dump(&c.env);
    assert_memory_equal(text, "A=8\nAB=1\nB=1\nC=2\nGPULAUNCH_", 25);
    assert_null(strstr(text, "nothing"));
    free(text);
    for (size_t i = 1; i < c.env.count; i++) {
        assert_true(strcmp(c.env.entries[i - 1].name, c.env.entries[i].name) <
                    0);
    }
    env_case_release(&c);
    env_fixture_release(&f);
}

/* A notice is one printable line, however long and odd the value. */
static void test_notice_is_plain(void **state)
{
    (void)state;
    static char value[2000] = "MASTER_ADDR=\n\x1b[31m\xff";
    memset(value + 19, 'x', sizeof(value) - 20);
    const char *const inherited[] = {value, NULL};
    struct env_fixture f;
    env_fixture_init(&f, 1, 1);
    f.in.inherited = inherited;
    struct env_case c;
    env_case_init(&c, &f, 0);
    assert_string_equal(env_case_notices(&c),
                        "MASTER_ADDR=??[31m?"
                        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
                        "... from your environment is replaced by 10.0.0.1\n");
    env_case_release(&c);
    env_fixture_release(&f);
}

/* Threads: the cores of the host over all its ranks, at least one. */
static void test_threads(void **state)
{
    (void)state;
    static const struct {
        uint32_t cores;
        uint32_t host_ranks;
        const char *threads;
    } rows[] = {
        {16, 2, "8"}, {16, 3, "5"}, {2, 8, "1"},    {1, 2, "1"},
        {0, 2, "1"},  {16, 0, "8"}, {128, 16, "8"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct env_fixture f;
        env_fixture_init(&f, 1, 2);
        f.in.node.cores = rows[i].cores;
        f.in.node.host_rank_count = rows[i].host_ranks;
        struct env_case c;
        env_case_init(&c, &f, 1);
        assert_string_equal(env_case_value(&c, "OMP_NUM_THREADS"),
                            rows[i].threads);
        env_case_release(&c);
        env_fixture_release(&f);
    }
}

/* No variable that binds threads to cores or fixes NCCL's root is ours. */
static void test_never_set(void **state)
{
    (void)state;
    static const char *const names[] = {
        "NCCL_COMM_ID",       "OMP_PLACES",         "OMP_PROC_BIND",
        "GOMP_CPU_AFFINITY",  "KMP_AFFINITY",       "NCCL_SOCKET_IFNAME",
        "NCCL_SOCKET_FAMILY", "NCCL_IB_HCA",        "NCCL_HOSTID",
        "GLOO_SOCKET_IFNAME", "HOROVOD_GLOO_IFACE", "CUDA_VISIBLE_DEVICES",
    };
    struct env_fixture f;
    env_fixture_init(&f, 2, 2);
    struct env_case c;
    env_case_init(&c, &f, 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_null(env_case_entry(&c, names[i]));
    }
    env_case_release(&c);
    env_fixture_release(&f);
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char *text = calloc(1, 65536);
    assert_non_null(text);
    size_t n = fread(text, 1, 65535, file);
    fclose(file);
    assert_in_range(n, 1, 65534);
    return text;
}

/* The manual names every variable that a rule sets, keeps or drops. */
static void test_manual(void **state)
{
    (void)state;
    static const char *const inherited[] = {
        "http_proxy=p",      "SLURM_PROCID=1",         "TF_CONFIG=x",
        "HOROVOD_ELASTIC=1", "JAX_COORDINATOR_PORT=1", NULL};
    static const char *const devices[] = {"0", "1"};
    char *manual = read_file(SOURCE_DIR "/docs/environment.md");
    struct env_fixture f;
    env_fixture_init(&f, 2, 2);
    f.in.inherited = inherited;
    f.in.node.interface = "eth0";
    f.in.node.devices = devices;
    f.in.node.device_count = 2;
    f.in.devices = ENV_DEVICES_RANK;
    f.in.emulates_slurm = true;
    f.in.tf_config = ENV_TF_FILE;
    f.in.tf_config_dir = "/run";
    struct env_case c;
    env_case_init(&c, &f, 0);
    assert_in_range(c.env.count, 50, 80);
    for (size_t i = 0; i < c.env.count; i++) {
        const char *name = c.env.entries[i].name;
        if (strncmp(name, "GPULAUNCH_ORIG_", 15) != 0 &&
            c.env.entries[i].action != ENV_INHERITED &&
            strstr(manual, name) == NULL) {
            fail_msg("docs/environment.md does not name %s", name);
        }
    }
    free(manual);
    env_case_release(&c);
    env_fixture_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_by_two),
        cmocka_unit_test(test_single_ipv6),
        cmocka_unit_test(test_each_rank),
        cmocka_unit_test(test_each_node),
        cmocka_unit_test(test_nested),
        cmocka_unit_test(test_repeats),
        cmocka_unit_test(test_notice_is_plain),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_never_set),
        cmocka_unit_test(test_manual),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
