/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/grade.h"

#include "common/ceiling.h"

enum { LATENCY_SHARES = 10 };

static bool is_copy(const Gpul__SelfTestRow *row)
{
    return row->collective >= GPUL__COLLECTIVE__COLLECTIVE_COPY_TO_DEVICE;
}

void grade_scale_init(struct grade_scale *scale, Gpul__SelfTestRow *const *rows,
                      size_t count, bool is_simulated)
{
    *scale = (struct grade_scale){{UINT64_MAX, UINT64_MAX}, is_simulated};
    for (size_t i = 0; i < count; i++) {
        for (int s = (int)rows[i]->scope; s <= GPUL__SCOPE__SCOPE_NODE; s++) {
            if (!is_copy(rows[i]) && rows[i]->median_ns < scale->latency_ns[s])
                scale->latency_ns[s] = rows[i]->median_ns;
        }
    }
}

bool grade_percent(double *percent, const struct grade_scale *scale,
                   const Gpul__SelfTestRow *row)
{
    *percent = 0;
    if (scale->is_simulated || !(row->ceiling_gbps > 0) ||
        !grade_has_busbw(row))
        return false;
    *percent = 100 * row->busbw_gbps / row->ceiling_gbps;
    return true;
}

enum grade grade_row(const struct grade_scale *scale,
                     const Gpul__SelfTestRow *row)
{
    struct gpul_shares shares =
        gpul_default_shares((enum gpul_link)row->ceiling_kind);
    double percent = 0;
    if (scale->is_simulated)
        return GRADE_NONE;
    if (!grade_percent(&percent, scale, row))
        return GRADE_UNKNOWN;
    if (percent >= 100 * shares.warn)
        return GRADE_GOOD;
    /* A copy has no peer to wait for, and is never small. */
    if (!is_copy(row) &&
        row->median_ns / LATENCY_SHARES < scale->latency_ns[row->scope])
        return GRADE_SMALL;
    return percent >= 100 * shares.fail ? GRADE_LOW : GRADE_SLOW;
}

const char *grade_name(enum grade grade)
{
    static const char *const names[] = {
        [GRADE_SMALL] = "small",     [GRADE_GOOD] = "good",
        [GRADE_LOW] = "low",         [GRADE_SLOW] = "slow",
        [GRADE_UNKNOWN] = "unknown",
    };
    return names[grade];
}

bool grade_has_busbw(const Gpul__SelfTestRow *row)
{
    return row->busbw_gbps > 0 || !(row->algbw_gbps > 0);
}
