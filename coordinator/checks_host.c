/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules on limits, memory, processors, environment and storage of one node.
 */
#include <math.h>
#include <string.h>

#include "common/units.h"
#include "coordinator/checks_inside.h"

/* MemTotal lacks what firmware and kernel keep: a node that was bought with
 * exactly the ratio would fail without. */
#define TOLERANCE 1.03

enum {
    /* What NCCL extends a segment of /dev/shm to, as its message says ("Failed
     * to extend ... to 9637888 bytes"): the buffers of one channel to one
     * neighbour. A rank of a ring has two neighbours. */
    SHM_SEGMENT_BYTES = 9637888,
    SHM_NEIGHBOURS = 2,
    SHM_CHANNELS = 4, /* that NCCL usually uses over shared memory */
    /* The default of containers; data loaders fill it alone. */
    SHM_CONTAINER_BYTES = 64 << 20,

    FILES_MIN = 1024,    /* the old default of a soft limit */
    FILES_ENOUGH = 4096, /* files of data, pipes, libraries, and room */
    FILES_OF_PEER = 4,   /* control and data, to and from it */

    /* Of a rank: NCCL's threads, data loaders and their pools. */
    THREADS_OF_RANK = 128,
    STACK_BYTES = 8 << 20, /* Linux's default */
};

/* ---- limits -------------------------------------------------------------- */

enum check_severity check_shm(struct look *look)
{
    double size, unused;
    if (!look_number(look, &size, "shm.size") ||
        !look_number(look, &unused, "shm.free")) {
        return CHECK_UNKNOWN;
    }
    double ranks = look->need->node_ranks;
    double one = ranks > 1 ? ranks * SHM_NEIGHBOURS * SHM_SEGMENT_BYTES : 0;
    double all = one * SHM_CHANNELS;
    struct text total, wanted;
    look_size(&look->value, unused);
    look_size(&total, size);
    text_append(&look->value, " free of %s", total.bytes);
    bool is_default = size <= SHM_CONTAINER_BYTES;
    look_size(&wanted, all > SHM_CONTAINER_BYTES ? all : SHM_CONTAINER_BYTES);
    text_format(&look->expected, "%s%s free", is_default ? "more than " : "",
                wanted.bytes);
    if (unused < one || (is_default && ranks > 1)) {
        return CHECK_FAIL;
    }
    return unused < all || is_default ? CHECK_WARN : CHECK_PASS;
}

enum check_severity check_memlock(struct look *look)
{
    double ports, hard;
    if (!look_number(look, &ports, "rdma.ports")) {
        return CHECK_UNKNOWN;
    }
    if (ports == 0) {
        return CHECK_NONE;
    }
    if (!look_number(look, &hard, "limit.memlock.hard")) {
        return CHECK_UNKNOWN;
    }
    look_size(&look->value, hard);
    text_format(&look->expected, "unlimited");
    return isinf(hard) ? CHECK_PASS : CHECK_FAIL;
}

/* Ranks get the hard limit. */
enum check_severity check_nofile(struct look *look)
{
    double hard;
    if (!look_number(look, &hard, "limit.nofile.hard")) {
        return CHECK_UNKNOWN;
    }
    double need = FILES_MIN + (double)FILES_OF_PEER * look->need->job_ranks;
    need = need > FILES_ENOUGH ? need : FILES_ENOUGH;
    text_format(&look->value, isinf(hard) ? "no limit" : "%.0f", hard);
    text_format(&look->expected, "%.0f", need);
    if (hard < FILES_MIN) {
        return CHECK_FAIL;
    }
    return hard < need ? CHECK_WARN : CHECK_PASS;
}

