/* SPDX-License-Identifier: Apache-2.0
 *
 * PCI, GPUs and RDMA of a machine of folders.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/worker/survey_stage.h"

/* ---- PCI ----------------------------------------------------------------- */

#define BRIDGE "0000:00:01.0"
#define GPU "0000:01:00.0"
#define NIC "0000:02:00.0"

/* A device below a bridge, or, with `above` "", at the root. */
static void put_device(const char *above, const char *address,
                       const char *class, const char *vendor)
{
    char path[300], target[256];
    snprintf(target, sizeof(target), "/sys/devices/pci0000:00/%s%s%s", above,
             above[0] != 0 ? "/" : "", address);
    snprintf(path, sizeof(path), "%s/class", target);
    stage_put(path, class);
    snprintf(path, sizeof(path), "%s/vendor", target);
    stage_put(path, vendor);
    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s", address);
    snprintf(target, sizeof(target), "../../../devices/pci0000:00/%s%s%s",
             above, above[0] != 0 ? "/" : "", address);
    stage_link(path, target);
}

static void put_file(const char *address, const char *file, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", address, file);
    stage_put(path, text);
}

static void put_machine(void)
{
    put_device("", BRIDGE, "0x060400\n", "0x8086\n");
    put_device(BRIDGE, GPU, "0x030200\n", "0x10de\n");
    put_device("", NIC, "0x020000\n", "0x15b3\n");
}

/* A bridge whose list of extended capabilities has another one before ACS. */
static void put_config(size_t bytes, uint8_t control)
{
    static uint8_t config[4096];
    char path[128];
    memset(config, 0, sizeof(config));
    memcpy(config + 0x100, (uint8_t[]){0x01, 0x00, 0x02, 0x15}, 4); /* AER */
    memcpy(config + 0x150, (uint8_t[]){0x0d, 0x00, 0x01, 0x00}, 4); /* ACS */
    config[0x156] = control;
    snprintf(path, sizeof(path), "/sys/devices/pci0000:00/%s/config", BRIDGE);
    stage_put_bytes(path, config, bytes);
}

static void test_acs(void **state)
{
    (void)state;
    put_machine();
    put_config(4096, 0x1d);
    stage_look(survey_pci);
    stage_expect("pci.acs", "on: " BRIDGE);
    put_config(4096, 0x02); /* blocks translated requests only */
    stage_look(survey_pci);
    stage_expect("pci.acs", "off");
    put_config(4096, 0x01);
    stage_look(survey_pci);
    stage_expect("pci.acs", "on: " BRIDGE);
    put_config(64, 0x1d); /* what others than root see */
    stage_look(survey_pci);
    stage_expect_unknown("pci.acs", "root");
}

/* A list that leads into itself, and one that leads beyond its end. */
static void test_bad_config(void **state)
{
    (void)state;
    uint8_t config[4096] = {0};
    put_machine();
    memcpy(config + 0x100, (uint8_t[]){0x01, 0x00, 0x02, 0x10}, 4);
    stage_put_bytes("/sys/devices/pci0000:00/" BRIDGE "/config", config, 4096);
    stage_look(survey_pci);
    stage_expect("pci.acs", "off");
    memcpy(config + 0x100, (uint8_t[]){0x01, 0x00, 0xf2, 0xff}, 4);
    stage_put_bytes("/sys/devices/pci0000:00/" BRIDGE "/config", config, 4096);
    stage_look(survey_pci);
    stage_expect("pci.acs", "off");
}

static void test_width(void **state)
{
    (void)state;
    put_machine();
    put_file(GPU, "current_link_width", "8\n");
    put_file(GPU, "max_link_width", "16\n");
    put_file(NIC, "current_link_width", "16\n");
    put_file(NIC, "max_link_width", "16\n");
    stage_look(survey_pci);
    stage_expect("pci.narrow", GPU ":x8-of-x16");
    /* The slot has no more. */
    put_file(BRIDGE, "max_link_width", "8\n");
    stage_look(survey_pci);
    stage_expect("pci.narrow", "none");
}

