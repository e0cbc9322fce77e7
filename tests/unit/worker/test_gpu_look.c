/* SPDX-License-Identifier: Apache-2.0
 *
 * What GPUs do, whose they are, and the line that says so.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "worker/gpu_look.h"

#define SPINS "(busy at low power, as while NCCL waits for another rank)"

enum { UNTOLD = -1, GPUS = 8 };

static struct gpu_look look;
static char words[GPUL_FINDING_BYTES_MAX + 1];

/* Per cent busy, memory busy, of the power limit; UNTOLD: not told. */
static struct gpu_device device_of(int use, int memory, int power)
{
    struct gpu_device d = {.model = "Test GPU"};
    gpu_device_set(&d, GPU_MIG_ON, 0);
    gpu_device_set(&d, GPU_POWER_LIMIT, 700000);
    if (use != UNTOLD) {
        gpu_device_set(&d, GPU_USE, (uint64_t)use);
    }
    if (memory != UNTOLD) {
        gpu_device_set(&d, GPU_MEMORY_USE, (uint64_t)memory);
    }
    if (power != UNTOLD) {
        gpu_device_set(&d, GPU_POWER, (uint64_t)power * 7000);
    }
    return d;
}

/* GPUs 0-7 that do the same. */
static int setup(void **state)
{
    (void)state;
    memset(&look, 0, sizeof(look));
    look.count = GPUS;
    for (uint32_t i = 0; i < GPUS; i++) {
        look.devices[i] = device_of(100, 0, 20);
        look.devices[i].index = i;
        snprintf(look.devices[i].uuid, GPU_TEXT_BYTES, "GPU-%u", i);
    }
    return 0;
}

static void put(uint32_t index, int use, int power)
{
    struct gpu_device *d = &look.devices[index];
    struct gpu_device put = device_of(use, 0, power);
    put.index = index;
    memcpy(put.uuid, d->uuid, sizeof(put.uuid));
    *d = put;
}

static const char *say(const char *visible, uint64_t own)
{
    const struct gpu_look_rank rank = {.visible = visible, .own = own};
    gpu_look_words(words, &look, &rank);
    return words;
}

/* ---- what a GPU does ----------------------------------------------------- */

static void test_judge(void **state)
{
    (void)state;
    static const struct {
        int use, memory, power;
        enum gpu_look_state want;
    } cases[] = {
        {0, 0, 10, GPU_LOOK_IDLE},
        {4, 0, 90, GPU_LOOK_IDLE},
        {5, 0, 10, GPU_LOOK_PARTLY},
        {94, 0, 10, GPU_LOOK_PARTLY},
        {95, 0, 10, GPU_LOOK_SPINS},
        {100, 9, 49, GPU_LOOK_SPINS},
        {100, 10, 49, GPU_LOOK_BUSY},
        {100, 0, 50, GPU_LOOK_WORKS},
        {100, 60, 99, GPU_LOOK_WORKS},
        {100, UNTOLD, 20, GPU_LOOK_BUSY},
        {100, 0, UNTOLD, GPU_LOOK_BUSY},
        {UNTOLD, UNTOLD, 20, GPU_LOOK_UNKNOWN},
        /* What was seen of GPUs that wait, and of one that trains. */
        {100, 0, 118 * 100 / 400, GPU_LOOK_SPINS},
        {100, 0, 152 * 100 / 700, GPU_LOOK_SPINS},
        {96, 0, 100 * 100 / 700, GPU_LOOK_SPINS},
        {100, 40, 500 * 100 / 700, GPU_LOOK_WORKS},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct gpu_device d =
            device_of(cases[i].use, cases[i].memory, cases[i].power);
        assert_int_equal(gpu_look_judge(&d), cases[i].want);
    }
    struct gpu_device d = device_of(100, 0, 20);
    gpu_device_set(&d, GPU_POWER_LIMIT, 0);
    assert_int_equal(gpu_look_judge(&d), GPU_LOOK_BUSY);
    snprintf(d.error, sizeof(d.error), "NVML: GPU is lost");
    assert_int_equal(gpu_look_judge(&d), GPU_LOOK_UNKNOWN);
}

/* Each state of a rank's only GPU. */
static void test_one(void **state)
{
    (void)state;
    assert_string_equal(say("3", 0), "its GPU spins " SPINS);
    put(3, 0, 10);
    assert_string_equal(say("3", 0), "its GPU is idle");
    put(3, 40, 40);
    assert_string_equal(say("3", 0), "its GPU is busy for part of the time");
    put(3, 100, 80);
    assert_string_equal(say("3", 0), "its GPU works (busy at high power)");
    put(3, 100, UNTOLD);
    assert_string_equal(say("3", 0), "its GPU is busy (works or waits)");
    put(3, UNTOLD, 20);
    assert_string_equal(say("3", 0),
                        "its GPU 3 is in an unknown state (NVML does not tell "
                        "its utilisation)");
    snprintf(look.devices[3].error, GPU_TEXT_BYTES, "NVML: GPU is lost");
    assert_string_equal(say("3", 0),
                        "its GPU 3 is in an unknown state (NVML: GPU is lost)");
    look.is_simulated = true;
    assert_string_equal(say("2", 0), "SIMULATED: its GPU spins " SPINS);
}

/* ---- whose GPUs they are ------------------------------------------------- */

