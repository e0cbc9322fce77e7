/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/scaleresult.h"

#include <math.h>
#include <stdlib.h>

#include "proto/limits.h"

static double number(const json_t *o, const char *key)
{
    const json_t *value = json_object_get(o, key);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static int64_t count(const json_t *o, const char *key)
{
    const json_t *value = json_object_get(o, key);
    return json_is_integer(value) ? (int64_t)json_integer_value(value)
                                  : DOSSIER_UNKNOWN;
}

static const char *text(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

static void read_row(struct dossier *d, const json_t *o)
{
    struct dossier_bandwidth *row = dossier_add(d, DOSSIER_BANDWIDTH);
    if (row == NULL) {
        return;
    }
    row->collective = dossier_text(d, text(o, "collective"));
    row->scope = dossier_text(d, text(o, "scope"));
    row->bytes = count(o, "bytes");
    row->iterations = count(o, "iterations");
    row->min_s = number(o, "min_seconds");
    row->median_s = number(o, "median_seconds");
    row->max_s = number(o, "max_seconds");
    row->slowest_rank = count(o, "slowest_rank");
    row->algbw = number(o, "algbw_bytes_per_second");
    row->busbw = number(o, "busbw_bytes_per_second");
    row->wire = number(o, "wire_bytes_per_second");
    row->ceiling = number(o, "ceiling_bytes_per_second");
    row->ceiling_kind = dossier_text(d, text(o, "ceiling_kind"));
    row->ceiling_percent = number(o, "ceiling_percent");
    row->wrong_elements = count(o, "wrong_elements");
    row->verdict = dossier_text(d, text(o, "verdict"));
}

static void read_node(struct dossier *d, const json_t *o)
{
    struct dossier_node *node = dossier_add(d, DOSSIER_NODE);
    if (node == NULL) {
        return;
    }
    node->node_rank = count(o, "node_rank");
    node->name = dossier_text(d, text(o, "name"));
    node->host = dossier_text(d, text(o, "host"));
    node->address = dossier_text(d, text(o, "address"));
    node->interface = dossier_text(d, text(o, "interface"));
    node->gpus = count(o, "gpus");
}

static bool read_ranks(struct scaleresult *r, const json_t *list)
{
    size_t n = json_array_size(list);
    r->ranks = calloc(n + 1, sizeof(*r->ranks));
    if (r->ranks == NULL) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        const json_t *o = json_array_get(list, i);
        int64_t rank = count(o, "rank"), steps = count(o, "steps");
        if (rank < 0 || rank >= GPUL_RANKS_MAX) {
            continue;
        }
        r->ranks[r->outcome.rank_told++] = (struct scalebook_rank){
            .rank = (uint32_t)rank,
            .text = text(o, "text"),
            .steps = steps == DOSSIER_UNKNOWN ? 0 : (uint64_t)steps,
            .step_s = number(o, "steps_seconds")};
    }
    r->outcome.ranks = r->ranks;
    return true;
}

static void read_test(struct scaleresult *r, const json_t *test)
{
    const json_t *rows = json_object_get(test, "rows");
    const json_t *simulated = json_object_get(test, "simulated");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        read_row(&r->found, json_array_get(rows, i));
    }
    r->outcome.backend = text(test, "backend");
    r->outcome.is_simulated = json_is_true(simulated);
    r->outcome.may_be_simulated = !json_is_boolean(simulated);
}

int scaleresult_read(struct scaleresult *r, const char *path,
                     struct gpul_error *err)
{
    json_error_t why;
    *r = (struct scaleresult){0};
    dossier_init(&r->found);
    r->root = json_load_file(path, 0, &why);
    int64_t code = count(r->root, "exit_code");
    int64_t world = count(r->root, "world_size");
    if (code < 0 || code > UINT8_MAX || world < 0 || world > GPUL_RANKS_MAX) {
        return gpul_fail(err, GPUL_EINVAL, "no result in %s%s%s", path,
                         r->root == NULL ? ": " : "",
                         r->root == NULL ? why.text : "");
    }
    const json_t *nodes = json_object_get(r->root, "nodes");
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        read_node(&r->found, json_array_get(nodes, i));
    }
    r->outcome.exit_code = (int)code;
    r->outcome.why = text(r->root, "message");
    r->outcome.job_id = text(r->root, "job_id");
    r->outcome.rank_count = (uint32_t)world;
    r->outcome.run_s =
        number(json_object_get(r->root, "phases"), "run_seconds");
    r->outcome.found = &r->found;
    read_test(r, json_object_get(r->root, "self_test"));
    bool is_read = read_ranks(r, json_object_get(r->root, "metrics"));
    return is_read && !r->found.is_failed
               ? 0
               : gpul_fail(err, GPUL_ENOMEM, "out of memory");
}

void scaleresult_release(struct scaleresult *r)
{
    json_decref(r->root);
    free(r->ranks);
    dossier_release(&r->found);
    *r = (struct scaleresult){0};
}
