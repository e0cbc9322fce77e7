/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "proto/limits.h"
#include "tests/lib/fakehost.h"
#include "worker/facts.h"

/* A root folder of the test's own. */
static char root[FAKEHOST_ROOT_BYTES];

static int make_root(void **state)
{
    (void)state;
    fakehost_make(root);
    return 0;
}

static int remove_root(void **state)
{
    (void)state;
    fakehost_remove(root);
    return 0;
}

static void put(const char *path, const char *text)
{
    fakehost_put(root, path, text);
}

static uint64_t memory(void)
{
    struct facts f;
    assert_int_equal(facts_read(&f, root, NULL, NULL), 0);
    uint64_t bytes = f.message.memory_bytes;
    facts_release(&f);
    return bytes;
}

/* Memory is the machine's, or the tightest limit on the way up the cgroup
 * tree. */
static void test_memory(void **state)
{
    (void)state;
    assert_int_equal(memory(), 0);
    put("/proc/meminfo", "MemTotal:        1000 kB\nMemFree: 5 kB\n");
    assert_int_equal(memory(), 1024000);
    put("/proc/self/cgroup", "1:cpu:/old\n0::/user/session\n");
    assert_int_equal(memory(), 1024000);
    put("/sys/fs/cgroup/user/session/memory.max", "max\n");
    assert_int_equal(memory(), 1024000);
    put("/sys/fs/cgroup/user/memory.max", "500000\n");
    assert_int_equal(memory(), 500000);
    put("/sys/fs/cgroup/user/session/memory.max", "400000\n");
    assert_int_equal(memory(), 400000);
    put("/proc/self/cgroup", "0::/\n");
    assert_int_equal(memory(), 1024000);
}

static void expect_devices(const char *visible, bool is_restricted,
                           size_t count, const char *const *names)
{
    struct facts f;
    const struct facts_visible chosen = {.cuda = visible};
    assert_int_equal(facts_read(&f, root, &chosen, NULL), 0);
    assert_int_equal(f.message.gpus, count);
    assert_int_equal(f.device_count, count);
    assert_int_equal(f.devices_are_restricted, is_restricted);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(f.devices[i], names[i]);
    }
    facts_release(&f);
}

/* GPUs: none, those of the driver, those whose device nodes a container
 * shows, those that the user restricted us to. */
static void test_devices(void **state)
{
    (void)state;
    static const char *const indexes[] = {"0", "1", "2"};
    static const char *const given[] = {"3", "GPU-8f6d"};
    expect_devices(NULL, false, 0, NULL);
    put("/proc/driver/nvidia/gpus/0000:01:00.0/information", "");
    put("/proc/driver/nvidia/gpus/0000:02:00.0/information", "");
    put("/proc/driver/nvidia/gpus/0000:03:00.0/information", "");
    expect_devices(NULL, false, 3, indexes);
    put("/dev/nvidiactl", "");
    put("/dev/nvidia-uvm", "");
    put("/dev/nvidia1", "");
    put("/dev/nvidia12", "");
    put("/dev/nvidia1x", "");
    expect_devices(NULL, false, 2, indexes);
    expect_devices("3,GPU-8f6d", true, 2, given);
    expect_devices("3,GPU-8f6d,-1,4", true, 2, given);
    expect_devices("", true, 0, NULL);
    expect_devices("-1", true, 0, NULL);
}

/* How many GPUs there are and whose; `name` is the first one's. */
static void expect_amd(const struct facts_visible *visible, size_t count,
                       const char *name)
{
    struct facts f;
    assert_int_equal(facts_read(&f, root, visible, NULL), 0);
    assert_true(f.devices_are_amd);
    assert_int_equal(f.device_count, count);
    if (count > 0) {
        assert_string_equal(f.devices[0], name);
    }
    facts_release(&f);
}