/* Several that only may be those of the rank are not called its own; a process
 * of it on one decides, whatever else it may use. */
static void test_whose(void **state)
{
    (void)state;
    put(5, 0, 10);
    assert_string_equal(say(NULL, 0),
                        "the 8 GPUs that it may use: GPU 5 is idle, GPUs "
                        "0-4,6-7 spin " SPINS);
    assert_string_equal(say("2,5", 0),
                        "the 2 GPUs that it may use: GPU 5 is idle, GPU 2 "
                        "spins " SPINS);
    assert_string_equal(say("0-3", 0), "GPU state unknown: no GPU is what its "
                                       "CUDA_VISIBLE_DEVICES names");
    assert_string_equal(say("GPU-1,GPU-2", 0),
                        "the 2 GPUs that it may use spin " SPINS);
    assert_string_equal(say(NULL, 1u << 5), "its GPU is idle");
    assert_string_equal(say("2", 1u << 5), "its GPU is idle");
    assert_string_equal(say("", 1u << 5), "its GPU is idle");
    assert_string_equal(say(NULL, 0xff), "its 8 GPUs: GPU 5 is idle, GPUs "
                                         "0-4,6-7 spin " SPINS);
    assert_string_equal(say(NULL, 3), "its 2 GPUs spin " SPINS);
}

/* Between GPUs of different models a number of CUDA's is no number of NVML's;
 * a UUID is one, and so is a number in the order of the bus. */
static void test_mixed_models(void **state)
{
    (void)state;
    put(0, 0, 10);
    snprintf(look.devices[0].model, GPU_TEXT_BYTES, "Small GPU");
    assert_string_equal(say(" 0", 0),
                        "the 8 GPUs that it may use: GPU 0 is idle, GPUs 1-7 "
                        "spin " SPINS);
    assert_string_equal(say("GPU-0", 0), "its GPU is idle");
    const struct gpu_look_rank rank = {.visible = "0", .has_bus_order = true};
    gpu_look_words(words, &look, &rank);
    assert_string_equal(words, "its GPU is idle");
    assert_string_equal(say("", 0), "");
}

/* A GPU that is parted by MIG lists the processes of its parts; nothing tells
 * what a part does. */
static void test_parts(void **state)
{
    (void)state;
    for (uint32_t i = 1; i < 3; i++) {
        put(i, UNTOLD, 20);
        snprintf(look.devices[i].uuid, GPU_TEXT_BYTES, "MIG-%u", i);
        look.devices[i].index = 0;
        look.devices[i].is_slice = i > 0;
    }
    put(0, UNTOLD, 20);
    gpu_device_set(&look.devices[0], GPU_MIG_ON, 1);
    static const char *const want = "its GPU 0 is in an unknown state (MIG: "
                                    "NVML tells no utilisation of parts)";
    assert_string_equal(say("MIG-2", 0), want);
    assert_string_equal(say(NULL, 1u << 0 | 1u << 2), want);
    assert_string_equal(say(NULL, 1u << 0), want);
}

/* ---- nothing to say, and too much ---------------------------------------- */

static void test_nothing(void **state)
{
    (void)state;
    assert_string_equal(say("", 0), "");
    assert_string_equal(say("-1", 0), "");
    snprintf(look.error, sizeof(look.error), "NVML: Unknown Error");
    look.count = 0;
    assert_string_equal(say("1", 0), "GPU state unknown: NVML: Unknown Error");
    assert_string_equal(say(NULL, 0), "GPU state unknown: NVML: Unknown Error");
    assert_string_equal(say("", 0), "");
    look.error[0] = 0;
    assert_string_equal(say(NULL, 0), "");
}

/* The line keeps its bound, and what is rare stands before it is cut. */
static void test_bounds(void **state)
{
    (void)state;
    look.count = GPU_DEVICES_MAX;
    look.is_simulated = true;
    for (uint32_t i = 0; i < GPU_DEVICES_MAX; i++) {
        put(i, i % 2 == 0 ? 100 : 0, 20);
    }
    assert_string_equal(say(NULL, 0),
                        "SIMULATED: the 64 GPUs that it may use: 32 GPUs are "
                        "idle, 32 GPUs spin " SPINS);
    for (uint32_t i = 0; i < GPU_DEVICES_MAX; i++) {
        put(i,
            i % 6 == 0   ? UNTOLD
            : i % 6 == 1 ? 0
            : i % 6 == 2 ? 50
                         : 100,
            i % 6 == 3   ? 90
            : i % 6 == 4 ? UNTOLD
                         : 20);
    }
    const char *text = say(NULL, 0);
    assert_int_equal(strlen(text), GPUL_FINDING_BYTES_MAX);
    assert_non_null(strstr(text, ": 11 GPUs are in an unknown state, 11 GPUs "
                                 "are idle, 11 GPUs are busy for part of the "
                                 "time, 11 GPUs work"));
    look.count = 0;
    memset(look.error, 'x', sizeof(look.error) - 1);
    look.error[1] = '\n';
    assert_int_equal(strlen(say(NULL, 0)), GPUL_FINDING_BYTES_MAX);
    assert_null(strchr(words, '\n'));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, setup)
    const struct CMUnitTest tests[] = {
        TEST(test_judge),        TEST(test_one),   TEST(test_whose),
        TEST(test_mixed_models), TEST(test_parts), TEST(test_nothing),
        TEST(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
