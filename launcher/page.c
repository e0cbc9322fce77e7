/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/page.h"

#include <inttypes.h>
#include <string.h>

#include "common/error.h"
#include "launcher/chart.h"

/* Nothing may be loaded, whatever a text in the record says. */
static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" "
    "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, "
    "initial-scale=1\">\n";

static const char style[] =
    "<style>\n"
    ":root{--bg:#fff;--fg:#1b1f24;--soft:#59636e;--line:#d1d9e0;"
    "--tile:#f6f8fa;--good:#1a7f37;--warn:#9a6700;--bad:#cf222e;"
    "--odd:#6639ba;--c0:#0969da;--c1:#bc4c00;--c2:#1a7f37;--c3:#8250df;"
    "--c4:#bf3989;--c5:#59636e}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#0d1117;--fg:#e6edf3;"
    "--soft:#9198a1;--line:#3d444d;--tile:#151b23;--good:#3fb950;"
    "--warn:#d29922;--bad:#f85149;--odd:#ab7df8;--c0:#4493f8;--c1:#f0883e;"
    "--c2:#3fb950;--c3:#ab7df8;--c4:#db61a2;--c5:#9198a1}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0 auto;max-width:1100px;padding:16px;background:var(--bg);"
    "color:var(--fg);font:15px/1.5 system-ui,sans-serif}\n"
    "h1{font-size:1.5rem;margin:.2em 0}h2{font-size:1.15rem;margin:2em 0 .5em;"
    "border-bottom:1px solid var(--line)}h3{font-size:1rem;margin:1.2em 0 "
    ".3em}\n"
    ".soft,.none{color:var(--soft)}\n"
    ".tiles{display:flex;flex-wrap:wrap;gap:8px;margin:12px 0}\n"
    ".tile{background:var(--tile);border:1px solid var(--line);"
    "border-radius:6px;padding:8px 14px;min-width:86px}\n"
    ".tile b{display:block;font-size:1.4rem;line-height:1.2}\n"
    ".pass{color:var(--good)}.warn{color:var(--warn)}.fail{color:var(--bad)}"
    ".unknown{color:var(--odd)}\n"
    ".simulated{background:var(--warn);color:var(--bg);padding:2px 8px;"
    "border-radius:4px}\n"
    ".wide{overflow-x:auto}\n"
    "table{border-collapse:collapse;font-size:.92rem}\n"
    "th,td{text-align:left;vertical-align:top;padding:4px 10px 4px 0;"
    "border-bottom:1px solid var(--line)}\n"
    "th{color:var(--soft);font-weight:600}td.n{text-align:right;"
    "font-variant-numeric:tabular-nums;white-space:nowrap}\n"
    "code,.id{font-family:ui-monospace,monospace;font-size:.9em}"
    ".id{white-space:nowrap}\n"
    ".map td,.map th{border:1px solid var(--bg);padding:3px 6px;"
    "text-align:center;font-size:.8rem;white-space:nowrap}\n"
    ".h0{background:#2da44e33}.h1{background:#d4a72c44}"
    ".h2{background:#fb8f4477}.h3{background:#cf222e99}"
    ".hx{background:#8250df77}\n"
    "svg{width:100%;height:auto;min-width:560px;max-width:860px;display:block}"
    "\n"
    ".grid{stroke:var(--line)}.axis{stroke:var(--soft)}\n"
    ".label{fill:var(--soft);font:12px system-ui,sans-serif}\n"
    "polyline{fill:none}polyline,.s0,.s1,.s2,.s3,.s4,.s5{stroke-width:2}\n"
    ".s0{stroke:var(--c0)}.s1{stroke:var(--c1)}.s2{stroke:var(--c2)}"
    ".s3{stroke:var(--c3)}.s4{stroke:var(--c4)}.s5{stroke:var(--c5)}\n"
    ".mark{fill:var(--bg)}.dashed{stroke-dasharray:6 5}\n"
    "details{margin:.5em 0}summary{cursor:pointer;color:var(--soft)}\n"
    "@media(max-width:600px){.stack thead{display:none}.stack tr{display:block;"
    "padding:8px 0;border-bottom:1px solid var(--line)}.stack td{display:block;"
    "border:0;padding:1px 0}}\n"
    "</style>\n";

void page_cell(struct gpul_buf *out, const char *text)
{
    gpul_buf_append_text(out, "<td>");
    chart_text(out, text);
    gpul_buf_append_text(out, "</td>");
}

enum { NAMES_SHOWN = 6 };

void page_names(struct gpul_buf *out, const struct dossier_texts *nodes)
{
    size_t shown = nodes->count <= NAMES_SHOWN ? nodes->count : NAMES_SHOWN - 1;
    if (nodes->count == 0) {
        gpul_buf_append_text(out, "all");
    }
    for (size_t i = 0; i < shown; i++) {
        gpul_buf_append_text(out, i > 0 ? ", " : "");
        chart_text(out, nodes->items[i]);
    }
    if (shown < nodes->count) {
        gpul_buf_appendf(out, " and %zu more", nodes->count - shown);
    }
}

static void draw_tile(struct gpul_buf *out, const char *class, int64_t count,
                      const char *label)
{
    gpul_buf_appendf(out, "<div class=\"tile\"><b class=\"%s\">", class);
    if (count == DOSSIER_UNKNOWN) {
        gpul_buf_append_text(out, "?");
    } else {
        gpul_buf_appendf(out, "%" PRId64, count);
    }
    gpul_buf_appendf(out, "</b>%s</div>\n", label);
}

