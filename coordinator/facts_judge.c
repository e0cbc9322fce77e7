/* SPDX-License-Identifier: Apache-2.0
 *
 * The comparison of what the scouts found, and the sentences about it.
 */
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "coordinator/facts.h"

/* At most GPUL_NODES_MAX times GPUL_DEVICES_MAX. */
static void number_ranks(struct facts *f)
{
    for (uint32_t i = 0; i < f->node_count; i++) {
        f->first_ranks[i + 1] += f->first_ranks[i];
    }
}

static void judge_usable(struct facts *f, struct facts_judgement *out,
                         const struct roster *r)
{
    struct text names;
    const struct tally_answer *first = &f->unusable.answers[0];
    if (f->unusable.count == 0) {
        return;
    }
    tally_sort(&f->unusable);
    tally_names(&names, first, r);
    text_format(&out->why, "NCCL cannot be used on %s: %s", names.bytes,
                first->text != NULL ? first->text : "for many reasons");
    if (f->unusable.count > 1) {
        text_append(&out->why, " (%zu other reason%s elsewhere)",
                    f->unusable.count - 1, gpul_plural(f->unusable.count - 1));
    }
    out->node = &r->nodes[tally_first_node(first)];
    out->verdict = FACTS_UNUSABLE;
}

static void judge_number(const struct facts *f, struct facts_judgement *out)
{
    if (facts_rank_count(f) > GPUL_RANKS_MAX) {
        text_format(&out->why,
                    "the nodes have %u devices and at most %u can "
                    "be tested",
                    facts_rank_count(f), GPUL_RANKS_MAX);
        out->verdict = FACTS_WRONG;
    }
}

static void judge_versions(struct facts *f, struct facts_judgement *out,
                           const struct roster *r)
{
    struct text groups;
    if (f->versions.count < 2) {
        return;
    }
    tally_sort(&f->versions);
    tally_describe(&groups, &f->versions, r);
    text_format(&out->why,
                "VER-301 the versions of NCCL differ: %s; install the same "
                "on every node, or name it with --nccl-lib",
                groups.bytes);
    out->node = &r->nodes[tally_first_node(&f->versions.answers[0])];
    out->verdict = FACTS_WRONG;
}

/* A device and the rank that sees it. */
struct claim {
    const char *uuid;
    uint32_t rank;
};

static int compare_claims(const void *a, const void *b)
{
    const struct claim *left = a;
    const struct claim *right = b;
    int order = strcmp(left->uuid, right->uuid);
    return order != 0 ? order : (left->rank > right->rank) * 2 - 1;
}

static struct claim *sorted_claims(const struct facts *f)
{
    struct claim *claims = calloc(facts_rank_count(f), sizeof(*claims));
    struct claim *claim = claims;
    for (uint32_t i = 0; claims != NULL && i < f->node_count; i++) {
        const char *at = f->uuids[i];
        for (uint32_t k = 0; k < facts_device_count(f, i); k++) {
            *claim++ = (struct claim){at, f->first_ranks[i] + k};
            at += strlen(at) + 1;
        }
    }
    if (claims != NULL) {
        qsort(claims, facts_rank_count(f), sizeof(*claims), compare_claims);
    }
    return claims;
}

static void describe_twins(const struct facts *f, struct facts_judgement *out,
                           const struct claim *twins, const struct roster *r)
{
    uint32_t first = facts_node(f, twins[0].rank);
    uint32_t second = facts_node(f, twins[1].rank);
    const struct node *a = &r->nodes[first];
    const struct node *b = &r->nodes[second];
    text_format(&out->why,
                "GPU-201 rank %u (node %s, its device %u) and rank %u (node "
                "%s, its device %u) have the same device %s; give each a "
                "device of its own, with CUDA_VISIBLE_DEVICES for example",
                twins[0].rank, a->name, twins[0].rank - f->first_ranks[first],
                twins[1].rank, b->name, twins[1].rank - f->first_ranks[second],
                twins[0].uuid);
    out->node = b;
    out->verdict =
        a != b && node_shares_host(a, b) ? FACTS_SHARED : FACTS_WRONG;
}

static int judge_devices(const struct facts *f, struct facts_judgement *out,
                         const struct roster *r)
{
    struct claim *claims = sorted_claims(f);
    if (claims == NULL) {
        return GPUL_ENOMEM;
    }
    for (uint32_t i = 1; i < facts_rank_count(f); i++) {
        if (claims[i].uuid[0] != 0 &&
            strcmp(claims[i - 1].uuid, claims[i].uuid) == 0) {
            describe_twins(f, out, &claims[i - 1], r);
            break;
        }
    }
    free(claims);
    return 0;
}

int facts_judge(struct facts *f, struct facts_judgement *out,
                const struct roster *r)
{
    *out = (struct facts_judgement){.verdict = FACTS_GOOD};
    number_ranks(f);
    facts_settle_rates(f, r);
    judge_usable(f, out, r);
    if (out->verdict == FACTS_GOOD) {
        judge_number(f, out);
    }
    if (out->verdict == FACTS_GOOD) {
        judge_versions(f, out, r);
    }
    return out->verdict == FACTS_GOOD ? judge_devices(f, out, r) : 0;
}
