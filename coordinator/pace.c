/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/pace.h"

#include "proto/limits.h"

#define ONE UINT64_C(1000) /* message */

/* A bucket: what it holds, and how much of it runs out each second. */
struct limit {
    uint32_t burst;
    uint32_t per_s;
};

static enum pace_kind kind_of(const Gpul__Frame *frame)
{
    switch (frame->body_case) {
    case GPUL__FRAME__BODY_OUTPUT:
    case GPUL__FRAME__BODY_INPUT_CREDIT:
        return PACE_KINDS;
    case GPUL__FRAME__BODY_PROBE_ID:
    case GPUL__FRAME__BODY_PROBE_PHASE:
    case GPUL__FRAME__BODY_PROBE_RESULT:
        return PACE_PROBES;
    case GPUL__FRAME__BODY_EXITS:
    case GPUL__FRAME__BODY_STALL:
        return PACE_RANKS;
    case GPUL__FRAME__BODY_ENV_REPORT:
        return PACE_REPORTS;
    default:
        return PACE_CONTROL;
    }
}

static struct limit limit_of(enum pace_kind kind, uint32_t ranks)
{
    switch (kind) {
    case PACE_PROBES:
        return (struct limit){GPUL_PACE_PROBES_BURST, GPUL_PACE_PROBES_PER_S};
    case PACE_RANKS:
        return (struct limit){GPUL_PACE_BURST + ranks * GPUL_PACE_OF_RANK_BURST,
                              GPUL_PACE_PER_S +
                                  ranks * GPUL_PACE_OF_RANK_PER_S};
    case PACE_REPORTS:
        return (struct limit){ranks * GPUL_PACE_REPORTS_OF_RANK, 0};
    default:
        return (struct limit){GPUL_PACE_BURST, GPUL_PACE_PER_S};
    }
}

bool pace_take(struct pace *p, const Gpul__Frame *frame, uint32_t ranks,
               uint64_t now_ms)
{
    enum pace_kind kind = kind_of(frame);
    if (kind == PACE_KINDS) {
        return true;
    }
    struct limit limit = limit_of(kind, ranks);
    /* Of a second, `per_s` messages are that many thousandths of one a
     * millisecond. No bucket is so large that it is not empty after that. */
    uint64_t past_ms = now_ms - p->at_ms[kind];
    uint64_t most_ms = UINT32_MAX;
    uint64_t run_out = (past_ms < most_ms ? past_ms : most_ms) * limit.per_s;
    p->used[kind] -= run_out < p->used[kind] ? run_out : p->used[kind];
    p->at_ms[kind] = now_ms;
    if (p->used[kind] + ONE > limit.burst * ONE) {
        return false;
    }
    p->used[kind] += ONE;
    return true;
}
