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

#include "tests/lib/fakehost.h"
#include "worker/nics.h"

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

static void put_rdma(const char *device, const char *port, const char *verbs,
                     const char *state, const char *rate)
{
    char path[256];
    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%s/state",
             device, port);
    put(path, state);
    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%s/rate",
             device, port);
    put(path, rate);
    snprintf(path, sizeof(path),
             "/sys/class/infiniband/%s/device/infiniband_verbs/%s/dev", device,
             verbs);
    put(path, "231:192\n");
    snprintf(path, sizeof(path), "/dev/infiniband/%s", verbs);
    put(path, "");
}

/* `entry` says what it is: "device", "bonding", "bridge", "lower_eth0". */
static void put_net(const char *interface, const char *entry,
                    const char *megabits)
{
    char path[256];
    snprintf(path, sizeof(path), "/sys/class/net/%s/speed", interface);
    put(path, megabits);
    snprintf(path, sizeof(path), "/sys/class/net/%s/type", interface);
    put(path, "1\n");
    snprintf(path, sizeof(path), "/sys/class/net/%s/%s/x", interface, entry);
    put(path, "");
}

static const char *const interfaces[] = {"lo",  "eth0",  "eth0", "eth1",
                                         "br0", "veth0", "bond0"};

/* What is found, in one line: "name kind rate", and "down". */
static void expect_of(const char *interface, const char *setting,
                      const char *expected)
{
    const char *const environment[] = {"HOME=/", setting, NULL};
    const struct nics_request request = {
        .root = root,
        .interfaces = interfaces,
        .interface_count = sizeof(interfaces) / sizeof(interfaces[0]),
        .interface = interface,
        .environment = environment,
    };
    struct nic nics[GPUL_NICS_MAX];
    char text[1024] = "";
    size_t count = nics_read(nics, &request);
    for (size_t i = 0; i < count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof(text) - used, "%s%.67s %s %g%s",
                 i > 0 ? ", " : "", nics[i].name, gpul_link_name(nics[i].kind),
                 nics[i].gbits, nics[i].is_down ? " down" : "");
    }
    assert_string_equal(text, expected);
}

static void expect(const char *interface, const char *expected)
{
    expect_of(interface, NULL, expected);
}

/* Nothing there: nothing is made up. Loopback is no card. */
static void test_nothing(void **state)
{
    (void)state;
    expect(NULL, "");
    expect("eth0", "eth0 TCP 0");
    put("/sys/class/net/lo/type", "772\n");
    put("/sys/class/net/lo/speed", "1000\n");
    expect("lo", "");
}

/* Ports of RDMA devices in the order of their numbers; those without a link
 * are named and have no rate. */
static void test_rdma(void **state)
{
    (void)state;
    put_net("eth0", "device", "100000\n");
    put_rdma("mlx5_10", "1", "uverbs10", "4: ACTIVE\n",
             "400 Gb/sec (4X NDR)\n");
    put_rdma("mlx5_2", "1", "uverbs2", "4: ACTIVE\n", "200 Gb/sec (4X HDR)\n");
    put_rdma("mlx5_2", "2", "uverbs2", "1: DOWN\n", "10 Gb/sec (4X SDR)\n");
    put_rdma("mlx5_3", "1", "uverbs3", "4: ACTIVE\n", "2.5 Gb/sec (1X SDR)\n");
    put_rdma("mlx5_4", "1", "uverbs4", "4: ACTIVE\n", "unknown\n");
    expect("eth0", "mlx5_2 RDMA 200, mlx5_2:2 RDMA 0 down, mlx5_3 RDMA 2.5, "
                   "mlx5_4 RDMA 0, mlx5_10 RDMA 400");
}

/* A device that cannot be opened here does not count, nor a virtual function
 * beside its physical one. */
static void test_rdma_out_of_reach(void **state)
{
    (void)state;
    char path[256];
    put_net("eth0", "device", "100000\n");
    put_rdma("mlx5_0", "1", "uverbs0", "4: ACTIVE\n", "400 Gb/sec (4X NDR)\n");
    put_rdma("mlx5_1", "1", "uverbs1", "4: ACTIVE\n", "400 Gb/sec (4X NDR)\n");
    put("/sys/class/infiniband/mlx5_1/device/physfn/infiniband/mlx5_0/x", "");
    expect("eth0", "mlx5_0 RDMA 400");
    snprintf(path, sizeof(path), "%s/dev/infiniband/uverbs0", root);
    unlink(path);
    expect("eth0", "eth0 TCP 100");
}

