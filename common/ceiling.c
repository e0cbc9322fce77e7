/* SPDX-License-Identifier: Apache-2.0 */
#include "common/ceiling.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "common/error.h"
#include "common/units.h"

struct gpul_shares gpul_default_shares(enum gpul_link kind)
{
    switch (kind) {
    case GPUL_RDMA:
    case GPUL_PCIE:
        return (struct gpul_shares){0.80, 0.65};
    case GPUL_TCP:
        return (struct gpul_shares){0.50, 0.25};
    default:
        return (struct gpul_shares){0.80, 0.70};
    }
}

const char *gpul_bandwidth_verdict_name(enum gpul_bandwidth_verdict verdict)
{
    static const char *const names[] = {
        [GPUL_BANDWIDTH_UNKNOWN] = "unknown",
        [GPUL_BANDWIDTH_PASS] = "pass",
        [GPUL_BANDWIDTH_WARN] = "warn",
        [GPUL_BANDWIDTH_FAIL] = "fail",
        [GPUL_BANDWIDTH_BAD_TEST] = "bad test",
        [GPUL_BANDWIDTH_INCONCLUSIVE] = "inconclusive",
    };
    size_t index = (size_t)verdict;
    return names[index < sizeof(names) / sizeof(names[0]) ? index : 0];
}

/* A figure or a bound that is there: not 0, NaN or infinite. */
static bool is_known(double value)
{
    return value > 0 && isfinite(value);
}

/* What passes, and below what it fails; 0: nothing is known of that. */
static struct gpul_shares bounds_of(const struct gpul_bandwidth_case *c)
{
    if (is_known(c->threshold_gbps)) {
        return (struct gpul_shares){c->threshold_gbps, c->threshold_gbps};
    }
    if (!is_known(c->ceiling_gbps)) {
        return (struct gpul_shares){0, 0};
    }
    struct gpul_shares shares = gpul_default_shares(c->kind);
    return (struct gpul_shares){shares.warn * c->ceiling_gbps,
                                shares.fail * c->ceiling_gbps};
}

enum gpul_bandwidth_verdict
gpul_judge_bandwidth(const struct gpul_bandwidth_case *c)
{
    struct gpul_shares bounds = bounds_of(c);
    if (!is_known(c->busbw_gbps) || !is_known(bounds.warn)) {
        return GPUL_BANDWIDTH_UNKNOWN;
    }
    if (c->busbw_gbps >= bounds.warn) {
        return GPUL_BANDWIDTH_PASS;
    }
    if (is_known(c->ceiling_gbps) && bounds.fail > c->ceiling_gbps) {
        return GPUL_BANDWIDTH_BAD_TEST;
    }
    if (!is_known(c->needed_bytes)) {
        return GPUL_BANDWIDTH_UNKNOWN;
    }
    if (!(c->bytes >= c->needed_bytes)) {
        return GPUL_BANDWIDTH_INCONCLUSIVE;
    }
    return c->busbw_gbps >= bounds.fail ? GPUL_BANDWIDTH_WARN
                                        : GPUL_BANDWIDTH_FAIL;
}

double gpul_ceiling_percent(const struct gpul_bandwidth_case *c)
{
    bool has_both = is_known(c->busbw_gbps) && is_known(c->ceiling_gbps);
    return has_both ? 100 * c->busbw_gbps / c->ceiling_gbps : 0;
}

enum { FIGURE_BYTES = 32 };

/* As many digits as say something: "36.94", "381.8". */
static const char *figure(char *text, double gbps)
{
    int digits = gbps < 100 ? 2 : gbps < 1000 ? 1 : 0;
    snprintf(text, FIGURE_BYTES, "%.*f GB/s", digits, gbps);
    return text;
}

static const char *size(char *text, double bytes)
{
    if (bytes >= 0x1p64) {
        snprintf(text, FIGURE_BYTES, "more than 16 EiB");
    } else {
        gpul_format_size(text, bytes > 0 ? (uint64_t)bytes : 0);
    }
    return text;
}

/* "74 % of the ceiling of 400.0 GB/s (RDMA)". */
static void append_share(struct gpul_buf *out,
                         const struct gpul_bandwidth_case *c)
{
    char ceiling[FIGURE_BYTES];
    gpul_buf_appendf(out, "%.0f %% of the ceiling of %s (%s)",
                     gpul_ceiling_percent(c), figure(ceiling, c->ceiling_gbps),
                     gpul_link_name(c->kind));
}

static void append_unknown(struct gpul_buf *out,
                           const struct gpul_bandwidth_case *c)
{
    char bytes[FIGURE_BYTES];
    if (!is_known(c->busbw_gbps)) {
        gpul_buf_append_text(out, "no bandwidth was measured");
    } else if (!is_known(bounds_of(c).warn)) {
        gpul_buf_append_text(out, "no ceiling is known of what connects the "
                                  "devices, and no threshold is given");
    } else {
        gpul_buf_appendf(out,
                         "low, but only a fit over several sizes tells whether "
                         "a message of %s is large enough",
                         size(bytes, c->bytes));
    }
}

/* What was reached, or not, of a threshold or of the ceiling. */
static void append_judged(struct gpul_buf *out,
                          const struct gpul_bandwidth_case *c,
                          enum gpul_bandwidth_verdict verdict)
{
    char busbw[FIGURE_BYTES];
    char threshold[FIGURE_BYTES];
    struct gpul_shares shares = gpul_default_shares(c->kind);
    if (is_known(c->threshold_gbps)) {
        gpul_buf_appendf(out, "%s %s the threshold of %s",
                         figure(busbw, c->busbw_gbps),
                         verdict == GPUL_BANDWIDTH_PASS ? "reaches" : "below",
                         figure(threshold, c->threshold_gbps));
        return;
    }
    append_share(out, c);
    if (verdict == GPUL_BANDWIDTH_WARN) {
        gpul_buf_appendf(out, ", good from %.0f %%", 100 * shares.warn);
    } else if (verdict == GPUL_BANDWIDTH_FAIL) {
        gpul_buf_appendf(out, ", %.0f %% at least", 100 * shares.fail);
    } else if (c->busbw_gbps > c->ceiling_gbps) {
        gpul_buf_append_text(out, ": the links can carry more than is known "
                                  "of them");
    }
}

int gpul_bandwidth_verdict_text(struct gpul_buf *out,
                                const struct gpul_bandwidth_case *c)
{
    char first[FIGURE_BYTES];
    char second[FIGURE_BYTES];
    enum gpul_bandwidth_verdict verdict = gpul_judge_bandwidth(c);
    gpul_buf_appendf(out, "%s: ", gpul_bandwidth_verdict_name(verdict));
    switch (verdict) {
    case GPUL_BANDWIDTH_UNKNOWN:
        append_unknown(out, c);
        break;
    case GPUL_BANDWIDTH_BAD_TEST:
        gpul_buf_appendf(out, "threshold of %s above the ceiling of %s (%s)",
                         figure(first, c->threshold_gbps),
                         figure(second, c->ceiling_gbps),
                         gpul_link_name(c->kind));
        break;
    case GPUL_BANDWIDTH_INCONCLUSIVE:
        gpul_buf_appendf(out, "message of %s too small (needs S_90 = %s)",
                         size(first, c->bytes), size(second, c->needed_bytes));
        break;
    default:
        append_judged(out, c, verdict);
    }
    return out->is_failed ? GPUL_ENOMEM : 0;
}
