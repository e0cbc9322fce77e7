/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/facts.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int facts_init(struct facts *f, uint32_t node_count)
{
    *f = (struct facts){
        .node_count = node_count,
        .rates = {.link_gbps = UINT32_MAX,
                  .host_gbps = UINT32_MAX,
                  .nics_gbps = UINT32_MAX,
                  .nics = UINT32_MAX},
    };
    f->first_ranks = calloc(node_count + 1, sizeof(*f->first_ranks));
    f->uuids = calloc(node_count, sizeof(*f->uuids));
    return f->first_ranks != NULL && f->uuids != NULL ? 0 : GPUL_ENOMEM;
}

void facts_release(struct facts *f)
{
    for (uint32_t i = 0; f->uuids != NULL && i < f->node_count; i++) {
        free(f->uuids[i]);
    }
    free(f->uuids);
    free(f->first_ranks);
    tally_release(&f->unusable);
    tally_release(&f->versions);
    tally_release(&f->builds);
    tally_release(&f->drivers);
    tally_release(&f->kernels);
    tally_release(&f->counts);
    tally_release(&f->buses);
    tally_release(&f->models);
    tally_release(&f->memories);
    tally_release(&f->eccs);
    tally_release(&f->migs);
    tally_release(&f->links);
    tally_release(&f->networks);
    tally_release(&f->refused);
    tally_release(&f->libraries);
    tally_release(&f->settings);
    tally_release(&f->findings);
    *f = (struct facts){0};
}

/* ---- one report ---- */

/* NCCL names the CUDA it was built for behind a plus: "2.28.9+cuda13.0".
 * A driver serves all CUDA releases of its own major number and older ones
 * (NVIDIA, "CUDA Compatibility", minor version compatibility). */
static bool driver_is_older(const Gpul__Library *nccl,
                            const Gpul__Library *cuda, struct text *why)
{
    static const char mark[] = "+cuda";
    const char *built_for = strstr(nccl->version, mark);
    unsigned long major =
        built_for != NULL ? strtoul(built_for + strlen(mark), NULL, 10) : 0;
    if (cuda->version_code == 0 || cuda->version_code / 1000 >= major) {
        return false;
    }
    text_format(why,
                "VER-302 NCCL %s needs a driver for CUDA %lu and this one is "
                "for CUDA %u.%u; update the driver, or use an NCCL built for "
                "an older CUDA",
                nccl->version, major, cuda->version_code / 1000,
                cuda->version_code % 1000 / 10);
    return true;
}

/* False: no communicator can be made there. */
static bool is_usable(const Gpul__ProbeFacts *m, struct text *why)
{
    if (m->error[0] != 0) {
        text_format(why, "%s", m->error);
    } else if (m->nccl == NULL || m->nccl->error[0] != 0) {
        text_format(why, "%s",
                    m->nccl != NULL ? m->nccl->error : "NCCL was not found");
    } else if (m->cuda == NULL || m->cuda->error[0] != 0) {
        text_format(why, "%s",
                    m->cuda != NULL ? m->cuda->error
                                    : "the driver was not found");
    } else if (m->n_devices == 0) {
        text_format(why, "no device is there");
    } else {
        return !driver_is_older(m->nccl, m->cuda, why);
    }
    return false;
}

static void append_library(struct text *line, const char *title,
                           const Gpul__Library *library)
{
    if (library == NULL || library->error[0] != 0) {
        return;
    }
    text_append(line, "%s%s %s (", line->bytes[0] != 0 ? ", " : "", title,
                library->version[0] != 0 ? library->version
                                         : "of unknown version");
    if (library->build_id[0] != 0) {
        text_append(line, "build %s, ", library->build_id);
    }
    text_append(line, "%s", library->path);
    if (library->passed_over[0] != 0) {
        text_append(line, "; passed over: %s", library->passed_over);
    }
    text_append(line, ")");
}

static const char *common_model(const Gpul__ProbeFacts *m)
{
    for (size_t i = 1; i < m->n_devices; i++) {
        if (strcmp(m->devices[i]->model, m->devices[0]->model) != 0) {
            return "several models";
        }
    }
    return m->devices[0]->model;
}

