/* SPDX-License-Identifier: Apache-2.0
 *
 * For verbs that have options of their own and hand those of run on to the
 * gpulaunch which runs the command. Part of cli; pure.
 */
#ifndef LAUNCHER_CLI_HANDON_H
#define LAUNCHER_CLI_HANDON_H

#include <stddef.h>

#include "common/error.h"
#include "common/options.h"
#include "launcher/plan.h"

struct cli_table {
    const struct gpul_option *options;
    size_t count;
};

/* All in one, to be freed; of two of a name the first counts. NULL: no memory.
 */
struct gpul_option *cli_tables_join(size_t *count,
                                    const struct cli_table *tables,
                                    size_t table_count);

/* Add a word to plan->handed_on, as the table calls it: "--name=value", or
 * "--name" where there is no value. GPUL_ENOMEM. */
int cli_hand_on(struct plan *plan, const char *name, const char *value,
                struct gpul_error *err);

#endif
