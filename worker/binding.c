/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/binding.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "worker/mask.h"

enum { CPU_WORDS = STARTSPEC_CPU_WORDS, NODE_WORDS = STARTSPEC_NODE_WORDS };

/* Of which at least one processor is allowed: a run of the machine's. */
struct core {
    uint32_t first_pu;
    uint32_t end_pu;
    uint16_t node;
};

/* A run of cores in one NUMA node. */
struct patch {
    size_t first;
    size_t end;
};

struct work {
    const struct binding_input *in;
    struct binding *b;
    struct core *cores;
    size_t core_count;
    struct patch *patches;
    size_t patch_count;
    uint64_t slots; /* ranks of the host, were all its nodes as this one */
};

__attribute__((format(printf, 2, 3))) static void note(struct binding *b,
                                                       const char *format, ...)
{
    va_list list;
    if (b->notice_count < BINDING_NOTICES_MAX) {
        va_start(list, format);
        vsnprintf(b->notices[b->notice_count++], BINDING_NOTICE_BYTES, format,
                  list);
        va_end(list);
    }
}

static void leave(struct work *w, uint32_t rank)
{
    memcpy(w->b->places[rank].cpus, w->in->allowed,
           sizeof(w->b->places[rank].cpus));
}

static void leave_all(struct work *w)
{
    for (uint32_t i = 0; i < w->in->rank_count; i++) {
        leave(w, i);
    }
}

/* ---- the machine --------------------------------------------------------- */

static bool is_allowed(const struct work *w, const struct binding_pu *pu)
{
    return mask_has(w->in->allowed, CPU_WORDS, pu->cpu);
}

static void add_core(struct work *w, uint32_t first, uint32_t end)
{
    uint16_t node = w->in->machine->pus[first].node;
    struct core *core = &w->cores[w->core_count];
    struct patch *patch = &w->patches[w->patch_count];
    *core = (struct core){first, end, node};
    if (w->core_count == 0 || core[-1].node != node) {
        w->patch_count++;
        *patch = (struct patch){w->core_count, w->core_count};
    } else {
        patch--;
    }
    w->core_count++;
    patch->end = w->core_count;
}

static void find_cores(struct work *w)
{
    const struct binding_machine *m = w->in->machine;
    uint32_t end;
    for (uint32_t first = 0; first < m->pu_count; first = end) {
        bool has_allowed = false;
        for (end = first;
             end < m->pu_count && m->pus[end].core == m->pus[first].core;
             end++) {
            has_allowed |= is_allowed(w, &m->pus[end]);
        }
        if (has_allowed) {
            add_core(w, first, end);
        }
    }
}

/* The even run of cores of a local rank: it begins here, and ends where that of
 * the next begins. All nodes of a host agree about their bounds, even with
 * unequal numbers of ranks. */
static size_t first_core(const struct work *w, uint64_t rank)
{
    uint64_t slot = (uint64_t)w->in->host_node_index * w->in->rank_count + rank;
    return (size_t)(w->core_count * slot / w->slots);
}

static size_t middle_core(const struct work *w, uint64_t rank)
{
    uint64_t slot = (uint64_t)w->in->host_node_index * w->in->rank_count + rank;
    return (size_t)(w->core_count * (2 * slot + 1) / (2 * w->slots));
}

static void give(struct work *w, uint32_t rank, size_t first, size_t end)
{
    struct binding_place *place = &w->b->places[rank];
    for (size_t i = first; i < end; i++) {
        const struct core *core = &w->cores[i];
        for (uint32_t p = core->first_pu; p < core->end_pu; p++) {
            const struct binding_pu *pu = &w->in->machine->pus[p];
            if (is_allowed(w, pu)) {
                mask_add(place->cpus, CPU_WORDS, pu->cpu);
            }
        }
        mask_add(place->nodes, NODE_WORDS, core->node);
    }
}

/* ---- core ---------------------------------------------------------------- */