static void describe_node(struct text *line, const Gpul__ProbeFacts *m)
{
    text_format(line, "%s", "");
    append_library(line, "NCCL", m->nccl);
    append_library(line, "driver for CUDA", m->cuda);
    append_library(line, "NVML", m->nvml);
    if (m->driver_version[0] != 0) {
        text_append(line, ", kernel driver %s", m->driver_version);
    }
    if (m->n_devices > 0) {
        text_append(line, "; %zu x %s", m->n_devices, common_model(m));
    }
    if (m->n_nics > 0) {
        struct text cards;
        facts_describe_cards(&cards, m);
        text_append(line, "; network: %s", cards.bytes);
    }
}

static void join_settings(struct text *line, const Gpul__ProbeFacts *m)
{
    text_format(line, "%s", m->n_settings == 0 ? "none" : "");
    for (size_t i = 0; i < m->n_settings; i++) {
        text_append(line, "%s%s", i > 0 ? " " : "", m->settings[i]);
    }
}

/* An answer without words would leave a hole in its sentence. */
static const char *or_unknown(const char *text)
{
    return text[0] != 0 ? text : "unknown";
}

/* Versions are compared as NCCL does: the CUDA that one was built for does
 * not count. */
static bool add_libraries(struct facts *f, uint32_t node,
                          const Gpul__ProbeFacts *m)
{
    struct text text;
    const char *version = or_unknown(m->nccl->version);
    text_format(&text, "%.*s", (int)strcspn(version, "+"), version);
    bool is_added =
        tally_add(&f->versions, node, f->node_count, text.bytes) != NULL;
    text_format(&text, "%s build %s", version, or_unknown(m->nccl->build_id));
    is_added &= tally_add(&f->builds, node, f->node_count, text.bytes) != NULL;
    is_added &= tally_add(&f->drivers, node, f->node_count,
                          or_unknown(m->cuda->version)) != NULL;
    is_added &= tally_add(&f->kernels, node, f->node_count,
                          or_unknown(m->driver_version)) != NULL;
    text_format(&text, "%zu", m->n_devices);
    is_added &= tally_add(&f->counts, node, f->node_count, text.bytes) != NULL;
    return is_added && facts_add_cards(f, node, m);
}

static bool add_findings(struct facts *f, uint32_t node,
                         const Gpul__Device *device)
{
    for (size_t i = 0; i < device->n_findings; i++) {
        struct tally_answer *answer =
            tally_add(&f->findings, node, f->node_count, device->findings[i]);
        if (answer == NULL) {
            return false;
        }
        if (answer->times == 1) {
            bool has_bus = device->bus_id[0] != 0;
            snprintf(f->finding_devices[answer - f->findings.answers],
                     FACTS_DEVICE_BYTES, "%s%s%s%s", device->uuid,
                     has_bus ? " (bus id " : "", device->bus_id,
                     has_bus ? ")" : "");
        }
    }
    return true;
}

static const char *switch_name(Gpul__Device__Switch value)
{
    static const char *const names[] = {
        [GPUL__DEVICE__SWITCH__UNKNOWN] = "unknown",
        [GPUL__DEVICE__SWITCH__OFF] = "off",
        [GPUL__DEVICE__SWITCH__ON] = "on",
    };
    return names[value];
}

/* What should be the same for every device of the job. */
static bool add_traits(struct facts *f, uint32_t node, const Gpul__Device *d)
{
    struct text memory;
    struct text link;
    enum gpul_link kind = (enum gpul_link)d->link_kind;
    text_format(&memory, "unknown");
    if (d->memory_bytes > 0) {
        text_format(&memory, "%.1f GiB", (double)d->memory_bytes / (1 << 30));
    }
    text_format(&link, "unknown");
    if (d->link_gbps > 0) {
        text_format(&link, "%s of %.1f GB/s", gpul_link_name(kind),
                    d->link_gbps);
    }
    const struct {
        struct tally *tally;
        const char *answer;
    } traits[] = {
        {&f->models, or_unknown(d->model)},
        {&f->memories, memory.bytes},
        {&f->eccs, switch_name(d->ecc)},
        {&f->migs, switch_name(d->mig)},
        {&f->links, link.bytes},
    };
    bool is_added = true;
    for (size_t i = 0; i < sizeof(traits) / sizeof(traits[0]); i++) {
        is_added &= tally_add(traits[i].tally, node, f->node_count,
                              traits[i].answer) != NULL;
    }
    return is_added;
}

