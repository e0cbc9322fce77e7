/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/verdict.h"

#include <inttypes.h>

void verdict_init(struct verdict *v)
{
    *v = (struct verdict){0};
}

static enum verdict_kind wrong_data(struct text *why, const char *node_name,
                                    const Gpul__ProbeResult *result)
{
    text_format(why,
                "self-test: wrong data on node %s: element %" PRIu64
                " of an all-reduce of %" PRIu64 " bytes has the wrong sum "
                "(%" PRIu64 " wrong elements in all); do not train on this "
                "node before its memory and network have been checked",
                node_name, result->first_wrong_offset,
                result->first_wrong_bytes, result->wrong_elements);
    return VERDICT_WRONG_DATA;
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
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void merge_row(Gpul__SelfTestRow *row, const Gpul__ProbeRow *from)
{
    row->min_ns = larger(row->min_ns, from->min_ns);
    row->median_ns = larger(row->median_ns, from->median_ns);
    row->max_ns = larger(row->max_ns, from->max_ns);
}

/* All nodes must have measured the same sizes. */
static int rows_match(const struct verdict *v, const Gpul__ProbeResult *result)
{
    if (result->n_rows == 0 || result->n_rows > GPUL_PROBE_ROWS_MAX) {
        return 0;
    }
    if (v->result_count == 0) {
        return 1;
    }
    if (result->n_rows != v->row_count) {
        return 0;
    }
    for (size_t i = 0; i < v->row_count; i++) {
        if (result->rows[i]->bytes != v->rows[i].bytes ||
            result->rows[i]->count != v->rows[i].count) {
            return 0;
        }
    }
    return 1;
}

enum verdict_kind verdict_add(struct verdict *v, struct text *why,
                              const char *node_name,
                              const Gpul__ProbeResult *result)
{
    if (wrong_elements(result) != 0) {
        return wrong_data(why, node_name, result);
    }
    if (result->error[0] != 0) {
        text_format(why, "self-test: node %s failed in phase %s: %s", node_name,
                    result->phase[0] != 0 ? result->phase : "init",
                    result->error);
        return VERDICT_ERROR;
    }
    if (!rows_match(v, result)) {
        text_format(why,
                    "self-test: node %s measured other message sizes than "
                    "the other nodes; is its gpulaunch-worker the same?",
                    node_name);
        return VERDICT_ERROR;
    }
    for (size_t i = 0; i < result->n_rows; i++) {
        if (v->result_count == 0) {
            start_row(&v->rows[i], result->rows[i]);
        }
        merge_row(&v->rows[i], result->rows[i]);
    }
    v->row_count = result->n_rows;
    v->result_count++;
    return VERDICT_GOOD;
}

void verdict_finish(struct verdict *v, uint32_t n)
{
    double factor = n > 0 ? 2.0 * (n - 1) / n : 0;
    for (size_t i = 0; i < v->row_count; i++) {
        Gpul__SelfTestRow *row = &v->rows[i];
        if (row->median_ns > 0) {
            /* Bytes a nanosecond are GB/s. */
            row->algbw_gbps = (double)row->bytes / (double)row->median_ns;
            row->busbw_gbps = row->algbw_gbps * factor;
        }
    }
}
