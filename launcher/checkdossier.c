/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/checkdossier.h"

#include <math.h>
#include <string.h>

#include "common/bandwidth.h"
#include "common/hostlist.h"
#include "launcher/grade.h"

static const char *const severities[] = {
    [GPUL__FINDING__SEVERITY__PASS] = "pass",
    [GPUL__FINDING__SEVERITY__WARN] = "warn",
    [GPUL__FINDING__SEVERITY__FAIL] = "fail",
    [GPUL__FINDING__SEVERITY__UNKNOWN] = "unknown",
};
enum { SEVERITIES = sizeof(severities) / sizeof(severities[0]) };

static void add_run(struct dossier *d, const struct checkdossier *c)
{
    struct dossier_run *run = dossier_add(d, DOSSIER_RUN);
    if (run == NULL) {
        return;
    }
    run->schema_version = DOSSIER_SCHEMA_VERSION;
    run->version = dossier_text(d, GPULAUNCH_VERSION);
    run->verb = c->plan->verb == PLAN_DOCTOR ? "doctor" : "check";
    run->job_id = dossier_text(d, c->job_id);
    run->started_unix_s = (int64_t)c->record->started_unix_s;
    run->node_count = c->plan->node_count;
    run->backend = dossier_text(d, c->record->backend);
    run->is_simulated = c->record->is_simulated;
    run->may_be_simulated = c->record->may_be_simulated;
    if (c->plan->command_count > 0) {
        dossier_put_command(d, run, c->plan->command, c->plan->command_count);
    }
}

/* ---- nodes --------------------------------------------------------------- */

static const Gpul__Event *facts_of(const struct checkbook *book,
                                   const char *node_name)
{
    for (size_t i = 0; i < book->fact_count; i++) {
        if (strcmp(book->facts[i]->node_name, node_name) == 0) {
            return book->facts[i];
        }
    }
    return NULL;
}

static void put_facts(struct dossier *d, struct dossier_node *node,
                      const Gpul__Event *event)
{
    for (size_t i = 0; event != NULL && i < event->n_facts; i++) {
        const Gpul__Fact *fact = event->facts[i];
        if (fact->unknown[0] != 0) {
            dossier_put(d, &node->unknown, fact->key, fact->unknown);
        } else {
            dossier_put(d, &node->facts, fact->key, fact->value);
        }
    }
}

static void add_node(struct dossier *d, const struct checkdossier *c,
                     const Gpul__Member *m)
{
    struct dossier_node *node = dossier_add(d, DOSSIER_NODE);
    if (node == NULL) {
        return;
    }
    node->node_rank = m->node_rank;
    node->name = dossier_text(d, m->node_name);
    node->host = dossier_text(d, m->hostname);
    node->address = dossier_text(d, m->address);
    node->interface = dossier_text(d, m->interface);
    node->gpus = m->gpus;
    for (size_t i = 0; i < m->n_rejected; i++) {
        dossier_append(d, &node->rejected, m->rejected[i]);
    }
    put_facts(d, node, facts_of(c->book, m->node_name));
}

/* ---- findings ------------------------------------------------------------ */

static void put_nodes(struct dossier *d, struct dossier_finding *out,
                      const char *expression)
{
    struct gpul_hostlist names;
    gpul_hostlist_init(&names);
    if (expression[0] != 0 &&
        gpul_hostlist_expand(&names, expression, GPUL_NODES_MAX, NULL) == 0) {
        for (size_t i = 0; i < names.count; i++) {
            dossier_append(d, &out->nodes, names.names[i]);
        }
    }
    gpul_hostlist_release(&names);
}

static void add_finding(struct dossier *d, const Gpul__Finding *f)
{
    struct dossier_finding *out = dossier_add(d, DOSSIER_FINDING);
    if (out == NULL) {
        return;
    }
    out->id = dossier_text(d, f->id);
    out->severity = severities[f->severity];
    out->text = dossier_text(d, f->text);
    out->value = dossier_text(d, f->value);
    out->expected = dossier_text(d, f->expected);
    out->remedy = dossier_text(d, f->remedy);
    put_nodes(d, out, f->nodes);
}

