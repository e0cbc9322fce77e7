/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/pairsearch_words.h"

#include "common/units.h"

struct writer {
    struct text *out;
    const struct pairsearch_result *result;
    const struct pairsearch_names *names;
};

static const char *name(const struct writer *w, uint32_t node)
{
    return w->names->name(w->names->arg, node);
}

static void add_rate(struct text *out, double bytes_per_s)
{
    if (bytes_per_s >= 1e9) {
        text_append(out, "%.2f GB/s", bytes_per_s / 1e9);
    } else {
        text_append(out, "%.1f MB/s", bytes_per_s / 1e6);
    }
}

/* What one direction did. */
static void add_figure(const struct writer *w,
                       const struct pairsearch_figure *f)
{
    switch (f->status) {
    case PAIRSEARCH_MEASURED:
        add_rate(w->out, f->bytes_per_s);
        if (f->loss > 0) {
            text_append(w->out, " with %.1f %% sent again", 100 * f->loss);
        }
        return;
    case PAIRSEARCH_REFUSED:
        text_append(w->out, "no connection");
        return;
    case PAIRSEARCH_TIMEOUT:
        text_append(w->out, "connected, but no data in time");
        return;
    default:
        text_append(w->out, "not measured");
    }
}

static void add_reference(const struct writer *w, double ratio)
{
    const struct pairsearch_reference *ref = &w->result->reference;
    if (ref->median <= 0 || ratio <= 0) {
        return;
    }
    if (ref->rule == PAIRSEARCH_RULE_FLOOR && ref->threshold > ref->median) {
        text_append(w->out, "; at least ");
        add_rate(w->out, ref->threshold);
        text_append(w->out, " are asked for");
        return;
    }
    text_append(w->out, "; healthy pairs have ");
    add_rate(w->out, ref->median);
    text_append(w->out, " (%.0f %%)", 100 * ratio);
}

static void add_end(const struct writer *w, bool is_tested_alone,
                    uint32_t named_in)
{
    text_append(w->out, "; %s; named in round %u",
                is_tested_alone ? "alone too" : "not tested alone", named_in);
}

/* ---- nodes ---- */

static void add_evidence(const struct writer *w,
                         const struct pairsearch_node *node, uint32_t index)
{
    for (uint32_t i = 0; i < node->evidence_count; i++) {
        const struct pairsearch_evidence *e = &node->evidence[i];
        bool is_sending = e->from == index;
        text_append(w->out, i == 0 ? ": " : ", ");
        add_figure(w, &e->figure);
        text_append(w->out, " %s node %s", is_sending ? "to" : "from",
                    name(w, is_sending ? e->to : e->from));
    }
}

static void describe_slow(const struct writer *w,
                          const struct pairsearch_node *node, uint32_t index)
{
    static const char *const ways[] = {"", " in sending", " in receiving", ""};
    text_format(w->out, "node %s %s%s", name(w, index),
                node->is_lossy ? "loses data" : "is slow",
                ways[node->ways & 3]);
    add_evidence(w, node, index);
    add_reference(w, node->ratio);
    add_end(w, node->is_tested_alone, node->named_in);
}

static void describe_unreachable(const struct writer *w,
                                 const struct pairsearch_node *node,
                                 uint32_t index)
{
    text_format(w->out, "node %s %s", name(w, index),
                node->ways == PAIRSEARCH_SENDS ? "reaches nobody"
                                               : "cannot be reached");
    add_evidence(w, node, index);
    text_append(w->out, "; named in round %u", node->named_in);
}

static void describe_unknown(const struct writer *w,
                             const struct pairsearch_node *node, uint32_t index)
{
    static const char *const ways[] = {"", "sending", "receiving",
                                       "sending and receiving"};
    const char *why = "no good partner tells whether it is the node";
    if (node->evidence_count > 0) {
        why = "slow only while others were tested too";
    } else if (node->best_bytes_per_s[0] <= 0 ||
               node->best_bytes_per_s[1] <= 0) {
        why = "not measured";
    }
    text_format(w->out, "node %s is unknown in %s: %s", name(w, index),
                ways[node->ways & 3], why);
}

