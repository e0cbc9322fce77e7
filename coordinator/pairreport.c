/* SPDX-License-Identifier: Apache-2.0
 *
 * What the user hears of pair trials: a row for each trial, a verdict on each
 * node and each path that is not well, and what a check makes of these.
 */
#include <stdio.h>
#include <string.h>

#include "coordinator/core.h"
#include "coordinator/pairsearch_words.h"

enum { VALUE_BYTES = GPUL_CHECK_VALUE_BYTES_MAX + 1 };
#define BYTES_PER_GB 1e9

static const char *name_of(const void *arg, uint32_t node_rank)
{
    const struct roster *roster = arg;
    return roster->nodes[node_rank].name;
}

/* ---- rows ---------------------------------------------------------------- */

static void fill_row(struct rendezvous *r, Gpul__PairRow *row, char *error,
                     uint32_t i)
{
    const struct pairtest *t = &r->pairtest;
    const struct pairing_pair *pair = &t->round.pairs[i];
    gpul__pair_row__init(row);
    trial_row(row, error, &t->nodes[pair->a].side, &t->nodes[pair->b].side);
    row->round = t->round.number;
    row->a = wire_text(r->roster.nodes[pair->a].name);
    row->b = wire_text(r->roster.nodes[pair->b].name);
    row->is_alone = t->round.kind == PAIRSEARCH_ALONE;
}

void pairreport_round(struct rendezvous *r)
{
    Gpul__PairRow rows[GPUL_PAIRS_PAGE_MAX];
    Gpul__PairRow *list[GPUL_PAIRS_PAGE_MAX];
    char errors[GPUL_PAIRS_PAGE_MAX][GPUL_EVIDENCE_BYTES_MAX + 1];
    uint32_t count = r->pairtest.round.count;
    for (uint32_t first = 0; first < count;) {
        Gpul__Event event = GPUL__EVENT__INIT;
        uint32_t n = 0;
        while (n < GPUL_PAIRS_PAGE_MAX && first + n < count) {
            fill_row(r, &rows[n], errors[n], first + n);
            list[n] = &rows[n];
            n++;
        }
        event.kind = GPUL__EVENT__KIND__PAIRS;
        event.pairs = list;
        event.n_pairs = n;
        first += n;
        event.have = first;
        event.need = count;
        core_tell_event(r, &event);
    }
}

/* ---- verdicts ------------------------------------------------------------ */

/* A page of verdicts on its way, with what they point to. */
struct page {
    struct rendezvous *r;
    uint32_t rounds;
    uint32_t n;
    Gpul__PairVerdict all[GPUL_VERDICTS_PAGE_MAX];
    Gpul__PairVerdict *list[GPUL_VERDICTS_PAGE_MAX];
    struct text texts[GPUL_VERDICTS_PAGE_MAX];
};

static void send_page(struct page *p)
{
    Gpul__Event event = GPUL__EVENT__INIT;
    event.kind = GPUL__EVENT__KIND__VERDICTS;
    event.verdicts = p->list;
    event.n_verdicts = p->n;
    event.have = p->rounds;
    if (p->n > 0) {
        core_tell_event(p->r, &event);
    }
    p->n = 0;
}

/* The next verdict of the page, whose text is to be in *text. */
static Gpul__PairVerdict *add_verdict(struct page *p, struct text **text)
{
    if (p->n == GPUL_VERDICTS_PAGE_MAX) {
        send_page(p);
    }
    Gpul__PairVerdict *v = &p->all[p->n];
    gpul__pair_verdict__init(v);
    *text = &p->texts[p->n];
    p->list[p->n++] = v;
    v->text = (*text)->bytes;
    return v;
}

static void cut_text(struct text *t)
{
    if (strlen(t->bytes) > GPUL_EVIDENCE_BYTES_MAX) {
        t->bytes[text_whole_bytes(t->bytes, GPUL_EVIDENCE_BYTES_MAX)] = 0;
    }
}

static Gpul__PairVerdict__State node_state(const struct pairsearch_node *node)
{
    switch (node->state) {
    case PAIRSEARCH_NODE_OK:
        return GPUL__PAIR_VERDICT__STATE__OK;
    case PAIRSEARCH_NODE_SLOW:
        return node->is_lossy ? GPUL__PAIR_VERDICT__STATE__LOSSY
                              : GPUL__PAIR_VERDICT__STATE__SLOW;
    case PAIRSEARCH_NODE_UNREACHABLE:
        return GPUL__PAIR_VERDICT__STATE__UNREACHABLE;
    default:
        return GPUL__PAIR_VERDICT__STATE__UNKNOWN;
    }
}

