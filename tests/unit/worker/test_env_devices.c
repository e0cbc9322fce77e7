/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/worker/env_fixture.h"

static const char *const plain[] = {"0", "1", "2", "3", "4", "5", "6", "7"};
static const char *const restricted[] = {"5", "GPU-ab12", "2", "7"};

#define RANK_NOTICE                                                            \
    "--devices=rank: each rank sees one device, as number 0; "                 \
    "set_device(LOCAL_RANK) fails in the command, set_device(0) is right\n"

struct row {
    enum env_devices policy;
    const char *const *devices;
    uint32_t device_count;
    uint32_t host_nodes; /* nodes of the job on this host */
    uint32_t host_node;  /* which of them this is */
    uint32_t ranks;      /* of each node */
    uint32_t local_rank;
    const char *visible; /* CUDA_VISIBLE_DEVICES, NULL: left alone */
    const char *jax;     /* JAX_LOCAL_DEVICE_IDS */
    const char *notices;
};

static void row_input(const struct row *r, struct env_fixture *f)
{
    env_fixture_init(f, r->host_nodes, r->ranks);
    for (uint32_t i = 0; i < r->host_nodes; i++) {
        f->addresses[i] = "127.0.0.1";
        f->ports[i] = (uint16_t)(20000 + 100 * i);
    }
    env_fixture_stand_on(f, r->host_node);
    f->in.world.host_count = 1;
    f->in.devices = r->policy;
    f->in.node.host_rank_count = r->host_nodes * r->ranks;
    f->in.node.host_node_count = r->host_nodes;
    f->in.node.host_node_index = r->host_node;
    f->in.node.devices = r->devices;
    f->in.node.device_count = r->device_count;
}

static void assert_optional(const char *got, const char *expected)
{
    if (expected == NULL) {
        assert_null(got);
    } else {
        assert_string_equal(got, expected);
    }
}

/* Each policy, on hosts with one and with several nodes: who sees what. */
static void test_policies(void **state)
{
    (void)state;
    static const struct row rows[] = {
        /* auto: a single node leaves them alone */
        {ENV_DEVICES_AUTO, NULL, 0, 1, 0, 2, 0, NULL, NULL, ""},
        {ENV_DEVICES_AUTO, plain, 8, 1, 0, 1, 0, NULL, NULL, ""},
        {ENV_DEVICES_AUTO, plain, 8, 1, 0, 8, 3, NULL, "3", ""},
        {ENV_DEVICES_AUTO, plain, 8, 1, 0, 4, 3, NULL, "6,7", ""},
        {ENV_DEVICES_AUTO, plain, 8, 1, 0, 3, 2, NULL, NULL, ""},
        /* auto: several nodes share where it is even */
        {ENV_DEVICES_AUTO, NULL, 0, 4, 2, 1, 0, NULL, NULL, ""},
        {ENV_DEVICES_AUTO, plain, 8, 4, 0, 1, 0, "0,1", NULL, ""},
        {ENV_DEVICES_AUTO, plain, 8, 4, 3, 2, 1, "6,7", "1", ""},
        {ENV_DEVICES_AUTO, plain, 4, 4, 2, 1, 0, "2", NULL, ""},
        {ENV_DEVICES_AUTO, restricted, 4, 2, 0, 1, 0, "5,GPU-ab12", NULL, ""},
        {ENV_DEVICES_AUTO, plain, 1, 4, 2, 1, 0, NULL, NULL,
         "the devices of this host (1) cannot be shared out evenly to its 4 "
         "nodes: every rank sees all of them\n"},
        /* leave */
        {ENV_DEVICES_LEAVE, plain, 8, 4, 1, 2, 0, NULL, NULL, ""},
        {ENV_DEVICES_LEAVE, plain, 2, 1, 0, 2, 1, NULL, "1", ""},
        /* node */
        {ENV_DEVICES_NODE, plain, 8, 1, 0, 8, 5, NULL, "5", ""},
        {ENV_DEVICES_NODE, restricted, 4, 4, 1, 1, 0, "GPU-ab12", NULL, ""},
        /* rank */
        {ENV_DEVICES_RANK, plain, 8, 1, 0, 1, 0, "0", "0", ""},
        {ENV_DEVICES_RANK, plain, 8, 1, 0, 8, 5, "5", "0", RANK_NOTICE},
        {ENV_DEVICES_RANK, restricted, 4, 2, 1, 2, 1, "7", "0", RANK_NOTICE},
        {ENV_DEVICES_RANK, restricted, 4, 2, 0, 2, 1, "GPU-ab12", "0",
         RANK_NOTICE},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *r = &rows[i];
        struct env_fixture f;
        row_input(r, &f);
        struct env_case c;
        env_case_init(&c, &f, r->local_rank);
        assert_optional(env_case_value(&c, "CUDA_VISIBLE_DEVICES"), r->visible);
        assert_optional(env_case_value(&c, "JAX_LOCAL_DEVICE_IDS"), r->jax);
        assert_string_equal(env_case_notices(&c), r->notices);
        /* Whatever it sees, LOCAL_RANK is the place on the node. */
        char local[8];
        snprintf(local, sizeof(local), "%u", r->local_rank);
        assert_string_equal(env_case_value(&c, "LOCAL_RANK"), local);
        env_case_release(&c);
        env_fixture_release(&f);
    }
}

