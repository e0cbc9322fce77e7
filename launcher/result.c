/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/result.h"

#include "common/bandwidth.h"
#include "launcher/failure_json.h"
#include "launcher/grade.h"
#include "launcher/json.h"

enum { SCHEMA_VERSION = 1 };

static json_t *seconds(double amount)
{
    return json_real(amount);
}

/* Between two moments, null if either did not happen. */
static json_t *span(uint64_t from_ms, uint64_t to_ms)
{
    if (from_ms == 0 || to_ms < from_ms)
        return json_null();
    return seconds((double)(to_ms - from_ms) / 1e3);
}

static json_t *phases_json(const struct record *r)
{
    uint64_t ready_ms = r->tested_ms != 0 ? r->tested_ms : r->assigned_ms;
    json_t *o = json_object();
    json_object_set_new(o, "gather_seconds",
                        span(r->started_ms, r->assigned_ms));
    json_object_set_new(o, "self_test_seconds",
                        span(r->assigned_ms, r->tested_ms));
    json_object_set_new(o, "launch_seconds", span(ready_ms, r->launched_ms));
    json_object_set_new(o, "run_seconds", span(r->launched_ms, r->ended_ms));
    return o;
}

static json_t *texts_json(char *const *texts, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(list, json_string(texts[i]));
    }
    return list;
}

static json_t *nodes_json(const struct record *r)
{
    json_t *nodes = json_array();
    for (size_t i = 0; i < r->page_count; i++) {
        for (size_t k = 0; k < r->pages[i]->n_members; k++) {
            const Gpul__Member *m = r->pages[i]->members[k];
            json_t *o = json_object();
            json_put_text(o, "name", m->node_name);
            json_put_text(o, "host", m->hostname);
            json_put_text(o, "address", m->address);
            json_object_set_new(o, "node_rank", json_integer(m->node_rank));
            json_object_set_new(o, "first_rank", json_integer(m->first_rank));
            json_object_set_new(o, "rank_count", json_integer(m->rank_count));
            json_object_set_new(o, "gpus", json_integer(m->gpus));
            json_put_text(o, "interface", m->interface);
            json_object_set_new(o, "rejected_addresses",
                                texts_json(m->rejected, m->n_rejected));
            json_array_append_new(nodes, o);
        }
    }
    return nodes;
}

static json_t *rate(double gbps)
{
    return json_real(gbps * 1e9);
}

static json_t *known_rate(double gbps)
{
    return gbps > 0 ? rate(gbps) : json_null();
}

static void put_times(json_t *o, const Gpul__SelfTestRow *row)
{
    json_object_set_new(o, "min_seconds", seconds((double)row->min_ns / 1e9));
    json_object_set_new(o, "median_seconds",
                        seconds((double)row->median_ns / 1e9));
    json_object_set_new(o, "max_seconds", seconds((double)row->max_ns / 1e9));
}

/* What it could have been, where that is known. */
static void put_grade(json_t *o, const Gpul__SelfTestRow *row,
                      const struct grade_scale *scale)
{
    double percent = 0;
    bool has_ceiling = grade_percent(&percent, scale, row);
    json_object_set_new(o, "ceiling_bytes_per_second",
                        known_rate(has_ceiling ? row->ceiling_gbps : 0));
    json_put_text(
        o, "ceiling_kind",
        has_ceiling ? gpul_link_name((enum gpul_link)row->ceiling_kind) : NULL);
    json_object_set_new(o, "ceiling_percent",
                        has_ceiling ? json_real(percent) : json_null());
    json_put_text(o, "verdict", grade_name(grade_row(scale, row)));
}

static json_t *row_json(const Gpul__SelfTestRow *row,
                        const struct grade_scale *scale)
{
    json_t *o = json_object();
    json_put_text(o, "collective",
                  gpul_collective_name((enum gpul_collective)row->collective));
    json_put_text(o, "scope",
                  row->scope == GPUL__SCOPE__SCOPE_NODE ? "node" : "world");
    json_object_set_new(o, "bytes", json_integer((json_int_t)row->bytes));
    json_object_set_new(o, "count", json_integer((json_int_t)row->count));
    json_object_set_new(o, "iterations", json_integer(row->iterations));
    put_times(o, row);
    json_object_set_new(o, "slowest_rank", json_integer(row->slowest_rank));
    json_object_set_new(o, "algbw_bytes_per_second", rate(row->algbw_gbps));
    json_object_set_new(o, "busbw_bytes_per_second",
                        grade_has_busbw(row) ? rate(row->busbw_gbps)
                                             : json_null());
    json_object_set_new(o, "wire_bytes_per_second", known_rate(row->wire_gbps));
    json_object_set_new(o, "wrong_elements",
                        json_integer((json_int_t)row->wrong_elements));
    put_grade(o, row, scale);
    return o;
}

/* off, skipped, passed; failed when the job ended by it; not_run when the
 * job ended before it. */
static const char *self_test_status(const struct result *result)
{
    const Gpul__Event *e = result->record->self_test;
    if (result->plan->self_test == PLAN_SELF_TEST_OFF)
        return "off";
    if (e != NULL && e->kind == GPUL__EVENT__KIND__SELF_TEST_SKIPPED)
        return "skipped";
    if (e != NULL && e->kind == GPUL__EVENT__KIND__SELF_TEST_PASSED)
        return "passed";
    return result->record->assigned_ms != 0 ? "failed" : "not_run";
}

