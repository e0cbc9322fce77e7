/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a step takes that has been measured elsewhere.
 */
#include <math.h>

#include "launcher/planning.h"

double planning_reduced_bytes(const struct planning_model *m)
{
    const double gathered_again = 1.5;
    double number = m->precision == PLANNING_FP32 ? 4 : 2;
    return number * m->params.value * (m->zero_stage >= 3 ? gathered_again : 1);
}

static bool is_time(double seconds)
{
    return seconds > 0 && isfinite(seconds);
}

bool planning_overlap(double *out, double step_seconds, double compute_seconds,
                      double all_reduce_seconds)
{
    *out = 0;
    if (!is_time(step_seconds) || !is_time(compute_seconds) ||
        !is_time(all_reduce_seconds)) {
        return false;
    }
    double shown = (step_seconds - compute_seconds) / all_reduce_seconds;
    *out = fmin(fmax(1 - shown, 0), 1);
    return true;
}

static int check_step(const struct planning_step *s, struct gpul_error *err)
{
    const struct gpul_interval *i = &s->all_reduce.interval;
    if (s->compute.source == PLANNING_UNKNOWN || !is_time(s->compute.value)) {
        return gpul_fail(err, GPUL_EINVAL,
                         "the time that a step computes is not known; measure "
                         "it on one node, or give it");
    }
    if (s->all_reduce_source == PLANNING_UNKNOWN ||
        !(s->all_reduce.value >= 0 && i->low >= 0 && isfinite(i->high)) ||
        !(i->low <= s->all_reduce.value && s->all_reduce.value <= i->high)) {
        return gpul_fail(err, GPUL_EINVAL,
                         "the time of the all-reduce is not known; measure it "
                         "at several sizes and counts of nodes");
    }
    if (s->overlap.source != PLANNING_UNKNOWN &&
        !(s->overlap.value >= 0 && s->overlap.value <= 1)) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%g is no share of the all-reduce that computing "
                         "hides; give one from 0 to 1",
                         s->overlap.value);
    }
    return 0;
}

int planning_predict(struct planning_prediction *out,
                     const struct planning_step *s, struct gpul_error *err)
{
    *out = (struct planning_prediction){.source = PLANNING_UNKNOWN};
    int status = check_step(s, err);
    if (status != 0) {
        return status;
    }
    bool is_known = s->overlap.source != PLANNING_UNKNOWN;
    double hidden_least = is_known ? s->overlap.value : 0;
    double hidden_most = is_known ? s->overlap.value : 1;
    double compute = s->compute.value;
    struct gpul_estimate *step = &out->step;
    step->value = compute + (1 - hidden_least) * s->all_reduce.value;
    step->interval.low =
        compute + (1 - hidden_most) * s->all_reduce.interval.low;
    step->interval.high =
        compute + (1 - hidden_least) * s->all_reduce.interval.high;
    step->extrapolation = s->all_reduce.extrapolation;
    out->efficiency = (struct gpul_estimate){
        .value = compute / step->value,
        .interval = {compute / step->interval.high,
                     compute / step->interval.low},
        .extrapolation = step->extrapolation,
    };
    out->source = s->compute.source;
    enum planning_source others[] = {
        s->all_reduce_source, is_known ? s->overlap.source : PLANNING_ASSUMED};
    for (int i = 0; i < 2; i++) {
        out->source = others[i] > out->source ? others[i] : out->source;
    }
    return 0;
}
