/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/samples_check.h"

#define BASE(prefix)                                                           \
    .base = PROTOBUF_C_MESSAGE_INIT(&gpul__##prefix##__descriptor)

static char no_text[] = "";
static char data_dir[] = "/data/train";
Gpul__Check sample_check = {
    BASE(check),
    .is_strict = 1,
    .data_dir = data_dir,
    .has_command = 1,
    .survey_deadline_ms = 60000,
};

static uint8_t command[] = {'p', 'y', 't', 'h', 'o', 'n'};
static char job_id[] = "j1";
static uint8_t directory[] = {'/', 'h', 'o', 'm', 'e', '/', 0xfe};
Gpul__SurveyStart sample_survey_start = {
    BASE(survey_start),
    .deadline_ms = 56000,
    .data_dir = data_dir,
    .command = {.len = sizeof(command), .data = command},
    .working_directory = {.len = sizeof(directory), .data = directory},
    .job_id = job_id,
};

static char keys[][16] = {"os.kernel", "clock.source"};
static char kernel[] = "6.1.0-18-amd64";
static char unknown[] = "Permission denied";
static Gpul__Fact facts[] = {
    {BASE(fact), .key = keys[0], .value = kernel, .unknown = no_text},
    {BASE(fact), .key = keys[1], .value = no_text, .unknown = unknown},
};
Gpul__Fact *sample_facts[2] = {&facts[0], &facts[1]};
Gpul__Survey sample_survey = {
    BASE(survey),
    .n_facts = 2,
    .facts = sample_facts,
};

Gpul__ClockPing sample_clock_ping = {
    BASE(clock_ping),
    .sequence = 3,
    .sent_ns = UINT64_C(1796000000000000001),
};
Gpul__ClockPong sample_clock_pong = {
    BASE(clock_pong),
    .sequence = 3,
    .ping_sent_ns = UINT64_C(1796000000000000001),
    .received_ns = UINT64_C(1796000000000250000),
    .sent_ns = UINT64_C(1796000000000260000),
};

static char id[] = "NET-110";
static char nodes[] = "node[01-02],node07";
static char text[] = "node01 -> node02: timed out";
static char value[] = "1500";
static char expected[] = "9000";
static char remedy[] = "open the ephemeral ports between the nodes";
static Gpul__Finding finding = {
    BASE(finding),
    .id = id,
    .severity = GPUL__FINDING__SEVERITY__FAIL,
    .nodes = nodes,
    .text = text,
    .value = value,
    .expected = expected,
    .remedy = remedy,
};
Gpul__Finding *sample_findings[1] = {&finding};
Gpul__FindingCounts sample_counts = {
    BASE(finding_counts), .passed = 90, .warned = 2,
    .failed = 1,          .unknown = 3, .untold = 4,
};