/* A record that has no end was cut short: that is never a pass. */
static void draw_outcome(struct gpul_buf *out, const struct dossier_end *end)
{
    if (end == NULL) {
        gpul_buf_append_text(out, "<p class=\"fail\"><b>This record has no "
                                  "end: it was cut short.</b></p>\n");
        return;
    }
    bool is_good = end->exit_code == 0;
    gpul_buf_appendf(out, "<p class=\"%s\"><b>%s", is_good ? "pass" : "fail",
                     is_good ? "Passed" : "Not passed");
    if (!is_good && end->exit_code != DOSSIER_UNKNOWN) {
        gpul_buf_appendf(out, ", exit code %" PRId64, end->exit_code);
    }
    gpul_buf_append_text(out, "</b></p>\n<p>");
    chart_text(out, end->message);
    gpul_buf_append_text(out, "</p>\n");
    if ((end->failures | end->unknowns | end->warnings | end->passes) == 0) {
        return; /* a sweep, which has no findings */
    }
    gpul_buf_append_text(out, "<div class=\"tiles\">\n");
    draw_tile(out, "fail", end->failures, "failed");
    draw_tile(out, "unknown", end->unknowns, "unknown");
    draw_tile(out, "warn", end->warnings, "warnings");
    draw_tile(out, "pass", end->passes, "passed");
    gpul_buf_append_text(out, "</div>\n");
}

/* Year, month and day of so many days after 1970-01-01. Years are counted from
 * March, so that a leap day is the last of its year; 400 of them have 146,097
 * days. */
static void find_date(int64_t days, int64_t date[3])
{
    enum { DAYS_OF_400 = 146097, TO_MARCH_OF_0 = 719468 };
    int64_t all = days + TO_MARCH_OF_0;
    int64_t era = all / DAYS_OF_400;
    int64_t day = all % DAYS_OF_400;
    int64_t year =
        (day - day / 1460 + day / 36524 - day / (DAYS_OF_400 - 1)) / 365;
    day -= 365 * year + year / 4 - year / 100;
    int64_t month = (5 * day + 2) / 153; /* from March; 153 days in each five */
    date[0] = era * 400 + year + (month >= 10 ? 1 : 0);
    date[1] = month < 10 ? month + 3 : month - 9;
    date[2] = day - (153 * month + 2) / 5 + 1;
}

/* "2026-12-01 10:00 UTC" from seconds since 1970. */
static void append_time(struct gpul_buf *out, int64_t unix_s)
{
    enum { DAY_S = 86400 };
    static const int64_t end_of_9999 = 253402300799;
    int64_t date[3];
    if (unix_s < 0 || unix_s > end_of_9999) { /* DOSSIER_UNKNOWN, too */
        gpul_buf_append_text(out, "unknown");
        return;
    }
    find_date(unix_s / DAY_S, date);
    gpul_buf_appendf(out, "%04d-%02d-%02d %02d:%02d UTC", (int)date[0],
                     (int)date[1], (int)date[2], (int)(unix_s % DAY_S / 3600),
                     (int)(unix_s % 3600 / 60));
}

static void draw_command(struct gpul_buf *out, const struct dossier_run *run)
{
    if (!run->has_command || run->command.count == 0) {
        return;
    }
    gpul_buf_append_text(out, "<p><code>");
    for (size_t i = 0; i < run->command.count; i++) {
        gpul_buf_append_text(out, i > 0 ? " " : "");
        chart_text(out, run->command.items[i]);
    }
    gpul_buf_append_text(out, "</code></p>\n");
}

static void draw_title(struct gpul_buf *out, const struct dossier_run *run)
{
    gpul_buf_append_text(out, "gpulaunch ");
    chart_text(out, run->verb);
    if (run->is_simulated) {
        gpul_buf_append_text(out, " (SIMULATED)");
    }
}

static void draw_run(struct gpul_buf *out, const struct dossier_run *run)
{
    gpul_buf_append_text(out, "<h1>");
    draw_title(out, run);
    gpul_buf_append_text(out, "</h1>\n");
    if (run->is_simulated) {
        gpul_buf_append_text(out,
                             "<p><span class=\"simulated\">A double stood in "
                             "for a library: no figure here says anything of "
                             "hardware.</span></p>\n");
    }
    gpul_buf_append_text(out, "<p class=\"soft\">");
    if (run->node_count != DOSSIER_UNKNOWN) {
        gpul_buf_appendf(out, "%" PRId64 " node%s, ", run->node_count,
                         run->node_count == 1 ? "" : "s");
    }
    append_time(out, run->started_unix_s);
    gpul_buf_append_text(out, ", job ");
    chart_text(out, run->job_id);
    gpul_buf_append_text(out, ", backend ");
    chart_text(out, run->backend != NULL ? run->backend : "none");
    gpul_buf_append_text(out, "</p>\n");
    draw_command(out, run);
}

int page_draw(struct gpul_buf *out, const struct dossier *d)
{
    const struct dossier_run *run = dossier_run(d);
    gpul_buf_append_text(out, head);
    gpul_buf_append_text(out, "<title>");
    draw_title(out, run);
    gpul_buf_append_text(out, "</title>\n");
    gpul_buf_append_text(out, style);
    gpul_buf_append_text(out, "</head><body>\n");
    draw_run(out, run);
    draw_outcome(out, dossier_end(d));
    page_verdicts(out, d);
    page_findings(out, d);
    page_scaling(out, d);
    page_rails(out, d);
    page_pairs(out, d);
    page_bandwidths(out, d);
    page_nodes(out, d);
    gpul_buf_append_text(out, "<p class=\"soft\">gpulaunch ");
    chart_text(out, run->version);
    gpul_buf_appendf(out, ", record schema %d. GB/s are 1e9 bytes a second.",
                     DOSSIER_SCHEMA_VERSION);
    gpul_buf_append_text(out, "</p>\n</body></html>\n");
    return out->is_failed ? GPUL_ELIMIT : 0;
}
