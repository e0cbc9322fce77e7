/* SPDX-License-Identifier: Apache-2.0
 *
 * Cards, bonds, routes and names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/worker/survey_stage.h"

static void put_card(const char *name, const char *file, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "/sys/class/net/%s/%s", name, file);
    stage_put(path, text);
}

static void link_driver(const char *name, const char *driver)
{
    char path[256], target[256];
    snprintf(path, sizeof(path), "/sys/class/net/%s/device/driver", name);
    snprintf(target, sizeof(target), "../../../../bus/pci/drivers/%s", driver);
    stage_link(path, target);
}

static void test_cards(void **state)
{
    (void)state;
    stage_look(survey_net);
    stage_expect("net.cards", "none");
    link_driver("eth0", "mlx5_core");
    put_card("eth0", "speed", "25000\n");
    link_driver("eth1", "mlx5_core");
    put_card("eth1", "speed", "25000\n");
    link_driver("eth2", "igb");
    put_card("eth2", "speed", "1000\n");
    put_card("eth2", "operstate", "down\n");
    link_driver("eth3", "virtio_net");
    put_card("eth3", "speed", "-1\n");
    put_card("veth0", "speed", "10000\n"); /* no card */
    stage_put("/sys/module/mlx5_core/version", "24.10-1.1.4\n");
    stage_put("/sys/class/infiniband/mlx5_0/fw_ver", "28.39.1002\n");
    stage_put("/sys/class/infiniband/mlx5_0/board_id", "MT_0000000838\n");
    stage_put("/sys/class/infiniband/mlx5_1/fw_ver", "28.39.1002\n");
    stage_put("/sys/class/infiniband/mlx5_1/board_id", "MT_0000000838\n");
    stage_look(survey_net);
    stage_expect("net.cards", "2 RDMA devices, 2 x 25 Gbit/s, 1 x unknown "
                              "rate, 1 x no link");
    stage_expect("net.drivers", "mlx5_core/24.10-1.1.4 igb virtio_net");
    stage_expect("net.firmware", "MT_0000000838/28.39.1002");
}

static void test_bonds(void **state)
{
    (void)state;
    stage_look(survey_net);
    stage_expect("net.bonds", "none");
    put_card("bond0", "bonding/slaves", "eth0 eth1\n");
    put_card("bond1", "bonding/slaves", "\n");
    stage_look(survey_net);
    stage_expect("net.bonds", "bond0:eth0+eth1 bond1:none");
}

/* The least metric; a route to 0.0.0.0/1 is none by default. */
static void test_route(void **state)
{
    (void)state;
    static const char head[] =
        "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU"
        "\tWindow\tIRTT\n";
    char text[1024];
    stage_look(survey_net);
    stage_expect_unknown("net.default", "/proc/net/route");
    snprintf(text, sizeof(text),
             "%seth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
             "eth1\t00000000\t0100000A\t0003\t0\t0\t200\t00000000\t0\t0\t0\n"
             "tun0\t00000000\t0100000A\t0003\t0\t0\t0\t00000080\t0\t0\t0\n"
             "eth0\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n",
             head);
    stage_put("/proc/net/route", text);
    stage_look(survey_net);
    stage_expect("net.default", "eth0");
    stage_put("/proc/net/route", head);
    stage_look(survey_net);
    stage_expect("net.default", "none");
    stage_put(
        "/proc/net/ipv6_route",
        "fd000000000000000000000000000000 40 00000000000000000000000000000000 "
        "00 00000000000000000000000000000000 00000100 00000001 00000000 "
        "00000001     eth1\n"
        "00000000000000000000000000000000 00 00000000000000000000000000000000 "
        "00 00000000000000000000000000000000 ffffffff 00000001 00000000 "
        "00200200       lo\n"
        "00000000000000000000000000000000 00 00000000000000000000000000000000 "
        "00 fe800000000000000000000000000001 00000400 00000001 00000000 "
        "00000003     eth2\n");
    stage_look(survey_net);
    stage_expect("net.default", "eth2");
}

/* Of this machine: whatever it has, something is said. */
static void test_interfaces(void **state)
{
    (void)state;
    const char *const environment[] = {"NCCL_SOCKET_IFNAME==lo", NULL};
    stage_request.root = "";
    stage_request.environment = environment;
    stage_look(survey_net);
    stage_expect("net.ifname_matches", "exact");
    stage_value("net.shared_subnet");
    stage_look(survey_names);
    stage_value("net.hostname");
    stage_request.root = stage_root;
    stage_request.environment = NULL;
}

#define TEST(function)                                                         \
    cmocka_unit_test_setup_teardown(function, stage_set, stage_clear)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_cards),
        TEST(test_bonds),
        TEST(test_route),
        TEST(test_interfaces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
