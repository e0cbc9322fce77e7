/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/arrival.h"

#include <stdlib.h>
#include <string.h>

#include "common/stats.h"

/* Fewer times than this have no mean to speak of. */
enum { TIMES_MIN = 3 };

/* One iteration, on the common clock and counted from its `base`. */
struct moment {
    uint64_t base_ns;
    uint32_t ranks; /* with times on a clock that is known */
    double enter;   /* lower medians of the ranks */
    double leave;
    double before; /* on each rank's own clock */
    double last_enter;
    double last_leave;
    double second_enter; /* before the last */
    uint32_t last_rank;
    uint32_t second_rank;
};

struct work {
    const struct arrival_input *in;
    struct arrival_report *report;
    struct moment *moments; /* iterations */
    double *scratch;        /* ranks or iterations, whichever are more */
    double *before_means;   /* ranks; 0: too few */
    double uncertainty_ns;  /* lower median of the clocks that are known */
};

/* ---- times ---- */

static const struct arrival_visit *visit(const struct work *w, uint32_t i,
                                         uint32_t rank)
{
    return &w->in->visits[(size_t)i * w->in->ranks + rank];
}

static bool is_measured(const struct work *w, uint32_t i, uint32_t rank)
{
    return visit(w, i, rank)->leave_ns > visit(w, i, rank)->enter_ns;
}

static bool is_comparable(const struct work *w, uint32_t i, uint32_t rank)
{
    return w->in->clocks[rank].is_known && is_measured(w, i, rank);
}

/* Numbers of a peer may be anything, so they wrap instead of overflowing. */
static uint64_t on_common_clock(const struct work *w, uint32_t rank,
                                int64_t time_ns)
{
    return (uint64_t)time_ns - (uint64_t)w->in->clocks[rank].offset_ns;
}

static double since_base(const struct work *w, uint32_t i, uint32_t rank,
                         int64_t time_ns)
{
    return (double)(int64_t)(on_common_clock(w, rank, time_ns) -
                             w->moments[i].base_ns);
}

static double forward(int64_t from_ns, int64_t to_ns)
{
    return (double)((uint64_t)to_ns - (uint64_t)from_ns);
}

/* From leaving the iteration before to entering this one. */
static bool find_before(double *out, const struct work *w, uint32_t i,
                        uint32_t rank)
{
    if (i == 0 || !is_measured(w, i, rank) || !is_measured(w, i - 1, rank) ||
        visit(w, i, rank)->enter_ns < visit(w, i - 1, rank)->leave_ns) {
        return false;
    }
    *out =
        forward(visit(w, i - 1, rank)->leave_ns, visit(w, i, rank)->enter_ns);
    return true;
}

/* ---- one iteration ---- */

/* Sorts them; 0 for none. */
static double lower_median(double *values, uint32_t count)
{
    double median;
    return gpul_median(&median, values, count) ? values[(count - 1) / 2] : 0;
}

static void note_arrival(struct moment *m, uint32_t rank, double enter)
{
    if (m->ranks == 1 || enter > m->last_enter) {
        m->second_enter = m->last_enter;
        m->second_rank = m->last_rank;
        m->last_enter = enter;
        m->last_rank = rank;
    } else if (m->ranks == 2 || enter > m->second_enter) {
        m->second_enter = enter;
        m->second_rank = rank;
    }
}

static void find_arrivals(struct work *w, uint32_t i)
{
    struct moment *m = &w->moments[i];
    for (uint32_t rank = 0; rank < w->in->ranks; rank++) {
        if (!is_comparable(w, i, rank)) {
            continue;
        }
        int64_t enter_ns = visit(w, i, rank)->enter_ns;
        if (m->ranks == 0) {
            m->base_ns = on_common_clock(w, rank, enter_ns);
        }
        double enter = since_base(w, i, rank, enter_ns);
        w->scratch[m->ranks++] = enter;
        note_arrival(m, rank, enter);
    }
    m->enter = lower_median(w->scratch, m->ranks);
}