static Gpul__PairVerdict__State path_state(enum pairsearch_path_kind kind)
{
    switch (kind) {
    case PAIRSEARCH_PATH_SLOW:
        return GPUL__PAIR_VERDICT__STATE__SLOW;
    case PAIRSEARCH_PATH_LOSSY:
        return GPUL__PAIR_VERDICT__STATE__LOSSY;
    case PAIRSEARCH_PATH_BLOCKED:
    case PAIRSEARCH_PATH_STALLED:
        return GPUL__PAIR_VERDICT__STATE__BLOCKED;
    case PAIRSEARCH_PATH_CONGESTED:
        return GPUL__PAIR_VERDICT__STATE__CONGESTED;
    default:
        return GPUL__PAIR_VERDICT__STATE__UNKNOWN;
    }
}

/* Bits of enum pairsearch_way: of a path as its first node sees it. */
static const char *direction(uint8_t ways)
{
    switch (ways) {
    case PAIRSEARCH_SENDS:
        return "send";
    case PAIRSEARCH_RECEIVES:
        return "receive";
    case PAIRSEARCH_BOTH_WAYS:
        return "both";
    default:
        return "";
    }
}

/* ---- findings ------------------------------------------------------------ */

/* What is known of a node or a path, on its way to be a finding. */
struct charge {
    const char *id;
    Gpul__Finding__Severity severity;
    const char *remedy;
};

static struct charge charge_of(Gpul__PairVerdict__State state, bool is_node)
{
    switch (state) {
    case GPUL__PAIR_VERDICT__STATE__SLOW:
        return is_node
                   ? (struct charge){"PERF-701", GPUL__FINDING__SEVERITY__FAIL,
                                     "look at this node's link: rate and "
                                     "duplex (ethtool), cable, port of the "
                                     "switch, shaping, what else runs there; "
                                     "or leave the node out"}
                   : (struct charge){"PERF-702", GPUL__FINDING__SEVERITY__FAIL,
                                     "both nodes are good with others: look at "
                                     "the switches and routes between the two"};
    case GPUL__PAIR_VERDICT__STATE__LOSSY:
        return (struct charge){"PERF-703", GPUL__FINDING__SEVERITY__FAIL,
                               "packets get lost: look at the error counters "
                               "(ethtool -S), cable, transceiver and port"};
    case GPUL__PAIR_VERDICT__STATE__BLOCKED:
    case GPUL__PAIR_VERDICT__STATE__UNREACHABLE:
        return (struct charge){"NET-110", GPUL__FINDING__SEVERITY__FAIL,
                               "allow TCP between the nodes on all ports, in "
                               "both directions"};
    case GPUL__PAIR_VERDICT__STATE__CONGESTED:
        return (struct charge){"PERF-704", GPUL__FINDING__SEVERITY__WARN,
                               "the nodes share a part of the network that is "
                               "too slow for all of them at once"};
    default:
        return (struct charge){"PERF-701", GPUL__FINDING__SEVERITY__UNKNOWN,
                               "run the check again, or on fewer nodes"};
    }
}

static void format_rate(char out[VALUE_BYTES], double bytes_per_s)
{
    out[0] = 0;
    if (bytes_per_s > 0) {
        snprintf(out, VALUE_BYTES, "%.3g GB/s", bytes_per_s / BYTES_PER_GB);
    }
}

static void accuse(struct rendezvous *r, const struct charge *charge,
                   const char *const *names, size_t name_count,
                   const char *text, double got, double wanted)
{
    char nodes[GPUL_CHECK_NODES_BYTES_MAX + 1] = "";
    char value[VALUE_BYTES];
    char expected[VALUE_BYTES];
    char rate[VALUE_BYTES];
    finding_fold(nodes, names, name_count);
    format_rate(value, got);
    format_rate(rate, wanted);
    snprintf(expected, sizeof(expected), "%s%.60s",
             rate[0] != 0 ? "at least " : "", rate);
    const struct finding finding = {
        .id = charge->id,
        .severity = charge->severity,
        .nodes = nodes,
        .text = text,
        .value = value,
        .expected = value[0] != 0 ? expected : "",
        .remedy = charge->remedy,
    };
    checking_add(r, &finding);
}

static double lower_rate(double a, double b)
{
    return a > 0 && (b <= 0 || a < b) ? a : b;
}

/* The worse of the ways in which it is bad. */
static double node_rate(const struct pairsearch_node *node)
{
    double sends =
        (node->ways & PAIRSEARCH_SENDS) != 0 ? node->best_bytes_per_s[0] : 0;
    double receives =
        (node->ways & PAIRSEARCH_RECEIVES) != 0 ? node->best_bytes_per_s[1] : 0;
    return lower_rate(sends, receives);
}

static double path_rate(const struct pairsearch_path *path)
{
    double there = (path->ways & PAIRSEARCH_A_TO_B) != 0
                       ? path->measure.a_to_b.bytes_per_s
                       : 0;
    double back = (path->ways & PAIRSEARCH_B_TO_A) != 0
                      ? path->measure.b_to_a.bytes_per_s
                      : 0;
    return lower_rate(there, back);
}

