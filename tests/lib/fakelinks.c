/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/fakelinks.h"

#include <string.h>

#include "coordinator/text.h"
#include "proto/limits.h"
#include "tests/lib/fakenode.h"

enum { MISSED_BYTES = 128, PORT = 40000, BYTE_BITS = 8 };

uint32_t fake_links_count(const struct fake_node *node)
{
    return node->link_count > 0 ? node->link_count : 1;
}

static struct fake_link link_of(const struct fake_node *node, uint32_t k)
{
    if (node->link_count > 0) {
        return node->links[k];
    }
    return (struct fake_link){.name = "eth0", .address = node->address};
}

void fake_links_listen(struct cluster *c, uint32_t index)
{
    const struct fake_node *node = &c->nodes[index];
    Gpul__LinkInterface all[FAKE_LINKS_MAX + 1];
    Gpul__LinkInterface *list[FAKE_LINKS_MAX + 1];
    Gpul__LinkListening listening = GPUL__LINK_LISTENING__INIT;
    uint32_t n = node->link_error != NULL ? 0 : fake_links_count(node);
    for (uint32_t k = 0; k < n; k++) {
        struct fake_link link = link_of(node, k);
        gpul__link_interface__init(&all[k]);
        all[k].name = wire_text(link.name);
        all[k].address = wire_text(link.address);
        all[k].mbits = link.mbits;
        all[k].is_rdma = link.is_rdma;
        all[k].is_tunnel = link.is_tunnel;
        all[k].port = PORT + k;
        list[k] = &all[k];
    }
    if (node->link_rejection != NULL) {
        gpul__link_interface__init(&all[n]);
        all[n].name = wire_text("docker0");
        all[n].address = wire_text("172.17.0.1");
        all[n].kind = wire_text("bridge");
        all[n].rejection = wire_text(node->link_rejection);
        list[n] = &all[n];
        n++;
    }
    listening.interfaces = list;
    listening.n_interfaces = n;
    listening.error = wire_text(node->link_error ? node->link_error : "");
    Gpul__Frame frame = fake_frame(node);
    frame.body_case = GPUL__FRAME__BODY_LINK_LISTENING;
    frame.link_listening = &listening;
    fake_send(c, node, &frame);
}

static bool is_cut(const struct fake_link *link, uint32_t rank)
{
    return (link->cut_for >> rank & 1u) != 0;
}

static void add_failure(Gpul__LinkReport *report, const struct fake_link *link,
                        uint32_t rank, uint32_t endpoint)
{
    report->failure_count++;
    if (report->n_failures < GPUL_LINK_FAILURES_MAX) {
        Gpul__LinkFailure *f = report->failures[report->n_failures++];
        gpul__link_failure__init(f);
        f->node_rank = rank;
        f->endpoint = endpoint;
        f->kind =
            link->kind != 0 ? link->kind : GPUL__LINK_FAILURE__KIND__TIMED_OUT;
        f->answered_by = link->answered_by;
    }
}

void fake_links_report(struct cluster *c, uint32_t index)
{
    const struct fake_node *node = &c->nodes[index];
    uint8_t missed[MISSED_BYTES] = {0};
    uint32_t reached_from[FAKE_LINKS_MAX] = {0};
    Gpul__LinkFailure all[GPUL_LINK_FAILURES_MAX];
    Gpul__LinkFailure *list[GPUL_LINK_FAILURES_MAX];
    Gpul__LinkReport report = GPUL__LINK_REPORT__INIT;
    uint32_t bit = 0;
    for (uint32_t i = 0; i < GPUL_LINK_FAILURES_MAX; i++) {
        list[i] = &all[i];
    }
    report.failures = list;
    for (uint32_t i = 0; i < c->job.node_count; i++) {
        for (uint32_t k = 0; k < fake_links_count(&c->nodes[i]); k++, bit++) {
            struct fake_link link = link_of(&c->nodes[i], k);
            if (i == node->node_rank) {
                continue;
            }
            if (is_cut(&link, node->node_rank)) {
                missed[bit / BYTE_BITS] |= (uint8_t)(1u << (bit % BYTE_BITS));
                add_failure(&report, &link, i, k);
            } else {
                reached_from[k]++;
            }
        }
    }
    if (report.failure_count > 0) {
        report.missed.data = missed;
        report.missed.len = (bit + BYTE_BITS - 1) / BYTE_BITS;
        report.missed.len += node->lies_about_links;
    }
    report.reached_from = reached_from;
    report.n_reached_from = fake_links_count(node);
    Gpul__Frame frame = fake_frame(node);
    frame.body_case = GPUL__FRAME__BODY_LINK_REPORT;
    frame.link_report = &report;
    fake_send(c, node, &frame);
}

static bool has_good(const struct cluster *c, uint32_t rank, bool is_ipv6)
{
    const struct fake_node *node = &c->nodes[rank];
    uint64_t others =
        ((UINT64_C(1) << c->job.node_count) - 1) & ~(UINT64_C(1) << rank);
    for (uint32_t k = 0; k < fake_links_count(node); k++) {
        struct fake_link link = link_of(node, k);
        bool is_of_family = (strchr(link.address, ':') != NULL) == is_ipv6;
        if (is_of_family && (link.cut_for & others) == 0) {
            return true;
        }
    }
    return false;
}

bool fake_links_are_good(const struct cluster *c)
{
    bool is_good[2] = {true, true};
    for (uint32_t i = 0; i < c->job.node_count; i++) {
        is_good[0] = is_good[0] && has_good(c, i, false);
        is_good[1] = is_good[1] && has_good(c, i, true);
    }
    return is_good[0] || is_good[1];
}

bool fake_links_are_spread(const struct cluster *c)
{
    const struct fake_node *first = &c->nodes[0];
    for (uint32_t i = 1; i < c->job.node_count; i++) {
        const struct fake_node *node = &c->nodes[i];
        if (strcmp(node->hostname, first->hostname) != 0 ||
            strcmp(node->boot_id, first->boot_id) != 0 ||
            node->network_namespace != first->network_namespace) {
            return true;
        }
    }
    return false;
}
