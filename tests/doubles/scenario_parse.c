/* SPDX-License-Identifier: Apache-2.0
 *
 * The grammar of a scenario: tables of keys, one function for each kind of
 * line. Lines for other nodes are read all the same, into a place that is
 * thrown away, so that a wrong line is found by every process. */
#include "tests/doubles/scenario_text.h"

#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    {NULL, NUMBER, 0, 0},
};

static const char *const point_names[POINT_COUNT] = {
    [POINT_FACTS] = "facts",
    [POINT_CUINIT] = "cuinit",
    [POINT_CONTEXT] = "context",
    [POINT_UID] = "uid",
    [POINT_INIT] = "init",
    [POINT_CONNECT] = "connect",
    [POINT_COLLECTIVE] = "collective",
    [POINT_ALLREDUCE] = "allreduce",
    [POINT_ALLGATHER] = "allgather",
    [POINT_REDUCESCATTER] = "reducescatter",
    [POINT_BROADCAST] = "broadcast",
    [POINT_SENDRECV] = "sendrecv",
    [POINT_FINALIZE] = "finalize",
    [POINT_DESTROY] = "destroy",
    [POINT_ABORT] = "abort",
};

static const struct {
    const char *name;
    int number;
} signals[] = {
    {"SEGV", SIGSEGV}, {"ABRT", SIGABRT}, {"BUS", SIGBUS},   {"FPE", SIGFPE},
    {"ILL", SIGILL},   {"KILL", SIGKILL}, {"TERM", SIGTERM}, {"STOP", SIGSTOP},
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

/* One of the words in `names`: its index, or -1. */
static int read_choice(struct line *line, const char *what,
                       const char *const names[], int count)
{
    const char *word = line_word(line, what);

    if (!word)
        return -1;
    for (int i = 0; i < count; i++)
        if (strcmp(word, names[i]) == 0)
            return i;
    return line_fail(line, "%s is no %s", word, what);
}

static int read_ms(struct line *line, uint64_t *ms)
{
    uint64_t ns = 0;
    int status = line_duration(line, "duration", &ns);

    *ms = ns / 1000000;
    return status;
}

static int read_forever(struct line *line, uint64_t *ms)
{
    if (line->next < line->count &&
        strcmp(line->words[line->next], "forever") == 0) {
        line->next++;
        *ms = UINT64_MAX;
        return 0;
    }
    return read_ms(line, ms);
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
        choice = read_choice(line, "on or off", words, 2);
        *number = choice > 0;
        return choice < 0 ? -1 : 0;
    case ECC:
        choice = read_choice(line, "on, off or none", words, 3);
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

/* --- node and gpu ------------------------------------------------------- */

/* Reads a pattern of node names: 1 when it is ours, 0, or -1. */
static int read_node(struct line *line, const struct scenario *scenario,
                     char pattern[SCENARIO_TEXT])
{
    if (line_text(line, "node", pattern) != 0)
        return -1;
    return fnmatch(pattern, scenario->node, 0) == 0;
}

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
static int read_node_line(struct line *line, struct scenario *scenario)
{
    char pattern[SCENARIO_TEXT];
    int is_ours = read_node(line, scenario, pattern);
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
static int read_gpu_line(struct line *line, struct scenario *scenario)
{
    char pattern[SCENARIO_TEXT];
    struct scenario_gpu elsewhere = {0};
    uint64_t index = 0;
    int is_ours = read_node(line, scenario, pattern);

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

/* --- link --------------------------------------------------------------- */

/* link [between PATTERN PATTERN] [latency TIME] [bandwidth RATE] */
static int read_link_line(struct line *line, struct scenario *scenario)
{
    struct scenario_link link = {.from = "*", .to = "*"};
    int status = 0;

    while (status == 0 && line->next < line->count) {
        const char *name = line_word(line, "key");
        if (strcmp(name, "between") == 0) {
            status = line_text(line, "node", link.from) != 0 ||
                     line_text(line, "node", link.to) != 0;
        } else if (strcmp(name, "latency") == 0) {
            status = line_duration(line, "duration", &link.latency_ns);
        } else if (strcmp(name, "bandwidth") == 0) {
            status = line_rate(line, "rate", &link.bytes_per_s);
        } else {
            return line_fail(line, "%s is no key of a link", name);
        }
    }
    if (status != 0)
        return -1;
    if (scenario->link_count == SCENARIO_LINKS_MAX)
        return line_fail(line, "more than %d links", SCENARIO_LINKS_MAX);
    scenario->links[scenario->link_count++] = link;
    return 0;
}

/* --- fault -------------------------------------------------------------- */

struct reading {
    struct scenario_fault fault;
    bool is_elsewhere; /* for another node */
    bool has_action;
    bool hides; /* missing-symbol */
    char symbol[SCENARIO_TEXT];
};

static int read_point(struct line *line, struct reading *reading)
{
    int point = read_choice(line, "point", point_names, POINT_COUNT);

    reading->fault.point = point < 0 ? POINT_INIT : (enum scenario_point)point;
    return point < 0 ? -1 : 0;
}

static int read_signal(struct line *line, int *number)
{
    const char *word = line_word(line, "signal");

    for (size_t i = 0; word && i < sizeof signals / sizeof signals[0]; i++)
        if (strcmp(signals[i].name, word) == 0) {
            *number = signals[i].number;
            return 0;
        }
    return word ? line_fail(line, "%s is no signal", word) : -1;
}

static int read_int(struct line *line, const char *what, int least, int *value)
{
    uint64_t number = 0;

    if (line_number(line, what, 1000000, &number) != 0)
        return -1;
    *value = (int)number;
    if (*value < least)
        return line_fail(line, "%s begins at %d", what, least);
    return 0;
}

/* Whom, where and when. 1: not a word of these. */
static int read_selector(struct line *line, const struct scenario *scenario,
                         const char *word, struct reading *reading)
{
    struct scenario_fault *fault = &reading->fault;
    char pattern[SCENARIO_TEXT];

    if (strcmp(word, "rank") == 0)
        return read_int(line, "rank", 0, &fault->rank);
    if (strcmp(word, "gpu") == 0)
        return read_int(line, "gpu", 0, &fault->gpu);
    if (strcmp(word, "call") == 0)
        return read_int(line, "call", 1, &fault->call);
    if (strcmp(word, "at") == 0)
        return read_point(line, reading);
    if (strcmp(word, "after") == 0)
        return read_ms(line, &fault->wait_ms);
    if (strcmp(word, "node") == 0) {
        int is_ours = read_node(line, scenario, pattern);
        reading->is_elsewhere = is_ours == 0;
        return is_ours < 0 ? -1 : 0;
    }
    return 1;
}

static int read_flip(struct line *line, struct scenario_fault *fault)
{
    uint64_t bit = 0;
    const char *word = line_word(line, "element");

    fault->point = POINT_ALLREDUCE;
    if (!word || strcmp(word, "element") != 0)
        return word ? line_fail(line, "%s is not element", word) : -1;
    if (line_number(line, "element", UINT64_MAX, &fault->element) != 0)
        return -1;
    word = line_word(line, "bit");
    if (!word || strcmp(word, "bit") != 0)
        return word ? line_fail(line, "%s is not bit", word) : -1;
    if (line_number(line, "bit", 63, &bit) != 0)
        return -1;
    fault->bit = (unsigned)bit;
    return 0;
}

static int read_action(struct line *line, const char *word,
                       struct reading *reading)
{
    static const char *const names[] = {
        [ACTION_NEVER_ARRIVES] = "never-arrives",
        [ACTION_LATE] = "late",
        [ACTION_HANG] = "hang",
        [ACTION_CODE] = "code",
        [ACTION_SIGNAL] = "signal",
        [ACTION_FLIP] = "flip",
        [ACTION_SLOW] = "slow",
    };
    struct scenario_fault *fault = &reading->fault;
    size_t action = 0;

    if (reading->has_action)
        return line_fail(line, "%s: a fault has one action", word);
    reading->has_action = true;
    if (strcmp(word, "missing-symbol") == 0) {
        reading->hides = true;
        return line_text(line, "symbol", reading->symbol);
    }
    while (action < sizeof names / sizeof names[0] &&
           strcmp(names[action], word) != 0)
        action++;
    fault->action = (enum scenario_action)action;
    switch (action) {
    case ACTION_NEVER_ARRIVES:
        return 0;
    case ACTION_LATE:
        return read_ms(line, &fault->wait_ms);
    case ACTION_HANG:
        return read_point(line, reading);
    case ACTION_CODE:
        return read_int(line, "code", 1, &fault->code);
    case ACTION_SIGNAL:
        return read_signal(line, &fault->signal);
    case ACTION_FLIP:
        return read_flip(line, fault);
    case ACTION_SLOW:
        return line_factor(line, "factor", &fault->factor);
    default:
        return line_fail(line, "%s is no word of a fault", word);
    }
}

/* What cannot be, though each word of it can. */
static int check_fault(struct line *line, const struct scenario *scenario,
                       const struct reading *reading)
{
    const struct scenario_fault *fault = &reading->fault;

    if (!reading->has_action)
        return line_fail(line, "a fault without an action");
    if (!reading->hides && fault->point <= POINT_UID &&
        fault->rank != SCENARIO_ANY)
        return line_fail(line, "no rank is known at %s: choose by node and gpu",
                         point_names[fault->point]);
    if (fault->action == ACTION_FLIP &&
        (fault->point < POINT_COLLECTIVE || fault->point > POINT_BROADCAST))
        return line_fail(line, "nothing to flip at %s",
                         point_names[fault->point]);
    if (fault->action == ACTION_SLOW && scenario->link_count == 0)
        return line_fail(line, "slow needs a link line before it");
    return 0;
}

/* fault [WHOM] ACTION [WHERE AND WHEN], in any order. */
static int read_fault_line(struct line *line, struct scenario *scenario)
{
    struct reading reading = {.fault = {.point = POINT_INIT,
                                        .rank = SCENARIO_ANY,
                                        .gpu = SCENARIO_ANY,
                                        .call = SCENARIO_ANY}};

    while (line->next < line->count) {
        const char *word = line_word(line, "word");
        int status = read_selector(line, scenario, word, &reading);
        if (status == 1)
            status = read_action(line, word, &reading);
        if (status != 0)
            return -1;
    }
    if (check_fault(line, scenario, &reading) != 0)
        return -1;
    if (reading.is_elsewhere)
        return 0;
    if (reading.hides) {
        if (scenario->hidden_count == SCENARIO_HIDDEN_MAX)
            return line_fail(line, "more than %d symbols", SCENARIO_HIDDEN_MAX);
        memcpy(scenario->hidden[scenario->hidden_count++], reading.symbol,
               SCENARIO_TEXT);
        return 0;
    }
    if (scenario->fault_count == SCENARIO_FAULTS_MAX)
        return line_fail(line, "more than %d faults", SCENARIO_FAULTS_MAX);
    scenario->faults[scenario->fault_count++] = reading.fault;
    return 0;
}

/* --- The file ----------------------------------------------------------- */

static int read_line(struct line *line, struct scenario *scenario)
{
    const char *word = line_word(line, "line");

    if (strcmp(word, "node") == 0)
        return read_node_line(line, scenario);
    if (strcmp(word, "gpu") == 0)
        return read_gpu_line(line, scenario);
    if (strcmp(word, "link") == 0)
        return read_link_line(line, scenario);
    if (strcmp(word, "fault") == 0)
        return read_fault_line(line, scenario);
    return line_fail(line, "%s is not node, gpu, link or fault", word);
}

int scenario_parse(struct scenario *scenario, const char *text,
                   const char *node, char error[SCENARIO_ERROR])
{
    struct line line = {.error = error};

    *scenario = (struct scenario){.cuda = 13000,
                                  .nccl = 22809,
                                  .context_bytes = 512ull << 20,
                                  .driver = "580.95.05",
                                  .nvml = "13.580.95.05"};
    (void)snprintf(scenario->node, sizeof scenario->node, "%s", node);
    while (*text) {
        if (line_cut(&line, &text) != 0 ||
            (line.count > 0 && read_line(&line, scenario) != 0)) {
            scenario_release(scenario);
            return -1;
        }
    }
    return 0;
}

void scenario_release(struct scenario *scenario)
{
    free(scenario->gpus);
    *scenario = (struct scenario){0};
}