void pairsearch_describe_node(struct text *out,
                              const struct pairsearch_result *result,
                              uint32_t index,
                              const struct pairsearch_names *names)
{
    struct writer w = {.out = out, .result = result, .names = names};
    text_format(out, "%s", "");
    if (index >= result->node_count) {
        return;
    }
    const struct pairsearch_node *node = &result->nodes[index];
    switch (node->state) {
    case PAIRSEARCH_NODE_SLOW:
        describe_slow(&w, node, index);
        return;
    case PAIRSEARCH_NODE_UNREACHABLE:
        describe_unreachable(&w, node, index);
        return;
    case PAIRSEARCH_NODE_OK:
        text_format(out, "node %s is good: sends ", name(&w, index));
        add_rate(out, node->best_bytes_per_s[0]);
        text_append(out, ", receives ");
        add_rate(out, node->best_bytes_per_s[1]);
        return;
    default:
        describe_unknown(&w, node, index);
    }
}

/* ---- paths ---- */

static void add_path(const struct writer *w, const struct pairsearch_path *p)
{
    if (p->ways == PAIRSEARCH_BOTH_WAYS) {
        text_format(w->out, "the path between node %s and node %s",
                    name(w, p->a), name(w, p->b));
        return;
    }
    bool is_forth = p->ways == PAIRSEARCH_A_TO_B;
    text_format(w->out, "the path from node %s to node %s",
                name(w, is_forth ? p->a : p->b),
                name(w, is_forth ? p->b : p->a));
}

static void add_figures(const struct writer *w, const struct pairsearch_path *p)
{
    if (p->ways & PAIRSEARCH_A_TO_B) {
        add_figure(w, &p->measure.a_to_b);
    }
    if (p->ways == PAIRSEARCH_BOTH_WAYS) {
        text_append(w->out, " there, ");
    }
    if (p->ways & PAIRSEARCH_B_TO_A) {
        add_figure(w, &p->measure.b_to_a);
    }
    if (p->ways == PAIRSEARCH_BOTH_WAYS) {
        text_append(w->out, " back");
    }
}

static void describe_fault(const struct writer *w,
                           const struct pairsearch_path *p, const char *what)
{
    add_path(w, p);
    text_append(w->out, " %s: ", what);
    add_figures(w, p);
    add_reference(w, p->ratio);
    text_append(w->out, "; both nodes are good with others");
    add_end(w, p->is_tested_alone, p->named_in);
}

static void describe_unresolved(const struct writer *w,
                                const struct pairsearch_path *p)
{
    text_format(w->out, "node %s, node %s or the path between them is bad: ",
                name(w, p->a), name(w, p->b));
    add_figures(w, p);
    add_reference(w, p->ratio);
    text_append(w->out, w->result->node_count == 2
                            ? "; to tell which, a third node is needed"
                            : "; no good partner tells which");
}

void pairsearch_describe_path(struct text *out,
                              const struct pairsearch_result *result,
                              uint32_t index,
                              const struct pairsearch_names *names)
{
    struct writer w = {.out = out, .result = result, .names = names};
    text_format(out, "%s", "");
    if (index >= result->path_count) {
        return;
    }
    const struct pairsearch_path *path = &result->paths[index];
    switch (path->kind) {
    case PAIRSEARCH_PATH_SLOW:
        describe_fault(&w, path, "is slow");
        return;
    case PAIRSEARCH_PATH_LOSSY:
        describe_fault(&w, path, "loses data");
        return;
    case PAIRSEARCH_PATH_BLOCKED:
    case PAIRSEARCH_PATH_STALLED:
        describe_fault(&w, path, "is blocked");
        return;
    case PAIRSEARCH_PATH_UNRESOLVED:
        describe_unresolved(&w, path);
        return;
    default:
        add_path(&w, path);
        text_append(out, " is shared: ");
        add_figures(&w, path);
        text_append(out, " while other pairs were tested, %s",
                    path->is_tested_alone ? "good alone" : "not tested alone");
    }
}

