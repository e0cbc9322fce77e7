/* SPDX-License-Identifier: Apache-2.0
 *
 * One GPU as this node sees it. Any fact may be unknown, for want of a
 * driver, a permission or a feature, and then it is not 0 but not there. Pure.
 */
#ifndef WORKER_GPU_DEVICE_H
#define WORKER_GPU_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bandwidth.h"

/* name, what it is, unit. Flags are 0 or 1. */
#define GPU_NUMBER_MAP(X)                                                      \
    X(MEMORY, "memory", "B")                                                   \
    X(MEMORY_USED, "memory in use", "B")                                       \
    X(ECC_ON, "ECC", "")                                                       \
    X(ECC_UNCORRECTED, "uncorrected ECC errors since the driver started", "")  \
    X(ECC_UNCORRECTED_EVER, "uncorrected ECC errors ever", "")                 \
    X(REMAP_PENDING, "remapping of memory rows pending", "")                   \
    X(REMAP_FAILED, "remapping of memory rows failed", "")                     \
    X(MIG_ON, "MIG", "")                                                       \
    X(LINKS, "NVLinks", "")                                                    \
    X(LINKS_UP, "NVLinks up", "")                                              \
    X(LINK_VERSION, "NVLink version", "") /* NVML's number, not the name */    \
    X(PCIE_GENERATION, "PCIe generation", "")                                  \
    X(PCIE_GENERATION_MAX, "PCIe generation at most", "")                      \
    X(PCIE_WIDTH, "PCIe width", "")                                            \
    X(PCIE_WIDTH_MAX, "PCIe width at most", "")                                \
    X(C2C_ON, "NVLink to the host", "")                                        \
    X(SM_CLOCK, "SM clock", "MHz")                                             \
    X(SM_CLOCK_MAX, "SM clock at most", "MHz")                                 \
    X(MEMORY_CLOCK, "memory clock", "MHz")                                     \
    X(MEMORY_CLOCK_MAX, "memory clock at most", "MHz")                         \
    X(REASONS, "reasons for lower clocks", "") /* enum nvml_reason */          \
    X(TEMPERATURE, "temperature", "C")                                         \
    X(TEMPERATURE_MAX, "temperature from which it is slowed down", "C")        \
    X(POWER, "power", "mW")                                                    \
    X(POWER_LIMIT, "power limit", "mW")                                        \
    X(COMPUTE_MODE, "compute mode", "") /* enum nvml_compute_mode */           \
    X(PERSISTENCE_ON, "persistence mode", "")                                  \
    X(PROCESSES, "processes", "")                                              \
    X(USE, "utilisation", "%")                                                 \
    X(MEMORY_USE, "memory utilisation", "%")

enum gpu_number {
#define X(name, text, unit) GPU_##name,
    GPU_NUMBER_MAP(X)
#undef X
        GPU_NUMBER_COUNT,
};

enum {
    GPU_DEVICES_MAX = 64, /* of a node, MIG slices included */
    GPU_TEXT_BYTES = 96,
    GPU_BUS_ID_BYTES = 32,
    GPU_PIDS_MAX = 4,
    GPU_FINDINGS_MAX = 16,
    GPU_FINDING_BYTES = 160,
};

struct gpu_device {
    uint32_t index;            /* in bus order; of a MIG slice, its GPU's */
    bool is_slice;             /* of a GPU, by MIG */
    char uuid[GPU_TEXT_BYTES]; /* "GPU-..." or "MIG-..."; "": unknown */
    char model[GPU_TEXT_BYTES];
    char bus_id[GPU_BUS_ID_BYTES]; /* "00000000:3B:00.0" */
    char error[GPU_TEXT_BYTES];    /* why nothing can be read; "": it can */
    uint64_t numbers[GPU_NUMBER_COUNT];
    uint64_t known; /* bit n: numbers[n] is known */
    /* Of GPU_PROCESSES the first ones, as the host numbers them. */
    uint32_t pids[GPU_PIDS_MAX];
    uint32_t pid_count;
};

void gpu_device_set(struct gpu_device *d, enum gpu_number n, uint64_t value);

/* False, with `value` 0, where the number is unknown. */
bool gpu_device_get(const struct gpu_device *d, enum gpu_number n,
                    uint64_t *value);

const char *gpu_number_name(enum gpu_number n);
const char *gpu_number_unit(enum gpu_number n);

/* "1980 MHz", or "unknown". */
void gpu_number_text(char *out, size_t bytes, const struct gpu_device *d,
                     enum gpu_number n);

/* What a person should know before trusting this device, a sentence each and
 * the worst first: errors, links below their width, held clocks, somebody
 * else's memory, and what could not be read. Returns their number. */
size_t gpu_device_findings(char out[GPU_FINDINGS_MAX][GPU_FINDING_BYTES],
                           const struct gpu_device *d);

/* To the other devices of its node, one way, in 1e9 bytes a second: all
 * NVLinks that are up together; where it is known that none is, PCIe. 0 where
 * that cannot be known, and for a slice by MIG. Source: NVIDIA's data sheets of
 * P100, V100, A100, H100 and B200. */
double gpu_device_link_gbps(const struct gpu_device *d, enum gpul_link *kind);

/* To the host, one way: the generation that link and device reach under load,
 * on the lanes that are connected. 0: unknown, and where copies do not go over
 * PCIe but over the link between the chips of Grace and of its GPU. */
double gpu_device_pcie_gbps(const struct gpu_device *d);

#endif
