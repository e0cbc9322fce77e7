/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cli_handon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gpul_option *cli_tables_join(size_t *count,
                                    const struct cli_table *tables,
                                    size_t table_count)
{
    *count = 0;
    for (size_t i = 0; i < table_count; i++) {
        *count += tables[i].count;
    }
    struct gpul_option *all = calloc(*count, sizeof(*all));
    size_t used = 0;
    for (size_t i = 0; i < table_count && all != NULL; i++) {
        memcpy(all + used, tables[i].options, tables[i].count * sizeof(*all));
        used += tables[i].count;
    }
    return all;
}

int cli_hand_on(struct plan *plan, const char *name, const char *value,
                struct gpul_error *err)
{
    char **words =
        realloc(plan->handed_on, (plan->handed_on_count + 1) * sizeof(*words));
    if (words == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    plan->handed_on = words;
    size_t n = strlen(name) + (value != NULL ? strlen(value) : 0) + 4;
    char *word = malloc(n);
    if (word == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    snprintf(word, n, "--%s%s%s", name, value != NULL ? "=" : "",
             value != NULL ? value : "");
    words[plan->handed_on_count++] = word;
    return 0;
}
