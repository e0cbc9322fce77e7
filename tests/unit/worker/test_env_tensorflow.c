/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/hostport.h"
#include "tests/unit/worker/env_fixture.h"
#include "tests/unit/worker/tensorflow_rules.h"
#include "worker/tf_config.h"

enum { NODES_MAX = 64, RANKS_MAX = 2 * NODES_MAX };

/* A mix of roles, as a function of the number of ranks. */
struct mix {
    const char *name;
    uint32_t chiefs;
    uint32_t ps_share; /* one in so many ranks is a ps; 0: none */
    uint32_t evaluators;
};

static const struct mix mixes[] = {
    {"workers", 0, 0, 0},
    {"chief", 1, 0, 0},
    {"workers and evaluator", 0, 0, 1},
    {"chief and evaluator", 1, 0, 1},
    {"workers and ps", 0, 3, 0},
    {"chief and ps", 1, 3, 0},
    {"chief, many ps", 1, 2, 0},
    {"chief, ps and evaluator", 1, 4, 1},
    {"workers, ps and evaluator", 0, 4, 1},
};

/* False where so few ranks cannot play this mix. */
static bool mix_roles(const struct mix *m, uint32_t ranks,
                      struct gpul_rolemap *roles)
{
    uint32_t ps = m->ps_share == 0 ? 0 : ranks / m->ps_share;
    if (m->ps_share != 0 && ps == 0) {
        return false;
    }
    uint32_t others = m->chiefs + ps + m->evaluators;
    if (ranks <= others) {
        return false;
    }
    *roles =
        (struct gpul_rolemap){{m->chiefs, ranks - others, ps, m->evaluators}};
    return gpul_rolemap_check(roles, NULL) == 0;
}

/* Role and index of a rank, counted without the map's own arithmetic. */
static const char *expected_role(const struct gpul_rolemap *roles,
                                 uint32_t rank, uint32_t *index)
{
    static const char *const names[] = {"chief", "worker", "ps", "evaluator"};
    *index = rank;
    for (int i = 0; i < 4; i++) {
        if (*index < roles->counts[i]) {
            return names[i];
        }
        *index -= roles->counts[i];
    }
    return NULL;
}

static void judge_addresses(const struct tf_view *v,
                            const struct env_fixture *f)
{
    char seen[RANKS_MAX][64];
    size_t n = 0;
    const char *job;
    json_t *tasks;
    json_object_foreach(v->cluster, job, tasks)
    {
        for (int i = 0; i < tf_view_tasks(v, job); i++) {
            const char *address = tf_view_address(v, job, i);
            struct gpul_hostport hp;
            assert_int_equal(gpul_hostport_parse(&hp, address, NULL), 0);
            assert_in_range(hp.port, 20000, 20000 + f->rank_counts[0] - 1);
            for (size_t k = 0; k < n; k++) {
                assert_string_not_equal(seen[k], address);
            }
            snprintf(seen[n++], sizeof(seen[0]), "%s", address);
        }
    }
}

/* What TensorFlow makes of one rank's copy against what the rank is. */
static void judge_rank(const struct env_fixture *f, const struct tf_view *v,
                       uint32_t rank)
{
    const struct gpul_rolemap *roles = &f->in.world.roles;
    uint32_t index = 0;
    const char *role = expected_role(roles, rank, &index);
    bool is_evaluator = strcmp(role, "evaluator") == 0;
    bool in_own_copy = is_evaluator && f->in.tf_evaluator_in_cluster;
    assert_string_equal(v->type, role);
    assert_int_equal(v->index, index);
    assert_int_equal(tf_view_tasks(v, "chief"), roles->counts[0]);
    assert_int_equal(tf_view_tasks(v, "worker"), roles->counts[1]);
    assert_int_equal(tf_view_tasks(v, "ps"), roles->counts[2]);
    assert_int_equal(tf_view_tasks(v, "evaluator"), in_own_copy ? 1 : 0);
    assert_int_equal(v->is_chief, is_evaluator || rank == 0);
    uint32_t workers = roles->counts[0] + roles->counts[1];
    if (strcmp(role, "ps") != 0 && !is_evaluator) {
        assert_int_equal(v->worker_count, workers);
        assert_int_equal(v->id, rank);
    }
    if (!is_evaluator) {
        assert_string_equal(v->leader, roles->counts[0] > 0
                                           ? "/job:chief/replica:0/task:0"
                                           : "/job:worker/replica:0/task:0");
    }
    uint32_t node = rank / f->rank_counts[0];
    char own[64];
    snprintf(own, sizeof(own), "%s:%u", f->addresses[node],
             20000 + rank % f->rank_counts[0]);
    if (!is_evaluator || in_own_copy) {
        assert_string_equal(v->address, own);
    } else {
        assert_null(v->address);
    }
}

