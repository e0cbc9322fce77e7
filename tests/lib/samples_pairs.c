/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/samples_pairs.h"

#define BASE(prefix)                                                           \
    .base = PROTOBUF_C_MESSAGE_INIT(&gpul__##prefix##__descriptor)

static char no_text[] = "";
static char addresses[][16] = {"192.0.2.2", "192.0.2.130"};
static char *address_list[] = {addresses[0], addresses[1]};
Gpul__PairStart sample_pair_start = {
    BASE(pair_start),          .node_rank = 1,
    .node_count = 4,           .n_addresses = 2,
    .addresses = address_list, .idle_ms = 30000,
};

static uint32_t ports[] = {40001, 40002, 40003};
Gpul__PairListening sample_pair_listening = {
    BASE(pair_listening),
    .n_ports = 3,
    .ports = ports,
    .error = no_text,
};

Gpul__TrialStart sample_trial_start = {
    BASE(trial_start),
    .trial = 3,
    .rail = 1,
    .token = UINT64_C(0x0123456789abcdef),
    .peer_rank = 2,
    .peer_address = addresses[1],
    .peer_port = 40003,
    .dials_first = 1,
    .run_ms = 200,
    .bytes_max = UINT64_C(268435456),
    .deadline_ms = 12000,
};

static char failure[] = "no connection to 192.0.2.130:40003 within 3 s";
static Gpul__TrialWay sending = {
    BASE(trial_way),       .failure = GPUL__TRIAL_WAY__FAILURE__NO_CONNECTION,
    .text = failure,       .rtt_count = 16,
    .rtt_min_ns = 40000,   .rtt_median_ns = 52000,
    .segments = 1000,      .retransmits = 3,
    .lone_retransmits = 1,
};
static Gpul__TrialWay receiving = {
    BASE(trial_way), .text = no_text,    .bytes = 250000000,
    .ns = 200000000, .busy_percent = 12,
};
Gpul__TrialResult sample_trial_result = {
    BASE(trial_result),
    .trial = 3,
    .sending = &sending,
    .receiving = &receiving,
};

static char ended[] = "it was ended by signal 9 (SIGKILL)";
Gpul__PairEnd sample_pair_end = {BASE(pair_end), .error = ended};

static char names[][8] = {"node1", "node2"};
static char rail[] = "ib0";
static Gpul__PairRow row = {
    BASE(pair_row),   .round = 2,          .rail = rail,       .a = names[0],
    .b = names[1],    .a_to_b_gbps = 1.25, .b_to_a_gbps = 1.2, .rtt_ns = 52000,
    .segments = 2000, .retransmits = 3,    .error = no_text,   .is_alone = 1,
};
Gpul__PairRow *sample_pair_rows[SAMPLE_PAIR_ROWS] = {&row};

static char direction[] = "send";
static char evidence[] = "0.02 GB/s, where the median is 1.25 GB/s";
static Gpul__PairVerdict verdict = {
    BASE(pair_verdict),
    .what = GPUL__PAIR_VERDICT__WHAT__PATH,
    .a = names[0],
    .b = names[1],
    .state = GPUL__PAIR_VERDICT__STATE__SLOW,
    .direction = direction,
    .rail = rail,
    .rounds = 3,
    .text = evidence,
};
Gpul__PairVerdict *sample_pair_verdicts[SAMPLE_PAIR_VERDICTS] = {&verdict};