static void note_rates(struct facts *f, const Gpul__Device *d)
{
    if (d->link_gbps < f->rates.link_gbps) {
        f->rates.link_gbps = d->link_gbps;
        f->rates.link_kind = (enum gpul_link)d->link_kind;
    }
    if (d->pcie_gbps < f->rates.host_gbps) {
        f->rates.host_gbps = d->pcie_gbps;
    }
}

static bool add_buses(struct facts *f, uint32_t node, const Gpul__ProbeFacts *m)
{
    struct text buses;
    text_format(&buses, "%s", "");
    for (size_t i = 0; i < m->n_devices; i++) {
        text_append(&buses, " %s", m->devices[i]->bus_id);
    }
    return tally_add(&f->buses, node, f->node_count, buses.bytes) != NULL;
}

static bool keep_uuids(struct facts *f, uint32_t node,
                       const Gpul__ProbeFacts *m)
{
    size_t bytes = 0;
    for (size_t i = 0; i < m->n_devices; i++) {
        bytes += strlen(m->devices[i]->uuid) + 1;
    }
    char *at = malloc(bytes);
    if (at == NULL) {
        return false;
    }
    f->uuids[node] = at;
    for (size_t i = 0; i < m->n_devices; i++) {
        size_t n = strlen(m->devices[i]->uuid) + 1;
        memcpy(at, m->devices[i]->uuid, n);
        at += n;
    }
    return true;
}

static bool add_devices(struct facts *f, uint32_t node,
                        const Gpul__ProbeFacts *m)
{
    for (size_t i = 0; i < m->n_devices; i++) {
        if (!add_findings(f, node, m->devices[i]) ||
            !add_traits(f, node, m->devices[i])) {
            return false;
        }
        note_rates(f, m->devices[i]);
    }
    /* Counts for now; numbers once all are known. */
    f->first_ranks[node + 1] = (uint32_t)m->n_devices;
    return m->n_devices == 0 ||
           (add_buses(f, node, m) && keep_uuids(f, node, m));
}

int facts_add(struct facts *f, uint32_t node_rank, const Gpul__ProbeFacts *m)
{
    struct text text;
    assert(node_rank < f->node_count && f->uuids[node_rank] == NULL);
    bool is_added;
    f->has_one_id |= !m->has_scalable_init;
    f->has_no_split |= !m->has_comm_split;
    f->is_simulated |= m->is_simulated;
    if (is_usable(m, &text)) {
        is_added = add_libraries(f, node_rank, m);
    } else {
        is_added = tally_add(&f->unusable, node_rank, f->node_count,
                             text.bytes) != NULL;
    }
    is_added = is_added && add_devices(f, node_rank, m);
    describe_node(&text, m);
    if (is_added && text.bytes[0] != 0) {
        is_added = tally_add(&f->libraries, node_rank, f->node_count,
                             text.bytes) != NULL;
    }
    if (is_added && m->refused_device[0] != 0) {
        is_added = tally_add(&f->refused, node_rank, f->node_count,
                             m->refused_device) != NULL;
    }
    join_settings(&text, m);
    is_added = is_added && tally_add(&f->settings, node_rank, f->node_count,
                                     text.bytes) != NULL;
    return is_added ? 0 : GPUL_ENOMEM;
}

/* ---- ranks ---- */

uint32_t facts_rank_count(const struct facts *f)
{
    return f->first_ranks[f->node_count];
}

uint32_t facts_device_count(const struct facts *f, uint32_t node_rank)
{
    return f->first_ranks[node_rank + 1] - f->first_ranks[node_rank];
}

uint32_t facts_ranks_per_node(const struct facts *f)
{
    return f->counts.count == 1 ? facts_device_count(f, 0) : 0;
}

uint32_t facts_node(const struct facts *f, uint32_t rank)
{
    uint32_t low = 0;
    uint32_t high = f->node_count;
    assert(rank < facts_rank_count(f));
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (f->first_ranks[middle] <= rank) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

const char *facts_uuid(const struct facts *f, uint32_t rank)
{
    uint32_t node = facts_node(f, rank);
    const char *at = f->uuids[node];
    for (uint32_t i = f->first_ranks[node]; i < rank; i++) {
        at += strlen(at) + 1;
    }
    return at;
}
