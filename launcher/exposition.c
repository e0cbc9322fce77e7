/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/exposition.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/error.h"

static void head(struct gpul_buf *out, const char *name, const char *help)
{
    gpul_buf_appendf(out, "# HELP gpulaunch_%s %s\n# TYPE gpulaunch_%s gauge\n",
                     name, help, name);
}

/* name="value", the value as the format wants it. */
static void label(struct gpul_buf *out, const char *name, const char *value)
{
    gpul_buf_appendf(out, "%s=\"", name);
    for (const char *at = value != NULL ? value : ""; *at != '\0'; at++) {
        if (*at == '\n') {
            gpul_buf_append_text(out, "\\n");
        } else {
            gpul_buf_append_text(out, *at == '"' || *at == '\\' ? "\\" : "");
            gpul_buf_append(out, at, 1);
        }
    }
    gpul_buf_append_text(out, "\"");
}

static void plain(struct gpul_buf *out, const char *name, const char *help,
                  double value)
{
    if (isfinite(value)) {
        head(out, name, help);
        gpul_buf_appendf(out, "gpulaunch_%s %.12g\n", name, value);
    }
}

static double known(int64_t count)
{
    return count == DOSSIER_UNKNOWN ? (double)NAN : (double)count;
}

static void draw_run(struct gpul_buf *out, const struct dossier_run *run)
{
    head(out, "record_info", "What this record is of.");
    gpul_buf_append_text(out, "gpulaunch_record_info{");
    label(out, "verb", run->verb);
    gpul_buf_append_text(out, ",");
    label(out, "version", run->version);
    gpul_buf_append_text(out, ",");
    label(out, "backend", run->backend);
    gpul_buf_append_text(out, ",");
    label(out, "simulated",
          run->may_be_simulated ? "unknown"
          : run->is_simulated   ? "true"
                                : "false");
    gpul_buf_append_text(out, "} 1\n");
    plain(out, "record_started_timestamp_seconds",
          "When it was begun, seconds since 1970.", known(run->started_unix_s));
    plain(out, "record_nodes", "Nodes of the job.", known(run->node_count));
}

static void draw_end(struct gpul_buf *out, const struct dossier_end *end)
{
    plain(out, "record_is_complete", "1 unless the record was cut short.",
          end != NULL);
    if (end == NULL) {
        return;
    }
    plain(out, "record_exit_code", "Exit code of gpulaunch.",
          known(end->exit_code));
    plain(out, "record_duration_seconds", "How long it took.", end->duration_s);
    const struct {
        const char *severity;
        int64_t count;
    } counts[] = {
        {"pass", end->passes},
        {"warn", end->warnings},
        {"fail", end->failures},
        {"unknown", end->unknowns},
    };
    head(out, "check_findings", "Findings by severity.");
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        if (counts[i].count != DOSSIER_UNKNOWN) {
            gpul_buf_appendf(out,
                             "gpulaunch_check_findings{severity=\"%s\"} "
                             "%" PRId64 "\n",
                             counts[i].severity, counts[i].count);
        }
    }
}

static void draw_finding(struct gpul_buf *out, const struct dossier_finding *f,
                         const char *node)
{
    gpul_buf_append_text(out, "gpulaunch_check_finding{");
    label(out, "id", f->id);
    gpul_buf_append_text(out, ",");
    label(out, "severity", f->severity);
    gpul_buf_append_text(out, ",");
    label(out, "node", node);
    gpul_buf_append_text(out, "} 1\n");
}

static bool is_reported(const struct dossier_finding *f)
{
    return f->severity != NULL && strcmp(f->severity, "pass") != 0;
}

/* Two lines of one name and the same labels would make the text invalid. */
static bool is_told_already(const struct dossier *d, size_t at,
                            const char *node)
{
    const struct dossier_finding *f = dossier_at(d, DOSSIER_FINDING, at);
    for (size_t i = 0; i < at; i++) {
        const struct dossier_finding *e = dossier_at(d, DOSSIER_FINDING, i);
        bool is_alike = is_reported(e) && e->id != NULL && f->id != NULL &&
                        strcmp(e->id, f->id) == 0 &&
                        strcmp(e->severity, f->severity) == 0;
        for (size_t k = 0; is_alike && k < e->nodes.count; k++) {
            if (strcmp(e->nodes.items[k], node) == 0) {
                return true;
            }
        }
        if (is_alike && e->nodes.count == 0 && node[0] == '\0') {
            return true;
        }
    }
    return false;
}

static void draw_findings(struct gpul_buf *out, const struct dossier *d)
{
    head(out, "check_finding", "1 for each node and check that did not pass.");
    for (size_t i = 0; i < dossier_count(d, DOSSIER_FINDING); i++) {
        const struct dossier_finding *f = dossier_at(d, DOSSIER_FINDING, i);
        if (!is_reported(f)) {
            continue;
        }
        if (f->nodes.count == 0 && !is_told_already(d, i, "")) {
            draw_finding(out, f, "");
        }
        for (size_t k = 0; k < f->nodes.count; k++) {
            if (!is_told_already(d, i, f->nodes.items[k])) {
                draw_finding(out, f, f->nodes.items[k]);
            }
        }
    }
}

static void draw_bandwidths(struct gpul_buf *out, const struct dossier *d)
{
    head(out, "bus_bandwidth_bytes_per_second",
         "Bus bandwidth of a collective, by its median time.");
    for (size_t i = 0; i < dossier_count(d, DOSSIER_BANDWIDTH); i++) {
        const struct dossier_bandwidth *b = dossier_at(d, DOSSIER_BANDWIDTH, i);
        if (isfinite(b->busbw)) {
            gpul_buf_append_text(out,
                                 "gpulaunch_bus_bandwidth_bytes_per_second{");
            label(out, "collective", b->collective);
            gpul_buf_append_text(out, ",");
            label(out, "scope", b->scope);
            gpul_buf_appendf(
                out, ",nodes=\"%" PRId64 "\",bytes=\"%" PRId64 "\"} %.12g\n",
                b->node_count, b->bytes, b->busbw);
        }
    }
}

static void draw_efficiencies(struct gpul_buf *out, const struct dossier *d)
{
    head(out, "scaling_efficiency_ratio",
         "Scaling efficiency of the command against the reference.");
    for (size_t i = 0; i < dossier_count(d, DOSSIER_EFFICIENCY); i++) {
        const struct dossier_efficiency *e =
            dossier_at(d, DOSSIER_EFFICIENCY, i);
        if (isfinite(e->efficiency)) {
            gpul_buf_appendf(
                out,
                "gpulaunch_scaling_efficiency_ratio{nodes=\"%" PRId64 "\",",
                e->node_count);
            label(out, "scaling", e->scaling);
            gpul_buf_appendf(out, "} %.12g\n", e->efficiency);
        }
    }
}

int exposition_draw(struct gpul_buf *out, const struct dossier *d)
{
    draw_run(out, dossier_run(d));
    draw_end(out, dossier_end(d));
    if (dossier_count(d, DOSSIER_FINDING) > 0) {
        draw_findings(out, d);
    }
    if (dossier_count(d, DOSSIER_BANDWIDTH) > 0) {
        draw_bandwidths(out, d);
    }
    if (dossier_count(d, DOSSIER_EFFICIENCY) > 0) {
        draw_efficiencies(out, d);
    }
    return out->is_failed ? GPUL_ELIMIT : 0;
}
