/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines that say what a node and its devices are: tables of keys. Lines for
 * other nodes are read all the same, into a place that is thrown away, so
 * that a wrong line is found by every process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/doubles/scenario_text.h"

enum kind { NUMBER, SIZE, FOREVER, TEXT, SWITCH, ECC, UUID, PCI };

struct key {
    const char *name;
    enum kind kind;
    size_t offset;
    uint64_t most;
};

#define GPU(name, kind, field, most)                                           \
    {                                                                          \
        name, kind, offsetof(struct scenario_gpu, field), most                 \
    }
#define NODE(name, kind, field, most)                                          \
    {                                                                          \
        name, kind, offsetof(struct scenario, field), most                     \
    }

static const struct key gpu_keys[] = {
    GPU("uuid", UUID, uuid, 0),
    GPU("bus", PCI, pci, 0),
    GPU("model", TEXT, model, 0),
    GPU("memory", SIZE, memory_bytes, 0),
    GPU("used", SIZE, used_bytes, 0),
    GPU("process", NUMBER, process, 1u << 30),
    GPU("lingers", FOREVER, lingers_ms, 0),
    GPU("ecc", ECC, has_ecc, 0),
    GPU("ecc-corrected", NUMBER, ecc_corrected, UINT64_MAX),
    GPU("ecc-uncorrected", NUMBER, ecc_uncorrected, UINT64_MAX),
    GPU("remap-corrected", NUMBER, remap_corrected, 4096),
    GPU("remap-uncorrected", NUMBER, remap_uncorrected, 4096),
    GPU("remap-pending", SWITCH, remap_pending, 0),
    GPU("remap-failed", SWITCH, remap_failed, 0),
    GPU("mig", SWITCH, mig, 0),
    GPU("nvlinks", NUMBER, nvlinks, 18),
    GPU("nvlink-version", NUMBER, nvlink_version, 7),
    GPU("pcie-gen", NUMBER, pcie_gen, 7),
    GPU("pcie-width", NUMBER, pcie_width, 32),
    GPU("pcie-max-gen", NUMBER, pcie_max_gen, 7),
    GPU("pcie-max-width", NUMBER, pcie_max_width, 32),
    GPU("clock-sm", NUMBER, clock_sm, 10000),
    GPU("clock-mem", NUMBER, clock_mem, 20000),
    GPU("max-clock-sm", NUMBER, max_clock_sm, 10000),
    GPU("max-clock-mem", NUMBER, max_clock_mem, 20000),
    GPU("throttle", NUMBER, throttle, UINT64_MAX),
    GPU("temperature", NUMBER, temperature, 200),
    GPU("temperature-limit", NUMBER, temperature_limit, 200),
    GPU("power", NUMBER, power_w, 10000),
    GPU("power-limit", NUMBER, power_limit_w, 10000),
    GPU("compute-mode", NUMBER, compute_mode, 3),
    GPU("persistence", SWITCH, persistence, 0),
    GPU("utilization", NUMBER, utilization, 100),
    GPU("lost", SWITCH, lost, 0),
    {NULL, NUMBER, 0, 0},
};

static const struct key node_keys[] = {
    NODE("driver", TEXT, driver, 0),
    NODE("nvml", TEXT, nvml, 0),
    NODE("cuda", NUMBER, cuda, 99999),
    NODE("nccl", NUMBER, nccl, 99999),
    NODE("cuda-init", NUMBER, cuda_init, 999),
    NODE("nvml-init", NUMBER, nvml_init, 999),
    NODE("context", SIZE, context_bytes, 0),
    NODE("debug", SIZE, debug_bytes, 0),
    {NULL, NUMBER, 0, 0},
};

/* --- What a device is when nothing else is said ------------------------- */

static uint64_t hash(const char *text, uint64_t seed)
{
    uint64_t value = 0xcbf29ce484222325ull ^ seed;

    for (; *text; text++)
        value = (value ^ (unsigned char)*text) * 0x100000001b3ull;
    return value ^ value >> 29;
}

static void gpu_default(struct scenario_gpu *gpu, const char *node,
                        unsigned index)
{
    uint64_t high = hash(node, index);
    uint64_t low = hash(node, high);

    *gpu = (struct scenario_gpu){
        .model = "NVIDIA H100 80GB HBM3",
        .pci = (uint64_t)(index / 200) << 16 | (0x10u + index % 200) << 8,
        .memory_bytes = 80ull << 30,
        .has_ecc = 1,
        .ecc_mode = 1,
        .nvlinks = 18,
        .nvlink_version = 4,
        .pcie_gen = 5,
        .pcie_width = 16,
        .pcie_max_gen = 5,
        .pcie_max_width = 16,
        .clock_sm = 1980,
        .clock_mem = 2619,
        .max_clock_sm = 1980,
        .max_clock_mem = 2619,
        .temperature = 35,
        .temperature_limit = 92,
        .power_w = 120,
        .power_limit_w = 700,
        .persistence = 1,
    };
    (void)snprintf(gpu->uuid, sizeof gpu->uuid,
                   "GPU-%08x-%04x-%04x-%04x-%012llx", (unsigned)(high >> 32),
                   (unsigned)(high >> 16 & 0xffff), (unsigned)(high & 0xffff),
                   (unsigned)(low >> 48),
                   (unsigned long long)(low & 0xffffffffffffull));
}

/* --- Values ------------------------------------------------------------- */

