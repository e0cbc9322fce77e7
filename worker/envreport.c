/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/envreport.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"

/* Keys, lengths and the enum of one entry, and those around all of them. */
enum { ENTRY_OVERHEAD_BYTES = 32, FRAME_OVERHEAD_BYTES = 128 };

struct report {
    Gpul__EnvEntry *entries; /* of the whole environment */
    Gpul__EnvEntry **pointers;
    Gpul__EnvReport body; /* what is the same in all frames */
    struct gpul_buf cpus;
    struct gpul_buf nodes;
    envreport_fn on_frame;
    void *arg;
};

static void put_bytes(ProtobufCBinaryData *out, const char *text)
{
    out->data = (uint8_t *)(uintptr_t)text;
    out->len = strlen(text);
}

static size_t fill(Gpul__EnvEntry *out, const struct env_entry *from)
{
    gpul__env_entry__init(out);
    put_bytes(&out->name, from->name);
    put_bytes(&out->value, from->value);
    out->action = (Gpul__EnvEntry__Action)from->action;
    out->rule = (char *)(uintptr_t)from->rule;
    return out->name.len + out->value.len + strlen(from->rule) +
           ENTRY_OVERHEAD_BYTES;
}

static void send(struct report *r, size_t first, size_t end, bool is_last)
{
    r->body.entries = r->pointers + first;
    r->body.n_entries = end - first;
    r->body.is_last = is_last;
    Gpul__Frame frame;
    gpul__frame__init(&frame);
    frame.body_case = GPUL__FRAME__BODY_ENV_REPORT;
    frame.env_report = &r->body;
    r->on_frame(r->arg, &frame);
}

static int begin(struct report *r, const struct env *env,
                 const struct launch *launch, uint32_t local_rank)
{
    gpul__env_report__init(&r->body);
    gpul_buf_init(&r->cpus, GPUL_CPU_LIST_BYTES_MAX);
    gpul_buf_init(&r->nodes, GPUL_CPU_LIST_BYTES_MAX);
    r->entries = calloc(env->count + 1, sizeof(*r->entries));
    r->pointers = calloc(env->count + 1, sizeof(*r->pointers));
    if (r->entries == NULL || r->pointers == NULL ||
        binding_text(&r->cpus, &r->nodes, launch->binding, local_rank) != 0) {
        return GPUL_ENOMEM;
    }
    r->body.rank = launch->first_rank + local_rank;
    r->body.cpus = (char *)(uintptr_t)gpul_buf_text(&r->cpus);
    r->body.memory_nodes = (char *)(uintptr_t)gpul_buf_text(&r->nodes);
    return 0;
}

static void make(struct report *r, const struct env *env)
{
    size_t overhead = FRAME_OVERHEAD_BYTES + r->cpus.used + r->nodes.used;
    size_t first = 0;
    size_t bytes = overhead;
    for (size_t i = 0; i < env->count; i++) {
        size_t more = fill(&r->entries[i], &env->entries[i]);
        r->pointers[i] = &r->entries[i];
        bool is_full = bytes + more > GPUL_ENV_REPORT_BYTES_MAX ||
                       i - first == GPUL_ENV_ENTRIES_MAX;
        if (is_full && i > first) {
            send(r, first, i, false);
            first = i;
            bytes = overhead;
        }
        bytes += more;
    }
    send(r, first, env->count, true);
}

int envreport_make(const struct env *env, const struct launch *launch,
                   uint32_t local_rank, envreport_fn on_frame, void *arg,
                   struct gpul_error *err)
{
    struct report r = {.on_frame = on_frame, .arg = arg};
    int rc = begin(&r, env, launch, local_rank);
    if (rc == 0) {
        make(&r, env);
    } else {
        gpul_fail(err, rc, "environment of rank %u",
                  launch->first_rank + local_rank);
    }
    free(r.entries);
    free(r.pointers);
    gpul_buf_release(&r.cpus);
    gpul_buf_release(&r.nodes);
    return rc;
}

bool envreport_is_asked(const Gpul__Job *job, uint32_t rank)
{
    return job->report_all_ranks || job->report_rank == rank;
}

bool envreport_is_any_asked(const Gpul__Job *job, const Gpul__Assign *assign)
{
    return job->report_all_ranks ||
           (job->report_rank >= assign->first_rank &&
            job->report_rank - assign->first_rank < assign->rank_count);
}
