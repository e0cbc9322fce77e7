/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/watchprobes.h"

#include <stdio.h>
#include <string.h>

#include "proto/limits.h"

/* ---- what the coordinator hears ---- */

static bool is_auto(const struct cluster *c)
{
    return c->self_test.backend == GPUL__SELF_TEST__BACKEND__BACKEND_AUTO;
}

static void note_devices(struct watch_probes *p, const Gpul__ProbeFacts *facts)
{
    for (size_t i = 0; i < facts->n_devices; i++) {
        const char *uuid = facts->devices[i]->uuid;
        for (uint32_t k = 0; k < p->device_count; k++) {
            p->has_twins = p->has_twins || strcmp(p->uuids[k], uuid) == 0;
        }
        snprintf(p->uuids[p->device_count++], sizeof(p->uuids[0]), "%s", uuid);
    }
}

void watch_hear_facts(struct cluster *c, const Gpul__ProbeFacts *facts)
{
    struct watch_probes *p = &c->watch->probes;
    bool is_old = strstr(facts->nccl->version, "+cuda13") != NULL &&
                  facts->cuda->version_code < 13000;
    p->is_unusable = p->is_unusable || facts->n_devices == 0 ||
                     facts->nccl->error[0] != 0 || is_old;
    p->has_one_id = p->has_one_id || !facts->has_scalable_init;
    p->has_no_split = p->has_no_split || !facts->has_comm_split;
    char version[sizeof(p->version)]; /* without the CUDA it was built for */
    snprintf(version, sizeof(version), "%.*s",
             (int)strcspn(facts->nccl->version, "+"), facts->nccl->version);
    if (p->fact_count > 0 && strcmp(p->version, version) != 0) {
        p->has_versions = true;
    }
    snprintf(p->version, sizeof(p->version), "%s", version);
    note_devices(p, facts);
    if (++p->fact_count < c->job.node_count || c->watch->is_doomed) {
        return;
    }
    bool may_be_host = p->is_unusable || (!p->has_versions && p->has_twins);
    if (may_be_host && is_auto(c)) {
        p->falls_back = true;
    } else if (may_be_host || p->has_versions) {
        watch_decide(c->watch, 20);
    }
}

void watch_hear_id(struct cluster *c, const Gpul__ProbeId *id)
{
    struct watch_probes *p = &c->watch->probes;
    bool is_known = p->has_id[id->index];
    for (uint32_t i = 0; i < p->id_count; i++) {
        is_known = is_known || (p->has_id[i] && memcmp(p->ids[i], id->id.data,
                                                       id->id.len) == 0);
    }
    if (is_known) {
        watch_decide(c->watch, 20);
        return;
    }
    p->has_id[id->index] = true;
    memcpy(p->ids[id->index], id->id.data, id->id.len);
}

void watch_judge_speed(struct cluster *c, uint32_t ranks)
{
    /* No double is as fast as what is asked for. */
    if (c->sweep.busbw_min_gbps > 0 && !c->watch->is_suspicious) {
        watch_decide(c->watch, ranks > 1 ? 30 : 20);
    }
}

void watch_hear_gpu_result(struct cluster *c, const Gpul__ProbeResult *result)
{
    struct watch *w = c->watch;
    struct watch_probes *p = &w->probes;
    if (result->wrong_elements > 0) {
        watch_decide(w, 21);
    } else if (result->error[0] != 0 && result->is_remote) {
        w->is_suspicious = true;
    } else if (result->error[0] != 0) {
        watch_decide(w, 20);
    } else if (!p->is_good[result->probe_rank]) {
        p->is_good[result->probe_rank] = true;
        if (++p->good_count == p->world_size && !w->is_doomed) {
            watch_judge_speed(c, p->world_size);
        }
    }
}

/* ---- what it says ---- */

