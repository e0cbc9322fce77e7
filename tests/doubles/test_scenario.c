/* SPDX-License-Identifier: Apache-2.0
 *
 * The scenario's grammar: what lines mean, and what is said about wrong
 * ones. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/doubles/scenario.h"

static struct scenario parse(const char *text, const char *node)
{
    struct scenario scenario;
    char error[SCENARIO_ERROR] = "";

    if (scenario_parse(&scenario, text, node, error) != 0)
        fail_msg("%s", error);
    return scenario;
}

/* Nothing said is a node without a device. */
static void test_empty(void **state)
{
    struct scenario scenario = parse("", "local-0");

    (void)state;
    assert_int_equal(scenario.gpu_count, 0);
    assert_int_equal(scenario.nccl, 22809);
    scenario_release(&scenario);
}

/* A node line makes devices that differ in UUID and bus id, and the same ones
 * each time; a gpu line changes one of them. */
static void test_devices(void **state)
{
    static const char text[] =
        "# two machines\n"
        "node local-* gpus 2 model \"NVIDIA H200\" memory 141GiB\n"
        "node local-1 nccl 22705 driver 570.86\n"
        "\n"
        "gpu local-1 1 uuid GPU-00112233-4455-6677-8899-aabbccddeeff "
        "bus 0001:3b:00.0 ecc none throttle 0x40 lingers forever # odd\n";
    struct scenario zero = parse(text, "local-0");
    struct scenario one = parse(text, "local-1");
    struct scenario none = parse(text, "login");

    (void)state;
    assert_int_equal(none.gpu_count, 0);
    assert_int_equal(zero.gpu_count, 2);
    assert_string_equal(zero.gpus[1].model, "NVIDIA H200");
    assert_int_equal(zero.gpus[1].memory_bytes, 141ull << 30);
    assert_int_equal(zero.gpus[1].pci, 0x1100);
    assert_string_not_equal(zero.gpus[0].uuid, zero.gpus[1].uuid);
    assert_string_not_equal(zero.gpus[0].uuid, one.gpus[0].uuid);
    assert_int_equal(zero.nccl, 22809);
    assert_int_equal(one.nccl, 22705);
    assert_string_equal(one.driver, "570.86");
    assert_string_equal(one.gpus[1].uuid,
                        "GPU-00112233-4455-6677-8899-aabbccddeeff");
    assert_int_equal(one.gpus[1].pci, 0x13b00);
    assert_int_equal(one.gpus[1].has_ecc, 0);
    assert_int_equal(one.gpus[1].throttle, 0x40);
    assert_true(one.gpus[1].lingers_ms == UINT64_MAX);
    assert_int_equal(one.gpus[0].has_ecc, 1);
    scenario_release(&zero);
    scenario_release(&one);
    scenario_release(&none);
}

/* Every word of a fault finds its place, in any order. */
static void test_faults(void **state)
{
    struct scenario scenario =
        parse("link between a* b* latency 20us bandwidth 10GB/s\n"
              "fault rank 5 flip element 1000 bit 3 call 4\n"
              "fault rank 7 never-arrives\n"
              "fault hang abort\n"
              "fault at allreduce code 3 call 2\n"
              "fault node a0 gpu 1 signal SEGV at context after 300ms\n"
              "fault slow 2.5x\n"
              "fault node b* late 1s\n"
              "fault missing-symbol ncclSend\n",
              "a0");
    const struct scenario_fault *faults = scenario.faults;

    (void)state;
    assert_int_equal(scenario.fault_count, 6); /* one is for b*, one hides */
    assert_int_equal(faults[0].action, ACTION_FLIP);
    assert_int_equal(faults[0].point, POINT_ALLREDUCE);
    assert_int_equal(faults[0].rank, 5);
    assert_int_equal(faults[0].element, 1000);
    assert_int_equal(faults[0].bit, 3);
    assert_int_equal(faults[0].call, 4);
    assert_int_equal(faults[1].action, ACTION_NEVER_ARRIVES);
    assert_int_equal(faults[1].point, POINT_INIT);
    assert_int_equal(faults[2].action, ACTION_HANG);
    assert_int_equal(faults[2].point, POINT_ABORT);
    assert_int_equal(faults[2].rank, SCENARIO_ANY);
    assert_int_equal(faults[3].code, 3);
    assert_int_equal(faults[3].point, POINT_ALLREDUCE);
    assert_int_equal(faults[4].signal, SIGSEGV);
    assert_int_equal(faults[4].gpu, 1);
    assert_int_equal(faults[4].wait_ms, 300);
    assert_true(faults[5].factor > 2.4 && faults[5].factor < 2.6);
    assert_int_equal(scenario.hidden_count, 1);
    assert_string_equal(scenario.hidden[0], "ncclSend");
    assert_int_equal(scenario.links[0].latency_ns, 20000);
    assert_int_equal(scenario.links[0].bytes_per_s, 10000000000ull);
    scenario_release(&scenario);
}

