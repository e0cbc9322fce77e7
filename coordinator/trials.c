/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/trials.h"

#include <stdlib.h>
#include <string.h>

#define NS_PER_S 1e9
#define BYTES_PER_GB 1e9

/* ---- what was told ------------------------------------------------------- */

static int set_way(struct trial_way *to, const Gpul__TrialWay *from)
{
    *to = (struct trial_way){
        .bytes = from->bytes,
        .ns = from->ns,
        .rtt_ns = from->rtt_median_ns,
        .segments = from->segments,
        .retransmits = from->retransmits,
        .lone_retransmits = from->lone_retransmits,
        .rtt_count = from->rtt_count,
        .busy_percent = (uint8_t)from->busy_percent,
        .failure = (uint8_t)from->failure,
    };
    if (from->text[0] != 0) {
        to->text = text_copy(from->text);
        return to->text != NULL ? 0 : GPUL_ENOMEM;
    }
    return 0;
}

int trial_side_set(struct trial_side *side, const Gpul__TrialResult *result)
{
    trial_side_clear(side);
    int rc = set_way(&side->sending, result->sending);
    return rc == 0 ? set_way(&side->receiving, result->receiving) : rc;
}

void trial_side_clear(struct trial_side *side)
{
    free(side->sending.text);
    free(side->receiving.text);
    *side = (struct trial_side){0};
}

/* ---- figures ------------------------------------------------------------- */

double trial_rate(const struct trial_way *receiving)
{
    return receiving->ns > 0
               ? (double)receiving->bytes * NS_PER_S / (double)receiving->ns
               : 0;
}

static double loss_of(const struct trial_way *sending)
{
    bool is_clean = sending->rtt_count >= TRIALS_CLEAN_PINGS &&
                    sending->lone_retransmits == 0;
    if (sending->segments == 0) {
        return -1;
    }
    return is_clean ? 0
                    : (double)sending->retransmits / (double)sending->segments;
}

/* Why there is no rate. */
static enum pairsearch_status status_of(const struct trial_way *sending)
{
    switch ((Gpul__TrialWay__Failure)sending->failure) {
    case GPUL__TRIAL_WAY__FAILURE__REFUSED:
    case GPUL__TRIAL_WAY__FAILURE__UNREACHABLE:
    case GPUL__TRIAL_WAY__FAILURE__NO_CONNECTION:
    case GPUL__TRIAL_WAY__FAILURE__WRONG_PEER:
        return PAIRSEARCH_REFUSED;
    case GPUL__TRIAL_WAY__FAILURE__BROKEN:
    case GPUL__TRIAL_WAY__FAILURE__STALLED:
        return PAIRSEARCH_TIMEOUT;
    default: /* all went well, says the one, and the other one says no */
        return PAIRSEARCH_UNKNOWN;
    }
}

void trial_figure(struct pairsearch_figure *out,
                  const struct trial_way *sending,
                  const struct trial_way *receiving, double reference)
{
    *out = (struct pairsearch_figure){.loss = loss_of(sending)};
    double rate = trial_rate(receiving);
    unsigned busy_percent =
        (unsigned)sending->busy_percent + receiving->busy_percent;
    if (rate <= 0) {
        out->status = status_of(sending);
        return;
    }
    out->status = PAIRSEARCH_MEASURED;
    out->bytes_per_s = rate;
    if (busy_percent >= TRIALS_BUSY_PERCENT && reference > 0) {
        out->bytes_per_s = reference;
        if (rate * TRIALS_BUSY_FACTOR < reference) {
            out->status = PAIRSEARCH_UNKNOWN;
        }
    }
}

static int compare_rates(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

double trial_median(double *rates, uint32_t n)
{
    if (n == 0) {
        return 0;
    }
    qsort(rates, n, sizeof(*rates), compare_rates);
    return (rates[(n - 1) / 2] + rates[n / 2]) / 2;
}

/* ---- for the user -------------------------------------------------------- */

/* The one that dials knows best. */
static const char *words_of(const struct trial_way *sending,
                            const struct trial_way *receiving)
{
    return sending->text != NULL ? sending->text : receiving->text;
}

static void append_words(struct text *out, const char *way, const char *words)
{
    if (words != NULL) {
        text_append(out, "%s%s: %s", out->bytes[0] != 0 ? "; " : "", way,
                    words);
    }
}

static uint64_t lower_rtt(uint64_t a, uint64_t b)
{
    if (a == 0 || b == 0) {
        return a + b;
    }
    return a < b ? a : b;
}

void trial_row(Gpul__PairRow *row, char *error, const struct trial_side *a,
               const struct trial_side *b)
{
    struct text words = {{0}};
    row->a_to_b_gbps = trial_rate(&b->receiving) / BYTES_PER_GB;
    row->b_to_a_gbps = trial_rate(&a->receiving) / BYTES_PER_GB;
    row->rtt_ns = lower_rtt(a->sending.rtt_ns, b->sending.rtt_ns);
    row->segments = a->sending.segments + b->sending.segments;
    row->retransmits = a->sending.retransmits + b->sending.retransmits;
    append_words(&words, "a to b", words_of(&a->sending, &b->receiving));
    append_words(&words, "b to a", words_of(&b->sending, &a->receiving));
    size_t n = strlen(words.bytes);
    n = text_whole_bytes(
        words.bytes, n < GPUL_EVIDENCE_BYTES_MAX ? n : GPUL_EVIDENCE_BYTES_MAX);
    memcpy(error, words.bytes, n);
    error[n] = 0;
    row->error = error;
}