void watch_see_start(struct cluster *c, const Gpul__ProbeStart *start)
{
    const struct watch_probes *p = &c->watch->probes;
    bool is_scout = start->backend == GPUL__SELF_TEST__BACKEND__BACKEND_NCCL;
    bool has_fallen_back = is_auto(c) && p->falls_back;
    bool wants_scouts =
        c->self_test.backend == GPUL__SELF_TEST__BACKEND__BACKEND_NCCL ||
        (is_auto(c) && p->gpuless_count == 0);
    WATCH_RULE(c, is_scout == (wants_scouts && !has_fallen_back),
               "a self-test on the wrong kind of memory");
}

static uint32_t ids_wanted(const struct watch_probes *p)
{
    uint32_t ids = (p->world_size + GPUL_RANKS_PER_UNIQUE_ID - 1) /
                   GPUL_RANKS_PER_UNIQUE_ID;
    return p->has_one_id ? 1 : ids;
}

void watch_see_begin(struct cluster *c, const struct sim_link *link,
                     const Gpul__ProbeBegin *begin)
{
    struct watch_probes *p = &c->watch->probes;
    const struct fake_node *node = &c->nodes[link->node];
    WATCH_RULE(c, p->fact_count == c->job.node_count,
               "probes before all facts were there");
    WATCH_RULE(c, !p->falls_back && !c->watch->is_decided,
               "probes though the facts forbid them");
    WATCH_RULE(c, begin->first_rank == p->next_rank,
               "self-test ranks with a gap");
    WATCH_RULE(c, begin->rank_count == node->gpus,
               "a device without a rank, or the reverse");
    p->world_size = begin->world_size;
    p->id_count = begin->id_count;
    p->next_rank += begin->rank_count;
    p->begin_count++;
    WATCH_RULE(c, begin->world_size == p->device_count,
               "a wrong number of self-test ranks");
    WATCH_RULE(c, begin->id_count == ids_wanted(p), "a wrong number of IDs");
    bool has_groups =
        c->job.node_count > 1 && begin->world_size > c->job.node_count;
    WATCH_RULE(c,
               begin->node_rank_count ==
                   (has_groups && !p->has_no_split ? begin->rank_count : 0),
               "a sweep within nodes that cannot be, or none");
}

/* Each ID is from a root of this generation's one communicator. */
void watch_see_ids(struct cluster *c, const struct sim_link *link,
                   const Gpul__Frame *frame)
{
    struct watch_probes *p = &c->watch->probes;
    const Gpul__ProbeIds *ids = frame->probe_ids;
    WATCH_RULE(c, link == NULL && !p->has_sent_ids,
               "IDs that not all get, or get twice");
    WATCH_RULE(c, frame->generation == c->watch->generation,
               "IDs of another generation");
    WATCH_RULE(
        c, p->begin_count == c->job.node_count && p->next_rank == p->world_size,
        "IDs before every rank was given out");
    WATCH_RULE(c, ids->n_ids == p->id_count, "too few IDs");
    for (uint32_t i = 0; i < p->id_count; i++) {
        WATCH_RULE(c,
                   p->has_id[i] && memcmp(p->ids[i], ids->ids[i].data,
                                          GPUL_UNIQUE_ID_BYTES) == 0,
                   "an ID that its root did not give");
    }
    p->has_sent_ids = true;
}

void watch_see_tested(struct cluster *c)
{
    const struct watch *w = c->watch;
    const struct watch_probes *p = &w->probes;
    bool wants_test = c->self_test.level != GPUL__SELF_TEST__LEVEL__OFF &&
                      c->job.mode == GPUL__JOB__MODE__RUN && !w->has_launched;
    bool is_on_gpus = p->fact_count == c->job.node_count && !p->falls_back;
    if (!wants_test) {
        return;
    }
    WATCH_RULE(c, !w->is_suspicious, "a launch after a probe failed");
    if (is_on_gpus) {
        WATCH_RULE(c, p->world_size > 0 && p->good_count == p->world_size,
                   "a launch before every rank passed the self-test");
    } else {
        WATCH_RULE(c, c->job.node_count == 1 || w->told == c->job.node_count,
                   "a launch before every node passed the self-test");
    }
}