static void find_moment(struct work *w, uint32_t i)
{
    struct moment *m = &w->moments[i];
    uint32_t count = 0;
    find_arrivals(w, i);
    for (uint32_t rank = 0; rank < w->in->ranks; rank++) {
        if (is_comparable(w, i, rank)) {
            w->scratch[count++] =
                since_base(w, i, rank, visit(w, i, rank)->leave_ns);
        }
    }
    m->leave = lower_median(w->scratch, count);
    m->last_leave = count == 0 ? 0 : w->scratch[count - 1];
    count = 0;
    for (uint32_t rank = 0; rank < w->in->ranks; rank++) {
        count += find_before(&w->scratch[count], w, i, rank);
    }
    m->before = lower_median(w->scratch, count);
}

/* From the last arrival to the last leaving; false if nobody can tell. */
static bool find_together(double *out, const struct work *w, uint32_t i)
{
    const struct moment *m = &w->moments[i];
    *out = m->last_leave - m->last_enter;
    return m->ranks >= 2 && *out > 0;
}

/* ---- one rank over all iterations ---- */

enum quantity { LATE, LEFT_LATE, INSIDE, WAITED, BEFORE, BEFORE_MORE };

static bool find_sample(double *out, const struct work *w,
                        enum quantity quantity, uint32_t i, uint32_t rank)
{
    const struct moment *m = &w->moments[i];
    const struct arrival_visit *v = visit(w, i, rank);
    switch (quantity) {
    case LATE:
        *out = since_base(w, i, rank, v->enter_ns) - m->enter;
        break;
    case LEFT_LATE:
        *out = since_base(w, i, rank, v->leave_ns) - m->leave;
        break;
    case WAITED:
        *out = m->last_enter - since_base(w, i, rank, v->enter_ns);
        break;
    case INSIDE:
        *out = forward(v->enter_ns, v->leave_ns);
        return is_measured(w, i, rank);
    case BEFORE:
        return find_before(out, w, i, rank);
    default:
        if (!find_before(out, w, i, rank)) {
            return false;
        }
        *out -= m->before;
        return true;
    }
    return m->ranks >= 2 && is_comparable(w, i, rank);
}

static double find_median(struct work *w, enum quantity quantity, uint32_t rank,
                          uint32_t *count)
{
    *count = 0;
    for (uint32_t i = 0; i < w->in->iterations; i++) {
        *count += find_sample(&w->scratch[*count], w, quantity, i, rank);
    }
    return lower_median(w->scratch, *count);
}

/* A difference counts from here on. */
static double larger(double a, double b)
{
    return a > b ? a : b;
}

static enum arrival_state find_state(const struct work *w,
                                     const struct arrival_rank *r,
                                     bool is_before_known)
{
    double margin = ARRIVAL_MARGIN * w->report->together_ns;
    double least = larger(margin, r->uncertainty_ns);
    bool is_late = r->late_ns > least;
    bool is_slow = r->left_late_ns > least;
    if (is_slow) {
        return is_late && is_before_known && r->before_more_ns > margin
                   ? ARRIVAL_LATE_AND_SLOW
                   : ARRIVAL_SLOW;
    }
    if (is_late) {
        return ARRIVAL_LATE;
    }
    return r->uncertainty_ns > margin ? ARRIVAL_UNKNOWN : ARRIVAL_ON_TIME;
}

static void judge_rank(struct work *w, uint32_t rank)
{
    struct arrival_rank *r = &w->report->ranks[rank];
    const struct arrival_clock *clock = &w->in->clocks[rank];
    uint32_t compared;
    uint32_t others;
    r->inside_ns = find_median(w, INSIDE, rank, &r->iterations);
    r->left_late_ns = find_median(w, LEFT_LATE, rank, &compared);
    r->late_ns = find_median(w, LATE, rank, &compared);
    r->waited_ns = find_median(w, WAITED, rank, &others);
    r->before_ns = find_median(w, BEFORE, rank, &others);
    r->before_more_ns = find_median(w, BEFORE_MORE, rank, &others);
    if (clock->is_known) {
        r->uncertainty_ns = (double)clock->uncertainty_ns + w->uncertainty_ns;
    }
    if (compared > 0) {
        r->state = find_state(w, r, others > 0);
    }
}