/* What is wrong is pointed at by line and column, for whichever node. */
static void test_wrong(void **state)
{
    static const struct {
        const char *text;
        const char *error;
    } cases[] = {
        {"nods a", "1:1: nods is not node, gpu, link or fault"},
        {"\n  node", "2:3: missing node at the end of the line"},
        {"node a gpus", "1:8: missing gpus at the end of the line"},
        {"node a gpus two", "1:13: two is no gpus"},
        {"node a gpus -1", "1:13: -1 is no gpus"},
        {"node a gpus 513", "1:13: gpus 513 is over 512"},
        {"node b gpus 1 memory 80GB", "1:22: 80GB has no unit of a size"},
        {"node b gpus 1 memory 99999999TiB", "1:22: 99999999TiB is too much"},
        {"node a speed 5", "1:8: speed is no key of a node"},
        {"node a driver \"570", "1:15: quotation without an end"},
        {"node a gpus 2\ngpu a 2 mig on", "2:7: a has 2 GPUs, so none is 2"},
        {"gpu b 0 colour red", "1:9: colour is no key of a GPU"},
        {"gpu b 0 mig maybe", "1:13: maybe is no on or off"},
        {"gpu b 0 uuid GPU-1",
         "1:14: GPU-1 is no UUID (GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx)"},
        {"gpu b 0 bus 3b:00", "1:13: 3b:00 is no bus id (as in 0000:3b:00.0)"},
        {"link width 3", "1:6: width is no key of a link"},
        {"link bandwidth 10Gb/s", "1:16: 10Gb/s has no unit of a rate"},
        {"fault", "1:1: a fault without an action"},
        {"fault rank 3", "1:12: a fault without an action"},
        {"fault rank 3 explode", "1:14: explode is no word of a fault"},
        {"fault hang everywhere", "1:12: everywhere is no point"},
        {"fault late 5", "1:12: 5 has no unit of a duration"},
        {"fault late 5s code 3", "1:15: code: a fault has one action"},
        {"fault code 0", "1:12: code begins at 1"},
        {"fault code 3 call 0", "1:19: call begins at 1"},
        {"fault signal HUP", "1:14: HUP is no signal"},
        {"fault slow 4", "1:12: 4 is no factor (as in 4x)"},
        {"fault slow 4x", "1:12: slow needs a link line before it"},
        {"fault flip 3", "1:12: 3 is not element"},
        {"fault flip element 3 bit 64", "1:26: bit 64 is over 63"},
        {"fault flip element 3 bit 1 at init", "1:31: nothing to flip at init"},
        {"fault rank 1 code 3 at uid",
         "1:24: no rank and no gpu is known at uid: choose by node"},
        {"fault gpu 1 hang facts",
         "1:18: no rank and no gpu is known at facts: choose by node"},
        {"fault rank 1 hang context",
         "1:19: no rank is known at context: choose by node and gpu"},
        {"fault rank 1 missing-symbol ncclSend",
         "1:29: a library is a node's: choose by node"},
        {"fault missing-symbol ncclSend at init",
         "1:34: this holds everywhere: no at, no call"},
        {"link latency 1us\nfault slow 4x call 2",
         "2:20: this holds everywhere: no at, no call"},
        {"fault never-arrives at allreduce", "1:24: never-arrives is at init"},
        {"fault code 3 after 1s", "1:20: only a signal comes after a time"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scenario scenario;
        char error[SCENARIO_ERROR] = "";
        assert_int_equal(scenario_parse(&scenario, cases[i].text, "a", error),
                         -1);
        assert_string_equal(error, cases[i].error);
        assert_null(scenario.gpus);
    }
}

/* Bounds hold: lines, words and numbers of faults. */
static void test_bounds(void **state)
{
    char text[4096], error[SCENARIO_ERROR];
    struct scenario scenario;

    (void)state;
    memset(text, 'x', 600);
    text[600] = '\0';
    assert_int_equal(scenario_parse(&scenario, text, "a", error), -1);
    assert_string_equal(error, "1:1: line of 600 bytes (511 at most)");
    for (size_t i = 0; i < 200; i++)
        memcpy(text + 2 * i, "a ", 3);
    assert_int_equal(scenario_parse(&scenario, text, "a", error), -1);
    assert_string_equal(error, "1:127: more than 63 words");
    for (size_t i = 0; i < SCENARIO_FAULTS_MAX + 1; i++)
        (void)snprintf(text + 13 * i, 14, "fault code 3\n");
    assert_int_equal(scenario_parse(&scenario, text, "a", error), -1);
    assert_string_equal(error, "65:12: more than 64 faults");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),  cmocka_unit_test(test_devices),
        cmocka_unit_test(test_faults), cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
