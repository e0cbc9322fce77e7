/* SPDX-License-Identifier: Apache-2.0
 *
 * What a check makes of the figures of its self-test: right data, and the
 * bandwidth of the largest all-reduce beside what its links can carry, or
 * beside --min-busbw. docs/check.md.
 */
#include <inttypes.h>

#include "common/ceiling.h"
#include "common/units.h"
#include "coordinator/core.h"

enum {
    /* Of S bytes T = a + b S; 90 % of 1/b is reached from 9 a/b on. */
    LATENCIES = 9,
    /* A part of a that could not be told from noise. */
    NOISE_PARTS = 100,
};

/* The time of the fastest message is taken for a. Where the largest takes no
 * longer than that, all of it is latency, and this is the least that can be
 * said. 0: there is nothing to compare with. */
static double needed_bytes(const struct verdict *v,
                           const Gpul__SelfTestRow *row)
{
    uint64_t latency_ns = row->median_ns;
    if (v->world_row_count < 2) {
        return 0;
    }
    for (size_t i = 0; i < v->world_row_count; i++) {
        if (v->rows[i].median_ns < latency_ns) {
            latency_ns = v->rows[i].median_ns;
        }
    }
    if (latency_ns == 0) {
        return 0; /* a clock that stands still */
    }
    double latency = (double)latency_ns;
    double rest = (double)(row->median_ns - latency_ns);
    double noise = latency / NOISE_PARTS;
    return LATENCIES * latency * (double)row->bytes /
           (rest > noise ? rest : noise);
}

static void add_data(struct rendezvous *r, const struct verdict_world *world)
{
    struct text text;
    if (r->job.sweep.check == 1) { /* one more than was asked for */
        static const struct finding unknown = {
            .id = "DATA-801",
            .severity = GPUL__FINDING__SEVERITY__UNKNOWN,
            .text = "the data of the self-test was not looked at, since that "
                    "was asked for",
            .remedy = "leave --check 0 out",
        };
        checking_add(r, &unknown);
        return;
    }
    text_format(&text,
                "every element of the self-test's %zu collective%s is "
                "right on all %u rank%s (%s)",
                r->verdict.row_count, gpul_plural(r->verdict.row_count),
                world->ranks, gpul_plural(world->ranks), selftest_backend(r));
    const struct finding finding = {
        .id = "DATA-801",
        .severity = GPUL__FINDING__SEVERITY__PASS,
        .text = text.bytes,
    };
    checking_add(r, &finding);
}

static Gpul__Finding__Severity severity_of(enum gpul_bandwidth_verdict verdict,
                                           bool is_asked)
{
    switch (verdict) {
    case GPUL_BANDWIDTH_PASS:
        return GPUL__FINDING__SEVERITY__PASS;
    case GPUL_BANDWIDTH_WARN:
        return GPUL__FINDING__SEVERITY__WARN;
    case GPUL_BANDWIDTH_FAIL:
    case GPUL_BANDWIDTH_BAD_TEST:
        return GPUL__FINDING__SEVERITY__FAIL;
    default: /* nobody can say; who asks for a bandwidth asks too much of it */
        return is_asked ? GPUL__FINDING__SEVERITY__FAIL
                        : GPUL__FINDING__SEVERITY__UNKNOWN;
    }
}

/* Could what is asked for be shown by this test at all? */
static bool is_test(enum gpul_bandwidth_verdict verdict,
                    const Gpul__SelfTestRow *row)
{
    return verdict != GPUL_BANDWIDTH_BAD_TEST &&
           verdict != GPUL_BANDWIDTH_INCONCLUSIVE && row->busbw_gbps > 0;
}

