/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of the messages of trials between two nodes, docs/check.md.
 */
#include "proto/rule_words.h"

static const struct gpul_field_rule pair_start_fields[] = {
    NODE_RANK("node_rank"),
    NODE_COUNT("node_count"),
    LIST("addresses", NAME, 1, GPUL_RAILS_MAX, 1, GPUL_ADDRESS_BYTES_MAX),
    NUMBER("idle_ms", 1, UINT32_MAX),
};
SHARED_BODY(pair_start, gpul_check_pair_start);

static const struct gpul_field_rule pair_listening_fields[] = {
    LIST("ports", NUMBER, 0, GPUL_RAILS_MAX, 1, GPUL_PORT_MAX),
    SENTENCE("error"),
};
SHARED_BODY(pair_listening, gpul_check_pair_listening);

static const struct gpul_field_rule trial_start_fields[] = {
    ANY32("trial"),
    NUMBER("rail", 0, GPUL_RAILS_MAX - 1),
    ANY64("token"),
    NODE_RANK("peer_rank"),
    ADDRESS("peer_address"),
    PORT("peer_port"),
    FLAG("dials_first"),
    NUMBER("run_ms", 1, UINT32_MAX),
    NUMBER("bytes_max", 1, UINT64_MAX),
    NUMBER("deadline_ms", 1, UINT32_MAX),
};
SHARED_BODY(trial_start, NULL);

static const struct gpul_field_rule trial_way_fields[] = {
    CHOICE("failure", 0),
    SENTENCE("text"),
    ANY64("bytes"),
    ANY64("ns"),
    ANY32("rtt_count"),
    ANY64("rtt_min_ns"),
    ANY64("rtt_median_ns"),
    ANY64("segments"),
    ANY64("retransmits"),
    ANY64("lone_retransmits"),
    NUMBER("busy_percent", 0, 100),
};
BODY(trial_way, gpul_check_trial_way);

static const struct gpul_field_rule trial_result_fields[] = {
    ANY32("trial"),
    MESSAGE("sending", trial_way_rule),
    MESSAGE("receiving", trial_way_rule),
};
SHARED_BODY(trial_result, NULL);

static const struct gpul_field_rule pair_end_fields[] = {SENTENCE("error")};
SHARED_BODY(pair_end, NULL);

/* ---- for the front end -------------------------------------------------- */

static const struct gpul_field_rule pair_row_fields[] = {
    ANY32("round"),       STRING("rail", LINE, 0, GPUL_INTERFACE_BYTES_MAX),
    NODE_NAME("a", 1),    NODE_NAME("b", 1),
    ANY64("a_to_b_gbps"), ANY64("b_to_a_gbps"),
    ANY64("rtt_ns"),      ANY64("segments"),
    ANY64("retransmits"), STRING("error", LINE, 0, GPUL_EVIDENCE_BYTES_MAX),
    FLAG("is_alone"),
};
SHARED_BODY(pair_row, NULL);

static const struct gpul_field_rule pair_verdict_fields[] = {
    CHOICE("what", 1),
    NODE_NAME("a", 1),
    NODE_NAME("b", 0),
    CHOICE("state", 0),
    STRING("direction", LINE, 0, GPUL_TOKEN_BYTES_MAX),
    STRING("rail", LINE, 0, GPUL_INTERFACE_BYTES_MAX),
    ANY32("rounds"),
    STRING("text", LINES, 0, GPUL_EVIDENCE_BYTES_MAX),
};
SHARED_BODY(pair_verdict, NULL);
