/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/verdict.h"

#include <inttypes.h>
#include <string.h>

#include "common/units.h"

/* What tells a slow rank from the noise of its clock. */
enum { STANDS_OUT_PERCENT = 150 };

void verdict_init(struct verdict *v)
{
    *v = (struct verdict){0};
}

void verdict_name(struct text *out, const struct verdict_source *from)
{
    if (!from->has_device) {
        text_format(out, "node %s", from->node_name);
        return;
    }
    text_format(out, "rank %u (node %s", from->rank, from->node_name);
    if (from->device_uuid[0] != 0) {
        text_append(out, ", device %s", from->device_uuid);
    }
    text_append(out, ")");
}

/* On host memory it stands further back, or is known by the words. */
static void name_phase(struct text *why, const struct verdict_source *from,
                       const Gpul__ProbeResult *result)
{
    if (from->has_device) {
        text_format(why, "self-test phase %s: ",
                    result->phase[0] != 0 ? result->phase : from->phase);
    } else {
        text_format(why, "self-test: ");
    }
}

static enum verdict_kind wrong_data(struct text *why,
                                    const struct verdict_source *from,
                                    const Gpul__ProbeResult *result)
{
    struct text who;
    const char *collective = gpul_collective_name(
        (enum gpul_collective)result->first_wrong_collective);
    verdict_name(&who, from);
    name_phase(why, from, result);
    text_append(why,
                "wrong data on %s: element %" PRIu64 " of %s %s%s of %" PRIu64
                " bytes ",
                who.bytes, result->first_wrong_offset,
                collective[0] == 'a' ? "an" : "a", collective,
                result->first_wrong_scope == GPUL__SCOPE__SCOPE_NODE
                    ? " within the node"
                    : "",
                result->first_wrong_bytes);
    if (from->has_device) {
        text_append(why, "is wrong in bit %u", result->first_wrong_bit);
    } else {
        text_append(why, "has the wrong sum");
    }
    text_append(why,
                " (%" PRIu64 " wrong element%s in all); do not train on this "
                "%s before its memory and %s have been checked",
                result->wrong_elements, gpul_plural(result->wrong_elements),
                from->has_device ? "device" : "node",
                from->has_device ? "links" : "network");
    return VERDICT_WRONG_DATA;
}

static enum verdict_kind error(struct text *why,
                               const struct verdict_source *from,
                               const Gpul__ProbeResult *result)
{
    struct text who;
    verdict_name(&who, from);
    name_phase(why, from, result);
    if (!from->has_device) {
        bool has_begun = strcmp(result->phase, "coll") == 0;
        text_append(why, "%s failed %s the all-reduce: %s", who.bytes,
                    has_begun ? "in" : "before", result->error);
        return VERDICT_ERROR;
    }
    text_append(why, "%s: %s", who.bytes, result->error);
    if (result->library_error[0] != 0) {
        text_append(why, "; NCCL said: %s", result->library_error);
    }
    return VERDICT_ERROR;
}

static uint64_t wrong_elements(const Gpul__ProbeResult *result)
{
    uint64_t wrong = result->wrong_elements;
    for (size_t i = 0; i < result->n_rows; i++) {
        wrong |= result->rows[i]->wrong_elements;
    }
    return wrong;
}

