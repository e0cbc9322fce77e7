/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/rng.h"
#include "launcher/planning.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define GIB (1024.0 * 1024 * 1024)

static void assert_near(double actual, double expected, double tolerance)
{
    if (!(fabs(actual - expected) <= tolerance)) {
        fail_msg("%.9g is not within %.3g of %.9g", actual, tolerance,
                 expected);
    }
}

static void assert_says(struct gpul_error *err, const char *part)
{
    if (strstr(err->text, part) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", err->text, part);
    }
    *err = (struct gpul_error){0};
}

static const struct planning_value unknown = {0, PLANNING_UNKNOWN};

static struct planning_value given(double value)
{
    return (struct planning_value){value, PLANNING_GIVEN};
}

/* Of which nothing but the parameters is known. */
static struct planning_model model_of(double params)
{
    return (struct planning_model){
        given(params), unknown, unknown, unknown, unknown, unknown, 0, 0, 0};
}

static void test_parse(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double params;
    } good[] = {{"70B", 70e9},     {"1.5T", 1.5e12},  {"7e9", 7e9},
                {"350M", 350e6},   {"124m", 124e6},   {".5b", 5e8},
                {"7.1E+9", 7.1e9}, {"8g", 8e9},       {"12k", 12e3},
                {"1", 1},          {"1000000T", 1e18}};
    static const char *const bad[] = {
        "",    "B",    "-7B",   " 7B",      "7 B", "0x10", "inf",
        "nan", "7Q",   "7BB",   "1.2.3",    ".",   "7e",   "0",
        "0B",  "1e19", "1e400", "2000000T", "0.5"};
    struct gpul_error err = {0};
    double params;
    for (size_t i = 0; i < COUNT(good); i++) {
        assert_int_equal(planning_parse_params(&params, good[i].text, &err), 0);
        assert_near(params / good[i].params, 1, 1e-12);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        params = 7;
        if (planning_parse_params(&params, bad[i], &err) != GPUL_EINVAL) {
            fail_msg("\"%s\" was taken for %g", bad[i], params);
        }
        assert_near(params, 0, 0);
        assert_says(&err, bad[i]);
    }
    planning_parse_params(&params, "big", &err);
    assert_says(&err, "write 70B, 1.5T, 350M or 7e9");
}

/* Figure 1 of the ZeRO paper: 7.5B parameters on 64 GPUs need 120, 31.4, 16.6
 * and 1.9 GB for the states of the model. */
static void test_zero_figure_1(void **state)
{
    (void)state;
    static const double expected[] = {120, 31.4, 16.6, 1.9};
    struct planning_model model = model_of(7.5e9);
    assert_int_equal(planning_complete(&model, NULL), 0);
    for (uint32_t stage = 0; stage <= 3; stage++) {
        struct planning_memory need;
        model.zero_stage = stage;
        planning_memory_need(&need, &model, 64);
        double states = need.weights + need.gradients + need.optimizer;
        assert_near(states / 1e9, expected[stage], 0.05);
        assert_near(need.total, states + need.gathered + need.activations, 1);
        assert_near(need.gathered,
                    stage == 3 ? 2 * 7.5e9 / model.layers.value : 0, 1);
        assert_int_equal(need.source,
                         stage == 3 ? PLANNING_ASSUMED : PLANNING_GIVEN);
        assert_int_equal(need.activations_source, PLANNING_ASSUMED);
    }
    /* 16 bytes of a parameter in fp32 too, without a second copy. */
    struct planning_memory need;
    model.zero_stage = 0;
    model.precision = PLANNING_FP32;
    planning_memory_need(&need, &model, 64);
    assert_near(need.weights + need.gradients + need.optimizer, 120e9, 1);
    assert_near(need.weights, 30e9, 1);
}