/* ---- over all ranks ---- */

static void find_uncertainty(struct work *w)
{
    uint32_t count = 0;
    for (uint32_t rank = 0; rank < w->in->ranks; rank++) {
        if (w->in->clocks[rank].is_known) {
            w->scratch[count++] = (double)w->in->clocks[rank].uncertainty_ns;
        }
    }
    w->uncertainty_ns = lower_median(w->scratch, count);
}

static double find_mean(const double *values, uint32_t count)
{
    double sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        sum += values[i];
    }
    return count < TIMES_MIN ? 0 : sum / count;
}

/* Returns the mean of the times together; 0: too few. */
static double find_times(struct work *w)
{
    struct arrival_report *report = w->report;
    struct gpul_summary times;
    uint32_t count = 0;
    for (uint32_t i = 0; i < w->in->iterations; i++) {
        if (w->moments[i].ranks >= 2) {
            w->scratch[count++] =
                w->moments[i].last_enter - w->moments[i].enter;
        }
    }
    report->wait_ns = lower_median(w->scratch, count);
    count = 0;
    for (uint32_t i = 0; i < w->in->iterations; i++) {
        count += find_together(&w->scratch[count], w, i);
    }
    report->together_ns = lower_median(w->scratch, count);
    if (count >= TIMES_MIN && gpul_summarize(&times, w->scratch, count) &&
        gpul_variation(&report->cv, &times)) {
        report->is_noisy = report->cv > GPUL_NOISY_VARIATION;
        return times.mean;
    }
    return 0;
}

static void count_last(struct work *w)
{
    for (uint32_t i = 0; i < w->in->iterations; i++) {
        const struct moment *m = &w->moments[i];
        if (m->ranks < 2) {
            continue;
        }
        double doubt = (double)w->in->clocks[m->last_rank].uncertainty_ns +
                       (double)w->in->clocks[m->second_rank].uncertainty_ns;
        double margin = ARRIVAL_MARGIN * w->report->together_ns;
        if (m->last_enter - m->second_enter > larger(margin, doubt)) {
            w->report->ranks[m->last_rank].last_count++;
        }
    }
}

/* Who is on time and had to wait for somebody who is not. */
static void count_states(struct work *w)
{
    struct arrival_report *report = w->report;
    double margin = ARRIVAL_MARGIN * report->together_ns;
    for (uint32_t rank = 0; rank < w->in->ranks; rank++) {
        enum arrival_state state = report->ranks[rank].state;
        report->late_count +=
            state == ARRIVAL_LATE || state == ARRIVAL_LATE_AND_SLOW;
        report->slow_count +=
            state == ARRIVAL_SLOW || state == ARRIVAL_LATE_AND_SLOW;
        report->unknown_count += state == ARRIVAL_UNKNOWN;
    }
    for (uint32_t rank = 0; rank < w->in->ranks; rank++) {
        struct arrival_rank *r = &report->ranks[rank];
        if (r->state == ARRIVAL_ON_TIME &&
            report->late_count + report->slow_count > 0 &&
            r->waited_ns > larger(margin, r->uncertainty_ns)) {
            r->state = ARRIVAL_VICTIM;
            report->victim_count++;
        }
    }
}

/* ---- spikes ---- */

static void add_spike(struct arrival_report *report,
                      enum arrival_spike_kind kind, uint32_t i, uint32_t rank,
                      double factor)
{
    if (report->spike_count < ARRIVAL_SPIKES_MAX) {
        report->spikes[report->spike_count] = (struct arrival_spike){
            .kind = kind, .iteration = i, .rank = rank, .factor = factor};
    }
    report->spike_count++;
}

static void find_before_means(struct work *w)
{
    for (uint32_t rank = 0; rank < w->in->ranks; rank++) {
        uint32_t count = 0;
        for (uint32_t i = 0; i < w->in->iterations; i++) {
            count += find_before(&w->scratch[count], w, i, rank);
        }
        w->before_means[rank] = find_mean(w->scratch, count);
    }
}

