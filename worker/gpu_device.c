/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/gpu_device.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/units.h"
#include "worker/nvml_api.h"

_Static_assert(GPU_NUMBER_COUNT <= 64, "one bit of `known` for each number");

static const struct {
    const char *name;
    const char *unit;
} numbers[] = {
#define X(name, text, unit) {text, unit},
    GPU_NUMBER_MAP(X)
#undef X
};

void gpu_device_set(struct gpu_device *d, enum gpu_number n, uint64_t value)
{
    assert(n < GPU_NUMBER_COUNT);
    d->numbers[n] = value;
    d->known |= UINT64_C(1) << n;
}

bool gpu_device_get(const struct gpu_device *d, enum gpu_number n,
                    uint64_t *value)
{
    assert(n < GPU_NUMBER_COUNT);
    bool is_known = d->known >> n & 1;
    *value = is_known ? d->numbers[n] : 0;
    return is_known;
}

const char *gpu_number_name(enum gpu_number n)
{
    assert(n < GPU_NUMBER_COUNT);
    return numbers[n].name;
}

const char *gpu_number_unit(enum gpu_number n)
{
    assert(n < GPU_NUMBER_COUNT);
    return numbers[n].unit;
}

void gpu_number_text(char *out, size_t bytes, const struct gpu_device *d,
                     enum gpu_number n)
{
    uint64_t value;
    if (!gpu_device_get(d, n, &value)) {
        snprintf(out, bytes, "unknown");
        return;
    }
    const char *unit = gpu_number_unit(n);
    snprintf(out, bytes, "%" PRIu64 "%s%s", value, unit[0] != 0 ? " " : "",
             unit);
}

/* ---- findings ----------------------------------------------------------- */

struct findings {
    char (*out)[GPU_FINDING_BYTES];
    size_t count;
};

__attribute__((format(printf, 2, 3))) static void add(struct findings *f,
                                                      const char *format, ...)
{
    if (f->count == GPU_FINDINGS_MAX) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(f->out[f->count++], GPU_FINDING_BYTES, format, arguments);
    va_end(arguments);
}

static bool is_set(const struct gpu_device *d, enum gpu_number n)
{
    uint64_t value;
    return gpu_device_get(d, n, &value) && value != 0;
}

static void find_memory_errors(struct findings *f, const struct gpu_device *d)
{
    uint64_t errors;
    if (gpu_device_get(d, GPU_ECC_UNCORRECTED, &errors) && errors > 0) {
        add(f,
            "GPU-231 %" PRIu64 " uncorrected ECC error%s since the driver "
            "started: results may be wrong; reset the GPU, or replace it",
            errors, gpul_plural(errors));
    }
    if (is_set(d, GPU_REMAP_FAILED)) {
        add(f, "GPU-232 a damaged row of memory could not be remapped: have "
               "the GPU replaced");
    }
    if (is_set(d, GPU_REMAP_PENDING)) {
        add(f, "GPU-232 a damaged row of memory waits to be remapped: reset "
               "the GPU");
    }
}

/* An idle GPU lowers the generation of its link to save power, so that says
 * something only while it works. The width never changes by itself. */
static void find_links(struct findings *f, const struct gpu_device *d)
{
    uint64_t now;
    uint64_t best;
    uint64_t reasons;
    if (gpu_device_get(d, GPU_PCIE_WIDTH, &now) &&
        gpu_device_get(d, GPU_PCIE_WIDTH_MAX, &best) && now < best) {
        add(f,
            "PCI-513 PCIe width is %" PRIu64 " of %" PRIu64 ": reseat the GPU",
            now, best);
    }
    bool is_busy = gpu_device_get(d, GPU_REASONS, &reasons) &&
                   (reasons & NVML_REASON_IDLE) == 0;
    if (is_busy && gpu_device_get(d, GPU_PCIE_GENERATION, &now) &&
        gpu_device_get(d, GPU_PCIE_GENERATION_MAX, &best) && now < best) {
        add(f,
            "PCI-513 PCIe generation is %" PRIu64 " of %" PRIu64
            " under load: reseat the GPU, look at the slot's settings",
            now, best);
    }
    /* A card that is not bridged to another has none up, and lacks nothing. */
    if (gpu_device_get(d, GPU_LINKS_UP, &now) && now > 0 &&
        gpu_device_get(d, GPU_LINKS, &best) && now < best) {
        add(f,
            "GPU-241 %" PRIu64 " of %" PRIu64
            " NVLinks are up: look at nvidia-smi nvlink -s, then reset the GPU",
            now, best);
    }
}

/* The bits of find_clocks come and go; a device this hot is about to have
 * one. */
static void find_heat(struct findings *f, const struct gpu_device *d)
{
    uint64_t now;
    uint64_t limit;
    if (gpu_device_get(d, GPU_TEMPERATURE, &now) &&
        gpu_device_get(d, GPU_TEMPERATURE_MAX, &limit) && limit > 0 &&
        now >= limit) {
        add(f,
            "GPU-221 it has %" PRIu64 " C, and from %" PRIu64
            " C on it is slowed down: look at its cooling",
            now, limit);
    }
}

/* Idle clocks, clocks that were asked for and the power cap under full load
 * are how a healthy GPU works. */