static void test_iommu(void **state)
{
    (void)state;
    put_machine();
    stage_look(survey_pci);
    stage_expect("pci.iommu", "off");
    stage_put("/sys/kernel/iommu_groups/7/reserved_regions", "");
    stage_look(survey_pci);
    stage_expect_unknown("pci.iommu", "not told");
    stage_put("/proc/cmdline", "root=/dev/sda iommu=pt quiet\n");
    stage_look(survey_pci);
    stage_expect("pci.iommu", "passthrough");
    put_file(NIC, "iommu_group/type", "identity\n");
    stage_look(survey_pci);
    stage_expect("pci.iommu", "passthrough");
    put_file(GPU, "iommu_group/type", "DMA-FQ\n");
    stage_look(survey_pci);
    stage_expect("pci.iommu", "translated");
}

static void test_no_pci(void **state)
{
    (void)state;
    stage_look(survey_pci);
    stage_expect("pci.acs", "off");
    stage_expect("pci.narrow", "none");
    stage_expect("pci.iommu", "off");
}

/* ---- GPUs ---------------------------------------------------------------- */

static void test_nvidia(void **state)
{
    (void)state;
    stage_look(survey_nvidia);
    stage_expect("nvidia.driver", "none");
    stage_expect("nvidia.count", "0");
    stage_expect("nvidia.bus_ids", "none");
    stage_put("/proc/driver/nvidia/version",
              "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Wed "
              "Jan 15 03:19:14 UTC 2025\nGCC version:  gcc version 12.2.0\n");
    fakehost_put_gpu(stage_root, "0000:1b:00.0", 0, "GPU-a", "0-7\n", 0);
    fakehost_put_gpu(stage_root, "0000:43:00.0", 1, "GPU-b", "0-7\n", 0);
    stage_look(survey_nvidia);
    stage_expect("nvidia.driver", "570.86.15");
    stage_expect("nvidia.module", "proprietary");
    stage_expect("nvidia.count", "2");
    stage_expect("nvidia.bus_ids", "0000:1b:00.0 0000:43:00.0");
    stage_expect("nvidia.uuids", "GPU-a GPU-b");
    stage_expect("nvidia.vbios", "96.00.74.00.01");
    stage_put("/proc/driver/nvidia/version",
              "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  "
              "580.95.05  Release Build  (dvs-builder)\n");
    stage_look(survey_nvidia);
    stage_expect("nvidia.driver", "580.95.05");
    stage_expect("nvidia.module", "open");
    stage_put("/proc/driver/nvidia/version", "NVRM version: unknown\n");
    stage_look(survey_nvidia);
    stage_expect_unknown("nvidia.driver", "no number");
}

/* ---- RDMA ---------------------------------------------------------------- */

static void put_port(const char *device, const char *file, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/%s", device,
             file);
    stage_put(path, text);
}

static void put_infiniband(const char *device, const char *state)
{
    put_port(device, "state", state);
    put_port(device, "phys_state", "5: LinkUp\n");
    put_port(device, "rate", "400 Gb/sec (4X NDR)\n");
    put_port(device, "link_layer", "InfiniBand\n");
    put_port(device, "gids/0", "fe80:0000:0000:0000:b83f:d203:00aa:0001\n");
    put_port(device, "counters/link_downed", "3\n");
}

static void test_infiniband(void **state)
{
    (void)state;
    put_infiniband("mlx5_0", "4: ACTIVE\n");
    put_infiniband("mlx5_1", "1: DOWN\n");
    stage_look(survey_rdma);
    stage_expect("rdma.ports", "2");
    stage_expect("rdma.down", "mlx5_1/1:DOWN");
    stage_expect("rdma.link_downed", "6");
    stage_expect("rdma.rail.1",
                 "InfiniBand, 400 Gb/sec (4X NDR), subnet fe80:0000:0000:0000");
    /* Switched off on purpose. */
    put_port("mlx5_1", "phys_state", "3: Disabled\n");
    stage_look(survey_rdma);
    stage_expect("rdma.down", "none");
}

