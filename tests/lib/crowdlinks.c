/* SPDX-License-Identifier: Apache-2.0
 *
 * The crowd's addresses: two networks for each host, and an idle bridge.
 */
#include <stdio.h>

#include "coordinator/text.h"
#include "tests/lib/crowd.h"

static void fill(Gpul__LinkInterface *out, const char *name, char *address,
                 uint32_t port)
{
    gpul__link_interface__init(out);
    out->name = wire_text(name);
    out->address = address;
    out->kind = wire_text("ethernet");
    out->mbits = 100000;
    out->port = port;
}

void crowd_open_links(struct crowd *c, uint32_t node)
{
    char addresses[3][32];
    Gpul__LinkInterface all[3];
    Gpul__LinkInterface *list[] = {&all[0], &all[1], &all[2]};
    uint32_t number = node / 8;
    for (uint32_t i = 0; i < 2; i++) {
        snprintf(addresses[i], sizeof(addresses[i]), "10.%u.%u.%u",
                 (number >> 16) + 100 * i, number >> 8 & 255u, number & 255u);
    }
    snprintf(addresses[2], sizeof(addresses[2]), "172.17.0.1");
    fill(&all[0], "eth0", addresses[0], 40000 + node % 8);
    fill(&all[1], "ib0", addresses[1], 41000 + node % 8);
    fill(&all[2], "docker0", addresses[2], 0);
    all[2].rejection = wire_text("a bridge without a port to the network");
    Gpul__LinkListening listening = GPUL__LINK_LISTENING__INIT;
    listening.interfaces = list;
    listening.n_interfaces = 3;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_LINK_LISTENING;
    frame.link_listening = &listening;
    crowd_say(c, node, &frame);
}

void crowd_dial(struct crowd *c, uint32_t node)
{
    uint32_t reached_from[] = {c->node_count - 1, c->node_count - 1};
    Gpul__LinkReport report = GPUL__LINK_REPORT__INIT;
    report.reached_from = reached_from;
    report.n_reached_from = 2;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_LINK_REPORT;
    frame.link_report = &report;
    crowd_say(c, node, &frame);
}