/* GPT-3: 5 a s / h is 80, as Korthikanti says, so a layer keeps 114 s b h. */
static void test_activations(void **state)
{
    (void)state;
    const double one = 2048.0 * 12288;
    struct planning_model model = {
        given(175e9), given(96),     given(12288),      given(96), given(2048),
        given(1),     PLANNING_BF16, PLANNING_KEEP_ALL, 3};
    struct planning_memory need;
    assert_int_equal(planning_complete(&model, NULL), 0);
    planning_memory_need(&need, &model, 1024);
    assert_near(need.activations, 96 * one * 114, 1);
    assert_int_equal(need.activations_source, PLANNING_GIVEN);
    model.checkpointing = PLANNING_RECOMPUTE_ATTENTION;
    planning_memory_need(&need, &model, 1024);
    assert_near(need.activations, 96 * one * 34, 1);
    model.checkpointing = PLANNING_RECOMPUTE_LAYERS;
    model.batch = given(4);
    planning_memory_need(&need, &model, 1024);
    assert_near(need.activations, 4 * (96 * one * 2 + one * 114), 1);
    model.precision = PLANNING_FP32;
    planning_memory_need(&need, &model, 1024);
    assert_near(need.activations, 8 * (96 * one * 2 + one * 114), 1);
}

/* What is assumed is near to models that exist, and says so. */
static void test_assumed_shapes(void **state)
{
    (void)state;
    static const struct {
        double params;
        double layers; /* GPT-3, Llama 2 70B and 7B */
        double hidden;
    } models[] = {{175e9, 96, 12288}, {70e9, 80, 8192}, {6.7e9, 32, 4096}};
    for (size_t i = 0; i < COUNT(models); i++) {
        struct planning_model model = model_of(models[i].params);
        assert_int_equal(planning_complete(&model, NULL), 0);
        assert_near(model.layers.value / models[i].layers, 1, 0.15);
        assert_near(model.hidden.value / models[i].hidden, 1, 0.15);
        assert_int_equal(model.layers.source, PLANNING_ASSUMED);
        assert_int_equal(model.sequence.source, PLANNING_ASSUMED);
        double made =
            12 * model.layers.value * model.hidden.value * model.hidden.value;
        assert_near(made / models[i].params, 1, 0.001);
        assert_near(model.heads.value, model.hidden.value / 128, 1);
    }
    /* What is given stays, and the rest fits it. */
    struct planning_model model = model_of(70e9);
    model.hidden = given(8192);
    model.heads = given(64);
    assert_int_equal(planning_complete(&model, NULL), 0);
    assert_near(model.layers.value, 87, 0);
    assert_int_equal(model.hidden.source, PLANNING_GIVEN);
    assert_near(model.heads.value, 64, 0);
    model = model_of(70e9);
    model.layers = given(80);
    assert_int_equal(planning_complete(&model, NULL), 0);
    assert_near(model.hidden.value, 8540, 1);
    model = model_of(1);
    assert_int_equal(planning_complete(&model, NULL), 0);
    assert_true(model.layers.value == 1 && model.heads.value == 1);
}

static void test_incomplete(void **state)
{
    (void)state;
    struct gpul_error err = {0};
    struct planning_model model = model_of(70e9);
    model.zero_stage = 4;
    assert_int_equal(planning_complete(&model, &err), GPUL_EINVAL);
    assert_says(&err, "stages 0 to 3, not 4");
    model = model_of(NAN);
    assert_int_equal(planning_complete(&model, &err), GPUL_EINVAL);
    assert_says(&err, "parameters: ");
    model = model_of(70e9);
    model.batch = given(0);
    assert_int_equal(planning_complete(&model, &err), GPUL_EINVAL);
    assert_says(&err, "batch: 0 is not positive");
    model.params = unknown;
    assert_int_equal(planning_complete(&model, &err), GPUL_EINVAL);
    assert_says(&err, "the number of parameters is not known");
}

static struct planning_machine machine_of(double gib, double gpus)
{
    return (struct planning_machine){
        {gib * GIB, PLANNING_MEASURED}, given(gpus), unknown};
}

