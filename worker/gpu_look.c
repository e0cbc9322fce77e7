/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/gpu_look.h"

#include <stdio.h>
#include <string.h>

#include "common/buf.h"
#include "common/units.h"
#include "proto/text.h"
#include "worker/gpu_visible.h"
#include "worker/mask.h"

enum {
    PERCENT = 100,
    /* Per cent of the time that a GPU is busy, that its memory is, and of its
     * power limit. */
    IDLE_BELOW = 5,
    BUSY_FROM = 95,
    MEMORY_BELOW = 10,
    LOW_POWER_BELOW = 50,

    NAMES_BYTES = 24,  /* of a list of GPUs */
    TEXT_BYTES = 1024, /* before it is cut */
};

_Static_assert(GPU_DEVICES_MAX <= 64, "one bit of a mask for each device");

static const struct {
    const char *one;
    const char *many;
} predicates[GPU_LOOK_STATE_COUNT] = {
    [GPU_LOOK_UNKNOWN] = {"is in an unknown state", "are in an unknown state"},
    [GPU_LOOK_IDLE] = {"is idle", "are idle"},
    [GPU_LOOK_PARTLY] = {"is busy for part of the time",
                         "are busy for part of the time"},
    [GPU_LOOK_WORKS] = {"works (busy at high power)",
                        "work (busy at high power)"},
    [GPU_LOOK_BUSY] = {"is busy (works or waits)", "are busy (work or wait)"},
    [GPU_LOOK_SPINS] =
        {"spins (busy at low power, as while NCCL waits for another rank)",
         "spin (busy at low power, as while NCCL waits for another rank)"},
};

/* ---- what a GPU does ----------------------------------------------------- */

enum gpu_look_state gpu_look_judge(const struct gpu_device *d)
{
    uint64_t use, memory_use, power, limit;
    if (d->error[0] != 0 || !gpu_device_get(d, GPU_USE, &use)) {
        return GPU_LOOK_UNKNOWN;
    }
    if (use < IDLE_BELOW) {
        return GPU_LOOK_IDLE;
    }
    if (use < BUSY_FROM) {
        return GPU_LOOK_PARTLY;
    }
    if (!gpu_device_get(d, GPU_POWER, &power) ||
        !gpu_device_get(d, GPU_POWER_LIMIT, &limit) || limit == 0) {
        return GPU_LOOK_BUSY;
    }
    if (power * PERCENT >= limit * LOW_POWER_BELOW) {
        return GPU_LOOK_WORKS;
    }
    return gpu_device_get(d, GPU_MEMORY_USE, &memory_use) &&
                   memory_use < MEMORY_BELOW
               ? GPU_LOOK_SPINS
               : GPU_LOOK_BUSY;
}

/* Why that is not known. */
static const char *reason_of(const struct gpu_device *d)
{
    uint64_t is_parted;
    if (d->error[0] != 0) {
        return d->error;
    }
    if (d->is_slice ||
        (gpu_device_get(d, GPU_MIG_ON, &is_parted) && is_parted != 0)) {
        return "MIG: NVML tells no utilisation of parts";
    }
    return "NVML does not tell its utilisation";
}

/* ---- which GPUs are whose ------------------------------------------------ */

/* GPUs of a rank, by place in the look. */
struct share {
    uint64_t members;
    bool is_own; /* it has a process on each, or there is but one */
};

static bool has(uint64_t members, size_t place)
{
    return (members >> place & 1) != 0;
}

/* A GPU in parts lists the processes of its parts too. */
static uint64_t without_parted(const struct gpu_look *look, uint64_t members)
{
    for (size_t i = 0; i < look->count; i++) {
        const struct gpu_device *d = &look->devices[i];
        uint64_t is_parted;
        if (!d->is_slice && gpu_device_get(d, GPU_MIG_ON, &is_parted) &&
            is_parted != 0) {
            members &= ~(UINT64_C(1) << i);
        }
    }
    return members;
}

static bool has_number(const char *visible)
{
    while (*visible != 0) {
        visible += strspn(visible, " ,");
        if (*visible >= '0' && *visible <= '9') {
            return true;
        }
        visible += strcspn(visible, ",");
    }
    return false;
}

static bool are_models_mixed(const struct gpu_look *look)
{
    for (size_t i = 1; i < look->count; i++) {
        if (!look->devices[i].is_slice &&
            strcmp(look->devices[i].model, look->devices[0].model) != 0) {
            return true;
        }
    }
    return false;
}

/* CUDA's numbers may be others than NVML's: then one means any GPU. */
static const char *visible_of(const struct gpu_look *look,
                              const struct gpu_look_rank *rank)
{
    bool is_unclear = rank->visible != NULL && !rank->has_bus_order &&
                      has_number(rank->visible) && are_models_mixed(look);
    return is_unclear ? NULL : rank->visible;
}

static struct share share_of(const struct gpu_look *look,
                             const struct gpu_look_rank *rank)
{
    struct share s = {without_parted(look, rank->own), true};
    struct gpu_choice choice;
    if (rank->own != 0) {
        s.members = s.members != 0 ? s.members : rank->own;
        return s;
    }
    gpu_visible_choose(&choice, look->devices, look->count,
                       visible_of(look, rank));
    for (size_t i = 0; i < choice.count; i++) {
        s.members |= UINT64_C(1) << choice.picks[i];
    }
    s.is_own = choice.count == 1;
    return s;
}