/* AMD's compute driver lists its nodes; those of CPUs have the id 0. */
static void test_amd(void **state)
{
    (void)state;
    put("/sys/class/kfd/kfd/topology/nodes/0/gpu_id", "0\n");
    expect_devices(NULL, false, 0, NULL);
    put("/sys/class/kfd/kfd/topology/nodes/1/gpu_id", "");
    put("/sys/class/kfd/kfd/topology/nodes/2/gpu_id", "51140\n");
    put("/sys/class/kfd/kfd/topology/nodes/10/gpu_id", "51141\n");
    put("/sys/class/kfd/kfd/topology/nodes/11/gpu_id", "51142\n");
    put("/sys/class/drm/renderD128/device/vendor", "0x1002\n");
    expect_amd(NULL, 3, "0");
    expect_amd(&(struct facts_visible){.cuda = "2"}, 1, "2");
    expect_amd(&(struct facts_visible){.hip = "1,2"}, 2, "1");
    expect_amd(&(struct facts_visible){.hip = "1", .cuda = "2"}, 1, "1");
    expect_amd(&(struct facts_visible){.rocr = "1,2"}, 2, "0");
    expect_amd(&(struct facts_visible){.rocr = "0,1,2,3"}, 3, "0");
    expect_amd(&(struct facts_visible){.rocr = "1,2", .hip = "1"}, 1, "1");
    expect_amd(&(struct facts_visible){.hip = "-1"}, 0, NULL);
    expect_amd(&(struct facts_visible){.rocr = ""}, 0, NULL);
}

/* Without that driver the nodes for rendering are counted, by vendor; where
 * NVIDIA's are, they are what counts. */
static void test_amd_render_nodes(void **state)
{
    (void)state;
    static const char *const indexes[] = {"0"};
    put("/sys/class/drm/card0/device/vendor", "0x1002\n");
    put("/sys/class/drm/renderD129/device/vendor", "0x8086\n");
    expect_devices(NULL, false, 0, NULL);
    put("/sys/class/drm/renderD128/device/vendor", "0x1002\n");
    expect_amd(NULL, 1, "0");
    put("/sys/class/drm/renderD130/device/vendor", "0x1002\n");
    put("/proc/driver/nvidia/gpus/0000:01:00.0/information", "");
    expect_devices(NULL, false, 1, indexes);
}

/* A list without end is cut at the maximum. */
static void test_many_devices(void **state)
{
    (void)state;
    char list[4 * FACTS_DEVICES_MAX * 2];
    list[0] = 0;
    for (int i = 0; i < 2 * FACTS_DEVICES_MAX; i++) {
        strcat(list, "7,");
    }
    struct facts f;
    const struct facts_visible visible = {.cuda = list};
    assert_int_equal(facts_read(&f, root, &visible, NULL), 0);
    assert_int_equal(f.device_count, FACTS_DEVICES_MAX);
    facts_release(&f);
}

/* This machine: valid as a message, with loopback, and cheap to find out. */
static void test_here(void **state)
{
    (void)state;
    struct facts f;
    uint64_t best_ns = UINT64_MAX;
    for (int i = 0; i < 10; i++) {
        uint64_t start = gpul_clock_ns();
        assert_int_equal(facts_read(&f, "", NULL, NULL), 0);
        uint64_t took = gpul_clock_ns() - start;
        best_ns = took < best_ns ? took : best_ns;
        if (i < 9) {
            facts_release(&f);
        }
    }
    assert_true(best_ns < 1000000);
    assert_true(f.message.cores >= 1);
    assert_true(f.message.memory_bytes > 1 << 20);
    assert_int_equal(strlen(f.message.boot_id), 36);
    assert_string_equal(facts_interface_of(&f, "127.0.0.1"), "lo");
    assert_null(facts_interface_of(&f, "192.0.2.1"));

    static char address[] = "127.0.0.1", job[] = "j", name[] = "n";
    Gpul__Hello hello;
    gpul__hello__init(&hello);
    hello.protocol_min = hello.protocol_max = 1;
    hello.job_id = job;
    hello.node_name = name;
    hello.version = name;
    hello.instance = 1;
    hello.facts = &f.message;
    f.message.address = address;
    Gpul__Frame frame;
    gpul__frame__init(&frame);
    frame.body_case = GPUL__FRAME__BODY_HELLO;
    frame.hello = &hello;
    struct gpul_buf bytes;
    Gpul__Frame *back;
    gpul_buf_init(&bytes, GPUL_HELLO_BYTES_MAX);
    assert_int_equal(gpul_message_encode(&bytes, &frame, NULL), 0);
    assert_int_equal(gpul_message_decode(&back,
                                         bytes.data + GPUL_FRAME_PREFIX_BYTES,
                                         bytes.used - GPUL_FRAME_PREFIX_BYTES,
                                         GPUL_PEER_NODE, NULL),
                     0);
    gpul_message_release(back);
    gpul_buf_release(&bytes);
    facts_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_amd, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_amd_render_nodes, make_root,
                                        remove_root),
        cmocka_unit_test_setup_teardown(test_memory, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_devices, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_many_devices, make_root,
                                        remove_root),
        cmocka_unit_test(test_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