static void bind_cores(struct work *w)
{
    if (w->slots > w->core_count) {
        note(w->b,
             "--bind core: %llu ranks on %zu core%s of a host: several ranks "
             "share a core",
             (unsigned long long)w->slots, w->core_count,
             gpul_plural(w->core_count));
    }
    for (uint32_t i = 0; i < w->in->rank_count; i++) {
        size_t first = first_core(w, i);
        size_t end = first_core(w, (uint64_t)i + 1);
        give(w, i, first, end > first ? end : first + 1);
    }
}

/* ---- numa ---------------------------------------------------------------- */

static bool is_within(size_t first, size_t end, size_t core)
{
    return first <= core && core < end;
}

static void give_patches(struct work *w, uint32_t rank)
{
    size_t middle = middle_core(w, rank);
    size_t first = first_core(w, rank);
    size_t end = first_core(w, (uint64_t)rank + 1);
    bool takes_several = w->slots < w->patch_count;
    for (size_t i = 0; i < w->patch_count; i++) {
        const struct patch *p = &w->patches[i];
        size_t heart = p->first + (p->end - p->first) / 2;
        if (is_within(p->first, p->end, middle) ||
            (takes_several && is_within(first, end, heart))) {
            give(w, rank, p->first, p->end);
        }
    }
}

/* Bound memory makes a difference only where there is another. */
static void bind_memory(struct work *w)
{
    const uint64_t *all = w->in->machine->memory_nodes;
    if (mask_count(all, NODE_WORDS) < 2) {
        return;
    }
    if (!w->in->can_bind_memory) {
        note(w->b, "--bind numa: processors are bound, memory is not: this "
                   "system lets no process choose its memory's NUMA node (in a "
                   "container, it takes CAP_SYS_NICE)");
        return;
    }
    for (uint32_t i = 0; i < w->in->rank_count; i++) {
        struct binding_place *place = &w->b->places[i];
        mask_meet(place->nodes, all, NODE_WORDS);
        place->has_nodes = !mask_is_empty(place->nodes, NODE_WORDS);
    }
}

static void bind_numa(struct work *w)
{
    for (uint32_t i = 0; i < w->in->rank_count; i++) {
        give_patches(w, i);
    }
    bind_memory(w);
}

static int bind_by_machine(struct work *w, struct gpul_error *err)
{
    const char *name = w->in->kind == BINDING_CORE ? "core" : "numa";
    if (w->in->machine == NULL) {
        note(w->b, "--bind %s: no rank is bound: %s", name, w->in->no_machine);
        leave_all(w);
        return 0;
    }
    size_t most = w->in->machine->pu_count + 1;
    w->cores = calloc(most, sizeof(*w->cores));
    w->patches = calloc(most, sizeof(*w->patches));
    if (w->cores == NULL || w->patches == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory to bind ranks");
    }
    find_cores(w);
    if (w->core_count == 0) {
        note(w->b,
             "--bind %s: no rank is bound: hwloc shows none of the processors "
             "that this node may use",
             name);
        leave_all(w);
    } else if (w->in->kind == BINDING_CORE) {
        bind_cores(w);
    } else {
        bind_numa(w);
    }
    return 0;
}

/* ---- gpu ----------------------------------------------------------------- */

/* GPUs about which something is to be said: the first, and how many. */
struct oddity {
    const struct binding_gpu *gpu;
    uint32_t ranks;
};

static void count(struct oddity *o, const struct binding_gpu *gpu)
{
    o->gpu = o->ranks == 0 ? gpu : o->gpu;
    o->ranks++;
}

