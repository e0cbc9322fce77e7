/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "common/units.h"

enum {
    NAME_BYTES = 64,
    DURATION_BYTES = 32,
    LIVE_BYTES_MAX = 4096,
};

int status_init(struct status *s, const struct nodes *nodes,
                uint32_t node_count)
{
    *s = (struct status){.phase = STATUS_GATHERING, .node_count = node_count};
    gpul_hostlist_init(&s->names);
    s->joined = calloc(node_count, sizeof(*s->joined));
    if (s->joined == NULL) {
        return GPUL_ENOMEM;
    }
    for (uint32_t i = 0; i < nodes->count; i++) {
        if (gpul_hostlist_push(&s->names, nodes->list[i].name) != 0) {
            status_release(s);
            return GPUL_ENOMEM;
        }
    }
    return 0;
}

void status_release(struct status *s)
{
    free(s->joined);
    s->joined = NULL;
    gpul_hostlist_release(&s->names);
}

static bool is_open(const struct status *s)
{
    return s->names.count == 0;
}

static void mark(struct status *s, const Gpul__Event *event, bool has_joined)
{
    if (is_open(s)) {
        s->joined_count = event->have;
        return;
    }
    for (size_t i = 0; i < s->names.count; i++) {
        if (strcmp(s->names.names[i], event->node_name) != 0) {
            continue;
        }
        if (s->joined[i] != has_joined) {
            s->joined_count += has_joined ? 1u : (size_t)-1;
        }
        s->joined[i] = has_joined;
        return;
    }
}

static bool is_on_host(const Gpul__Event *event)
{
    return strcmp(event->backend, "host-tcp") == 0;
}

static void note_members(struct status *s, const Gpul__Event *event)
{
    for (size_t i = 0; i < event->n_members; i++) {
        s->has_gpus |= event->members[i]->gpus > 0;
    }
}

void status_update(struct status *s, const Gpul__Event *event)
{
    switch (event->kind) {
    case GPUL__EVENT__KIND__NODE_JOINED:
    case GPUL__EVENT__KIND__NODE_BACK:
        mark(s, event, true);
        break;
    case GPUL__EVENT__KIND__NODE_LEFT:
    case GPUL__EVENT__KIND__NODE_AWAY:
        mark(s, event, false);
        break;
    case GPUL__EVENT__KIND__ASSIGNED:
        note_members(s, event);
        s->phase = STATUS_ASSIGNING;
        break;
    case GPUL__EVENT__KIND__SURVEYING:
        s->phase = STATUS_SURVEYING;
        break;
    case GPUL__EVENT__KIND__SELF_TEST_PASSED:
    case GPUL__EVENT__KIND__RETRYING:
        s->phase = STATUS_ASSIGNING;
        break;
    case GPUL__EVENT__KIND__SELF_TEST_STARTED:
        s->is_on_gpus = event->backend[0] != '\0' && !is_on_host(event);
        s->phase = STATUS_TESTING;
        break;
    case GPUL__EVENT__KIND__STALL:
        s->hung = event->have;
        break;
    case GPUL__EVENT__KIND__LAUNCHED:
        s->hung = 0;
        s->phase = STATUS_RUNNING;
        break;
    case GPUL__EVENT__KIND__STOPPING:
        s->phase = STATUS_STOPPING;
        break;
    default:
        break;
    }
}

bool status_is_calm(const struct status *s)
{
    return s->phase == STATUS_RUNNING && s->hung == 0;
}

bool status_has_joined(const struct status *s, uint32_t index)
{
    return is_open(s) || (index < s->names.count && s->joined[index]);
}

/* The missing names, folded: local-[1,3]. */
static int append_missing(struct gpul_buf *out, const struct status *s)
{
    struct gpul_hostlist missing;
    if (is_open(s)) {
        return gpul_buf_appendf(out, "%zu more",
                                s->node_count - s->joined_count);
    }
    gpul_hostlist_init(&missing);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < s->names.count; i++) {
        if (!s->joined[i]) {
            rc = gpul_hostlist_push(&missing, s->names.names[i]);
        }
    }
    if (rc == 0) {
        rc = gpul_hostlist_fold(out, &missing, 0, missing.count);
    }
    gpul_hostlist_release(&missing);
    return rc;
}