static json_t *lines_json(char *const *lines, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_string(lines[i]));
    return list;
}

static json_t *rows_json(const Gpul__Event *e)
{
    json_t *rows = json_array();
    struct grade_scale scale;
    if (e == NULL)
        return rows;
    grade_scale_init(&scale, e->rows, e->n_rows, e->is_simulated);
    for (size_t i = 0; i < e->n_rows; i++)
        json_array_append_new(rows, row_json(e->rows[i], &scale));
    return rows;
}

static json_t *self_test_json(const struct result *result)
{
    static const char *const levels[] = {"off", "quick", "full"};
    const struct record *r = result->record;
    bool has_ranks = r->self_test != NULL && r->self_test->n_rows > 0;
    json_t *o = json_object();
    json_put_text(o, "level", levels[result->plan->self_test]);
    json_put_text(o, "status", self_test_status(result));
    json_put_text(o, "backend", r->backend);
    json_object_set_new(o, "simulated",
                        r->may_be_simulated ? json_null()
                                            : json_boolean(r->is_simulated));
    json_object_set_new(o, "rank_count",
                        has_ranks ? json_integer(r->self_test->have)
                                  : json_null());
    json_object_set_new(o, "libraries", lines_json(r->facts, r->fact_count));
    json_object_set_new(o, "settings",
                        lines_json(r->settings, r->setting_count));
    json_object_set_new(o, "rows", rows_json(r->self_test));
    return o;
}

static void put_end(json_t *o, const struct record *r)
{
    const Gpul__JobEnd *end = r->end;
    json_t *exits = json_array();
    json_t *unclean = json_array();
    for (size_t i = 0; i < end->n_exits; i++)
        json_array_append_new(exits, failure_json(r, end->exits[i]));
    for (size_t i = 0; i < end->n_unclean; i++)
        json_array_append_new(unclean, json_string(end->unclean[i]));
    json_object_set_new(o, "rank",
                        end->has_rank ? json_integer(end->rank) : json_null());
    json_put_text(o, "node", end->node_name);
    json_put_text(o, "host", end->hostname);
    json_put_text(o, "log", end->log);
    json_object_set_new(o, "exits", exits);
    json_put_text(o, "stopped_ranks", end->stopped_ranks);
    json_object_set_new(o, "stopped_count", json_integer(end->stopped_count));
    json_object_set_new(o, "unclean", unclean);
    json_object_set_new(o, "generation", json_integer(end->generation));
    json_object_set_new(o, "restarts", json_integer(end->restarts));
}

static json_t *strangers_json(const Gpul__JobEnd *end)
{
    json_t *o = json_object();
    json_object_set_new(o, "count",
                        json_integer((json_int_t)end->stranger_count));
    json_put_text(o, "text", end->strangers);
    return o;
}

static json_t *stalls_json(const struct record *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->stall_count; i++) {
        const struct record_stall *stall = &r->stalls[i];
        const Gpul__Event *e = stall->report;
        json_t *o = json_object();
        json_object_set_new(o, "at_seconds",
                            span(r->started_ms, stall->first_ms));
        json_object_set_new(o, "resumed_at_seconds",
                            span(r->started_ms, stall->resumed_ms));
        json_object_set_new(o, "rank_count", json_integer(e->have));
        json_put_text(o, "suspects", e->ranks);
        json_put_text(o, "node", e->node_name);
        json_put_text(o, "text", e->text);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *metrics_json(const struct record *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->metric_count; i++) {
        const struct record_metric *m = &r->metrics[i];
        json_t *o = json_object();
        json_object_set_new(o, "rank", json_integer(m->rank));
        json_put_text(o, "text", m->text);
        json_object_set_new(o, "steps", json_integer((json_int_t)m->steps));
        json_object_set_new(o, "steps_seconds",
                            m->steps > 0 ? seconds((double)m->steps_ms / 1e3)
                                         : json_null());
        json_array_append_new(list, o);
    }
    return list;
}

int result_print(struct gpul_buf *out, const struct result *result)
{
    const struct record *r = result->record;
    json_t *o = json_object();
    json_object_set_new(o, "schema_version", json_integer(SCHEMA_VERSION));
    json_put_text(o, "version", GPULAUNCH_VERSION);
    json_put_text(o, "job_id", result->job_id);
    json_object_set_new(o, "exit_code", json_integer(result->exit_code));
    json_put_text(o, "reason", r->end->reason);
    json_put_text(o, "message", result->message);
    put_end(o, r);
    json_object_set_new(o, "started_at_unix_seconds",
                        json_integer((json_int_t)r->started_unix_s));
    json_object_set_new(o, "duration_seconds",
                        span(r->started_ms, r->ended_ms));
    json_object_set_new(o, "phases", phases_json(r));
    json_object_set_new(o, "world_size", json_integer(record_world_size(r)));
    json_object_set_new(o, "nodes", nodes_json(r));
    json_object_set_new(o, "self_test", self_test_json(result));
    json_put_words(o, "command", result->plan->command,
                   result->plan->command_count);
    json_put_text(o, "log_dir", result->log_dir);
    json_object_set_new(o, "stalls", stalls_json(r));
    json_object_set_new(o, "metrics",
                        result->plan->wants_metrics ? metrics_json(r)
                                                    : json_null());
    json_object_set_new(o, "notices", lines_json(r->notices, r->notice_count));
    json_object_set_new(o, "strangers", strangers_json(r->end));
    int rc = json_print(out, o);
    json_decref(o);
    return rc;
}
