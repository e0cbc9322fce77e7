/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/envbook.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "launcher/envtext.h"
#include "launcher/json.h"

void envbook_release(struct envbook *b)
{
    for (size_t i = 0; i < b->count; i++) {
        gpul__env_report__free_unpacked(b->reports[i], NULL);
    }
    free(b->reports);
    *b = (struct envbook){0};
}

static Gpul__EnvReport *copy_report(const Gpul__EnvReport *report, size_t n)
{
    uint8_t *bytes = malloc(n + 1);
    if (bytes == NULL) {
        return NULL;
    }
    gpul__env_report__pack(report, bytes);
    Gpul__EnvReport *copy = gpul__env_report__unpack(NULL, n, bytes);
    free(bytes);
    return copy;
}

int envbook_add(struct envbook *b, const Gpul__EnvReport *report,
                struct gpul_error *err)
{
    size_t n = gpul__env_report__get_packed_size(report);
    if (n > ENVBOOK_BYTES_MAX - b->bytes) {
        return gpul_fail(err, GPUL_ELIMIT,
                         "the environments of all ranks are over %d MiB; ask "
                         "for one with gpulaunch env --rank R",
                         ENVBOOK_BYTES_MAX >> 20);
    }
    if (b->count == b->capacity) {
        size_t capacity = b->capacity == 0 ? 16 : b->capacity * 2;
        Gpul__EnvReport **grown =
            realloc(b->reports, capacity * sizeof(*b->reports));
        if (grown == NULL) {
            return gpul_fail(err, GPUL_ENOMEM, "out of memory");
        }
        b->reports = grown;
        b->capacity = capacity;
    }
    Gpul__EnvReport *copy = copy_report(report, n);
    if (copy == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    b->reports[b->count++] = copy;
    b->bytes += n;
    return 0;
}

struct place {
    const Gpul__EnvReport *report;
    size_t arrival;
};

/* By rank; the pieces of one rank in the order of their arrival. */
static int compare(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->report->rank != y->report->rank) {
        return x->report->rank < y->report->rank ? -1 : 1;
    }
    return x->arrival < y->arrival ? -1 : x->arrival > y->arrival;
}

static struct place *sorted(const struct envbook *b)
{
    struct place *places = calloc(b->count + 1, sizeof(*places));
    for (size_t i = 0; places != NULL && i < b->count; i++) {
        places[i] = (struct place){b->reports[i], i};
    }
    if (places != NULL) {
        qsort(places, b->count, sizeof(*places), compare);
    }
    return places;
}

/* ---- for people ---------------------------------------------------------- */

/* A comment, since what follows may be read by a shell. */
static void append_binding(struct gpul_buf *out, const Gpul__EnvReport *r)
{
    if (r->cpus[0] == '\0') {
        return;
    }
    gpul_buf_appendf(out, "# bound to processors %s", r->cpus);
    if (r->memory_nodes[0] != '\0') {
        gpul_buf_appendf(out, ", memory of NUMA node %s", r->memory_nodes);
    }
    gpul_buf_append_text(out, "\n");
}

static void append_rank_heading(struct gpul_buf *out,
                                const struct record *record, uint32_t rank)
{
    gpul_buf_appendf(out, "\n# rank %" PRIu32, rank);
    for (size_t i = 0; i < record->page_count; i++) {
        const Gpul__Event *page = record->pages[i];
        for (size_t k = 0; k < page->n_members; k++) {
            const Gpul__Member *m = page->members[k];
            if (rank >= m->first_rank && rank - m->first_rank < m->rank_count) {
                gpul_buf_appendf(out, " on %s (host %s)", m->node_name,
                                 m->hostname);
            }
        }
    }
    gpul_buf_append_text(out, "\n");
}

static void append_plan(struct gpul_buf *out, const struct plan *plan,
                        const struct record *record)
{
    uint32_t ranks = record_world_size(record);
    gpul_buf_appendf(out,
                     "# %" PRIu32 " node%s, %" PRIu32 " rank%s\n# command:",
                     plan->node_count, gpul_plural(plan->node_count), ranks,
                     gpul_plural(ranks));
    for (size_t i = 0; i < plan->command_count; i++) {
        gpul_buf_append_text(out, " ");
        const char *word = plan->command[i];
        envtext_quote(out, (const uint8_t *)word, strlen(word));
    }
    gpul_buf_append_text(out, "\n");
}

static void print_text(struct gpul_buf *out, const struct place *places,
                       size_t count, const struct plan *plan,
                       const struct record *record)
{
    bool is_dry_run = plan->verb == PLAN_RUN;
    if (is_dry_run) {
        append_plan(out, plan, record);
    }
    for (size_t i = 0; i < count; i++) {
        const Gpul__EnvReport *r = places[i].report;
        bool is_first = i == 0 || places[i - 1].report->rank != r->rank;
        if (is_dry_run && is_first) {
            append_rank_heading(out, record, r->rank);
        }
        if (is_first) {
            append_binding(out, r);
        }
        if (plan->verb == PLAN_ENV && plan->is_explained) {
            envtext_explain(out, r->entries, r->n_entries);
        } else {
            envtext_assignments(out, r->entries, r->n_entries, is_dry_run);
        }
    }
}

/* ---- JSON ---------------------------------------------------------------- */

static json_t *variable_json(const Gpul__EnvEntry *e)
{
    json_t *o = json_object();
    json_put_bytes(o, "name", e->name.data, e->name.len);
    json_put_bytes(o, "value", e->value.data, e->value.len);
    json_put_text(o, "action", envtext_action(e->action));
    json_put_text(o, "rule", e->rule);
    return o;
}

static json_t *ranks_json(const struct place *places, size_t count)
{
    json_t *ranks = json_array();
    json_t *variables = NULL;
    for (size_t i = 0; i < count; i++) {
        const Gpul__EnvReport *r = places[i].report;
        if (i == 0 || places[i - 1].report->rank != r->rank) {
            json_t *rank = json_object();
            variables = json_array();
            json_object_set_new(rank, "rank", json_integer(r->rank));
            json_put_text(rank, "cpus", r->cpus);
            json_put_text(rank, "memory_nodes", r->memory_nodes);
            json_object_set_new(rank, "variables", variables);
            json_array_append_new(ranks, rank);
        }
        for (size_t k = 0; k < r->n_entries; k++) {
            json_array_append_new(variables, variable_json(r->entries[k]));
        }
    }
    return ranks;
}

static int print_json(struct gpul_buf *out, const struct place *places,
                      size_t count, const char *job_id,
                      const struct record *record)
{
    json_t *o = json_object();
    json_object_set_new(o, "schema_version", json_integer(1));
    json_put_text(o, "job_id", job_id);
    json_object_set_new(o, "world_size",
                        json_integer(record_world_size(record)));
    json_object_set_new(o, "ranks", ranks_json(places, count));
    int rc = json_print(out, o);
    json_decref(o);
    return rc;
}

int envbook_print(struct gpul_buf *out, struct envbook *b,
                  const struct plan *plan, const struct record *record,
                  const char *job_id)
{
    struct place *places = sorted(b);
    if (places == NULL) {
        return GPUL_ENOMEM;
    }
    int rc = 0;
    if (plan->is_json) {
        rc = print_json(out, places, b->count, job_id, record);
    } else {
        print_text(out, places, b->count, plan, record);
    }
    free(places);
    return out->is_failed ? GPUL_ELIMIT : rc;
}