static void test_roce(void **state)
{
    (void)state;
    put_infiniband("mlx5_0", "4: ACTIVE\n");
    put_port("mlx5_0", "link_layer", "Ethernet\n");
    put_port("mlx5_0", "gid_attrs/types/0", "IB/RoCE v1\n");
    put_port("mlx5_0", "gids/1", "fe80:0000:0000:0000:b83f:d203:00aa:0001\n");
    put_port("mlx5_0", "gid_attrs/types/1", "RoCE v2\n");
    put_port("mlx5_0", "gids/2", "0000:0000:0000:0000:0000:0000:0000:0000\n");
    put_port("mlx5_0", "gid_attrs/types/2", "RoCE v2\n");
    put_port("mlx5_0", "gids/3", "0000:0000:0000:0000:0000:ffff:0a00:0001\n");
    put_port("mlx5_0", "gid_attrs/types/3", "RoCE v2\n");
    stage_look(survey_rdma);
    stage_expect("rdma.rail.0",
                 "Ethernet, 400 Gb/sec (4X NDR), RoCE v2 at 1 3");
}

static void test_no_rdma(void **state)
{
    (void)state;
    stage_look(survey_rdma);
    stage_expect("rdma.ports", "0");
    stage_expect("rdma.down", "none");
    stage_expect("rdma.link_downed", "0");
    stage_expect("rdma.gpudirect", "not used");
    stage_put("/sys/class/infiniband/rxe0/ports/1/state", "4: ACTIVE\n");
    stage_look(survey_rdma);
    stage_expect_unknown("rdma.link_downed", "no such counter");
    stage_expect_unknown("rdma.rail.0", "rxe0/1");
}

static void test_gpudirect(void **state)
{
    (void)state;
    put_infiniband("mlx5_0", "4: ACTIVE\n");
    stage_look(survey_rdma);
    stage_expect("rdma.gpudirect", "not used");
    fakehost_put_gpu(stage_root, "0000:1b:00.0", 0, "GPU-a", "0-7\n", 0);
    stage_look(survey_rdma);
    stage_expect_unknown("rdma.gpudirect", "/proc/modules");
    stage_put("/proc/modules", "xnvidia_peermem 1 0 - Live\nib_core 1 0 -\n");
    stage_look(survey_rdma);
    stage_expect("rdma.gpudirect", "none");
    stage_put("/proc/modules", "ib_core 1 0 -\nnvidia_peermem 1 0 - Live\n");
    stage_look(survey_rdma);
    stage_expect("rdma.gpudirect", "nvidia_peermem");
    stage_put("/proc/modules", "ib_core 1 0 -\n");
    stage_put("/proc/driver/nvidia/version",
              "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64 580\n");
    stage_put("/proc/sys/kernel/osrelease", "5.12.0\n");
    stage_look(survey_rdma);
    stage_expect("rdma.gpudirect", "dma-buf");
    stage_put("/proc/sys/kernel/osrelease", "5.11.0\n");
    stage_look(survey_rdma);
    stage_expect("rdma.gpudirect", "none");
}

static void expect_hca(const char *setting, const char *expected)
{
    const char *const environment[] = {setting, NULL};
    stage_request.environment = environment;
    stage_look(survey_rdma);
    stage_expect("rdma.hca_matches", expected);
    stage_request.environment = NULL;
}

static void test_hca(void **state)
{
    (void)state;
    put_infiniband("mlx5_1", "4: ACTIVE\n");
    put_infiniband("mlx5_10", "4: ACTIVE\n");
    put_infiniband("mlx5_2", "4: ACTIVE\n");
    expect_hca("HOME=/", "unset");
    expect_hca("NCCL_IB_HCA=mlx5_2,mlx5_1:1", "mlx5_1 mlx5_10");
    expect_hca("NCCL_IB_HCA=mlx5_2", "as written");
    expect_hca("NCCL_IB_HCA==mlx5_1", "as written");
    expect_hca("NCCL_IB_HCA=mlx5", "as written"); /* all are meant */
}

#define TEST(function)                                                         \
    cmocka_unit_test_setup_teardown(function, stage_set, stage_clear)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_acs),        TEST(test_bad_config), TEST(test_width),
        TEST(test_iommu),      TEST(test_no_pci),     TEST(test_nvidia),
        TEST(test_infiniband), TEST(test_roce),       TEST(test_no_rdma),
        TEST(test_gpudirect),  TEST(test_hca),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