static void judge_nodes(struct page *p, const struct pairsearch_result *result,
                        const struct pairsearch_names *names)
{
    struct rendezvous *r = p->r;
    for (uint32_t i = 0; i < r->roster.count; i++) {
        const struct pairsearch_node *node = &result->nodes[i];
        struct text *text;
        Gpul__PairVerdict *v = add_verdict(p, &text);
        pairsearch_describe_node(text, result, i, names);
        v->what = GPUL__PAIR_VERDICT__WHAT__NODE;
        v->a = wire_text(r->roster.nodes[i].name);
        v->state = node_state(node);
        v->direction = wire_text(
            direction(node->state == PAIRSEARCH_NODE_OK ? 0 : node->ways));
        v->rounds = node->named_in;
        if (node->state == PAIRSEARCH_NODE_SLOW ||
            node->state == PAIRSEARCH_NODE_UNREACHABLE) {
            struct charge charge = charge_of(v->state, true);
            const char *name = r->roster.nodes[i].name;
            accuse(r, &charge, &name, 1, text->bytes, node_rate(node),
                   result->reference.threshold);
        }
        cut_text(text);
    }
}

/* Both ends are unknown then; but that they are slow, or do not reach each
 * other, is known. */
static struct charge charge_unresolved(const struct pairsearch_path *path)
{
    bool has_figure = path_rate(path) > 0;
    struct charge charge =
        charge_of(has_figure ? GPUL__PAIR_VERDICT__STATE__SLOW
                             : GPUL__PAIR_VERDICT__STATE__BLOCKED,
                  false);
    if (has_figure) {
        charge.remedy = "check again with a third node that is known to be "
                        "good: then it can be told which one is slow";
    }
    return charge;
}

static void judge_paths(struct page *p, const struct pairsearch_result *result,
                        const struct pairsearch_names *names)
{
    struct rendezvous *r = p->r;
    for (uint32_t i = 0; i < result->path_count; i++) {
        const struct pairsearch_path *path = &result->paths[i];
        const char *const ends[] = {r->roster.nodes[path->a].name,
                                    r->roster.nodes[path->b].name};
        struct text *text;
        Gpul__PairVerdict *v = add_verdict(p, &text);
        pairsearch_describe_path(text, result, i, names);
        v->what = GPUL__PAIR_VERDICT__WHAT__PATH;
        v->a = wire_text(ends[0]);
        v->b = wire_text(ends[1]);
        v->state = path_state(path->kind);
        v->direction = wire_text(direction(path->ways));
        v->rounds = path->named_in;
        struct charge charge = path->kind == PAIRSEARCH_PATH_UNRESOLVED
                                   ? charge_unresolved(path)
                                   : charge_of(v->state, false);
        accuse(r, &charge, ends, 2, text->bytes, path_rate(path),
               result->reference.threshold);
        cut_text(text);
    }
}

/* Over all. "Could not be told" is no pass. */
static void conclude(struct rendezvous *r,
                     const struct pairsearch_result *result)
{
    struct text text;
    struct charge charge = {"PERF-701", GPUL__FINDING__SEVERITY__PASS, ""};
    pairsearch_summarize(&text, result);
    switch (result->outcome) {
    case PAIRSEARCH_FOUND:
        return; /* has been told one by one */
    case PAIRSEARCH_HEALTHY:
        break;
    case PAIRSEARCH_SHARED:
        charge = charge_of(GPUL__PAIR_VERDICT__STATE__CONGESTED, false);
        break;
    case PAIRSEARCH_ALL_BAD:
    case PAIRSEARCH_NEEDS_THIRD:
        if (result->path_count > 0) {
            return; /* likewise */
        }
        charge = charge_of(GPUL__PAIR_VERDICT__STATE__UNKNOWN, true);
        break;
    case PAIRSEARCH_INCOMPLETE:
        charge = charge_of(GPUL__PAIR_VERDICT__STATE__UNKNOWN, true);
        break;
    }
    accuse(r, &charge, NULL, 0, text.bytes, result->reference.median,
           result->reference.threshold);
}

void pairreport_verdicts(struct rendezvous *r)
{
    const struct pairsearch_names names = {.name = name_of, .arg = &r->roster};
    struct pairsearch_result result;
    struct page page;
    pairsearch_result(r->pairtest.search, &result);
    page.r = r;
    page.rounds = result.rounds;
    page.n = 0;
    judge_nodes(&page, &result, &names);
    judge_paths(&page, &result, &names);
    send_page(&page);
    conclude(r, &result);
    checking_tell(r);
}

void pairreport_skipped(struct rendezvous *r, const char *why, bool is_wanting)
{
    struct text text;
    struct charge charge = {"PERF-701", GPUL__FINDING__SEVERITY__UNKNOWN, ""};
    text_format(&text, "no pair trials: %s", why);
    if (is_wanting) {
        accuse(r, &charge, NULL, 0, text.bytes, 0, 0);
        checking_tell(r);
    }
    core_tell_text(r, GPUL__EVENT__KIND__NOTICE, NULL, "%s", text.bytes);
}
