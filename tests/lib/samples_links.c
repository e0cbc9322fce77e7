/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/samples_links.h"

#define BASE(prefix)                                                           \
    .base = PROTOBUF_C_MESSAGE_INIT(&gpul__##prefix##__descriptor)

Gpul__LinkStart sample_link_start = {
    BASE(link_start),
    .token = UINT64_C(0x0123456789abcdef),
    .deadline_ms = 26000,
};

static char no_text[] = "";
static char names[][8] = {"ib0", "docker0"};
static char addresses[][16] = {"192.0.2.2", "172.17.0.1"};
static char kinds[][16] = {"infiniband", "bridge"};
static char rejection[] = "a bridge without a port to the network";
static Gpul__LinkInterface interfaces[] = {
    {BASE(link_interface), .name = names[0], .address = addresses[0],
     .kind = kinds[0], .mbits = 400000, .rejection = no_text, .port = 40001,
     .is_rdma = 1},
    {BASE(link_interface), .name = names[1], .address = addresses[1],
     .kind = kinds[1], .rejection = rejection},
};
static Gpul__LinkInterface *interface_list[] = {&interfaces[0], &interfaces[1]};
Gpul__LinkListening sample_link_listening = {
    BASE(link_listening),
    .n_interfaces = 2,
    .interfaces = interface_list,
    .error = no_text,
};

static uint32_t counts[] = {1, 2};
static uint32_t ports[] = {40001, 40002, 40003};
static char folded[] = "192.0.2.[2-3],fd00::3";
Gpul__LinkPeers sample_link_peers = {
    BASE(link_peers), .page = 1,      .page_count = 2,      .first_node = 2,
    .node_count = 2,  .n_counts = 2,  .counts = counts,     .addresses = folded,
    .n_ports = 3,     .ports = ports, .deadline_ms = 26000,
};

static uint8_t missed[] = {0x10, 0x01};
static Gpul__LinkFailure failures[] = {
    {BASE(link_failure), .node_rank = 3, .endpoint = 1,
     .kind = GPUL__LINK_FAILURE__KIND__OTHER_MACHINE, .answered_by = 1},
};
static Gpul__LinkFailure *failure_list[] = {&failures[0]};
static uint32_t reached_from[] = {3, 0};
Gpul__LinkReport sample_link_report = {
    BASE(link_report),
    .missed = {.len = sizeof(missed), .data = missed},
    .n_failures = 1,
    .failures = failure_list,
    .failure_count = 2,
    .n_reached_from = 2,
    .reached_from = reached_from,
};
