/* SPDX-License-Identifier: Apache-2.0 */
#include "pairnet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

void pairnet_init(struct pairnet *net, uint32_t nodes, uint64_t seed)
{
    memset(net, 0, sizeof(*net));
    net->config.node_count = nodes;
    net->seed = seed;
    gpul_rng_init(&net->rng, seed);
    for (uint32_t i = 0; i < nodes; i++) {
        net->rates[0][i] = 1;
        net->rates[1][i] = 1;
    }
}

void pairnet_slow(struct pairnet *net, uint32_t node, uint8_t ways, double rate)
{
    for (unsigned as = 0; as < 2; as++) {
        if ((ways & 1u << as) != 0) {
            net->rates[as][node] = rate;
        }
    }
}

void pairnet_bad_path(struct pairnet *net, uint32_t from, uint32_t to,
                      double factor)
{
    net->paths[net->path_count++] = (struct pairnet_path){
        .from = from,
        .to = to,
        .factor = factor,
    };
}

/* ---- failures ---- */

static void print_verdicts(const struct pairnet *net)
{
    const struct pairsearch_result *r = &net->result;
    print_error("seed %llu, %u nodes, %u rounds, outcome %d, median %.3g, "
                "threshold %.3g\n",
                (unsigned long long)net->seed, net->config.node_count,
                r->rounds, (int)r->outcome, r->reference.median,
                r->reference.threshold);
    for (uint32_t i = 0; i < r->node_count; i++) {
        if (r->nodes[i].state != PAIRSEARCH_NODE_OK || net->rates[0][i] < 1 ||
            net->rates[1][i] < 1) {
            print_error("node %u: rates %.2f %.2f, state %d ways %d\n", i,
                        net->rates[0][i], net->rates[1][i],
                        (int)r->nodes[i].state, r->nodes[i].ways);
        }
    }
    for (uint32_t i = 0; i < net->path_count; i++) {
        print_error("bad path %u -> %u\n", net->paths[i].from,
                    net->paths[i].to);
    }
    for (uint32_t i = 0; i < r->path_count; i++) {
        print_error("verdict path %u, %u: kind %d ways %d, %.3g %.3g\n",
                    r->paths[i].a, r->paths[i].b, (int)r->paths[i].kind,
                    r->paths[i].ways, r->paths[i].measure.a_to_b.bytes_per_s,
                    r->paths[i].measure.b_to_a.bytes_per_s);
    }
}

void pairnet_check(const struct pairnet *net, bool is_true, const char *what,
                   int line)
{
    if (!is_true) {
        print_verdicts(net);
        fail_msg("line %d: %s", line, what);
    }
}

/* ---- figures ---- */

/* About normal: the sum of twelve uniform ones (Irwin and Hall). */
static double draw_noise(struct pairnet *net)
{
    double sum = 0;
    for (int i = 0; i < 12; i++) {
        sum += (double)(gpul_rng_next(&net->rng) >> 11) * 0x1p-53;
    }
    return 1 + net->noise * (sum - 6);
}