/* ---- groups, and all ---- */

void pairsearch_describe_group(struct text *out,
                               const struct pairsearch_result *result,
                               uint32_t index,
                               const struct pairsearch_names *names)
{
    struct writer w = {.out = out, .result = result, .names = names};
    text_format(out, "%s", "");
    if (index >= result->group_count) {
        return;
    }
    const struct pairsearch_group *group = &result->groups[index];
    uint32_t first = group->members.first;
    text_format(out, "nodes %s to ", name(&w, first));
    text_append(out, "%s reach ", name(&w, first + group->members.count - 1));
    add_rate(out, group->bytes_per_s);
    text_append(out, " together; %s",
                group->are_halves_known ? "either half of them is good"
                : group->members.count < 4
                    ? "smaller groups are pairs, and those are good"
                    : "their halves were not measured");
}

static void add_count(struct text *out, uint32_t count, const char *noun,
                      const char *one, const char *many)
{
    if (count > 0) {
        text_append(out, "%s%u %s%s %s", out->bytes[0] != 0 ? ", " : "", count,
                    noun, gpul_plural(count), count == 1 ? one : many);
    }
}

static uint32_t count_faults(const struct pairsearch_result *r)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->path_count; i++) {
        count += r->paths[i].kind != PAIRSEARCH_PATH_UNRESOLVED &&
                 r->paths[i].kind != PAIRSEARCH_PATH_CONGESTED;
    }
    return count;
}

static void summarize_found(struct text *out, const struct pairsearch_result *r)
{
    struct text list;
    text_format(&list, "%s", "");
    add_count(&list, r->slow_nodes, "node", "is slow", "are slow");
    add_count(&list, r->unreachable_nodes, "node", "is cut off", "are cut off");
    add_count(&list, count_faults(r) + r->paths_left_out, "path", "is bad",
              "are bad");
    add_count(&list, r->group_count, "group", "is slow together",
              "are slow together");
    add_count(&list, r->unknown_nodes, "node", "is unknown", "are unknown");
    text_append(out, "%s; named within %u round%s", list.bytes, r->named_in,
                gpul_plural(r->named_in));
}

static void summarize_healthy(struct text *out,
                              const struct pairsearch_result *r)
{
    text_append(out, "all pairs are good, at ");
    add_rate(out, r->reference.median);
    if (r->faster_nodes > 0) {
        text_append(out, "; %u node%s reach%s more than that", r->faster_nodes,
                    gpul_plural(r->faster_nodes),
                    r->faster_nodes == 1 ? "es" : "");
    }
}

void pairsearch_summarize(struct text *out, const struct pairsearch_result *r)
{
    text_format(out, "%u node%s in %u round%s: ", r->node_count,
                gpul_plural(r->node_count), r->rounds, gpul_plural(r->rounds));
    switch (r->outcome) {
    case PAIRSEARCH_FOUND:
        summarize_found(out, r);
        return;
    case PAIRSEARCH_HEALTHY:
        summarize_healthy(out, r);
        return;
    case PAIRSEARCH_NEEDS_THIRD:
        text_append(out, "their pair is bad, and which of them it is cannot "
                         "be resolved: a third node is needed");
        return;
    case PAIRSEARCH_ALL_BAD:
        text_append(out, "no pair is good, so no node can be told from the "
                         "others: is it the whole network, or is too much "
                         "asked for?");
        return;
    case PAIRSEARCH_SHARED:
        text_append(out, "pairs that are tested at once slow each other down, "
                         "those tested again alone are good: the network "
                         "between them is shared");
        return;
    default:
        text_append(out, "nothing bad was found, but %u node%s unknown",
                    r->unknown_nodes, r->unknown_nodes == 1 ? " is" : "s are");
    }
}
