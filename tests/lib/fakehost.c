/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/fakehost.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

void fakehost_make(char root[FAKEHOST_ROOT_BYTES])
{
    snprintf(root, FAKEHOST_ROOT_BYTES, "/tmp/gpul-fakehost-XXXXXX");
    assert_non_null(mkdtemp(root));
}

void fakehost_remove(const char *root)
{
    char command[FAKEHOST_ROOT_BYTES + 16];
    snprintf(command, sizeof(command), "rm -rf '%s'", root);
    assert_int_equal(system(command), 0);
}

void fakehost_put(const char *root, const char *path, const char *text)
{
    char whole[512];
    snprintf(whole, sizeof(whole), "%s%s", root, path);
    for (char *slash = whole + strlen(root) + 1;
         (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = 0;
        mkdir(whole, 0700);
        *slash = '/';
    }
    FILE *f = fopen(whole, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

#define DEVICES "/sys/devices/system/"

/* One file of processor or node `number`. */
static void put_of(const char *root, const char *what, uint32_t number,
                   const char *file, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), DEVICES "%s%u/%s", what, number, file);
    fakehost_put(root, path, text);
}

/* hwloc reads sets of processors from these files as words of bits. */
static void put_processor(const char *root, uint32_t cpu, uint32_t packages,
                          uint32_t cores)
{
    uint32_t all = packages * cores;
    uint32_t core = cpu % all;
    uint64_t threads = UINT64_C(1) << core | UINT64_C(1) << (core + all);
    uint64_t first = ((UINT64_C(1) << cores) - 1) << (core / cores * cores);
    char text[64];
    snprintf(text, sizeof(text), "%u\n", core / cores);
    put_of(root, "cpu/cpu", cpu, "topology/physical_package_id", text);
    snprintf(text, sizeof(text), "%u\n", core % cores);
    put_of(root, "cpu/cpu", cpu, "topology/core_id", text);
    snprintf(text, sizeof(text), "%08x\n", (uint32_t)threads);
    put_of(root, "cpu/cpu", cpu, "topology/core_cpus", text);
    put_of(root, "cpu/cpu", cpu, "topology/thread_siblings", text);
    snprintf(text, sizeof(text), "%08x\n", (uint32_t)(first | first << all));
    put_of(root, "cpu/cpu", cpu, "topology/package_cpus", text);
    put_of(root, "cpu/cpu", cpu, "topology/core_siblings", text);
}

static void put_node(const char *root, uint32_t node, uint32_t packages,
                     uint32_t cores)
{
    uint32_t all = packages * cores;
    uint64_t first = ((UINT64_C(1) << cores) - 1) << (node * cores);
    char text[128];
    snprintf(text, sizeof(text), "%08x\n", (uint32_t)(first | first << all));
    put_of(root, "node/node", node, "cpumap", text);
    snprintf(text, sizeof(text), "Node %u MemTotal:       4194304 kB\n", node);
    put_of(root, "node/node", node, "meminfo", text);
}

void fakehost_put_processors(const char *root, uint32_t packages,
                             uint32_t cores)
{
    uint32_t threads = packages * cores * 2;
    char text[64];
    assert_true(threads <= 32 && packages > 1);
    snprintf(text, sizeof(text), "0-%u\n", threads - 1);
    fakehost_put(root, "/sys/devices/system/cpu/online", text);
    fakehost_put(root, "/sys/devices/system/cpu/possible", text);
    snprintf(text, sizeof(text), "0-%u\n", packages - 1);
    fakehost_put(root, "/sys/devices/system/node/online", text);
    for (uint32_t i = 0; i < threads; i++) {
        put_processor(root, i, packages, cores);
    }
    for (uint32_t i = 0; i < packages; i++) {
        put_node(root, i, packages, cores);
    }
    fakehost_put(root, "/proc/cpuinfo", "");
    fakehost_put(root, "/proc/mounts", "");
}

void fakehost_put_gpu(const char *root, const char *bus_id, uint32_t minor,
                      const char *uuid, const char *cpus, int numa_node)
{
    char path[256];
    char text[512];
    snprintf(path, sizeof(path), "/proc/driver/nvidia/gpus/%s/information",
             bus_id);
    snprintf(text, sizeof(text),
             "Model: \t\t NVIDIA H100 80GB HBM3\n"
             "IRQ:   \t\t 57\n"
             "GPU UUID: \t %s\n"
             "Video BIOS: \t 96.00.74.00.01\n"
             "Bus Type: \t PCIe\n"
             "Bus Location: \t %s\n"
             "Device Minor: \t %u\n"
             "GPU Firmware: \t 535.129.03\n",
             uuid, bus_id, minor);
    fakehost_put(root, path, text);
    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/local_cpulist",
             bus_id);
    fakehost_put(root, path, cpus);
    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/numa_node", bus_id);
    snprintf(text, sizeof(text), "%d\n", numa_node);
    fakehost_put(root, path, text);
}
