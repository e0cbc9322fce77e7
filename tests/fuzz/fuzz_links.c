/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/fuzz_links.h"

#include "coordinator/text.h"

enum { INTERFACES = 4 };

static Gpul__LinkInterface interfaces[INTERFACES];
static Gpul__LinkInterface *interface_list[INTERFACES];
static Gpul__LinkListening listening;
static Gpul__LinkFailure failure;
static Gpul__LinkFailure *failure_list[] = {&failure};
static uint32_t reached_from[INTERFACES];
static uint8_t missed[2];
static Gpul__LinkReport report;

/* The low bits: candidates, others, and whether the first is IPv6. */
void fuzz_links_listening(Gpul__Frame *frame, uint8_t choice)
{
    static const char *const addresses[] = {"10.0.0.1", "fd00::1", "10.1.0.1",
                                            "172.17.0.1"};
    size_t candidates = choice & 3u;
    size_t n = candidates + (choice >> 2 & 1u);
    gpul__link_listening__init(&listening);
    for (size_t i = 0; i < n; i++) {
        bool is_candidate = i < candidates;
        gpul__link_interface__init(&interfaces[i]);
        interfaces[i].name = wire_text("eth0");
        interfaces[i].address =
            wire_text(addresses[(i + (choice >> 3 & 1u)) % INTERFACES]);
        interfaces[i].mbits = choice;
        interfaces[i].is_rdma = (choice & 16u) != 0;
        interfaces[i].port = is_candidate ? 40000 : 0;
        interfaces[i].rejection = wire_text(is_candidate ? "" : "down");
        interface_list[i] = &interfaces[i];
    }
    listening.interfaces = interface_list;
    listening.n_interfaces = n;
    listening.error = wire_text(candidates == 0 ? "none" : "");
    frame->body_case = GPUL__FRAME__BODY_LINK_LISTENING;
    frame->link_listening = &listening;
}

void fuzz_links_report(Gpul__Frame *frame, uint8_t choice)
{
    gpul__link_report__init(&report);
    gpul__link_failure__init(&failure);
    missed[0] = choice;
    missed[1] = choice >> 7;
    report.missed.data = missed;
    report.missed.len = choice == 0 ? 0 : 1 + (choice & 1u);
    report.failures = failure_list;
    report.failure_count = report.missed.len > 0;
    report.n_failures = report.failure_count;
    failure.node_rank = choice & 3u;
    failure.endpoint = choice >> 2 & 1u;
    failure.kind = (Gpul__LinkFailure__Kind)(1 + choice % 6);
    failure.answered_by = choice >> 4 & 3u;
    reached_from[0] = choice & 3u;
    report.reached_from = reached_from;
    report.n_reached_from = choice >> 6;
    frame->body_case = GPUL__FRAME__BODY_LINK_REPORT;
    frame->link_report = &report;
}
