/* SPDX-License-Identifier: Apache-2.0
 *
 * What carries data between the nodes: the part of facts.h that is about
 * network cards and about how NCCL is told to use them.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "coordinator/facts.h"

/* ---- cards -------------------------------------------------------------- */

static bool are_alike(const Gpul__Nic *a, const Gpul__Nic *b)
{
    return !a->is_down && !b->is_down && a->kind == b->kind &&
           !(a->gbits < b->gbits) && !(a->gbits > b->gbits);
}

static size_t count_alike(const Gpul__ProbeFacts *m, size_t from,
                          const Gpul__Nic *nic)
{
    size_t count = 0;
    for (size_t i = from; i < m->n_nics; i++) {
        count += are_alike(m->nics[i], nic);
    }
    return count;
}

static const char *comma(const struct text *t)
{
    return t->bytes[0] != 0 ? ", " : "";
}

/* Those that are up by kind and rate, then the others by name. */
void facts_describe_cards(struct text *out, const Gpul__ProbeFacts *m)
{
    text_format(out, "%s", m->n_nics == 0 ? "none" : "");
    for (size_t i = 0; i < m->n_nics; i++) {
        const Gpul__Nic *nic = m->nics[i];
        size_t count = count_alike(m, 0, nic);
        /* Told already, or down. */
        if (nic->is_down || count_alike(m, i, nic) < count) {
            continue;
        }
        text_append(out, "%s%zu x %s", comma(out), count,
                    gpul_link_name((enum gpul_link)nic->kind));
        if (nic->gbits > 0) {
            text_append(out, " %g Gbit/s", nic->gbits);
        } else {
            text_append(out, " of unknown rate");
        }
    }
    for (size_t i = 0; i < m->n_nics; i++) {
        if (m->nics[i]->is_down) {
            text_append(out, "%s%s down", comma(out), m->nics[i]->name);
        }
    }
}

/* One card without a rate, or no card, and nothing is known of the node. */
static void note_cards(struct facts *f, const Gpul__ProbeFacts *m)
{
    struct gpul_links *rates = &f->rates;
    double gbits = 0;
    uint32_t count = 0;
    bool is_known = true;
    for (size_t i = 0; i < m->n_nics; i++) {
        const Gpul__Nic *nic = m->nics[i];
        if (!nic->is_down) {
            enum gpul_link kind = (enum gpul_link)nic->kind;
            count++;
            gbits += nic->gbits;
            is_known &= nic->gbits > 0;
            /* The slower kind is what nodes that differ have in common. */
            rates->nics_kind =
                kind > rates->nics_kind ? kind : rates->nics_kind;
        }
    }
    double gbps = is_known ? gbits / 8 : 0;
    rates->nics_gbps = gbps < rates->nics_gbps ? gbps : rates->nics_gbps;
    rates->nics = count < rates->nics ? count : rates->nics;
}

/* ---- settings ----------------------------------------------------------- */

/* The value of NAME=VALUE, NULL if it is another one. */
static const char *value_of(const char *setting, const char *name)
{
    size_t n = strlen(name);
    return strncmp(setting, name, n) == 0 && setting[n] == '=' ? setting + n + 1
                                                               : NULL;
}

static void note_algorithm(struct facts *f, const Gpul__ProbeFacts *m)
{
    for (size_t i = 0; i < m->n_settings; i++) {
        const char *algorithm = value_of(m->settings[i], "NCCL_ALGO");
        const char *collnet = value_of(m->settings[i], "NCCL_COLLNET_ENABLE");
        f->ring_count +=
            algorithm != NULL && strcasecmp(algorithm, "ring") == 0;
        f->collnet_count += collnet != NULL && strtol(collnet, NULL, 0) != 0;
    }
}

/* ---- all nodes ---------------------------------------------------------- */

bool facts_add_cards(struct facts *f, uint32_t node, const Gpul__ProbeFacts *m)
{
    struct text cards;
    facts_describe_cards(&cards, m);
    note_cards(f, m);
    note_algorithm(f, m);
    return tally_add(&f->networks, node, f->node_count, cards.bytes) != NULL;
}

/* Nodes that share a host need no card to reach each other. */
void facts_settle_rates(struct facts *f, const struct roster *r)
{
    struct gpul_links *rates = &f->rates;
    bool is_known = f->networks.count > 0;
    for (uint32_t i = 0; i < f->node_count; i++) {
        is_known &= r->nodes[i].host_node_count <= 1;
    }
    if (!is_known) {
        rates->nics_gbps = 0;
        rates->nics = 0;
        rates->nics_kind = GPUL_LINK_NONE;
    }
    if (facts_rank_count(f) == 0) {
        rates->link_gbps = 0;
        rates->host_gbps = 0;
    }
    if (f->ring_count == f->node_count) {
        rates->algorithm = GPUL_FLAT_RING;
    } else if (f->collnet_count == f->node_count) {
        rates->algorithm = GPUL_IN_NETWORK;
    }
}
