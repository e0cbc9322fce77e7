/* SPDX-License-Identifier: Apache-2.0
 *
 * The verbs that read records, report and diff: no job, no nodes. Pure.
 */
#ifndef LAUNCHER_CLI_REPORT_H
#define LAUNCHER_CLI_REPORT_H

#include "common/buf.h"
#include "common/error.h"
#include "launcher/plan.h"

/* Read what follows the verb, which is that of the plan. The environment has
 * no say. Errors as those of cli_parse. */
int cli_report_parse(struct plan *plan, int argc, char *const argv[],
                     struct gpul_error *err);

/* One option of cli_report_options, of any verb that draws. GPUL_EINVAL: no
 * name of a file. */
int cli_report_set(struct plan *plan, size_t index, const char *value,
                   const char *spelling, struct gpul_error *err);

/* Append the help text of one of the two verbs. */
int cli_report_help(struct gpul_buf *out, enum plan_verb verb);

/* The options of report, for other verbs that draw, and the test of the man
 * page. */
const struct gpul_option *cli_report_options(size_t *count);

#endif