/* It is to see none, and has none. */
static bool has_none(const struct gpu_look *look,
                     const struct gpu_look_rank *rank)
{
    struct gpu_choice choice;
    gpu_visible_choose(&choice, look->devices, look->count, rank->visible);
    return rank->own == 0 && rank->visible != NULL && choice.count == 0 &&
           choice.refused[0] == 0;
}

/* ---- words --------------------------------------------------------------- */

/* "GPUs 0-2,5", by NVML's numbers, which nvidia-smi shows too; "12 GPUs" where
 * that would be long. */
static void append_names(struct gpul_buf *out, const struct gpu_look *look,
                         uint64_t members)
{
    struct gpul_buf names;
    uint64_t numbers = 0;
    for (size_t i = 0; i < look->count; i++) {
        if (has(members, i)) {
            mask_add(&numbers, 1, look->devices[i].index);
        }
    }
    size_t count = mask_count(&members, 1);
    gpul_buf_init(&names, NAMES_BYTES);
    mask_format(&names, &numbers, 1);
    const char *text = names.is_failed ? NULL : gpul_buf_text(&names);
    if (text != NULL) {
        gpul_buf_appendf(out, "GPU%s %s", gpul_plural(count), text);
    } else {
        gpul_buf_appendf(out, "%zu GPUs", count);
    }
    gpul_buf_release(&names);
}

/* With its number only where nvidia-smi is the next thing to ask: else ranks
 * that look alike would look different. */
static void append_one(struct gpul_buf *out, const struct gpu_device *d)
{
    enum gpu_look_state state = gpu_look_judge(d);
    if (state == GPU_LOOK_UNKNOWN) {
        gpul_buf_appendf(out, "its GPU %u %s (%s)", d->index,
                         predicates[state].one, reason_of(d));
    } else {
        gpul_buf_appendf(out, "its GPU %s", predicates[state].one);
    }
}

static void append_groups(struct gpul_buf *out, const struct gpu_look *look,
                          const uint64_t *groups)
{
    const char *separator = ": ";
    for (int state = 0; state < GPU_LOOK_STATE_COUNT; state++) {
        if (groups[state] != 0) {
            bool is_one = mask_count(&groups[state], 1) == 1;
            gpul_buf_append_text(out, separator);
            append_names(out, look, groups[state]);
            gpul_buf_appendf(out, " %s",
                             is_one ? predicates[state].one
                                    : predicates[state].many);
            separator = ", ";
        }
    }
}

static void append_several(struct gpul_buf *out, const struct gpu_look *look,
                           const struct share *share)
{
    uint64_t groups[GPU_LOOK_STATE_COUNT] = {0};
    enum gpu_look_state state = GPU_LOOK_UNKNOWN;
    for (size_t i = 0; i < look->count; i++) {
        if (has(share->members, i)) {
            state = gpu_look_judge(&look->devices[i]);
            groups[state] |= UINT64_C(1) << i;
        }
    }
    size_t count = mask_count(&share->members, 1);
    gpul_buf_appendf(
        out, share->is_own ? "its %zu GPUs" : "the %zu GPUs that it may use",
        count);
    if (groups[state] == share->members) {
        gpul_buf_appendf(out, " %s", predicates[state].many);
    } else {
        append_groups(out, look, groups);
    }
}

static void append_share(struct gpul_buf *out, const struct gpu_look *look,
                         const struct gpu_look_rank *rank)
{
    const struct share share = share_of(look, rank);
    size_t count = mask_count(&share.members, 1);
    if (count == 0) {
        gpul_buf_append_text(out, "GPU state unknown: no GPU is what its "
                                  "CUDA_VISIBLE_DEVICES names");
    } else if (count > 1) {
        append_several(out, look, &share);
    } else {
        for (size_t i = 0; i < look->count; i++) {
            if (has(share.members, i)) {
                append_one(out, &look->devices[i]);
            }
        }
    }
}

void gpu_look_words(char out[GPUL_FINDING_BYTES_MAX + 1],
                    const struct gpu_look *look,
                    const struct gpu_look_rank *rank)
{
    struct gpul_buf text;
    out[0] = 0;
    bool is_empty = look->count == 0 && look->error[0] == 0;
    if (is_empty || has_none(look, rank)) {
        return;
    }
    gpul_buf_init(&text, TEXT_BYTES);
    gpul_buf_append_text(&text, look->is_simulated ? "SIMULATED: " : "");
    if (look->error[0] != 0) {
        gpul_buf_appendf(&text, "GPU state unknown: %s", look->error);
    } else {
        append_share(&text, look, rank);
    }
    const char *line = gpul_buf_text(&text);
    snprintf(out, GPUL_FINDING_BYTES_MAX + 1, "%s", line != NULL ? line : "");
    gpul_text_clean_line(out, GPUL_FINDING_BYTES_MAX);
    gpul_buf_release(&text);
}