/* All copies hold the same cluster, but for an evaluator in its own. */
static void judge_cluster(const struct env_fixture *f, struct tf_view *view,
                          json_t **cluster)
{
    if (*cluster == NULL) {
        judge_addresses(view, f);
        *cluster = json_incref(view->cluster);
        return;
    }
    json_object_del(view->cluster, "evaluator");
    assert_true(json_equal(view->cluster, *cluster));
}

static void judge_node(const struct env_fixture *f, json_t **cluster)
{
    struct env_plan *plan = NULL;
    assert_int_equal(env_plan_create(&plan, &f->in, NULL), 0);
    uint32_t node = f->in.node.node_rank;
    for (uint32_t l = 0; l < f->rank_counts[node]; l++) {
        struct env_case c = {.plan = plan};
        assert_int_equal(env_build(&c.env, plan, l, NULL), 0);
        char error[TF_TEXT_BYTES];
        struct tf_view view;
        if (!tf_view_init(&view, env_case_value(&c, "TF_CONFIG"), error)) {
            fail_msg("TensorFlow would raise %s", error);
        }
        judge_rank(f, &view, f->first_ranks[node] + l);
        judge_cluster(f, &view, cluster);
        tf_view_release(&view);
        env_release(&c.env);
    }
    env_plan_destroy(plan);
}

static unsigned judge_world(const struct mix *m, uint32_t nodes,
                            uint32_t per_node, bool evaluator_in_cluster)
{
    struct env_fixture f;
    env_fixture_init(&f, nodes, per_node);
    f.in.tf_evaluator_in_cluster = evaluator_in_cluster;
    unsigned judged = 0;
    if (nodes * per_node > 1 &&
        mix_roles(m, nodes * per_node, &f.in.world.roles)) {
        json_t *cluster = NULL;
        for (uint32_t node = 0; node < nodes; node++) {
            env_fixture_stand_on(&f, node);
            judge_node(&f, &cluster);
        }
        json_decref(cluster);
        judged = 1;
    }
    env_fixture_release(&f);
    return judged;
}

/* Every mix of roles from 1 to 64 nodes, one and two ranks a node: each copy
 * passes TensorFlow's rules, says what the rank is, and all agree. */
static void test_every_mix(void **state)
{
    (void)state;
    unsigned judged = 0;
    for (size_t m = 0; m < sizeof(mixes) / sizeof(mixes[0]); m++) {
        for (uint32_t nodes = 1; nodes <= NODES_MAX; nodes++) {
            judged += judge_world(&mixes[m], nodes, 1, false);
            judged += judge_world(&mixes[m], nodes, 2, false);
            if (mixes[m].evaluators > 0) {
                judged += judge_world(&mixes[m], nodes, 1, true);
            }
        }
    }
    assert_in_range(judged, 1300, 1500);
}

/* A world of one task has no TF_CONFIG, and an inherited one is dropped;
 * --tf-config=always sets it. */
static void test_single(void **state)
{
    (void)state;
    static const char *const inherited[] = {"TF_CONFIG={\"cluster\":{}}", NULL};
    struct env_fixture f;
    env_fixture_init(&f, 1, 1);
    f.in.inherited = inherited;
    struct env_case c;
    env_case_init(&c, &f, 0);
    assert_null(env_case_value(&c, "TF_CONFIG"));
    assert_int_equal(env_case_entry(&c, "TF_CONFIG")->action, ENV_DROPPED);
    assert_string_equal(env_case_notices(&c),
                        "not passed on to the ranks: TF_CONFIG\n");
    env_case_release(&c);

    f.in.tf_config = ENV_TF_ALWAYS;
    env_case_init(&c, &f, 0);
    assert_string_equal(env_case_value(&c, "TF_CONFIG"),
                        "{\"cluster\":{\"worker\":[\"10.0.0.1:20000\"]},"
                        "\"task\":{\"type\":\"worker\",\"index\":0}}");
    env_case_release(&c);
    env_fixture_release(&f);
}