/* The worst first, as the table has them. */
static void add_findings(struct dossier *d, const struct checkbook *book)
{
    static const Gpul__Finding__Severity order[] = {
        GPUL__FINDING__SEVERITY__FAIL,
        GPUL__FINDING__SEVERITY__UNKNOWN,
        GPUL__FINDING__SEVERITY__WARN,
        GPUL__FINDING__SEVERITY__PASS,
    };
    for (size_t i = 0; i < SEVERITIES - 1; i++) {
        struct checkbook_place at = {0};
        const Gpul__Finding *f;
        while ((f = checkbook_next(book, order[i], &at)) != NULL) {
            add_finding(d, f);
        }
    }
}

/* ---- bandwidths ---------------------------------------------------------- */

#define GIGA 1e9

static double rate(double gbps)
{
    return gbps > 0 ? gbps * GIGA : NAN;
}

static void add_row(struct dossier *d, const struct checkdossier *c,
                    const Gpul__SelfTestRow *row,
                    const struct grade_scale *scale)
{
    double percent = 0;
    struct dossier_bandwidth *out = dossier_add(d, DOSSIER_BANDWIDTH);
    if (out == NULL) {
        return;
    }
    bool has_ceiling = grade_percent(&percent, scale, row);
    out->node_count = c->plan->node_count;
    out->rank_count = c->record->self_test->have;
    out->collective =
        gpul_collective_name((enum gpul_collective)row->collective);
    out->scope = row->scope == GPUL__SCOPE__SCOPE_NODE ? "node" : "world";
    out->bytes = (int64_t)row->bytes;
    out->iterations = row->iterations;
    out->min_s = (double)row->min_ns / GIGA;
    out->median_s = (double)row->median_ns / GIGA;
    out->max_s = (double)row->max_ns / GIGA;
    out->slowest_rank = row->slowest_rank;
    out->algbw = rate(row->algbw_gbps);
    out->busbw = grade_has_busbw(row) ? rate(row->busbw_gbps) : NAN;
    out->wire = rate(row->wire_gbps);
    out->ceiling = has_ceiling ? rate(row->ceiling_gbps) : NAN;
    out->ceiling_kind =
        has_ceiling ? gpul_link_name((enum gpul_link)row->ceiling_kind) : NULL;
    out->ceiling_percent = has_ceiling ? percent : NAN;
    out->wrong_elements = (int64_t)row->wrong_elements;
    out->verdict = grade_name(grade_row(scale, row));
}

static void add_rows(struct dossier *d, const struct checkdossier *c)
{
    const Gpul__Event *event = c->record->self_test;
    struct grade_scale scale;
    if (event == NULL) {
        return;
    }
    grade_scale_init(&scale, event->rows, event->n_rows, event->is_simulated);
    for (size_t i = 0; i < event->n_rows; i++) {
        add_row(d, c, event->rows[i], &scale);
    }
}

static void add_end(struct dossier *d, const struct checkdossier *c)
{
    const struct record *r = c->record;
    struct dossier_end *end = dossier_add(d, DOSSIER_END);
    if (end == NULL) {
        return;
    }
    end->exit_code = c->exit_code;
    end->reason = dossier_text(d, r->end->reason);
    end->message = dossier_text(d, r->end->text);
    end->duration_s = (double)(r->ended_ms - r->started_ms) / 1e3;
    dossier_count_findings(d, end);
    if (r->end->findings != NULL) {
        end->passes = r->end->findings->passed;
        end->warnings = r->end->findings->warned;
        end->failures = r->end->findings->failed;
        end->unknowns = r->end->findings->unknown;
    }
}

void checkdossier_fill(struct dossier *d, const struct checkdossier *c)
{
    const struct record *r = c->record;
    add_run(d, c);
    for (size_t i = 0; i < r->page_count; i++) {
        for (size_t k = 0; k < r->pages[i]->n_members; k++) {
            add_node(d, c, r->pages[i]->members[k]);
        }
    }
    add_findings(d, c->book);
    checkdossier_pairs(d, c->book);
    add_rows(d, c);
    add_end(d, c);
}