static void find_clocks(struct findings *f, const struct gpu_device *d)
{
    static const struct {
        uint64_t bit;
        const char *text;
    } faults[] = {
        {NVML_REASON_HW_THERMAL,
         "too hot, the hardware slows it down; look at its cooling"},
        {NVML_REASON_SW_THERMAL,
         "too hot, the driver slows it down; look at its cooling"},
        {NVML_REASON_HW_POWER_BRAKE,
         "the power supply's brake is on; look at the power supply"},
        {NVML_REASON_HW_SLOWDOWN,
         "the hardware slows it down; look at cooling and power"},
    };
    uint64_t reasons;
    if (!gpu_device_get(d, GPU_REASONS, &reasons)) {
        return;
    }
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        if ((reasons & faults[i].bit) != 0) {
            add(f, "GPU-220 clocks are held down: %s", faults[i].text);
            return; /* the general bit is set with each special one */
        }
    }
}

/* " (4711, 4712)", or "" where they are not known. */
static const char *list_pids(char out[GPU_TEXT_BYTES],
                             const struct gpu_device *d, uint64_t processes)
{
    size_t used = 0;
    out[0] = 0;
    for (uint32_t i = 0; i < d->pid_count; i++) {
        used +=
            (size_t)snprintf(out + used, GPU_TEXT_BYTES - used, "%s%" PRIu32,
                             i == 0 ? " (" : ", ", d->pids[i]);
    }
    if (d->pid_count > 0) {
        snprintf(out + used, GPU_TEXT_BYTES - used, "%s",
                 processes > d->pid_count ? ", ...)" : ")");
    }
    return out;
}

static void find_users(struct findings *f, const struct gpu_device *d)
{
    char pids[GPU_TEXT_BYTES];
    uint64_t mode;
    uint64_t processes;
    uint64_t bytes;
    if (gpu_device_get(d, GPU_COMPUTE_MODE, &mode) &&
        mode == NVML_MODE_PROHIBITED) {
        add(f, "GPU-252 compute mode is \"prohibited\": no program may use "
               "the GPU; set it with nvidia-smi -c 0");
    }
    if (gpu_device_get(d, GPU_PROCESSES, &processes) && processes > 0) {
        gpu_device_get(d, GPU_MEMORY_USED, &bytes);
        add(f,
            "%" PRIu64 " process%s%s use%s the GPU already, with %" PRIu64
            " MiB in use",
            processes, processes == 1 ? "" : "es",
            list_pids(pids, d, processes), processes == 1 ? "s" : "",
            bytes >> 20);
    }
    if (!d->is_slice && is_set(d, GPU_MIG_ON)) {
        add(f, "MIG is on: programs get slices of this GPU, not the whole");
    }
}

/* A health check that did not run is not a pass. */
static void find_unknown(struct findings *f, const struct gpu_device *d)
{
    static const struct {
        enum gpu_number number;
        const char *text;
    } checks[] = {
        {GPU_ECC_UNCORRECTED, "ECC errors"},
        {GPU_PCIE_WIDTH, "PCIe width"},
        {GPU_REASONS, "reasons for lower clocks"},
    };
    uint64_t value;
    char text[GPU_FINDING_BYTES] = "";
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        bool is_needless = checks[i].number == GPU_ECC_UNCORRECTED &&
                           gpu_device_get(d, GPU_ECC_ON, &value) && value == 0;
        if (!is_needless && !gpu_device_get(d, checks[i].number, &value)) {
            size_t used = strlen(text);
            snprintf(text + used, sizeof(text) - used, "%s%s",
                     used > 0 ? ", " : "", checks[i].text);
        }
    }
    if (text[0] != 0) {
        add(f, "could not be read: %.100s", text);
    }
    if (!gpu_device_get(d, GPU_MEMORY_USED, &value)) {
        add(f, "memory in use cannot be seen: whether it is free again after "
               "the self-test is not known");
    }
}

size_t gpu_device_findings(char out[GPU_FINDINGS_MAX][GPU_FINDING_BYTES],
                           const struct gpu_device *d)
{
    struct findings f = {out, 0};
    if (d->error[0] != 0) {
        add(&f, "nothing can be read of it: %s", d->error);
        return f.count;
    }
    find_memory_errors(&f, d);
    find_links(&f, d);
    find_clocks(&f, d);
    find_heat(&f, d);
    find_users(&f, d);
    find_unknown(&f, d);
    return f.count;
}

double gpu_device_pcie_gbps(const struct gpu_device *d)
{
    uint64_t generation;
    uint64_t lanes;
    gpu_device_get(d, GPU_PCIE_GENERATION_MAX, &generation);
    gpu_device_get(d, GPU_PCIE_WIDTH, &lanes);
    return is_set(d, GPU_C2C_ON) ? 0 : gpul_pcie_gbps(generation, lanes);
}

double gpu_device_link_gbps(const struct gpu_device *d, enum gpul_link *kind)
{
    /* By NVML's number: 1.0, 2.0, 2.2, 3.0, 3.1, 4.0, 5.0. */
    static const double one_link[] = {0, 20, 25, 25, 25, 25, 25, 50};
    uint64_t version;
    uint64_t links;
    double gbps = 0;
    if (d->is_slice || !gpu_device_get(d, GPU_LINKS_UP, &links)) {
        *kind = GPUL_LINK_NONE;
        return 0;
    }
    if (links == 0) {
        gbps = gpu_device_pcie_gbps(d);
        *kind = gbps > 0 ? GPUL_PCIE : GPUL_LINK_NONE;
        return gbps;
    }
    gpu_device_get(d, GPU_LINK_VERSION, &version);
    if (version < sizeof(one_link) / sizeof(one_link[0])) {
        gbps = one_link[version] * (double)links;
    }
    *kind = gbps > 0 ? GPUL_NVLINK : GPUL_LINK_NONE;
    return gbps;
}
