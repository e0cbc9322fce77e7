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

static void send(struct report *r, uint32_t rank, size_t first, size_t end,
                 bool is_last, envreport_fn on_frame, void *arg)
{
    Gpul__EnvReport body;
    gpul__env_report__init(&body);
    body.rank = rank;
    body.entries = r->pointers + first;
    body.n_entries = end - first;
    body.is_last = is_last;
    Gpul__Frame frame;
    gpul__frame__init(&frame);
    frame.body_case = GPUL__FRAME__BODY_ENV_REPORT;
    frame.env_report = &body;
    on_frame(arg, &frame);
}

int envreport_make(const struct env *env, uint32_t rank, envreport_fn on_frame,
                   void *arg, struct gpul_error *err)
{
    struct report r = {
        .entries = calloc(env->count + 1, sizeof(*r.entries)),
        .pointers = calloc(env->count + 1, sizeof(*r.pointers)),
    };
    int rc = 0;
    if (r.entries == NULL || r.pointers == NULL) {
        rc = gpul_fail(err, GPUL_ENOMEM, "environment of rank %u", rank);
        goto out;
    }
    size_t first = 0;
    size_t bytes = FRAME_OVERHEAD_BYTES;
    for (size_t i = 0; i < env->count; i++) {
        size_t more = fill(&r.entries[i], &env->entries[i]);
        r.pointers[i] = &r.entries[i];
        bool is_full = bytes + more > GPUL_ENV_REPORT_BYTES_MAX ||
                       i - first == GPUL_ENV_ENTRIES_MAX;
        if (is_full && i > first) {
            send(&r, rank, first, i, false, on_frame, arg);
            first = i;
            bytes = FRAME_OVERHEAD_BYTES;
        }
        bytes += more;
    }
    send(&r, rank, first, env->count, true, on_frame, arg);
out:
    free(r.entries);
    free(r.pointers);
    return rc;
}
