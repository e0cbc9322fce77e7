/* SPDX-License-Identifier: Apache-2.0
 *
 * A scheduler's time limit, where it is known ahead: the job ends in order
 * shortly before, instead of by the scheduler's signals.
 */
#include <inttypes.h>

#include "common/units.h"
#include "launcher/cli.h"

enum {
    /* So much earlier: then ours is the first word, and what the scheduler
     * grants after its own (Slurm's KillWait, 30 s) is there for the grace. */
    EARLIER_S = 5,
    DURATION_BYTES = 32,
};

int cli_limit(struct plan *plan, uint64_t now_s, struct gpul_error *err)
{
    uint64_t end_s = plan->allocation.end_s;
    if (plan->timeout_ms > 0 || end_s <= now_s + EARLIER_S ||
        (end_s - now_s) * 1000 > UINT32_MAX) {
        return 0; /* none, or far away */
    }
    plan->timeout_ms = (uint32_t)(end_s - now_s - EARLIER_S) * 1000;
    plan->has_limit = true;
    if (plan->warning_signal != 0 && plan->warning_ms >= plan->timeout_ms) {
        const struct plan_setting *signal = &plan->settings[OPTION_SIGNAL];
        char left[DURATION_BYTES];
        gpul_format_duration(left, plan->timeout_ms);
        return gpul_fail(err, GPUL_EINVAL,
                         "%s %s: the job of %s ends in %s; give a time after "
                         "the @ that is shorter",
                         signal->spelling, signal->value,
                         nodes_scheduler(plan->allocation.source), left);
    }
    return 0;
}
