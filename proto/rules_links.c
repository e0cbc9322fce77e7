/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of the messages of docs/links.md.
 */
#include "proto/rule_words.h"

static const struct gpul_field_rule link_start_fields[] = {
    ANY64("token"),
    NUMBER("deadline_ms", 1, UINT32_MAX),
};
SHARED_BODY(link_start, NULL);

static const struct gpul_field_rule link_interface_fields[] = {
    STRING("name", LINE, 1, GPUL_INTERFACE_BYTES_MAX),
    ADDRESS("address"),
    STRING("kind", NAME, 0, GPUL_TOKEN_BYTES_MAX),
    ANY32("mbits"),
    FLAG("is_rdma"),
    NUMBER("port", 0, GPUL_PORT_MAX),
    STRING("rejection", LINE, 0, GPUL_REJECTION_BYTES_MAX),
    FLAG("is_tunnel"),
};
BODY(link_interface, NULL);

static const struct gpul_field_rule link_listening_fields[] = {
    MESSAGES("interfaces", 0, GPUL_INTERFACES_MAX, link_interface_rule),
    SENTENCE("error"),
};
SHARED_BODY(link_listening, gpul_check_link_listening);

static const struct gpul_field_rule link_peers_fields[] = {
    NODE_RANK("page"),
    NODE_COUNT("page_count"),
    NODE_RANK("first_node"),
    NUMBER("node_count", 1, GPUL_LINK_PAGE_NODES_MAX),
    LIST("counts", NUMBER, 1, GPUL_LINK_PAGE_NODES_MAX, 1, GPUL_LINKS_MAX),
    STRING("addresses", NAME, 1, GPUL_FRAME_BYTES_MAX),
    LIST("ports", NUMBER, 1, GPUL_LINK_PAGE_NODES_MAX *GPUL_LINKS_MAX, 1,
         GPUL_PORT_MAX),
    NUMBER("deadline_ms", 1, UINT32_MAX),
};
SHARED_BODY(link_peers, gpul_check_link_peers);

static const struct gpul_field_rule link_failure_fields[] = {
    NODE_RANK("node_rank"),
    NUMBER("endpoint", 0, GPUL_LINKS_MAX - 1),
    CHOICE("kind", 1),
    NUMBER("answered_by", 0, GPUL_NODES_MAX),
};
BODY(link_failure, NULL);

static const struct gpul_field_rule link_report_fields[] = {
    STRING("missed", DATA, 0, GPUL_LINK_MISSED_BYTES_MAX),
    MESSAGES("failures", 0, GPUL_LINK_FAILURES_MAX, link_failure_rule),
    ANY32("failure_count"),
    LIST("reached_from", NUMBER, 0, GPUL_LINKS_MAX, 0, GPUL_NODES_MAX),
};
SHARED_BODY(link_report, gpul_check_link_report);