/* --tf-config=never sets none and lets none through. */
static void test_never(void **state)
{
    (void)state;
    static const char *const inherited[] = {"TF_CONFIG=x", NULL};
    struct env_fixture f;
    env_fixture_init(&f, 2, 1);
    f.in.inherited = inherited;
    f.in.tf_config = ENV_TF_NEVER;
    struct env_case c;
    env_case_init(&c, &f, 0);
    assert_null(env_case_value(&c, "TF_CONFIG"));
    assert_string_equal(env_case_entry(&c, "TF_CONFIG")->rule,
                        "--tf-config=never");
    env_case_release(&c);
    env_fixture_release(&f);
}

/* --tf-config=file: the text goes to a file of the rank, the variable says
 * where, TF_CONFIG itself is not set, and no limit applies. */
static void test_file(void **state)
{
    (void)state;
    struct env_fixture f;
    env_fixture_init(&f, 9000, 1);
    f.in.tf_config = ENV_TF_FILE;
    struct gpul_error err = {0};
    struct env_case c;
    assert_int_equal(env_plan_create(&c.plan, &f.in, &err), GPUL_EINVAL);
    assert_string_equal(err.text, "--tf-config=file: no folder for the files");
    f.in.tf_config_dir = "/run/gpulaunch/job-1";
    env_fixture_stand_on(&f, 8999);
    env_case_init(&c, &f, 0);
    assert_string_equal(c.env.tf_config_path,
                        "/run/gpulaunch/job-1/tf_config-rank-8999.json");
    assert_string_equal(env_case_value(&c, "GPULAUNCH_TF_CONFIG_FILE"),
                        c.env.tf_config_path);
    assert_null(env_case_value(&c, "TF_CONFIG"));
    assert_true(strlen(c.env.tf_config_text) > TF_CONFIG_BYTES_MAX);
    char error[TF_TEXT_BYTES];
    struct tf_view view;
    assert_true(tf_view_init(&view, c.env.tf_config_text, error));
    assert_int_equal(view.worker_count, 9000);
    assert_int_equal(view.index, 8999);
    tf_view_release(&view);
    env_case_release(&c);
    env_fixture_release(&f);
}

static int plan_world_of(uint32_t nodes, const char *last_address,
                         struct gpul_error *err)
{
    struct env_fixture f;
    env_fixture_init(&f, nodes, 1);
    for (uint32_t i = 0; i < nodes; i++) {
        f.addresses[i] = "10.123.45.67";
    }
    f.addresses[nodes - 1] = last_address;
    struct env_plan *plan = NULL;
    int rc = env_plan_create(&plan, &f.in, err);
    env_plan_destroy(plan);
    env_fixture_release(&f);
    return rc;
}

/* The guard: a value of exactly the limit is fine, one byte more is refused
 * with the numbers and the way out. */
static void test_guard(void **state)
{
    (void)state;
    /* 6238 entries of 21 bytes, less a comma, and 63 others: 131060. */
    struct gpul_error err = {0};
    assert_int_equal(plan_world_of(6238, "10.123.45.67", &err), 0);
    assert_int_equal(plan_world_of(6238, "10.123.45.67a", &err), 0);
    assert_int_equal(plan_world_of(6238, "10.123.45.67ab", &err), GPUL_ELIMIT);
    assert_string_equal(
        err.text,
        "TF_CONFIG would be 131062 bytes long, over the 131061 that Linux "
        "allows for its value: 6237 of the 6238 tasks would fit; use "
        "--tf-config=file, or --tf-config=never if nothing reads it");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_mix), cmocka_unit_test(test_single),
        cmocka_unit_test(test_never),     cmocka_unit_test(test_file),
        cmocka_unit_test(test_guard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
