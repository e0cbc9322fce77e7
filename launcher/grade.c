/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/grade.h"

enum {
    GOOD_PERCENT = 80,
    LOW_PERCENT = 70,
    LATENCY_SHARES = 10,
};

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
    double percent = 0;
    if (!grade_percent(&percent, scale, row))
        return GRADE_NONE;
    if (percent >= GOOD_PERCENT)
        return GRADE_GOOD;
    if (row->median_ns / LATENCY_SHARES < scale->latency_ns[row->scope])
        return GRADE_SMALL;
    return percent >= LOW_PERCENT ? GRADE_LOW : GRADE_SLOW;
}

const char *grade_name(enum grade grade)
{
    static const char *const names[] = {
        [GRADE_SMALL] = "small",
        [GRADE_GOOD] = "good",
        [GRADE_LOW] = "low",
        [GRADE_SLOW] = "slow",
    };
    return names[grade];
}

bool grade_has_busbw(const Gpul__SelfTestRow *row)
{
    return row->busbw_gbps > 0 || !(row->algbw_gbps > 0);
}