/* The answer fits and one node fewer does not, by hand and at random. */
static void test_smallest(void **state)
{
    (void)state;
    struct gpul_rng rng;
    struct planning_fit fit;
    struct planning_machine machine = machine_of(80, 8);
    struct planning_model model = model_of(70e9);
    model.zero_stage = 3;
    model.checkpointing = PLANNING_RECOMPUTE_LAYERS;
    planning_complete(&model, NULL);
    assert_int_equal(planning_smallest(&fit, &model, &machine, NULL), 0);
    /* 1120 GB of states, and about 13 GiB besides in each GPU's 72. */
    assert_int_equal(fit.nodes, 3);
    assert_near(fit.usable_bytes / GIB, 72, 1e-9);
    assert_int_equal(fit.source, PLANNING_ASSUMED);
    assert_true(fit.need.total <= fit.usable_bytes);

    gpul_rng_init(&rng, 1);
    int found = 0;
    for (int round = 0; round < 2000; round++) {
        model = model_of(pow(10, 8 + (double)gpul_rng_below(&rng, 450) / 100));
        /* Mostly such that more nodes help. */
        uint32_t stage = (uint32_t)gpul_rng_below(&rng, 8);
        model.zero_stage = stage < 3 ? stage : 3;
        model.checkpointing =
            (enum planning_checkpointing)gpul_rng_below(&rng, 3);
        model.precision = (enum planning_precision)gpul_rng_below(&rng, 2);
        planning_complete(&model, NULL);
        double gib = 16 + (double)gpul_rng_below(&rng, 200);
        machine = machine_of(gib, 1 + (double)gpul_rng_below(&rng, 16));
        if (planning_smallest(&fit, &model, &machine, NULL) != 0) {
            continue;
        }
        struct planning_memory need;
        uint32_t gpus = (uint32_t)machine.gpus_per_node.value;
        planning_memory_need(&need, &model, fit.nodes * gpus);
        assert_true(need.total <= fit.usable_bytes);
        if (fit.nodes > 1) {
            planning_memory_need(&need, &model, (fit.nodes - 1) * gpus);
            assert_true(need.total > fit.usable_bytes);
            found++;
        }
    }
    assert_true(found > 100);
}

static void test_fits_nowhere(void **state)
{
    (void)state;
    struct gpul_error err = {0};
    struct planning_fit fit;
    struct planning_machine machine = machine_of(80, 8);
    struct planning_model model = model_of(70e9);
    planning_complete(&model, NULL);
    assert_int_equal(planning_smallest(&fit, &model, &machine, &err),
                     GPUL_ELIMIT);
    assert_int_equal(fit.nodes, 0);
    assert_true(fit.need.total > fit.usable_bytes);
    assert_says(&err, "recompute activations");
    model.checkpointing = PLANNING_RECOMPUTE_LAYERS;
    assert_int_equal(planning_smallest(&fit, &model, &machine, &err),
                     GPUL_ELIMIT);
    assert_says(&err, "fits on no number of nodes: one GPU needs 1054.7 GiB");
    planning_smallest(&fit, &model, &machine, &err);
    assert_says(&err, "a higher stage of ZeRO");
    model.zero_stage = 3;
    model.batch = given(500);
    assert_int_equal(planning_smallest(&fit, &model, &machine, &err),
                     GPUL_ELIMIT);
    assert_says(&err, "take a smaller batch");
}

