/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/dossier_fields.h"

#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define F(type, key, kind, member)                                             \
    {                                                                          \
        key, DOSSIER_##kind, offsetof(struct dossier_##type, member)           \
    }

static const struct dossier_field run_fields[] = {
    F(run, "schema_version", COUNT, schema_version),
    F(run, "version", TEXT, version),
    F(run, "verb", TEXT, verb),
    F(run, "job_id", TEXT, job_id),
    F(run, "started_at_unix_seconds", COUNT, started_unix_s),
    F(run, "command", COMMAND, command),
    F(run, "node_count", COUNT, node_count),
    F(run, "backend", TEXT, backend),
    F(run, "simulated", SIMULATED, is_simulated),
};

static const struct dossier_field node_fields[] = {
    F(node, "node_rank", COUNT, node_rank),
    F(node, "name", TEXT, name),
    F(node, "host", TEXT, host),
    F(node, "address", TEXT, address),
    F(node, "interface", TEXT, interface),
    F(node, "gpus", COUNT, gpus),
    F(node, "rejected_addresses", TEXTS, rejected),
    F(node, "facts", MAP, facts),
    F(node, "unknown", MAP, unknown),
};

static const struct dossier_field finding_fields[] = {
    F(finding, "id", TEXT, id),         F(finding, "severity", TEXT, severity),
    F(finding, "nodes", TEXTS, nodes),  F(finding, "text", TEXT, text),
    F(finding, "value", TEXT, value),   F(finding, "expected", TEXT, expected),
    F(finding, "remedy", TEXT, remedy),
};

static const struct dossier_field pair_fields[] = {
    F(pair, "round", COUNT, round),
    F(pair, "rail", TEXT, rail),
    F(pair, "a", TEXT, a),
    F(pair, "b", TEXT, b),
    F(pair, "a_to_b_bytes_per_second", FIGURE, a_to_b),
    F(pair, "b_to_a_bytes_per_second", FIGURE, b_to_a),
    F(pair, "round_trip_seconds", FIGURE, round_trip_s),
    F(pair, "retransmit_ratio", FIGURE, retransmit_ratio),
    F(pair, "error", TEXT, error),
};

static const struct dossier_field verdict_fields[] = {
    F(verdict, "what", TEXT, what),   F(verdict, "nodes", TEXTS, nodes),
    F(verdict, "state", TEXT, state), F(verdict, "direction", TEXT, direction),
    F(verdict, "rail", TEXT, rail),   F(verdict, "rounds", COUNT, rounds),
    F(verdict, "text", TEXT, text),
};

static const struct dossier_field bandwidth_fields[] = {
    F(bandwidth, "node_count", COUNT, node_count),
    F(bandwidth, "rank_count", COUNT, rank_count),
    F(bandwidth, "collective", TEXT, collective),
    F(bandwidth, "scope", TEXT, scope),
    F(bandwidth, "bytes", COUNT, bytes),
    F(bandwidth, "iterations", COUNT, iterations),
    F(bandwidth, "min_seconds", FIGURE, min_s),
    F(bandwidth, "median_seconds", FIGURE, median_s),
    F(bandwidth, "max_seconds", FIGURE, max_s),
    F(bandwidth, "slowest_rank", COUNT, slowest_rank),
    F(bandwidth, "algbw_bytes_per_second", FIGURE, algbw),
    F(bandwidth, "busbw_bytes_per_second", FIGURE, busbw),
    F(bandwidth, "wire_bytes_per_second", FIGURE, wire),
    F(bandwidth, "ceiling_bytes_per_second", FIGURE, ceiling),
    F(bandwidth, "ceiling_kind", TEXT, ceiling_kind),
    F(bandwidth, "ceiling_percent", FIGURE, ceiling_percent),
    F(bandwidth, "wrong_elements", COUNT, wrong_elements),
    F(bandwidth, "verdict", TEXT, verdict),
};

