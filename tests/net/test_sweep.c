/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/clock.h"
#include "tests/lib/ringlab.h"
#include "worker/sweep.h"

/* What one test gives to all places; results are written by the places. */
struct sweeping {
    struct measure_plan plan;
    uint32_t faulty_rank;
    sweep_fault_fn fault;
    void *fault_arg;
    struct sweep_result results[RINGLAB_RANKS_MAX];
};

static void sweep(struct ringlab_place *place)
{
    struct sweeping *s = place->lab->arg;
    bool is_faulty = s->fault != NULL && place->rank == s->faulty_rank;
    ringlab_connect(place);
    if (place->status == 0) {
        place->status =
            sweep_run(&s->results[place->rank], &place->link, &s->plan,
                      place->deadline_ms, is_faulty ? s->fault : NULL,
                      s->fault_arg, &place->err);
    }
}

static void run_sweep(uint32_t n, struct sweeping *s)
{
    struct ringlab lab;
    ringlab_init(&lab, n);
    ringlab_run(&lab, sweep, s);
    ringlab_assert_ok(&lab);
    ringlab_release(&lab);
}

static void assert_row(const struct sweep_row *row,
                       const struct measure_step *step)
{
    assert_int_equal(row->count, step->count);
    assert_int_equal(row->iterations, step->iterations);
    assert_true(row->stats.min_ns > 0);
    assert_true(row->stats.min_ns <= row->stats.median_ns);
    assert_true(row->stats.median_ns <= row->stats.max_ns);
    assert_in_range(row->stats.mean_ns, row->stats.min_ns, row->stats.max_ns);
}

/* The quick plan gives every place one row for each step, in order, and no
 * wrong element. */
static void test_quick_rows(void **state)
{
    (void)state;
    static struct sweeping s;
    memset(&s, 0, sizeof(s));
    measure_plan_quick(&s.plan);
    run_sweep(3, &s);
    for (uint32_t rank = 0; rank < 3; rank++) {
        const struct sweep_result *result = &s.results[rank];
        assert_int_equal(result->row_count, s.plan.step_count);
        assert_int_equal(result->wrong_elements, 0);
        for (size_t i = 0; i < result->row_count; i++) {
            assert_row(&result->rows[i], &s.plan.steps[i]);
        }
    }
}

struct flip {
    uint64_t count;   /* in messages of this many elements */
    uint64_t index;   /* this element */
    unsigned skipped; /* but not in the first so many */
};

static void flip_bit(void *arg, float *data, uint64_t count)
{
    struct flip *flip = arg;
    if (count != flip->count) {
        return;
    }
    if (flip->skipped > 0) {
        flip->skipped--;
        return;
    }
    uint32_t bits;
    memcpy(&bits, &data[flip->index], sizeof(bits));
    bits ^= UINT32_C(1) << 3;
    memcpy(&data[flip->index], &bits, sizeof(bits));
}

/* One flipped bit of one element in one iteration is found, on the rank
 * where it happened, with its offset and message size; a warm-up counts. */
static void test_flipped_bit(void **state)
{
    (void)state;
    static const struct {
        struct flip flip;
        uint64_t wrong; /* iterations it happens in */
    } cases[] = {
        {{1001, 0, 0}, 4}, {{1001, 1000, 1}, 3}, {{70001, 65536, 3}, 1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        static struct sweeping s;
        struct flip flip = cases[i].flip;
        memset(&s, 0, sizeof(s));
        s.plan = (struct measure_plan){
            .steps = {{2, 1, 3}, {1001, 1, 3}, {70001, 1, 3}},
            .step_count = 3,
        };
        s.faulty_rank = 1;
        s.fault = flip_bit;
        s.fault_arg = &flip;
        run_sweep(2, &s);
        const struct sweep_result *result = &s.results[1];
        assert_int_equal(s.results[0].wrong_elements, 0);
        assert_int_equal(result->wrong_elements, cases[i].wrong);
        assert_int_equal(result->first_wrong_index, cases[i].flip.index);
        assert_int_equal(result->first_wrong_bytes, 4 * cases[i].flip.count);
        for (size_t r = 0; r < 3; r++) {
            bool is_wrong = s.plan.steps[r].count == cases[i].flip.count;
            assert_int_equal(result->rows[r].wrong_elements,
                             is_wrong ? cases[i].wrong : 0);
        }
    }
}

/* A message that no memory can hold is refused before anything is sent. */
static void test_too_large(void **state)
{
    (void)state;
    const struct ringlink_place at = {.node_count = 2};
    struct measure_plan plan = {.steps = {{UINT64_C(1) << 50, 1, 1}},
                                .step_count = 1};
    struct ringlink link;
    struct sweep_result result;
    struct gpul_error err;
    ringlink_init(&link, &at, -1);
    assert_int_equal(sweep_run(&result, &link, &plan,
                               gpul_clock_ms() + RINGLAB_DEADLINE_MS, NULL,
                               NULL, &err),
                     GPUL_ENOMEM);
    assert_string_equal(err.text,
                        "no memory for a message of 4503599627370496 bytes; "
                        "the quick self-test needs less");
    ringlink_release(&link);
}

static void connect_or_sweep(struct ringlab_place *place)
{
    if (place->rank == 1) {
        ringlab_connect(place);
    } else {
        sweep(place);
    }
}

/* A failure keeps the rows that were finished and says at which message
 * size it came. */
static void test_failure_keeps_rows(void **state)
{
    (void)state;
    static struct sweeping s;
    struct ringlab lab;
    memset(&s, 0, sizeof(s));
    s.plan = (struct measure_plan){.steps = {{256, 1, 1}}, .step_count = 1};
    ringlab_init(&lab, 2);
    lab.places[0].deadline_ms = gpul_clock_ms() + 1000;
    ringlab_run(&lab, connect_or_sweep, &s);
    assert_int_equal(lab.places[0].status, GPUL_ETIMEOUT);
    const char *start = "all-reduce of 1024 bytes: deadline reached; ";
    assert_memory_equal(lab.places[0].err.text, start, strlen(start));
    assert_int_equal(s.results[0].row_count, 0);
    ringlab_release(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quick_rows),
        cmocka_unit_test(test_flipped_bit),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_failure_keeps_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