int status_words(struct gpul_buf *out, const struct status *s)
{
    switch (s->phase) {
    case STATUS_GATHERING:
        gpul_buf_appendf(out, "%zu/%zu nodes joined", s->joined_count,
                         (size_t)s->node_count);
        if (s->joined_count < (size_t)s->node_count) {
            gpul_buf_append_text(out, ", missing ");
            append_missing(out, s);
        }
        break;
    case STATUS_ASSIGNING:
        gpul_buf_appendf(out, "%zu node%s: assigning ranks",
                         (size_t)s->node_count, gpul_plural(s->node_count));
        break;
    case STATUS_SURVEYING:
        gpul_buf_appendf(out, "%zu node%s: what they are, and who reaches whom",
                         (size_t)s->node_count, gpul_plural(s->node_count));
        break;
    case STATUS_TESTING:
        gpul_buf_appendf(out, "%zu node%s: self-test %s", (size_t)s->node_count,
                         gpul_plural(s->node_count),
                         s->is_on_gpus ? "on GPUs" : "(all-reduce)");
        break;
    case STATUS_STOPPING:
        gpul_buf_append_text(out, "stopping the ranks");
        break;
    case STATUS_RUNNING:
        if (s->hung > 0) {
            gpul_buf_appendf(out, "training hangs: %" PRIu32 " rank%s", s->hung,
                             gpul_plural(s->hung));
        }
        break;
    }
    return out->is_failed ? GPUL_ELIMIT : 0;
}

int status_live(struct gpul_buf *out, const struct status *s,
                uint64_t elapsed_ms, size_t width)
{
    if (status_is_calm(s)) {
        return 0;
    }
    char time[DURATION_BYTES];
    gpul_format_duration(time, elapsed_ms);
    struct gpul_buf line;
    gpul_buf_init(&line, LIVE_BYTES_MAX);
    gpul_buf_appendf(&line, "[%s] ", time);
    status_words(&line, s);
    size_t n = line.used < width ? line.used : width;
    int rc = gpul_buf_append(out, line.data, n);
    if (rc == 0 && n < line.used && n > 3) {
        memcpy(out->data + out->used - 3, "...", 3);
    }
    gpul_buf_release(&line);
    return rc;
}

bool status_is_detail(const Gpul__Event *event)
{
    switch (event->kind) {
    case GPUL__EVENT__KIND__LINKS_FAILED:
    case GPUL__EVENT__KIND__NODE_LEFT:
    case GPUL__EVENT__KIND__NODE_AWAY:
    case GPUL__EVENT__KIND__NODE_BACK:
    case GPUL__EVENT__KIND__NODE_REFUSED:
    case GPUL__EVENT__KIND__WAITING:
    case GPUL__EVENT__KIND__SELF_TEST_FACTS:
    case GPUL__EVENT__KIND__SELF_TEST_SETTINGS:
    case GPUL__EVENT__KIND__SELF_TEST_PASSED:
    case GPUL__EVENT__KIND__SELF_TEST_SLOW:
    case GPUL__EVENT__KIND__STOPPING:
    case GPUL__EVENT__KIND__RETRYING:
    case GPUL__EVENT__KIND__NOTICE:
    case GPUL__EVENT__KIND__STALL:
        return false;
    default:
        return true;
    }
}

static void append_members(struct gpul_buf *out, const Gpul__Event *event)
{
    for (size_t i = 0; i < event->n_members; i++) {
        const Gpul__Member *m = event->members[i];
        gpul_buf_appendf(out, "%s%s (host %s, %s): node rank %" PRIu32,
                         i > 0 ? "\n" : "", m->node_name, m->hostname,
                         m->address, m->node_rank);
        if (m->rank_count == 1) {
            gpul_buf_appendf(out, ", rank %" PRIu32, m->first_rank);
        } else {
            gpul_buf_appendf(out, ", ranks %" PRIu32 "-%" PRIu32, m->first_rank,
                             m->first_rank + m->rank_count - 1);
        }
    }
}

/* By what each is reached, and what it has besides. */
static void append_links(struct gpul_buf *out, const Gpul__Event *event)
{
    for (size_t i = 0; i < event->n_members; i++) {
        const Gpul__Member *m = event->members[i];
        gpul_buf_appendf(out, "%s%s (host %s): ", i > 0 ? "\n" : "",
                         m->node_name, m->hostname);
        if (m->interface[0] != '\0') {
            gpul_buf_appendf(out, "%s on %s", m->address, m->interface);
        } else {
            gpul_buf_append_text(out, "no address");
        }
        for (size_t k = 0; k < m->n_rejected; k++) {
            gpul_buf_appendf(out, "\n    not %s", m->rejected[k]);
        }
    }
}