static int read_uuid(struct line *line, char uuid[SCENARIO_TEXT])
{
    static const char shape[] = "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    const char *digits = "0123456789abcdef";

    if (line_text(line, "UUID", uuid) != 0)
        return -1;
    for (size_t i = 0; i < sizeof shape; i++)
        if (shape[i] == 'x' ? !uuid[i] || !strchr(digits, uuid[i])
                            : uuid[i] != shape[i])
            return line_fail(line, "%s is no UUID (%s)", uuid, shape);
    return 0;
}

static int read_pci(struct line *line, uint64_t *pci)
{
    const char *word = line_word(line, "bus id");
    unsigned domain, bus, device;
    int end = 0;

    if (!word)
        return -1;
    if (sscanf(word, "%4x:%2x:%2x.0%n", &domain, &bus, &device, &end) != 3 ||
        end == 0 || word[end] != '\0')
        return line_fail(line, "%s is no bus id (as in 0000:3b:00.0)", word);
    *pci = (uint64_t)domain << 16 | bus << 8 | device;
    return 0;
}

static int read_forever(struct line *line, uint64_t *ms)
{
    if (line->next < line->count &&
        strcmp(line->words[line->next], "forever") == 0) {
        line->next++;
        *ms = UINT64_MAX;
        return 0;
    }
    return line_ms(line, ms);
}

static int read_value(struct line *line, const struct key *key, void *into)
{
    static const char *const words[] = {"off", "on", "none"};
    char *place = (char *)into + key->offset;
    uint64_t *number = (void *)place;
    int choice;

    switch (key->kind) {
    case NUMBER:
        return line_number(line, key->name, key->most, number);
    case SIZE:
        return line_size(line, "size", number);
    case FOREVER:
        return read_forever(line, number);
    case TEXT:
        return line_text(line, key->name, place);
    case UUID:
        return read_uuid(line, place);
    case PCI:
        return read_pci(line, number);
    case SWITCH:
        choice = line_choice(line, "on or off", words, 2);
        *number = choice > 0;
        return choice < 0 ? -1 : 0;
    case ECC:
        choice = line_choice(line, "on, off or none", words, 3);
        ((struct scenario_gpu *)into)->has_ecc = choice != 2;
        ((struct scenario_gpu *)into)->ecc_mode = choice == 1;
        return choice < 0 ? -1 : 0;
    }
    return -1;
}

static const struct key *key_find(const struct key *keys, const char *name)
{
    for (; keys->name; keys++)
        if (strcmp(keys->name, name) == 0)
            return keys;
    return NULL;
}

/* --- Lines -------------------------------------------------------------- */

static int read_gpu_count(struct line *line, struct scenario *scenario,
                          bool is_ours)
{
    uint64_t count = 0;

    if (line_number(line, "gpus", SCENARIO_GPUS_MAX, &count) != 0)
        return -1;
    if (!is_ours)
        return 0;
    struct scenario_gpu *gpus = calloc(count + 1, sizeof *gpus);
    if (!gpus)
        return line_fail(line, "no memory");
    free(scenario->gpus);
    scenario->gpus = gpus;
    scenario->gpu_count = count;
    for (unsigned i = 0; i < count; i++)
        gpu_default(&gpus[i], scenario->node, i);
    return 0;
}

/* node PATTERN [gpus N] [KEY VALUE]...; a device's key holds for each. */
int scenario_node_line(struct line *line, struct scenario *scenario)
{
    char pattern[SCENARIO_TEXT];
    int is_ours = line_node(line, scenario->node, pattern);
    struct scenario elsewhere = {0};
    struct scenario_gpu gpu = {0};

    if (is_ours < 0)
        return -1;
    while (line->next < line->count) {
        const char *name = line_word(line, "key");
        const struct key *key = key_find(node_keys, name);
        int word = line->next;
        if (strcmp(name, "gpus") == 0) {
            if (read_gpu_count(line, scenario, is_ours) != 0)
                return -1;
        } else if (key) {
            if (read_value(line, key, is_ours ? scenario : &elsewhere) != 0)
                return -1;
        } else if ((key = key_find(gpu_keys, name)) != NULL) {
            if (read_value(line, key, &gpu) != 0)
                return -1;
            for (uint64_t i = 0; is_ours && i < scenario->gpu_count; i++) {
                line->next = word;
                (void)read_value(line, key, &scenario->gpus[i]);
            }
        } else {
            return line_fail(line, "%s is no key of a node", name);
        }
    }
    return 0;
}

/* gpu PATTERN INDEX [KEY VALUE]... */
int scenario_gpu_line(struct line *line, struct scenario *scenario)
{
    char pattern[SCENARIO_TEXT];
    struct scenario_gpu elsewhere = {0};
    uint64_t index = 0;
    int is_ours = line_node(line, scenario->node, pattern);

    if (is_ours < 0 ||
        line_number(line, "index", SCENARIO_GPUS_MAX - 1, &index) != 0)
        return -1;
    if (is_ours && index >= scenario->gpu_count)
        return line_fail(
            line, "%s has %llu GPUs, so none is %llu", scenario->node,
            (unsigned long long)scenario->gpu_count, (unsigned long long)index);
    while (line->next < line->count) {
        const char *name = line_word(line, "key");
        const struct key *key = key_find(gpu_keys, name);
        if (!key)
            return line_fail(line, "%s is no key of a GPU", name);
        if (read_value(line, key,
                       is_ours ? &scenario->gpus[index] : &elsewhere) != 0)
            return -1;
    }
    return 0;
}