static void test_unknown_machine(void **state)
{
    (void)state;
    struct gpul_error err = {0};
    struct planning_fit fit;
    struct planning_model model = model_of(1e9);
    struct planning_machine machine = machine_of(80, 8);
    planning_complete(&model, NULL);
    machine.gpu_bytes = unknown;
    assert_int_equal(planning_smallest(&fit, &model, &machine, &err),
                     GPUL_EINVAL);
    assert_says(&err, "the memory of a GPU is not known");
    machine = machine_of(0, 8);
    assert_int_equal(planning_smallest(&fit, &model, &machine, &err),
                     GPUL_EINVAL);
    assert_says(&err, "the memory of a GPU is not known");
    machine = machine_of(80, 2.5);
    assert_int_equal(planning_smallest(&fit, &model, &machine, &err),
                     GPUL_EINVAL);
    assert_says(&err, "the GPUs of a node are not known");
    machine = machine_of(80, 8);
    machine.usable_share = given(1.1);
    assert_int_equal(planning_smallest(&fit, &model, &machine, &err),
                     GPUL_EINVAL);
    assert_says(&err, "1.1 is no share of the memory");
    machine.usable_share = given(1);
    assert_int_equal(planning_smallest(&fit, &model, &machine, &err), 0);
    assert_near(fit.usable_bytes / GIB, 80, 1e-9);
}

static struct planning_step step_of(double compute, double all_reduce)
{
    return (struct planning_step){
        {compute, PLANNING_MEASURED},
        unknown,
        {all_reduce, {0.8 * all_reduce, 1.5 * all_reduce}, 4},
        PLANNING_MEASURED};
}

/* C = 1 s, T_ar = 0.5 s of which 60 % hide: 1.2 s and 83 %. */
static void test_step(void **state)
{
    (void)state;
    struct planning_prediction p;
    struct planning_step step = step_of(1, 0.5);
    step.overlap = (struct planning_value){0.6, PLANNING_MEASURED};
    assert_int_equal(planning_predict(&p, &step, NULL), 0);
    assert_near(p.step.value, 1.2, 1e-12);
    assert_near(p.step.interval.low, 1.16, 1e-12);
    assert_near(p.step.interval.high, 1.3, 1e-12);
    assert_near(p.efficiency.value, 1 / 1.2, 1e-12);
    assert_near(p.efficiency.interval.low, 1 / 1.3, 1e-12);
    assert_near(p.efficiency.extrapolation, 4, 0);
    assert_int_equal(p.source, PLANNING_MEASURED);
    /* Nobody knows what hides: from all to nothing. */
    step.overlap = unknown;
    assert_int_equal(planning_predict(&p, &step, NULL), 0);
    assert_near(p.step.value, 1.5, 1e-12);
    assert_near(p.step.interval.low, 1, 1e-12);
    assert_near(p.step.interval.high, 1.75, 1e-12);
    assert_near(p.efficiency.interval.high, 1, 1e-12);
    assert_int_equal(p.source, PLANNING_ASSUMED);
}

/* One rank reduces nothing. */
static void test_step_alone(void **state)
{
    (void)state;
    struct planning_prediction p;
    struct planning_step step = step_of(2, 0);
    assert_int_equal(planning_predict(&p, &step, NULL), 0);
    assert_near(p.step.interval.high, 2, 0);
    assert_near(p.efficiency.value, 1, 0);
}

/* Efficiencies are within 0 and 1, around their value, and less of the
 * all-reduce hidden is never faster. */
static void test_step_property(void **state)
{
    (void)state;
    struct gpul_rng rng;
    gpul_rng_init(&rng, 2);
    for (int round = 0; round < 20000; round++) {
        struct planning_prediction p;
        struct planning_prediction less;
        struct planning_step step =
            step_of(pow(10, (double)gpul_rng_below(&rng, 900) / 100 - 6),
                    pow(10, (double)gpul_rng_below(&rng, 900) / 100 - 6));
        step.overlap = given((double)gpul_rng_below(&rng, 1001) / 1000);
        assert_int_equal(planning_predict(&p, &step, NULL), 0);
        step.overlap.value /= 2;
        assert_int_equal(planning_predict(&less, &step, NULL), 0);
        assert_true(p.efficiency.interval.low >= 0 &&
                    p.efficiency.interval.low <= p.efficiency.value &&
                    p.efficiency.value <= p.efficiency.interval.high &&
                    p.efficiency.interval.high <= 1);
        assert_true(p.step.interval.low <= p.step.value &&
                    p.step.value <= p.step.interval.high);
        assert_true(less.step.value >= p.step.value);
        /* The overlap comes back out of the step. */
        double overlap;
        assert_true(planning_overlap(&overlap, p.step.value, step.compute.value,
                                     step.all_reduce.value));
        assert_near((1 - overlap) * step.all_reduce.value,
                    p.step.value - step.compute.value,
                    1e-12 * p.step.value + 1e-15);
    }
}