static bool draw_missing(struct pairnet *net)
{
    return (double)(gpul_rng_next(&net->rng) >> 11) * 0x1p-53 < net->missing;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

static bool crosses(const struct pairnet *net, uint32_t from, uint32_t to)
{
    uint32_t half = net->config.node_count / 2;
    return (from < half) != (to < half);
}

static struct pairsearch_figure figure(struct pairnet *net, uint32_t from,
                                       uint32_t to, double middle, double total)
{
    struct pairsearch_figure f = {.status = PAIRSEARCH_MEASURED};
    double rate = smaller(net->rates[0][from], net->rates[1][to]);
    if (net->is_mute[from] || net->is_mute[to] || net->is_dead[from] ||
        draw_missing(net)) {
        f.status = PAIRSEARCH_UNKNOWN;
        return f;
    }
    if (net->is_dead[to]) {
        f.status = PAIRSEARCH_REFUSED;
        return f;
    }
    if (crosses(net, from, to) && middle > 0) {
        rate = smaller(rate, middle);
    }
    if (total > 0) {
        rate = smaller(rate, total);
    }
    for (uint32_t i = 0; i < net->path_count; i++) {
        const struct pairnet_path *p = &net->paths[i];
        if (p->from == from && p->to == to) {
            rate *= p->factor;
            f.loss = p->loss;
            if (p->status != PAIRSEARCH_UNKNOWN) {
                f.status = p->status;
            }
        }
    }
    f.bytes_per_s = PAIRNET_RATE * rate * draw_noise(net);
    return f;
}

/* What each pair gets of the link in the middle. */
static double share(const struct pairnet *net,
                    const struct pairsearch_round *round)
{
    uint32_t crossing = 0;
    for (uint32_t i = 0; i < round->count; i++) {
        crossing += crosses(net, round->pairs[i].a, round->pairs[i].b);
    }
    return crossing == 0 ? 0 : net->middle / crossing;
}

static void tell_rate(struct pairnet *net, const struct pairsearch_figure *f)
{
    if (f->status == PAIRSEARCH_MEASURED) {
        gpul_buf_appendf(net->story, " %.1f", f->bytes_per_s / 1e9);
    } else {
        gpul_buf_append_text(net->story, " -");
    }
}

/* "  2-3 10.0 5.0" */
static void tell_pair(struct pairnet *net, const struct pairing_pair *pair,
                      const struct pairsearch_measure *m)
{
    if (net->story != NULL) {
        gpul_buf_appendf(net->story, "  %u-%u", pair->a, pair->b);
        tell_rate(net, &m->a_to_b);
        tell_rate(net, &m->b_to_a);
    }
}

static void tell_round(struct pairnet *net,
                       const struct pairsearch_round *round)
{
    static const char *const kinds[] = {
        [PAIRSEARCH_NEIGHBOURS] = "neighbours",
        [PAIRSEARCH_CROSS] = "cross",
        [PAIRSEARCH_ALL] = "all",
        [PAIRSEARCH_ALONE] = "alone",
        [PAIRSEARCH_GROUPS] = "groups",
    };
    if (net->story != NULL) {
        gpul_buf_appendf(net->story, "%s%u %s:", round->number > 1 ? "\n" : "",
                         round->number, kinds[round->kind]);
    }
}

static void answer_pairs(struct pairnet *net,
                         const struct pairsearch_round *round)
{
    double middle = share(net, round);
    double total = net->total / round->count;
    for (uint32_t i = 0; i < round->count; i++) {
        uint32_t a = round->pairs[i].a;
        uint32_t b = round->pairs[i].b;
        struct pairsearch_measure m;
        m.a_to_b = figure(net, a, b, middle, total);
        m.b_to_a = figure(net, b, a, middle, total);
        net->dead_pairs += net->is_dead[a] || net->is_dead[b];
        tell_pair(net, &round->pairs[i], &m);
        pairsearch_report(net->search, i, &m);
    }
}

static void answer_groups(struct pairnet *net,
                          const struct pairsearch_round *round)
{
    for (uint32_t i = 0; i < round->count; i++) {
        struct pairsearch_figure f = {.status = PAIRSEARCH_MEASURED};
        f.bytes_per_s = PAIRNET_RATE * draw_noise(net);
        if (round->groups[i].count > net->whole_from) {
            f.bytes_per_s = net->whole;
        }
        if (net->story != NULL) {
            gpul_buf_appendf(net->story, "  %u+%u", round->groups[i].first,
                             round->groups[i].count);
            tell_rate(net, &f);
        }
        pairsearch_report_group(net->search, i, &f);
    }
}

/* ---- the search ---- */

static void check_round(struct pairnet *net,
                        const struct pairsearch_round *round)
{
    static uint32_t seen[PAIRNET_NODES_MAX];
    static uint32_t mark;
    mark++;
    pairnet_expect(net, round->count > 0);
    pairnet_expect(
        net, round->number <=
                 PAIRSEARCH_ROUNDS_MAX +
                     (net->config.is_all_pairs ? net->config.node_count : 0));
    pairnet_expect(net, round->kind != PAIRSEARCH_ALONE || round->count == 1);
    for (uint32_t i = 0; round->pairs != NULL && i < round->count; i++) {
        const struct pairing_pair *p = &round->pairs[i];
        pairnet_expect(net, p->a != p->b && p->a < net->config.node_count &&
                                p->b < net->config.node_count);
        pairnet_expect(net, seen[p->a] != mark && seen[p->b] != mark);
        seen[p->a] = mark;
        seen[p->b] = mark;
    }
}

void pairnet_run(struct pairnet *net)
{
    struct pairsearch_round round;
    pairnet_end(net);
    assert_int_equal(pairsearch_create(&net->search, &net->config, NULL), 0);
    while (pairsearch_next(net->search, &round)) {
        check_round(net, &round);
        tell_round(net, &round);
        if (round.kind == PAIRSEARCH_GROUPS) {
            net->group_rounds++;
            answer_groups(net, &round);
        } else {
            net->together_rounds += round.kind != PAIRSEARCH_ALONE;
            net->alone_rounds += round.kind == PAIRSEARCH_ALONE;
            answer_pairs(net, &round);
        }
    }
    assert_false(pairsearch_next(net->search, &round));
    pairsearch_result(net->search, &net->result);
}

void pairnet_end(struct pairnet *net)
{
    pairsearch_destroy(net->search);
    net->search = NULL;
    net->together_rounds = 0;
    net->alone_rounds = 0;
    net->group_rounds = 0;
    net->dead_pairs = 0;
}

/* ---- exactly what was built in ---- */

static bool is_path_named(const struct pairnet *net, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < net->result.path_count; i++) {
        const struct pairsearch_path *p = &net->result.paths[i];
        if ((p->a == from && p->b == to && (p->ways & PAIRSEARCH_A_TO_B)) ||
            (p->b == from && p->a == to && (p->ways & PAIRSEARCH_B_TO_A))) {
            return p->kind == PAIRSEARCH_PATH_SLOW;
        }
    }
    return false;
}

void pairnet_expect_exact(const struct pairnet *net)
{
    uint32_t named = 0;
    for (uint32_t i = 0; i < net->config.node_count; i++) {
        const struct pairsearch_node *node = &net->result.nodes[i];
        uint8_t ways = (uint8_t)((net->rates[0][i] < 1 ? 1 : 0) |
                                 (net->rates[1][i] < 1 ? 2 : 0));
        pairnet_expect(net, node->state == (ways == 0 ? PAIRSEARCH_NODE_OK
                                                      : PAIRSEARCH_NODE_SLOW));
        pairnet_expect(net, node->ways == ways);
    }
    for (uint32_t i = 0; i < net->path_count; i++) {
        pairnet_expect(
            net, is_path_named(net, net->paths[i].from, net->paths[i].to));
    }
    for (uint32_t i = 0; i < net->result.path_count; i++) {
        uint8_t ways = net->result.paths[i].ways;
        named += ways == PAIRSEARCH_BOTH_WAYS ? 2 : 1;
    }
    pairnet_expect(net, named == net->path_count);
}