enum check_severity check_processes(struct look *look)
{
    double user, group, cores;
    if (!look_number(look, &user, "limit.nproc.soft") ||
        !look_number(look, &group, "pids.limit") ||
        !look_number(look, &cores, "cpu.allowed")) {
        return CHECK_UNKNOWN;
    }
    double least = user < group ? user : group;
    double need = 2 * cores + (double)THREADS_OF_RANK * look->need->node_ranks;
    text_format(&look->value, isinf(least) ? "no limit" : "%.0f%s", least,
                group < user ? " (pids of its cgroup)" : " (ulimit -u)");
    text_format(&look->expected, "%.0f", need);
    return least < need ? CHECK_WARN : CHECK_PASS;
}

enum check_severity check_stack(struct look *look)
{
    double soft;
    if (!look_number(look, &soft, "limit.stack.soft")) {
        return CHECK_UNKNOWN;
    }
    look_size(&look->value, soft);
    text_format(&look->expected, "8 MiB");
    return soft < STACK_BYTES ? CHECK_WARN : CHECK_PASS;
}

/* ---- processors ---------------------------------------------------------- */

enum check_severity check_cores(struct look *look)
{
    double online, allowed;
    if (!look_number(look, &online, "cpu.online") ||
        !look_number(look, &allowed, "cpu.allowed")) {
        return CHECK_UNKNOWN;
    }
    uint32_t ranks = look->need->node_ranks;
    text_format(&look->value, "%.0f of %.0f processors for %u rank%s", allowed,
                online, ranks, gpul_plural(ranks));
    text_format(&look->expected, "one a rank at least");
    return allowed < ranks ? CHECK_WARN : CHECK_PASS;
}

/* A quota stops all threads of a rank within each period. */
enum check_severity check_quota(struct look *look)
{
    double quota, allowed;
    if (!look_number(look, &quota, "cpu.quota") ||
        !look_number(look, &allowed, "cpu.allowed")) {
        return CHECK_UNKNOWN;
    }
    if (isinf(quota)) {
        return CHECK_PASS;
    }
    text_format(&look->value, "time of %.4g of %.0f processors", quota,
                allowed);
    text_format(&look->expected, "no quota below its processors");
    return quota < allowed ? CHECK_WARN : CHECK_PASS;
}

enum check_severity check_governor(struct look *look)
{
    const char *governor = look_text(look, "os.governor");
    if (governor == NULL) {
        return CHECK_UNKNOWN;
    }
    if (strcmp(governor, "none") == 0) {
        return CHECK_NONE; /* a virtual machine has none, mostly */
    }
    text_format(&look->value, "%.100s", governor);
    text_format(&look->expected, "performance");
    return strstr(governor, "powersave") != NULL ? CHECK_WARN : CHECK_PASS;
}

/* The others are read through the chipset: each look costs microseconds. */
enum check_severity check_clock_source(struct look *look)
{
    static const char *const slow[] = {"hpet", "acpi_pm", "jiffies", "refined"};
    const char *source = look_text(look, "os.clock_source");
    if (source == NULL) {
        return CHECK_UNKNOWN;
    }
    text_format(&look->value, "%.40s", source);
    text_format(&look->expected, "tsc, or that of its hypervisor");
    for (size_t i = 0; i < sizeof(slow) / sizeof(slow[0]); i++) {
        if (strncmp(source, slow[i], strlen(slow[i])) == 0) {
            return CHECK_WARN;
        }
    }
    return CHECK_PASS;
}

/* ---- memory -------------------------------------------------------------- */

/* What is swapped out already is what training will wait for. */
enum check_severity check_swap(struct look *look)
{
    double used, total;
    if (!look_number(look, &used, "memory.swap_used") ||
        !look_number(look, &total, "memory.total")) {
        return CHECK_UNKNOWN;
    }
    look_size(&look->value, used);
    text_append(&look->value, " swapped out");
    text_format(&look->expected, "less than 1 %% of its memory");
    return used * 100 >= total && used > 0 ? CHECK_WARN : CHECK_PASS;
}