static void start_row(Gpul__SelfTestRow *row, const Gpul__ProbeRow *from)
{
    gpul__self_test_row__init(row);
    row->bytes = from->bytes;
    row->count = from->count;
    row->iterations = from->iterations;
    row->collective = from->collective;
    row->scope = from->scope;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void merge_row(Gpul__SelfTestRow *row, const Gpul__ProbeRow *from,
                      uint32_t rank)
{
    if (from->median_ns > row->median_ns) {
        row->slowest_rank = rank;
    }
    row->min_ns = larger(row->min_ns, from->min_ns);
    row->median_ns = larger(row->median_ns, from->median_ns);
    row->max_ns = larger(row->max_ns, from->max_ns);
}

static size_t count_world_rows(const Gpul__ProbeResult *result)
{
    size_t n = 0;
    while (n < result->n_rows &&
           result->rows[n]->scope == GPUL__SCOPE__SCOPE_WORLD) {
        n++;
    }
    return n;
}

/* All must have measured the same; only those that share their node with
 * others have rows from within it, behind those of all ranks. */
static bool rows_match(const struct verdict *v, bool sweeps_node,
                       const Gpul__ProbeResult *result)
{
    size_t world = count_world_rows(result);
    bool is_first = v->result_count == 0;
    bool is_first_of_nodes = v->row_count == v->world_row_count;
    if (world == 0 || result->n_rows > GPUL_PROBE_ROWS_MAX ||
        (result->n_rows > world) != sweeps_node ||
        (!is_first && world != v->world_row_count) ||
        (sweeps_node && !is_first_of_nodes && result->n_rows != v->row_count)) {
        return false;
    }
    for (size_t i = 0; i < result->n_rows; i++) {
        const Gpul__ProbeRow *row = result->rows[i];
        bool is_known = i < v->row_count;
        if ((i >= world && row->scope != GPUL__SCOPE__SCOPE_NODE) ||
            (is_known && (row->bytes != v->rows[i].bytes ||
                          row->count != v->rows[i].count ||
                          row->collective != v->rows[i].collective))) {
            return false;
        }
    }
    return true;
}

static enum verdict_kind other_rows(struct text *why,
                                    const struct verdict_source *from)
{
    struct text who;
    verdict_name(&who, from);
    text_format(why,
                "self-test: %s measured other message sizes than the other "
                "%s; is its gpulaunch-worker the same?",
                who.bytes, from->has_device ? "ranks" : "nodes");
    return VERDICT_ERROR;
}

enum verdict_kind verdict_add(struct verdict *v, struct text *why,
                              const struct verdict_source *from,
                              const Gpul__ProbeResult *result)
{
    if (wrong_elements(result) != 0) {
        return wrong_data(why, from, result);
    }
    if (result->error[0] != 0) {
        return error(why, from, result);
    }
    if (!rows_match(v, from->sweeps_node, result)) {
        return other_rows(why, from);
    }
    for (size_t i = 0; i < result->n_rows; i++) {
        if (i == v->row_count) {
            v->fastest_ns[i] = UINT64_MAX;
            start_row(&v->rows[v->row_count++], result->rows[i]);
        }
        merge_row(&v->rows[i], result->rows[i], from->rank);
        if (result->rows[i]->median_ns < v->fastest_ns[i]) {
            v->fastest_ns[i] = result->rows[i]->median_ns;
        }
    }
    v->world_row_count = count_world_rows(result);
    v->result_count++;
    return VERDICT_GOOD;
}

static void finish_row(Gpul__SelfTestRow *row, const struct verdict_world *w)
{
    enum gpul_collective collective = (enum gpul_collective)row->collective;
    const struct gpul_fabric fabric = {w->ranks, w->nodes, w->links};
    enum gpul_link kind;
    double factor;
    row->ranks = w->ranks;
    row->algbw_gbps = gpul_algbw_gbps(row->bytes, row->median_ns);
    if (w->ranks == 0) {
        return; /* no busbw without their number */
    }
    gpul_busbw_factor(&factor, collective, w->ranks);
    row->busbw_gbps = row->algbw_gbps * factor;
    row->ceiling_gbps = gpul_ceiling_gbps(&kind, collective, &fabric);
    row->ceiling_kind = (Gpul__Link)kind;
    row->wire_gbps = gpul_wire_gbps(row->busbw_gbps, collective, &fabric);
}

void verdict_finish(struct verdict *v, const struct verdict_world *world)
{
    struct verdict_world node = *world;
    node.nodes = 1;
    node.ranks = world->node_ranks;
    for (size_t i = 0; i < v->row_count; i++) {
        finish_row(&v->rows[i], i < v->world_row_count ? world : &node);
    }
}

static const Gpul__SelfTestRow *largest(const struct verdict *v, size_t from,
                                        size_t end)
{
    const Gpul__SelfTestRow *found = NULL;
    for (size_t i = from; i < end; i++) {
        const Gpul__SelfTestRow *row = &v->rows[i];
        bool is_all_reduce =
            row->collective <= GPUL__COLLECTIVE__COLLECTIVE_ALL_REDUCE;
        if (is_all_reduce && (found == NULL || row->bytes > found->bytes)) {
            found = row;
        }
    }
    return found;
}

const Gpul__SelfTestRow *verdict_largest(const struct verdict *v)
{
    return largest(v, 0, v->world_row_count);
}

static bool stands_out(const struct verdict *v, const Gpul__SelfTestRow *row)
{
    return row != NULL &&
           (double)row->median_ns * 100 >
               (double)v->fastest_ns[row - v->rows] * STANDS_OUT_PERCENT;
}

const Gpul__SelfTestRow *verdict_telling(const struct verdict *v,
                                         const struct verdict_world *world)
{
    const Gpul__SelfTestRow *all = verdict_largest(v);
    const Gpul__SelfTestRow *within =
        largest(v, v->world_row_count, v->row_count);
    /* Nodes with more ranks take longer. */
    if (world->node_ranks > 0 && stands_out(v, within)) {
        return within;
    }
    return stands_out(v, all) ? all : NULL;
}
