/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/surveys.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/error.h"
#include "common/units.h"
#include "coordinator/text.h"

#define NS_PER_MS 1000000

int surveys_init(struct surveys *s, uint32_t count)
{
    *s = (struct surveys){.nodes = calloc(count, sizeof(*s->nodes))};
    if (s->nodes == NULL) {
        return GPUL_ENOMEM;
    }
    s->count = count;
    return 0;
}

void surveys_release(struct surveys *s)
{
    free(s->nodes);
    *s = (struct surveys){0};
}

bool surveys_ping(struct surveys *s, uint32_t node_rank, uint64_t now_ns,
                  Gpul__ClockPing *out)
{
    struct survey_node *node = &s->nodes[node_rank];
    if (node->pings == SURVEYS_PINGS) {
        return false;
    }
    node->sent_ns = now_ns;
    gpul__clock_ping__init(out);
    out->sequence = node->pings;
    out->sent_ns = now_ns;
    return true;
}

/* Times that cannot be are an answer too: then nothing is known of the clock.
 */
bool surveys_pong(struct surveys *s, uint32_t node_rank,
                  const Gpul__ClockPong *pong, uint64_t now_ns)
{
    struct survey_node *node = &s->nodes[node_rank];
    if (node->pings == SURVEYS_PINGS || pong->sequence != node->pings ||
        pong->ping_sent_ns != node->sent_ns) {
        return false;
    }
    const struct clockskew_exchange exchange = {
        .t0_ns = (int64_t)node->sent_ns,
        .t1_ns = (int64_t)pong->received_ns,
        .t2_ns = (int64_t)pong->sent_ns,
        .t3_ns = (int64_t)now_ns,
    };
    clockskew_add(&node->clock, &exchange);
    node->pings++;
    return true;
}

bool surveys_is_whole(const struct surveys *s, uint32_t node_rank)
{
    const struct survey_node *node = &s->nodes[node_rank];
    return node->has_facts && node->pings == SURVEYS_PINGS;
}

/* ---- clocks -------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* What the clocks of the nodes are compared with. Returns 0 or GPUL_ENOMEM. */
static int find_reference(const struct surveys *s, uint64_t now_ns,
                          int64_t *reference_ns)
{
    struct clockskew_estimate e;
    size_t known = 0;
    int64_t *offsets = malloc((s->count + 1) * sizeof(*offsets));
    if (offsets == NULL) {
        return GPUL_ENOMEM;
    }
    for (uint32_t i = 0; i < s->count; i++) {
        if (clockskew_estimate(&e, &s->nodes[i].clock, (int64_t)now_ns)) {
            offsets[known++] = e.offset_ns;
        }
    }
    qsort(offsets, known, sizeof(*offsets), compare);
    *reference_ns = known >= 3 ? offsets[known / 2] : 0;
    free(offsets);
    return 0;
}

static uint64_t distance_ms(int64_t a_ns, int64_t b_ns)
{
    int64_t d_ns = a_ns > b_ns ? a_ns - b_ns : b_ns - a_ns;
    return (uint64_t)d_ns / NS_PER_MS;
}

static int add_unknown(struct findings *out, const char *nodes)
{
    const struct finding finding = {
        .id = "CLOCK-541",
        .severity = GPUL__FINDING__SEVERITY__UNKNOWN,
        .nodes = nodes,
        .text = "its clock could not be compared: it jumped meanwhile, or "
                "what the node told of it cannot be",
        .remedy = "look at chronyc tracking or timedatectl there",
    };
    return findings_add(out, &finding);
}

static int add_away(struct findings *out, const char *nodes, bool is_ahead,
                    uint64_t away_ms, bool is_relative)
{
    struct text text, value;
    char away[32];
    gpul_format_duration(away, away_ms);
    text_format(
        &text, "its clock is %s %s %s", away, is_ahead ? "ahead of" : "behind",
        is_relative ? "those of the other nodes" : "that of the coordinator");
    text_format(&value, "%s%" PRIu64 " ms", is_ahead ? "+" : "-", away_ms);
    const struct finding finding = {
        .id = "CLOCK-541",
        .severity = GPUL__FINDING__SEVERITY__WARN,
        .nodes = nodes,
        .text = text.bytes,
        .value = value.bytes,
        .expected = "within 100 ms",
        .remedy = "start a time service there (chronyd, systemd-timesyncd) "
                  "with the same source as elsewhere",
    };
    return findings_add(out, &finding);
}

static int judge_clock(const struct surveys *s, const struct roster *roster,
                       uint32_t i, int64_t reference_ns, uint64_t now_ns,
                       struct findings *out, bool *is_good)
{
    char nodes[GPUL_CHECK_NODES_BYTES_MAX + 1];
    struct clockskew_estimate e;
    const char *const names[] = {roster->nodes[i].name};
    *is_good = false;
    finding_fold(nodes, names, 1);
    if (!clockskew_estimate(&e, &s->nodes[i].clock, (int64_t)now_ns)) {
        return add_unknown(out, nodes);
    }
    uint64_t away_ms = distance_ms(e.offset_ns, reference_ns);
    uint64_t doubt_ms = e.uncertainty_ns / NS_PER_MS;
    if (away_ms > SURVEYS_SKEW_MS_MAX + doubt_ms) {
        return add_away(out, nodes, e.offset_ns > reference_ns, away_ms,
                        s->count >= 3);
    }
    if (doubt_ms > SURVEYS_SKEW_MS_MAX) {
        return add_unknown(out, nodes);
    }
    *is_good = true;
    return 0;
}

int surveys_judge_clocks(const struct surveys *s, const struct roster *roster,
                         uint64_t now_ns, struct findings *out)
{
    int64_t reference_ns;
    uint32_t good = 0;
    int rc = find_reference(s, now_ns, &reference_ns);
    for (uint32_t i = 0; i < s->count && rc == 0; i++) {
        bool is_good;
        rc = judge_clock(s, roster, i, reference_ns, now_ns, out, &is_good);
        good += is_good;
    }
    if (rc != 0 || good < s->count) {
        return rc;
    }
    static const struct finding passed = {
        .id = "CLOCK-541",
        .severity = GPUL__FINDING__SEVERITY__PASS,
        .text = "the clocks are within 100 ms",
    };
    return findings_add(out, &passed);
}
