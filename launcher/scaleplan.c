/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/scaleplan.h"

#include <inttypes.h>
#include <string.h>

#include "common/units.h"
#include "proto/limits.h"

enum { NUMBER_BYTES = 16 };

/* In its place; GPUL_EINVAL: it is there already. */
static int insert(uint32_t *counts, size_t *count, uint32_t value,
                  struct gpul_error *err)
{
    size_t at = *count;
    while (at > 0 && counts[at - 1] > value) {
        at--;
    }
    if (at > 0 && counts[at - 1] == value) {
        return gpul_fail(err, GPUL_EINVAL, "%" PRIu32 " is there twice", value);
    }
    memmove(counts + at + 1, counts + at, (*count - at) * sizeof(*counts));
    counts[at] = value;
    (*count)++;
    return 0;
}

int scaleplan_parse_counts(uint32_t *counts, size_t *count, const char *text,
                           struct gpul_error *err)
{
    *count = 0;
    for (const char *at = text;; at++) {
        char number[NUMBER_BYTES] = "";
        size_t n = strcspn(at, ",");
        uint32_t value;
        if (n == 0 || n >= sizeof(number)) {
            return gpul_fail(err, GPUL_EINVAL,
                             "\"%.80s\" is no list of counts, as in 1,2,4,8",
                             text);
        }
        memcpy(number, at, n);
        if (*count == SCALEPLAN_COUNTS_MAX) {
            return gpul_fail(err, GPUL_EINVAL, "more than %d counts",
                             SCALEPLAN_COUNTS_MAX);
        }
        int rc = gpul_parse_count(&value, number, 1, GPUL_NODES_MAX, err);
        if (rc == 0) {
            rc = insert(counts, count, value, err);
        }
        at += n;
        if (rc != 0 || *at == '\0') {
            return rc;
        }
    }
}

size_t scaleplan_run_count(const struct scaleplan *plan)
{
    return plan->count_count * plan->repeats;
}

struct scaleplan_run scaleplan_run_at(const struct scaleplan *plan, size_t i)
{
    size_t round = i / plan->count_count, step = i % plan->count_count;
    size_t place = round % 2 == 0 ? step : plan->count_count - 1 - step;
    return (struct scaleplan_run){.place = place,
                                  .nodes = plan->counts[place],
                                  .repeat = (uint32_t)round + 1};
}