/* How many times its mean; 0: no spike. */
static double spike_before(const struct work *w, uint32_t i, uint32_t rank)
{
    double mean = w->before_means[rank];
    double before;
    if (mean <= 0 || !find_before(&before, w, i, rank) ||
        before <= ARRIVAL_SPIKE_FACTOR * mean ||
        before - mean <= ARRIVAL_MARGIN * w->report->together_ns) {
        return 0;
    }
    return before / mean;
}

static void find_spikes_of(struct work *w, uint32_t i, double mean)
{
    uint32_t ranks = 0;
    uint32_t spikes = 0;
    double most = 0;
    double together;
    if (mean > 0 && find_together(&together, w, i) &&
        together > ARRIVAL_SPIKE_FACTOR * mean) {
        add_spike(w->report, ARRIVAL_SPIKE_SHARED, i, 0, together / mean);
    }
    for (uint32_t rank = 0; rank < w->in->ranks; rank++) {
        double factor = spike_before(w, i, rank);
        ranks += w->before_means[rank] > 0;
        spikes += factor > 0;
        most = larger(most, factor);
    }
    if (spikes > 1 && 2 * spikes >= ranks) {
        add_spike(w->report, ARRIVAL_SPIKE_SHARED, i, 0, most);
        return;
    }
    for (uint32_t rank = 0; spikes > 0 && rank < w->in->ranks; rank++) {
        double factor = spike_before(w, i, rank);
        if (factor > 0) {
            add_spike(w->report, ARRIVAL_SPIKE_RANK, i, rank, factor);
        }
    }
}

/* ---- all of it ---- */

static void judge(struct work *w)
{
    find_uncertainty(w);
    for (uint32_t i = 0; i < w->in->iterations; i++) {
        find_moment(w, i);
    }
    double mean = find_times(w);
    for (uint32_t rank = 0; rank < w->in->ranks; rank++) {
        judge_rank(w, rank);
    }
    count_last(w);
    count_states(w);
    find_before_means(w);
    for (uint32_t i = 0; i < w->in->iterations; i++) {
        find_spikes_of(w, i, mean);
    }
}

static int check_bounds(const struct arrival_input *in, struct gpul_error *err)
{
    if (in->ranks == 0 || in->iterations == 0) {
        return gpul_fail(err, GPUL_EINVAL, "%u iterations of %u ranks",
                         in->iterations, in->ranks);
    }
    if (in->ranks > ARRIVAL_RANKS_MAX ||
        in->iterations > ARRIVAL_ITERATIONS_MAX ||
        (uint64_t)in->ranks * in->iterations > ARRIVAL_CELLS_MAX) {
        return gpul_fail(err, GPUL_ELIMIT,
                         "%u iterations of %u ranks: %d times at most",
                         in->iterations, in->ranks, ARRIVAL_CELLS_MAX);
    }
    return 0;
}

int arrival_judge(struct arrival_report *report, const struct arrival_input *in,
                  struct gpul_error *err)
{
    struct work w = {.in = in, .report = report};
    memset(report, 0, sizeof(*report));
    int rc = check_bounds(in, err);
    if (rc != 0) {
        return rc;
    }
    size_t most = in->ranks > in->iterations ? in->ranks : in->iterations;
    report->ranks = calloc(in->ranks, sizeof(*report->ranks));
    w.moments = calloc(in->iterations, sizeof(*w.moments));
    /* One more: a sample is written before it is known to count. */
    w.scratch = calloc(most + 1, sizeof(*w.scratch));
    w.before_means = calloc(in->ranks, sizeof(*w.before_means));
    if (report->ranks == NULL || w.moments == NULL || w.scratch == NULL ||
        w.before_means == NULL) {
        arrival_release(report);
        rc = gpul_fail(err, GPUL_ENOMEM, "times of %u ranks", in->ranks);
    } else {
        judge(&w);
    }
    free(w.moments);
    free(w.scratch);
    free(w.before_means);
    return rc;
}

void arrival_release(struct arrival_report *report)
{
    free(report->ranks);
    memset(report, 0, sizeof(*report));
}
