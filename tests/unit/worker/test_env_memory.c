/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/memory.h"
#include "tests/unit/worker/env_fixture.h"

enum { ALLOCATIONS_MAX = 2000 };

/* Every rule has something to say. */
static const char *const inherited[] = {
    "RANK=9",       "OMP_NUM_THREADS=3", "PMI_RANK=1",  "SLURM_PROCID=1",
    "http_proxy=p", "TF_CONFIG=x",       "PATH=/bin:/", NULL};
static const struct env_variable user[] = {{"A", "1"}, {"WORLD_SIZE", "2"}};

/* Plan and one rank's environment; 0, or the first failure. */
static int build(const struct env_fixture *f)
{
    struct gpul_error err = {0};
    struct env_plan *plan;
    int rc = env_plan_create(&plan, &f->in, &err);
    if (rc == 0) {
        struct env e;
        rc = env_build(&e, plan, 1, &err);
        if (rc != 0) {
            assert_null(e.memory);
            assert_null(e.strings);
            assert_int_equal(e.count, 0);
        }
        env_release(&e);
    } else {
        assert_null(plan);
    }
    env_plan_destroy(plan);
    assert_int_equal(err.status, rc);
    return rc;
}

/* Whichever allocation fails, the failure comes back as such and nothing is
 * left allocated. */
static void test_each_failure(void **state)
{
    (void)state;
    static const enum env_tf_config modes[] = {ENV_TF_AUTO, ENV_TF_FILE};
    struct env_fixture f;
    env_fixture_init(&f, 3, 2);
    f.in.inherited = inherited;
    f.in.user = user;
    f.in.user_count = 2;
    f.in.emulates_slurm = true;
    f.in.tf_config_dir = "/run";
    for (size_t m = 0; m < 2; m++) {
        f.in.tf_config = modes[m];
        memory_watch();
        size_t n = 1;
        for (; n < ALLOCATIONS_MAX; n++) {
            memory_fail_at(n);
            int rc = build(&f);
            memory_fail_at(0);
            assert_int_equal(memory_held(), 0);
            if (rc == 0) {
                break;
            }
            assert_int_equal(rc, GPUL_ENOMEM);
        }
        assert_in_range(n, 50, ALLOCATIONS_MAX - 1);
    }
    env_fixture_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_failure)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