/* NCCL goes over TCP where no port has a link, and where it is told to. */
static void test_no_rdma(void **state)
{
    (void)state;
    put_net("eth0", "device", "100000\n");
    put_rdma("mlx5_0", "1", "uverbs0", "1: DOWN\n", "400 Gb/sec (4X NDR)\n");
    expect("eth0", "mlx5_0 RDMA 0 down, eth0 TCP 100");
    put_rdma("mlx5_0", "1", "uverbs0", "4: ACTIVE\n", "400 Gb/sec (4X NDR)\n");
    expect("eth0", "mlx5_0 RDMA 400");
    expect_of("eth0", "NCCL_IB_DISABLE=0", "mlx5_0 RDMA 400");
    expect_of("eth0", "NCCL_IB_DISABLE=1", "eth0 TCP 100");
    expect_of("eth0", "NCCL_NET=Socket", "eth0 TCP 100");
    expect_of("eth0", "NCCL_NET=IB", "mlx5_0 RDMA 400");
}

/* NCCL_IB_HCA: beginnings of names, whole names, exceptions, ports. */
static void test_chosen_rdma(void **state)
{
    (void)state;
    static const char *const names[] = {"mlx5_1", "mlx5_10", "bnxt_0"};
    for (size_t i = 0; i < 3; i++) {
        char verbs[32];
        snprintf(verbs, sizeof(verbs), "uverbs%zu", i);
        put_rdma(names[i], "1", verbs, "4: ACTIVE\n", "100 Gb/sec (4X EDR)\n");
    }
    put_rdma("mlx5_10", "2", "uverbs1", "4: ACTIVE\n", "50 Gb/sec (2X EDR)\n");
    expect_of(NULL, "NCCL_IB_HCA=mlx5_1",
              "mlx5_1 RDMA 100, mlx5_10 RDMA 100, mlx5_10:2 RDMA 50");
    expect_of(NULL, "NCCL_IB_HCA==mlx5_1", "mlx5_1 RDMA 100");
    expect_of(NULL, "NCCL_IB_HCA==bnxt_0,mlx5_10:2",
              "bnxt_0 RDMA 100, mlx5_10:2 RDMA 50");
    expect_of(NULL, "NCCL_IB_HCA=^mlx5", "bnxt_0 RDMA 100");
    expect_of(NULL, "NCCL_IB_HCA=^=mlx5_1",
              "bnxt_0 RDMA 100, mlx5_10 RDMA 100, mlx5_10:2 RDMA 50");
    expect_of(NULL, "NCCL_IB_HCA=none", "");
}

/* The interface of the node's address, or those that the user names. */
static void test_tcp(void **state)
{
    (void)state;
    put("/sys/class/net/lo/type", "772\n");
    put_net("eth0", "device", "25000\n");
    put_net("eth1", "device", "-1\n");
    put_net("br0", "bridge", "10000\n");
    put_net("veth0", "x", "10000\n");
    put_net("bond0", "bonding", "50000\n");
    expect("eth0", "eth0 TCP 25");
    expect("eth1", "eth1 TCP 0");
    expect("bond0", "bond0 TCP 50");
    expect_of("eth1", "NCCL_SOCKET_IFNAME==eth0", "eth0 TCP 25");
    expect_of("eth1", "NCCL_SOCKET_IFNAME=eth", "eth0 TCP 25, eth1 TCP 0");
    expect_of("eth1", "NCCL_SOCKET_IFNAME=^br,veth,bond,eth1", "eth0 TCP 25");
}

/* A virtual interface has the rate of the one card below it; a rate that its
 * driver made up does not count. */
static void test_virtual(void **state)
{
    (void)state;
    put_net("eth0", "device", "25000\n");
    put_net("eth1", "device", "100000\n");
    put_net("veth0", "x", "10000\n");
    put_net("br0", "bridge", "10000\n");
    put_net("br0", "lower_veth0", "10000\n");
    expect("veth0", "veth0 TCP 0");
    expect("br0", "br0 TCP 0");
    put_net("br0", "lower_vlan5", "10000\n");
    expect("br0", "br0 TCP 0");
    put_net("br0", "lower_eth0", "10000\n");
    expect("br0", "eth0 TCP 25");
    put_net("vlan5", "lower_bond0", "10000\n");
    put_net("bond0", "bonding", "50000\n");
    expect("vlan5", "bond0 TCP 50");
    put_net("br0", "lower_eth1", "10000\n");
    expect("br0", "br0 TCP 0");
    put_net("loop0", "lower_loop0", "10000\n");
    expect("loop0", "loop0 TCP 0");
}

/* More than fit are left out. */
static void test_many(void **state)
{
    (void)state;
    struct nic nics[GPUL_NICS_MAX];
    for (int i = 0; i < 2; i++) {
        char device[32];
        for (int port = 0; port < (int)GPUL_NICS_MAX; port++) {
            char number[8];
            snprintf(device, sizeof(device), "mlx5_%d", i);
            snprintf(number, sizeof(number), "%d", port);
            put_rdma(device, number, device, "4: ACTIVE\n", "1 Gb/sec (x)\n");
        }
    }
    const struct nics_request request = {.root = root};
    assert_int_equal(nics_read(nics, &request), GPUL_NICS_MAX);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_nothing),           TEST(test_rdma),
        TEST(test_rdma_out_of_reach), TEST(test_no_rdma),
        TEST(test_chosen_rdma),       TEST(test_tcp),
        TEST(test_virtual),           TEST(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
