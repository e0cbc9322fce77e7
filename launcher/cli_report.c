/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cli_report.h"

#include <string.h>

enum own { OWN_HTML, OWN_JUNIT, OWN_PROMETHEUS, OWN_COUNT };

#define DRAWING "What is drawn (FILE - is standard output)"

static const struct gpul_option own_table[OWN_COUNT] = {
    [OWN_HTML] = {.name = "html",
                  .value = "FILE",
                  .group = DRAWING,
                  .help = "One page for a browser, with pictures; it loads "
                          "nothing from anywhere."},
    [OWN_JUNIT] = {.name = "junit",
                   .value = "FILE",
                   .group = DRAWING,
                   .help = "JUnit XML, for continuous integration."},
    [OWN_PROMETHEUS] = {.name = "prometheus",
                        .value = "FILE",
                        .group = DRAWING,
                        .help = "Prometheus text, for the textfile collector "
                                "of a node exporter."},
};

static const char report_head[] =
    "Usage: gpulaunch report RECORD [--html FILE] [--junit FILE]\n"
    "                        [--prometheus FILE]\n"
    "\n"
    "Draw a record that check, doctor or scale has written with --record.\n"
    "\n";

static const char report_tail[] =
    "\n"
    "Example: gpulaunch report check.jsonl --html check.html\n"
    "The manual: man gpulaunch\n";

static const char diff_text[] =
    "Usage: gpulaunch diff BEFORE AFTER\n"
    "\n"
    "Print what has changed from one record (--record of check, doctor or\n"
    "scale) to another: nodes, their facts, findings, bandwidths and\n"
    "efficiencies that moved by more than 5 %. Exit codes: 0 nothing has\n"
    "changed; 1 something has; 125 a record could not be read.\n"
    "\n"
    "Example: gpulaunch diff last-week.jsonl today.jsonl\n"
    "The manual: man gpulaunch\n";

int cli_report_set(struct plan *plan, size_t index, const char *value,
                   const char *spelling, struct gpul_error *err)
{
    if (value == NULL || value[0] == '\0') {
        return gpul_fail(err, GPUL_EINVAL, "%s: the name of a file is empty",
                         spelling);
    }
    switch ((enum own)index) {
    case OWN_HTML:
        plan->drawings.html = value;
        return 0;
    case OWN_JUNIT:
        plan->drawings.junit = value;
        return 0;
    default:
        plan->drawings.prometheus = value;
        return 0;
    }
}

static int on_value(void *arg, size_t index, const char *value,
                    const char *spelling, enum gpul_option_source source,
                    struct gpul_error *err)
{
    (void)source;
    return cli_report_set(arg, index, value, spelling, err);
}

static int take_operand(struct plan *plan, const char *word,
                        struct gpul_error *err)
{
    bool is_diff = plan->verb == PLAN_DIFF;
    for (int i = 0; i <= is_diff; i++) {
        if (plan->records[i] == NULL) {
            plan->records[i] = word;
            return 0;
        }
    }
    return gpul_fail(err, GPUL_EINVAL,
                     "%s: \"%.80s\" is one argument too many; it takes %s",
                     is_diff ? "diff" : "report", word,
                     is_diff ? "two records" : "one record");
}

static int check(const struct plan *plan, struct gpul_error *err)
{
    if (plan->verb == PLAN_DIFF) {
        return plan->records[1] != NULL
                   ? 0
                   : gpul_fail(err, GPUL_EINVAL,
                               "diff: which two records? gpulaunch diff "
                               "BEFORE AFTER");
    }
    if (plan->records[0] == NULL) {
        return gpul_fail(err, GPUL_EINVAL,
                         "report: of which record? gpulaunch report RECORD "
                         "--html FILE");
    }
    return plan->drawings.html != NULL || plan->drawings.junit != NULL ||
                   plan->drawings.prometheus != NULL
               ? 0
               : gpul_fail(err, GPUL_EINVAL,
                           "report: what is to be drawn? --html FILE, --junit "
                           "FILE or --prometheus FILE; FILE - is standard "
                           "output");
}

int cli_report_parse(struct plan *plan, int argc, char *const argv[],
                     struct gpul_error *err)
{
    struct gpul_options options = {
        .table = own_table,
        .count = plan->verb == PLAN_DIFF ? 0 : OWN_COUNT,
        .stops_at_operand = true,
        .on_value = on_value,
        .arg = plan,
    };
    int rc = 0;
    while (rc == 0) {
        int rest = 0;
        bool has_separator = false;
        rc = gpul_options_parse(&options, argc, argv, &rest, &has_separator,
                                err);
        if (rc != 0 || rest >= argc) {
            break;
        }
        rc = take_operand(plan, argv[rest], err);
        argv += rest + 1;
        argc -= rest + 1;
    }
    return rc != 0 ? rc : check(plan, err);
}

int cli_report_help(struct gpul_buf *out, enum plan_verb verb)
{
    struct gpul_options options = {.table = own_table, .count = OWN_COUNT};
    if (verb == PLAN_DIFF) {
        return gpul_buf_append_text(out, diff_text);
    }
    gpul_buf_append_text(out, report_head);
    gpul_options_help(out, &options);
    return gpul_buf_append_text(out, report_tail);
}

const struct gpul_option *cli_report_options(size_t *count)
{
    *count = OWN_COUNT;
    return own_table;
}