/* Where JAX takes us for Slurm it would use one device a process: the list of
 * a single process on a node names all it has. */
static void test_emulation(void **state)
{
    (void)state;
    static const struct row row = {
        ENV_DEVICES_AUTO, plain, 8, 2, 1, 1, 0, NULL, NULL, NULL};
    struct env_fixture f;
    row_input(&row, &f);
    f.in.emulates_slurm = true;
    struct env_case c;
    env_case_init(&c, &f, 0);
    assert_string_equal(env_case_value(&c, "CUDA_VISIBLE_DEVICES"), "4,5,6,7");
    assert_string_equal(env_case_value(&c, "JAX_LOCAL_DEVICE_IDS"), "0,1,2,3");
    env_case_release(&c);
    env_fixture_release(&f);
}

/* Where a policy would leave ranks or nodes unequal, it is refused. */
static void test_refusals(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {ENV_DEVICES_RANK, plain, 3, 1, 0, 4, 0, NULL, NULL,
         "--devices=rank: the host of node-0 has 4 ranks and 3 visible "
         "devices; ask for fewer ranks or use --devices=leave"},
        {ENV_DEVICES_RANK, NULL, 0, 1, 0, 1, 0, NULL, NULL,
         "--devices=rank: the host of node-0 has 1 rank and 0 visible "
         "devices; ask for fewer ranks or use --devices=leave"},
        {ENV_DEVICES_NODE, plain, 8, 3, 0, 1, 0, NULL, NULL,
         "--devices=node: the host of node-0 has 3 nodes and 8 visible "
         "devices, which gives them unequal numbers; use --devices=leave"},
        {ENV_DEVICES_NODE, NULL, 0, 1, 0, 1, 0, NULL, NULL,
         "--devices=node: the host of node-0 has no visible device; use "
         "--devices=leave"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct env_fixture f;
        row_input(&rows[i], &f);
        struct gpul_error err = {0};
        struct env_plan *plan;
        assert_int_equal(env_plan_create(&plan, &f.in, &err), GPUL_EINVAL);
        assert_string_equal(err.text, rows[i].notices);
        env_fixture_release(&f);
    }
}

/* Nodes with unequal numbers of ranks on one host: whose device is whose
 * cannot be told, so one device a rank is refused. */
static void test_unequal_nodes(void **state)
{
    (void)state;
    static const uint32_t counts[] = {2, 1};
    static const struct row row = {
        ENV_DEVICES_RANK, plain, 8, 2, 0, 2, 0, NULL, NULL, NULL};
    struct env_fixture f;
    row_input(&row, &f);
    env_fixture_set_ranks(&f, counts);
    f.in.node.host_rank_count = 3;
    struct gpul_error err = {0};
    struct env_plan *plan;
    assert_int_equal(env_plan_create(&plan, &f.in, &err), GPUL_EINVAL);
    assert_string_equal(err.text,
                        "--devices=rank: the 2 nodes on the host of node-0 "
                        "have unequal numbers of ranks; use --devices=leave");
    env_fixture_release(&f);
}

/* The scheduler's list is narrowed with one notice; the user's own, given
 * with -x, is final and no policy looks at it. */
static void test_inherited_and_user(void **state)
{
    (void)state;
    static const char *const inherited[] = {
        "CUDA_VISIBLE_DEVICES=5,GPU-ab12,2,7", NULL};
    static const struct env_variable user[] = {{"CUDA_VISIBLE_DEVICES", "9"}};
    static const struct row row = {
        ENV_DEVICES_AUTO, restricted, 4, 2, 1, 1, 0, NULL, NULL, NULL};
    struct env_fixture f;
    row_input(&row, &f);
    f.in.inherited = inherited;
    f.in.node.devices_are_restricted = true;
    struct env_case c;
    env_case_init(&c, &f, 0);
    assert_string_equal(env_case_value(&c, "CUDA_VISIBLE_DEVICES"), "2,7");
    assert_string_equal(env_case_notices(&c),
                        "CUDA_VISIBLE_DEVICES=5,GPU-ab12,2,7 from your "
                        "environment is replaced by each node's own\n");
    env_case_release(&c);

    f.in.devices = ENV_DEVICES_NODE;
    f.in.node.device_count = 3;
    f.in.user = user;
    f.in.user_count = 1;
    env_case_init(&c, &f, 0);
    assert_string_equal(env_case_value(&c, "CUDA_VISIBLE_DEVICES"), "9");
    assert_string_equal(env_case_notices(&c), "");
    env_case_release(&c);
    env_fixture_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_policies),
        cmocka_unit_test(test_emulation),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_unequal_nodes),
        cmocka_unit_test(test_inherited_and_user),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