/* What those that are not missing have done. */
static int append_wait(struct gpul_buf *out, const Gpul__Event *event,
                       const struct status *s)
{
    static const char *const done[] = {
        [STATUS_GATHERING] = "nodes have joined",
        [STATUS_ASSIGNING] = "nodes are ready",
        [STATUS_TESTING] = "nodes are through the self-test",
        [STATUS_RUNNING] = "nodes have passed all output on",
        [STATUS_STOPPING] = "nodes have stopped",
        [STATUS_SURVEYING] = "nodes have answered",
    };
    gpul_buf_appendf(out, "waiting: %" PRIu32 "/%" PRIu32 " ", event->have,
                     event->need);
    if (event->phase[0] != '\0') {
        gpul_buf_appendf(out, "are through phase %s of the self-test",
                         event->phase);
    } else {
        gpul_buf_append_text(out, done[s->phase]);
    }
    return gpul_buf_appendf(out, "; missing: %s", event->text);
}

static int append_passed(struct gpul_buf *out, const Gpul__Event *event,
                         const struct status *s)
{
    if (event->is_simulated) {
        return gpul_buf_append_text(out, "SIMULATED self-test passed on test "
                                         "doubles; its figures mean nothing");
    }
    gpul_buf_append_text(out, "self-test passed");
    if (is_on_host(event)) {
        return gpul_buf_appendf(out, " on host memory over TCP%s",
                                s->has_gpus ? "" : " (no node has a GPU)");
    }
    if (event->backend[0] != '\0') {
        return gpul_buf_append_text(out, " over NCCL");
    }
    return out->is_failed ? GPUL_ELIMIT : 0;
}

static int append_started(struct gpul_buf *out, const Gpul__Event *event)
{
    gpul_buf_append_text(out, "self-test started");
    if (event->text[0] != '\0') {
        gpul_buf_appendf(out, ": %s", event->text);
    }
    return out->is_failed ? GPUL_ELIMIT : 0;
}

int status_sentence(struct gpul_buf *out, const Gpul__Event *event,
                    const struct status *s)
{
    const char *text = event->text;
    switch (event->kind) {
    case GPUL__EVENT__KIND__NODE_JOINED:
        return gpul_buf_appendf(
            out, "%s joined (host %s), %" PRIu32 "/%" PRIu32, event->node_name,
            event->hostname, event->have, event->need);
    case GPUL__EVENT__KIND__NODE_LEFT:
        return gpul_buf_appendf(out, "%s left: %s", event->node_name, text);
    case GPUL__EVENT__KIND__NODE_AWAY:
        return gpul_buf_appendf(out, "%s is away: %s", event->node_name, text);
    case GPUL__EVENT__KIND__NODE_BACK:
        return gpul_buf_appendf(out, "%s is back: %s", event->node_name, text);
    case GPUL__EVENT__KIND__NODE_REFUSED:
        /* The text says who it was: what it calls itself is not its name. */
        return gpul_buf_appendf(out, "refused: %s", text);
    case GPUL__EVENT__KIND__WAITING:
        return append_wait(out, event, s);
    case GPUL__EVENT__KIND__ASSIGNED:
        append_members(out, event);
        return out->is_failed ? GPUL_ELIMIT : 0;
    case GPUL__EVENT__KIND__LINKS:
    case GPUL__EVENT__KIND__LINKS_FAILED:
        append_links(out, event);
        return out->is_failed ? GPUL_ELIMIT : 0;
    case GPUL__EVENT__KIND__SELF_TEST_STARTED:
        return append_started(out, event);
    case GPUL__EVENT__KIND__SELF_TEST_FACTS:
        return gpul_buf_appendf(out, "%slibraries: %s",
                                event->is_simulated ? "SIMULATED " : "", text);
    case GPUL__EVENT__KIND__SELF_TEST_SETTINGS:
        return gpul_buf_appendf(out, "settings of the user: %s", text);
    case GPUL__EVENT__KIND__SELF_TEST_PASSED:
        return append_passed(out, event, s);
    case GPUL__EVENT__KIND__SELF_TEST_SLOW:
        return 0; /* the table; the last line says the rest */
    case GPUL__EVENT__KIND__SELF_TEST_SKIPPED:
        return gpul_buf_appendf(out, "self-test skipped: %s", text);
    case GPUL__EVENT__KIND__LAUNCHED:
        return gpul_buf_append_text(out, "ranks started");
    case GPUL__EVENT__KIND__STOPPING:
        return gpul_buf_appendf(out, "stopping: %s", text);
    case GPUL__EVENT__KIND__RETRYING:
        return gpul_buf_appendf(out, "starting once more: %s", text);
    case GPUL__EVENT__KIND__STALL:
        return gpul_buf_append_text(out, text);
    case GPUL__EVENT__KIND__NOTICE:
        return gpul_buf_appendf(out, "note: %s", text);
    case GPUL__EVENT__KIND__RANK_EXITED:
        return gpul_buf_appendf(
            out, "%s: %" PRIu32 "/%" PRIu32 " ranks of the job have ended",
            event->node_name, event->have, event->need);
    default: /* from a newer coordinator */
        return gpul_buf_append_text(out, text);
    }
}