/* In a container its limit counts, not what the host has. */
enum check_severity check_memory(struct look *look)
{
    double total, limit, gpus;
    if (!look_number(look, &gpus, "gpu.memory")) {
        return CHECK_UNKNOWN;
    }
    if (isinf(gpus) || gpus == 0) {
        return CHECK_NONE; /* there is no GPU */
    }
    if (!look_number(look, &total, "memory.total") ||
        !look_number(look, &limit, "memory.limit")) {
        return CHECK_UNKNOWN;
    }
    struct text of_gpus;
    double host = limit < total ? limit : total;
    look_size(&look->value, host);
    look_size(&of_gpus, gpus);
    text_append(&look->value, " for %s of its GPUs, %.2f times", of_gpus.bytes,
                host / gpus);
    text_format(&look->expected, "%.2f times or more",
                look->need->memory_ratio);
    double ratio = host * TOLERANCE / gpus;
    if (ratio >= look->need->memory_ratio) {
        return CHECK_PASS;
    }
    return ratio >= 1 ? CHECK_WARN : CHECK_FAIL;
}

/* ---- what is to run ------------------------------------------------------ */

enum check_severity check_command(struct look *look)
{
    static const char missing[] = "missing: ";
    if (!look_was_asked(look->survey, "command.path")) {
        return CHECK_NONE; /* none was given */
    }
    const char *path = look_text(look, "command.path");
    if (path == NULL) {
        return CHECK_UNKNOWN;
    }
    if (strncmp(path, missing, strlen(missing)) != 0) {
        return CHECK_PASS;
    }
    text_format(&look->value, "none that can be executed: %s",
                path + strlen(missing));
    text_format(&look->expected, "an executable file");
    return CHECK_FAIL;
}

/* NCCL's documentation: what these do when they are set. */
enum check_severity check_variables(struct look *look)
{
    static const char *const names[] = {"NCCL_COMM_ID", "NCCL_COMM_BLOCKING",
                                        "NCCL_IB_GID_INDEX"};
    text_format(&look->value, "%s", "");
    text_format(&look->expected, "not set");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct text key;
        text_format(&key, "env.%s", names[i]);
        const Gpul__Fact *fact = look_fact(look->survey, key.bytes);
        if (fact != NULL) {
            text_append(&look->value, "%s%s=%.40s",
                        look->value.bytes[0] != 0 ? " " : "", names[i],
                        fact->value);
        }
    }
    if (look->value.bytes[0] != 0) {
        return CHECK_WARN;
    }
    /* Not among them only if they were read at all. */
    return look_text(look, "environment.count") != NULL ? CHECK_PASS
                                                        : CHECK_UNKNOWN;
}

/* ---- storage ------------------------------------------------------------- */

static enum check_severity judge_reading(struct look *look, const char *key,
                                         const char *cached)
{
    double rate;
    if (!look_was_asked(look->survey, "data.path")) {
        return CHECK_NONE; /* no --data-dir */
    }
    const Gpul__Fact *fact = look_fact(look->survey, key);
    if (fact != NULL && strcmp(fact->value, "none") == 0) {
        return CHECK_NONE; /* no such files */
    }
    const char *from_cache = look_text(look, cached);
    if (from_cache == NULL || !look_number(look, &rate, key)) {
        return CHECK_UNKNOWN;
    }
    uint32_t ranks = look->need->node_ranks;
    double need = look->need->data_bytes_per_s * ranks;
    text_format(&look->value, "%.1f MB/s", rate / 1e6);
    text_format(&look->expected, "%.1f MB/s for %u rank%s", need / 1e6, ranks,
                gpul_plural(ranks));
    if (strcmp(from_cache, "yes") == 0) {
        text_append(&look->value,
                    " out of the page cache, which says nothing of the "
                    "storage");
        return CHECK_UNKNOWN;
    }
    return rate < need ? CHECK_WARN : CHECK_PASS;
}

enum check_severity check_sequential(struct look *look)
{
    return judge_reading(look, "data.sequential", "data.sequential_is_cached");
}

enum check_severity check_small_files(struct look *look)
{
    return judge_reading(look, "data.small_files",
                         "data.small_files_are_cached");
}