static const struct dossier_field sample_fields[] = {
    F(sample, "node_count", COUNT, node_count),
    F(sample, "rank_count", COUNT, rank_count),
    F(sample, "repeat", COUNT, repeat),
    F(sample, "throughput", FIGURE, throughput),
    F(sample, "unit", TEXT, unit),
    F(sample, "step_seconds", FIGURE, step_s),
    F(sample, "slowest_rank", COUNT, slowest_rank),
    F(sample, "exit_code", COUNT, exit_code),
    F(sample, "note", TEXT, note),
};

static const struct dossier_field efficiency_fields[] = {
    F(efficiency, "node_count", COUNT, node_count),
    F(efficiency, "reference_node_count", COUNT, reference_node_count),
    F(efficiency, "scaling", TEXT, scaling),
    F(efficiency, "repeats", COUNT, repeats),
    F(efficiency, "unit", TEXT, unit),
    F(efficiency, "throughput", FIGURE, throughput),
    F(efficiency, "throughput_low", FIGURE, throughput_low),
    F(efficiency, "throughput_high", FIGURE, throughput_high),
    F(efficiency, "efficiency", FIGURE, efficiency),
    F(efficiency, "efficiency_low", FIGURE, efficiency_low),
    F(efficiency, "efficiency_high", FIGURE, efficiency_high),
    F(efficiency, "busbw_bytes_per_second", FIGURE, busbw),
    F(efficiency, "is_comparable", FLAG, is_comparable),
    F(efficiency, "note", TEXT, note),
};

static const struct dossier_field fit_fields[] = {
    F(fit, "model", TEXT, model),
    F(fit, "node_count", COUNT, node_count),
    F(fit, "bytes_min", COUNT, bytes_min),
    F(fit, "bytes_max", COUNT, bytes_max),
    F(fit, "parameters", FIGURES, parameters),
    F(fit, "max_relative_error", FIGURE, max_relative_error),
    F(fit, "is_usable", FLAG, is_usable),
    F(fit, "note", TEXT, note),
};

static const struct dossier_field prediction_fields[] = {
    F(prediction, "node_count", COUNT, node_count),
    F(prediction, "efficiency", FIGURE, efficiency),
    F(prediction, "efficiency_low", FIGURE, efficiency_low),
    F(prediction, "efficiency_high", FIGURE, efficiency_high),
    F(prediction, "throughput", FIGURE, throughput),
    F(prediction, "extrapolation", FIGURE, extrapolation),
    F(prediction, "from_node_counts", NUMBERS, from),
    F(prediction, "refused", TEXT, refused),
};

static const struct dossier_field end_fields[] = {
    F(end, "exit_code", COUNT, exit_code),
    F(end, "reason", TEXT, reason),
    F(end, "message", TEXT, message),
    F(end, "duration_seconds", FIGURE, duration_s),
    F(end, "counts", COUNTS, passes),
};

#define SHAPE(type)                                                            \
    {                                                                          \
#type, sizeof(struct dossier_##type), type##_fields,                   \
            COUNT_OF(type##_fields)                                            \
    }

static const struct dossier_shape shapes[DOSSIER_TYPE_COUNT] = {
    [DOSSIER_RUN] = SHAPE(run),
    [DOSSIER_NODE] = SHAPE(node),
    [DOSSIER_FINDING] = SHAPE(finding),
    [DOSSIER_PAIR] = SHAPE(pair),
    [DOSSIER_VERDICT] = SHAPE(verdict),
    [DOSSIER_BANDWIDTH] = SHAPE(bandwidth),
    [DOSSIER_SAMPLE] = SHAPE(sample),
    [DOSSIER_EFFICIENCY] = SHAPE(efficiency),
    [DOSSIER_FIT] = SHAPE(fit),
    [DOSSIER_PREDICTION] = SHAPE(prediction),
    [DOSSIER_END] = SHAPE(end),
};

const struct dossier_shape *dossier_shape(enum dossier_type type)
{
    return &shapes[type];
}

enum dossier_type dossier_find_type(const char *name)
{
    enum dossier_type type = 0;
    while (type < DOSSIER_TYPE_COUNT && strcmp(shapes[type].name, name) != 0) {
        type++;
    }
    return type;
}