/* Returns a GPU of the rank whose place is not known, or NULL. */
static const struct binding_gpu *join_gpus(struct work *w, uint32_t rank)
{
    const struct gpu_choice *seen = &w->in->visible[rank];
    size_t own = rank % seen->count;
    size_t first = seen->count * rank / w->in->rank_count;
    size_t end = seen->count * ((size_t)rank + 1) / w->in->rank_count;
    const struct binding_gpu *lost = NULL;
    for (size_t i = 0; i < seen->count; i++) {
        const struct binding_gpu *gpu = &w->in->gpus[seen->picks[i]];
        bool shares = w->in->rank_count < seen->count;
        if (i == own || (shares && is_within(first, end, i))) {
            mask_join(w->b->places[rank].cpus, gpu->cpus, CPU_WORDS);
            lost = gpu->has_node ? lost : gpu;
        }
    }
    return lost;
}

static void note_gpus(struct work *w, const struct oddity *far,
                      const struct oddity *lost, uint32_t blind)
{
    if (blind > 0) {
        note(
            w->b,
            "--bind gpu: ranks that see no GPU whose place could be found, and "
            "are not bound for that reason: %u",
            blind);
    }
    if (far->ranks > 0) {
        note(w->b,
             "--bind gpu: no processor near GPU %s is among those that this "
             "node may use; ranks that are not bound for that reason: %u",
             far->gpu->bus_id, far->ranks);
    }
    if (lost->ranks > 0 && !w->in->has_one_node) {
        note(w->b,
             "--bind gpu: the kernel does not know the NUMA node of GPU %s; "
             "ranks that are not bound for that reason: %u",
             lost->gpu->bus_id, lost->ranks);
    }
}

static void bind_gpus(struct work *w)
{
    struct oddity far = {NULL, 0};
    struct oddity lost = {NULL, 0};
    uint32_t blind = 0;
    for (uint32_t i = 0; i < w->in->rank_count; i++) {
        struct binding_place *place = &w->b->places[i];
        const struct gpu_choice *seen = &w->in->visible[i];
        if (seen->count == 0) {
            blind++;
            leave(w, i);
            continue;
        }
        const struct binding_gpu *unknown = join_gpus(w, i);
        if (unknown != NULL) {
            count(&lost, unknown);
            leave(w, i);
            continue;
        }
        mask_meet(place->cpus, w->in->allowed, CPU_WORDS);
        if (mask_is_empty(place->cpus, CPU_WORDS)) {
            count(&far, &w->in->gpus[seen->picks[i % seen->count]]);
            leave(w, i);
        }
    }
    note_gpus(w, &far, &lost, blind);
}

/* -------------------------------------------------------------------------- */

void binding_destroy(struct binding *b)
{
    if (b != NULL) {
        free(b->places);
        free(b);
    }
}

int binding_create(struct binding **out, const struct binding_input *in,
                   struct gpul_error *err)
{
    assert(in->kind != BINDING_NONE && in->rank_count > 0);
    assert(in->host_node_index < in->host_node_count);
    struct work w = {.in = in};
    *out = NULL;
    w.slots = (uint64_t)in->host_node_count * in->rank_count;
    w.b = calloc(1, sizeof(*w.b));
    if (w.b != NULL) {
        w.b->rank_count = in->rank_count;
        w.b->places = calloc(in->rank_count, sizeof(*w.b->places));
    }
    int rc = 0;
    if (w.b == NULL || w.b->places == NULL) {
        rc = gpul_fail(err, GPUL_ENOMEM, "out of memory to bind ranks");
    } else if (in->kind == BINDING_GPU) {
        bind_gpus(&w);
    } else {
        rc = bind_by_machine(&w, err);
    }
    free(w.cores);
    free(w.patches);
    if (rc != 0) {
        binding_destroy(w.b);
        return rc;
    }
    *out = w.b;
    return 0;
}

int binding_text(struct gpul_buf *cpus, struct gpul_buf *nodes,
                 const struct binding *b, uint32_t local_rank)
{
    if (b == NULL) {
        return 0;
    }
    const struct binding_place *p = &b->places[local_rank];
    int rc = mask_format(cpus, p->cpus, CPU_WORDS);
    if (rc == 0 && p->has_nodes) {
        rc = mask_format(nodes, p->nodes, NODE_WORDS);
    }
    return rc;
}
