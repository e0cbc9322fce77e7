/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/story.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { STORY_END_MS = 24 * 3600 * 1000 };

struct rank_plan story_plans[2][STORY_RANKS];

static struct rank_plan plan(struct cluster *c, uint32_t rank,
                             uint32_t generation)
{
    (void)c;
    return story_plans[generation > 1][rank];
}

void story_init(struct cluster *c)
{
    cluster_init(c, "node", 2, 2);
    c->self_test.level = GPUL__SELF_TEST__LEVEL__OFF;
    c->plan = plan;
    for (uint32_t i = 0; i < STORY_RANKS; i++) {
        story_plans[0][i] = (struct rank_plan){.run_ms = 100};
        story_plans[1][i] = (struct rank_plan){.run_ms = 100};
    }
}

void story_run_for_ever(void)
{
    for (uint32_t i = 0; i < STORY_RANKS; i++) {
        story_plans[0][i].runs_for_ever = true;
    }
}

void story_init_gpus(struct cluster *c, uint32_t nodes, uint32_t gpus)
{
    cluster_init(c, "node", nodes, 1);
    c->self_test.backend = GPUL__SELF_TEST__BACKEND__BACKEND_NCCL;
    for (uint32_t i = 0; i < nodes; i++) {
        c->nodes[i].gpus = gpus;
    }
}

void story_expect_part(struct cluster *c, uint64_t from_ms, uint64_t until_ms,
                       const char *expected)
{
    c->is_traced = from_ms == 0;
    cluster_start(c);
    if (from_ms > 0) {
        cluster_run(c, from_ms - 1);
        c->is_traced = true;
    }
    cluster_run(c, until_ms);
    rendezvous_check(c->core);
    assert_string_equal(gpul_buf_text(&c->trace), expected);
    if (until_ms == STORY_END_MS) {
        assert_true(c->is_finished);
    }
    cluster_release(c);
}

void story_expect(struct cluster *c, uint64_t from_ms, const char *expected)
{
    story_expect_part(c, from_ms, STORY_END_MS, expected);
}