static const char *remedy_of(enum gpul_bandwidth_verdict verdict, bool is_asked)
{
    switch (verdict) {
    case GPUL_BANDWIDTH_WARN:
    case GPUL_BANDWIDTH_FAIL:
        return "look at the trials between pairs for a node or path, then at "
               "the links of the slowest: rate, width, errors, MTU";
    case GPUL_BANDWIDTH_BAD_TEST:
        return "lower --min-busbw to what the links can carry";
    case GPUL_BANDWIDTH_INCONCLUSIVE:
        return "let the test go to larger messages: --maxbytes";
    case GPUL_BANDWIDTH_UNKNOWN:
        return is_asked ? "test with two ranks or more"
                        : "ask for a bandwidth with --min-busbw, since no "
                          "link rate is known";
    default:
        return "";
    }
}

static void add_bandwidth(struct rendezvous *r,
                          const struct verdict_world *world,
                          const Gpul__SelfTestRow *row,
                          enum gpul_bandwidth_verdict verdict,
                          const char *words)
{
    char size[UNITS_TEXT_BYTES], nodes[GPUL_CHECK_NODES_BYTES_MAX + 1] = "";
    struct text text, value, expected = {.bytes = ""};
    double wanted_gbps = r->job.sweep.busbw_min_gbps;
    bool is_asked = wanted_gbps > 0;
    gpul_format_size(size, row->bytes);
    text_format(&text, "all-reduce of %s over %u rank%s: busbw %.2f GB/s, %s",
                size, world->ranks, gpul_plural(world->ranks), row->busbw_gbps,
                words);
    text_format(&value, "%.2f GB/s", row->busbw_gbps);
    if (is_asked || row->ceiling_gbps > 0) {
        text_format(&expected, "%s %.2f GB/s", is_asked ? "at least" : "up to",
                    is_asked ? wanted_gbps : row->ceiling_gbps);
    }
    if (verdict == GPUL_BANDWIDTH_FAIL || verdict == GPUL_BANDWIDTH_WARN) {
        const struct node *slowest = selftest_slowest(r, &text, world);
        if (slowest != NULL) {
            const char *const names[] = {slowest->name};
            finding_fold(nodes, names, 1);
        }
    }
    const struct finding finding = {
        .id = is_asked && !is_test(verdict, row) ? "PERF-709" : "PERF-705",
        .severity = severity_of(verdict, is_asked),
        .nodes = nodes,
        .text = text.bytes,
        .value = value.bytes,
        .expected = expected.bytes,
        .remedy = remedy_of(verdict, is_asked),
    };
    checking_add(r, &finding);
}

/* With doubles no figure means anything, but a threshold of the user's own. */
static struct gpul_bandwidth_case case_of(const struct rendezvous *r,
                                          const Gpul__SelfTestRow *row)
{
    return (struct gpul_bandwidth_case){
        .busbw_gbps = row->busbw_gbps,
        .ceiling_gbps = r->facts.is_simulated ? 0 : row->ceiling_gbps,
        .kind = (enum gpul_link)row->ceiling_kind,
        .threshold_gbps = r->job.sweep.busbw_min_gbps,
        .bytes = (double)row->bytes,
        .needed_bytes = needed_bytes(&r->verdict, row),
    };
}

/* Returns whether the figures are below what was asked for. */
bool checking_tested(struct rendezvous *r, const struct verdict_world *world)
{
    static const Gpul__SelfTestRow none = GPUL__SELF_TEST_ROW__INIT;
    const Gpul__SelfTestRow *row = verdict_largest(&r->verdict);
    struct gpul_bandwidth_case c = case_of(r, row != NULL ? row : &none);
    enum gpul_bandwidth_verdict verdict = gpul_judge_bandwidth(&c);
    struct gpul_buf words;
    add_data(r, world);
    gpul_buf_init(&words, GPUL_TEXT_BYTES_MAX);
    if (gpul_bandwidth_verdict_text(&words, &c) != 0) {
        outbox_fail(&r->out, GPUL_ENOMEM, "out of memory for a verdict");
    } else {
        add_bandwidth(r, world, row != NULL ? row : &none, verdict,
                      gpul_buf_text(&words));
    }
    gpul_buf_release(&words);
    checking_tell(r);
    return c.busbw_gbps > 0 && c.busbw_gbps < c.threshold_gbps;
}