static void test_step_refusals(void **state)
{
    (void)state;
    struct gpul_error err = {0};
    struct planning_prediction p;
    struct planning_step step = step_of(0, 1);
    assert_int_equal(planning_predict(&p, &step, &err), GPUL_EINVAL);
    assert_says(&err, "the time that a step computes is not known");
    assert_int_equal(p.source, PLANNING_UNKNOWN);
    step = step_of(1, 1);
    step.all_reduce_source = PLANNING_UNKNOWN;
    assert_int_equal(planning_predict(&p, &step, &err), GPUL_EINVAL);
    assert_says(&err, "the time of the all-reduce is not known");
    step = step_of(1, 1);
    step.all_reduce.interval.low = 1.1; /* above the value */
    assert_int_equal(planning_predict(&p, &step, &err), GPUL_EINVAL);
    assert_says(&err, "the time of the all-reduce is not known");
    step = step_of(1, 1);
    step.all_reduce.interval.high = 0.9;
    assert_int_equal(planning_predict(&p, &step, &err), GPUL_EINVAL);
    assert_says(&err, "the time of the all-reduce is not known");
    step = step_of(1, 1);
    step.all_reduce.interval.low = -0.1;
    assert_int_equal(planning_predict(&p, &step, &err), GPUL_EINVAL);
    assert_says(&err, "the time of the all-reduce is not known");
    step = step_of(1, NAN);
    assert_int_equal(planning_predict(&p, &step, &err), GPUL_EINVAL);
    assert_says(&err, "the time of the all-reduce is not known");
    step = step_of(1, 1);
    step.overlap = given(1.01);
    assert_int_equal(planning_predict(&p, &step, &err), GPUL_EINVAL);
    assert_says(&err, "1.01 is no share of the all-reduce");
    double overlap = 7;
    assert_false(planning_overlap(&overlap, 1, 1, 0));
    assert_near(overlap, 0, 0);
    assert_true(planning_overlap(&overlap, 0.9, 1, 1));
    assert_near(overlap, 1, 0);
    assert_true(planning_overlap(&overlap, 9, 1, 1));
    assert_near(overlap, 0, 0);
}

/* Two bytes of a parameter in bf16; stage 3 moves the weights once more. */
static void test_reduced_bytes(void **state)
{
    (void)state;
    struct planning_model model = model_of(7e9);
    assert_near(planning_reduced_bytes(&model), 14e9, 1);
    model.zero_stage = 2;
    assert_near(planning_reduced_bytes(&model), 14e9, 1);
    model.zero_stage = 3;
    assert_near(planning_reduced_bytes(&model), 21e9, 1);
    model.precision = PLANNING_FP32;
    assert_near(planning_reduced_bytes(&model), 42e9, 1);
    assert_string_equal(planning_source_name(PLANNING_ASSUMED), "assumed");
    assert_string_equal(planning_source_name((enum planning_source)9),
                        "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_zero_figure_1),
        cmocka_unit_test(test_activations),
        cmocka_unit_test(test_assumed_shapes),
        cmocka_unit_test(test_incomplete),
        cmocka_unit_test(test_smallest),
        cmocka_unit_test(test_fits_nowhere),
        cmocka_unit_test(test_unknown_machine),
        cmocka_unit_test(test_step),
        cmocka_unit_test(test_step_alone),
        cmocka_unit_test(test_step_property),
        cmocka_unit_test(test_step_refusals),
        cmocka_unit_test(test_reduced_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
