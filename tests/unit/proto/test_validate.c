/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/limits.h"
#include "proto/message.h"
#include "proto/validate.h"
#include "tests/lib/samples.h"

/* ---- fields ------------------------------------------------------------- */

/* A message with one fault, and what is said of it. */
static void assert_fault(const Gpul__Frame *frame, const char *text)
{
    struct gpul_error err = {0};
    int rc = gpul_body_check(gpul_body_rule(frame->body_case),
                             (const ProtobufCMessage *)frame->hello, &err);
    assert_string_equal(err.text, text == NULL ? "" : text);
    assert_int_equal(rc, text == NULL ? 0 : GPUL_EPROTO);
    assert_int_equal(gpul_body_check(gpul_body_rule(frame->body_case),
                                     (const ProtobufCMessage *)frame->hello,
                                     NULL),
                     rc);
}

/* `m` is a copy of the sample body, `f` the frame around it. */
#define SAMPLE(type, body)                                                     \
    Gpul__Frame f = sample_frame(GPUL__FRAME__BODY_##type);                    \
    Gpul__##body m = *(const Gpul__##body *)(const void *)f.hello;             \
    f.hello = (Gpul__Hello *)(void *)&m

static char long_text[GPUL_PATH_BYTES_MAX + 2];

/* A text of n characters, valid until the next call. */
static char *text_of(size_t n)
{
    memset(long_text, 'x', n);
    long_text[n] = 0;
    return long_text;
}

/* Numbers hold on their bounds and not beyond. */
static void test_number(void **state)
{
    (void)state;
    SAMPLE(PROBE_LISTENING, ProbeListening);
    m.port = 65535;
    assert_fault(&f, NULL);
    m.port = 65536;
    assert_fault(&f, "port: is 65536, not within 1 to 65535");
    m.port = 0;
    assert_fault(&f, "port: is 0, not within 1 to 65535");
}

/* 64-bit numbers are judged whole. */
static void test_long_number(void **state)
{
    (void)state;
    SAMPLE(CREDIT, Credit);
    m.bytes = GPUL_OUTPUT_WINDOW_TOTAL_BYTES;
    assert_fault(&f, NULL);
    m.bytes = UINT64_C(1) << 32;
    assert_fault(&f, "bytes: is 4294967296, not within 1 to 67108864");
}

/* Names are graphic ASCII, lines and texts UTF-8 of their length. */
static void test_strings(void **state)
{
    (void)state;
    SAMPLE(NODE_GONE, NodeGone);
    m.node_name = text_of(GPUL_NAME_BYTES_MAX);
    assert_fault(&f, NULL);
    m.node_name = text_of(GPUL_NAME_BYTES_MAX + 1);
    assert_fault(&f, "node_name: has 254 bytes, at most 253");
    m.node_name = (char[]){""};
    assert_fault(&f, "node_name: is empty");
    m.node_name = (char[]){"node 7"};
    assert_fault(&f, "node_name: has a character that may not be");
    m.node_name = (char[]){"n\xc3\xb6"};
    assert_fault(&f, "node_name: has a character that may not be");
    m.node_name = (char[]){"n"};
    m.text = (char[]){"first\n\tsecond \xe2\x82\xac"};
    assert_fault(&f, NULL);
    m.text = (char[]){"cursor\x1b[2J"};
    assert_fault(&f, "text: has a character that may not be");
    m.text = (char[]){"\xff"};
    assert_fault(&f, "text: has a character that may not be");
    m.text = text_of(GPUL_TEXT_BYTES_MAX + 1);
    assert_fault(&f, "text: has 1025 bytes, at most 1024");
}

/* Bytes that become C strings have no NUL; output may be anything. */
static void test_bytes(void **state)
{
    (void)state;
    ProtobufCBinaryData arguments[2] = {{2, (uint8_t[]){"sh"}},
                                        {3, (uint8_t[]){"a\0b"}}};
    Gpul__Command command = GPUL__COMMAND__INIT;
    command.n_arguments = 2;
    command.arguments = arguments;
    SAMPLE(JOB, Job);
    m.command = &command;
    assert_fault(&f, "command: arguments: has a NUL byte");
    command.n_arguments = 1;
    assert_fault(&f, NULL);
    command.n_arguments = 0;
    assert_fault(&f,
                 "command: arguments: has 0 entries, not within 1 to 16384");
    command.n_arguments = 1;
    command.working_directory = (ProtobufCBinaryData){
        GPUL_PATH_BYTES_MAX + 1, (uint8_t *)text_of(GPUL_PATH_BYTES_MAX + 1)};
    assert_fault(&f,
                 "command: working_directory: has 4097 bytes, at most 4096");
}

/* Messages that others are built on are there. */
static void test_missing(void **state)
{
    (void)state;
    SAMPLE(JOB, Job);
    m.environment = NULL;
    assert_fault(&f, "environment: is missing");
    m.command = NULL;
    assert_fault(&f, "command: is missing");
    m.self_test = NULL;
    assert_fault(&f, "self_test: is missing");
}

/* A node says where it is. */
static void test_hello(void **state)
{
    (void)state;
    SAMPLE(HELLO, Hello);
    m.protocol_min = 2;
    assert_fault(&f, "protocol_min 2 is over protocol_max 1");
    m.protocol_min = 1;
    Gpul__Facts facts = *m.facts;
    m.facts = &facts;
    facts.address = (char[]){""};
    assert_fault(&f, "facts: address: is empty");
    facts.address = (char[]){"::1"};
    Gpul__Interface *many[GPUL_INTERFACES_MAX + 1];
    for (size_t i = 0; i < sizeof(many) / sizeof(many[0]); i++) {
        many[i] = facts.interfaces[0];
    }
    facts.interfaces = many;
    facts.n_interfaces = GPUL_INTERFACES_MAX;
    assert_fault(&f, NULL);
    facts.n_interfaces++;
    assert_fault(&f, "facts: interfaces: has 33 entries, not within 0 to 32");
    m.facts = NULL;
    assert_fault(&f, "facts: is missing");
}

/* Enum values are known, and NONE is none. */
static void test_choice(void **state)
{
    (void)state;
    SAMPLE(OUTPUT, Output);
    m.stream = GPUL__OUTPUT__STREAM__NONE;
    assert_fault(&f, "stream: has no value 0");
    m.stream = (Gpul__Output__Stream)3;
    assert_fault(&f, "stream: has no value 3");
    m.stream = (Gpul__Output__Stream)-1;
    assert_fault(&f, "stream: has no value -1");
    m.stream = GPUL__OUTPUT__STREAM__STDOUT;
    assert_fault(&f, NULL);
}

/* Bandwidths are numbers, and not below zero. */
static void test_double(void **state)
{
    (void)state;
    SAMPLE(EVENT, Event);
    Gpul__SelfTestRow row = *m.rows[0];
    m.rows = (Gpul__SelfTestRow *[]){&row};
    const double bad[] = {-1, NAN, INFINITY};
    for (size_t i = 0; i < 3; i++) {
        row.busbw_gbps = bad[i];
        assert_fault(&f, "rows: busbw_gbps: is not a positive number");
    }
    row.busbw_gbps = 0;
    assert_fault(&f, NULL);
}

/* A lease must outlast a heartbeat. */
static void test_welcome(void **state)
{
    (void)state;
    SAMPLE(WELCOME, Welcome);
    m.lease_ms = m.heartbeat_ms;
    assert_fault(&f, "lease_ms 2000 is not over heartbeat_ms 2000");
}

/* What of a job only its fields together can tell. */
static void test_job(void **state)
{
    (void)state;
    SAMPLE(JOB, Job);
    m.log_dir = (char[]){"logs"};
    assert_fault(&f, "log_dir is not absolute");
    m.log_dir = (char[]){""};
    assert_fault(&f, NULL);
    m.warning_ms = m.timeout_ms;
    assert_fault(&f, "warning_ms 3600000 is not within timeout_ms 3600000");
    m.warning_ms = 0;

    Gpul__InputTarget target = *m.input_target;
    m.input_target = &target;
    target.is_all = 1;
    assert_fault(&f, "input_target: is for all, and for rank 3");
    m.input_target = NULL;
    assert_fault(&f, NULL);

    Gpul__SelfTest self_test = *m.self_test;
    m.self_test = &self_test;
    self_test.run_deadline_ms = 0;
    assert_fault(&f, "self_test: has no deadlines");
    self_test.level = GPUL__SELF_TEST__LEVEL__OFF;
    assert_fault(&f, NULL);

    Gpul__Environment environment = *m.environment;
    Gpul__Variable variable = *environment.user[0];
    environment.user = (Gpul__Variable *[]){&variable};
    environment.n_user = 1;
    m.environment = &environment;
    variable.name = (ProtobufCBinaryData){3, (uint8_t[]){"A=B"}};
    assert_fault(&f, "environment: user: name has an equals sign");
    variable.name.len = 0;
    assert_fault(&f, "environment: user: name: is empty");
}

/* A node's place lies within its world and its host. */
static void test_assign(void **state)
{
    (void)state;
    SAMPLE(ASSIGN, Assign);
    const Gpul__Assign good = m;
    m.node_rank = 4;
    assert_fault(&f, "node_rank 4 is not below 4");
    m = good;
    m.first_rank = 25;
    assert_fault(&f, "ranks 25+8 are not within 32");
    m.first_rank = 24;
    assert_fault(&f, NULL);
    m.world_size = 7;
    assert_fault(&f, "ranks 24+8 are not within 7");
    m = good;
    m.host_node_index = 2;
    assert_fault(&f, "the host's counts do not add up");
    m = good;
    m.host_node_count = 5;
    assert_fault(&f, "the host's counts do not add up");
    m = good;
    m.host_count = 5;
    assert_fault(&f, "the host's counts do not add up");
    m = good;
    m.avoid_ports = (uint32_t[]){1, 0};
    assert_fault(&f, "avoid_ports: is 0, not within 1 to 65535");
}

/* A node has ports, or a reason. */
static void test_ready(void **state)
{
    (void)state;
    SAMPLE(READY, Ready);
    m.port_base = 0;
    assert_fault(&f, NULL);
    m.error = (char[]){""};
    assert_fault(&f, "has neither a port nor an error");
    m.port_base = 1;
    assert_fault(&f, NULL);
}

/* Who is clean has nothing left. */
static void test_leave(void **state)
{
    (void)state;
    SAMPLE(LEAVE, Leave);
    assert_fault(&f, NULL);
    m.is_clean = 1;
    assert_fault(&f, "is clean, and has 1 left");
    m.n_unclean = 0;
    assert_fault(&f, NULL);
}

/* Input brings something, its credit too, and it is for all or for one. */
static void test_input(void **state)
{
    (void)state;
    SAMPLE(INPUT, Input);
    assert_fault(&f, NULL);
    m.data.len = 0;
    assert_fault(&f, NULL);
    m.is_end = 0;
    assert_fault(&f, "has neither data nor an end");
}

static void test_input_credit(void **state)
{
    (void)state;
    SAMPLE(INPUT_CREDIT, InputCredit);
    m.is_closed = 0;
    assert_fault(&f, NULL);
    m.bytes = 0;
    assert_fault(&f, "says nothing");
    m.bytes = GPUL_INPUT_WINDOW_BYTES_MAX + 1;
    assert_fault(&f, "bytes: is 1048577, not within 0 to 1048576");
}

/* A limit is there if it is given. */
static void test_hang(void **state)
{
    (void)state;
    SAMPLE(JOB, Job);
    Gpul__Hang hang = *m.hang;
    m.hang = &hang;
    assert_fault(&f, NULL);
    hang.limit_ms = 0;
    assert_fault(&f, "hang: has no limit, and it is given");
    hang.watch = GPUL__HANG__WATCH__LEARNED;
    assert_fault(&f, NULL);
    hang.limit_ms = 1;
    assert_fault(&f, "hang: has a limit that is not given");
}

/* The pages of a roster add up, and every rank has a port. */
static void test_roster(void **state)
{
    (void)state;
    SAMPLE(ROSTER, Roster);
    const Gpul__Roster good = m;
    m.page = 2;
    assert_fault(&f, "page 2 is not below page_count 2");
    m = good;
    m.first_node = GPUL_NODES_MAX - 3;
    assert_fault(&f, "nodes 131069+4 are over the limit");
    m.first_node--;
    assert_fault(&f, NULL);
    m = good;
    m.n_port_bases = 3;
    assert_fault(&f, "3 port_bases and 1 rank_counts for 4 nodes");
    m = good;
    m.n_rank_counts = 0;
    assert_fault(&f, "rank_counts: has 0 entries, not within 1 to 896");
    m = good;
    m.port_bases = (uint32_t[]){20000, 20010, 20020, 65526};
    assert_fault(&f, "8 ranks have no room from port 65526 on");
    m.port_bases = (uint32_t[]){20000, 20010, 20020, 65525};
    assert_fault(&f, NULL);
}

/* A probe is one of its ring. */
static void test_probe_start(void **state)
{
    (void)state;
    SAMPLE(PROBE_START, ProbeStart);
    m.node_rank = 4;
    assert_fault(&f, "node_rank 4 is not below 4");
    m.node_rank = 3;
    assert_null(m.sweep); /* as from a coordinator that knows of none */
    assert_fault(&f, NULL);
    Gpul__Sweep sweep = GPUL__SWEEP__INIT;
    sweep.busbw_min_gbps = -1;
    m.sweep = &sweep;
    assert_fault(&f, "sweep: busbw_min_gbps: is not a positive number");
    m.sweep = NULL;
    m.level = GPUL__SELF_TEST__LEVEL__OFF;
    assert_fault(&f, "level: has no value 0");
}

/* The ranks of a node include those that begin. */
static void test_probe_begin(void **state)
{
    (void)state;
    SAMPLE(PROBE_BEGIN, ProbeBegin);
    m.node_first_rank = 9;
    assert_fault(&f, "rank 8 is none of the 8 from 9 on of its node");
    m.node_first_rank = 0;
    assert_fault(&f, "rank 8 is none of the 8 from 0 on of its node");
    m.node_rank_count = 9;
    assert_fault(&f, NULL);
    m.node_rank_count = 0;
    assert_fault(&f, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_number),       cmocka_unit_test(test_long_number),
        cmocka_unit_test(test_strings),      cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_missing),      cmocka_unit_test(test_hello),
        cmocka_unit_test(test_choice),       cmocka_unit_test(test_double),
        cmocka_unit_test(test_welcome),      cmocka_unit_test(test_job),
        cmocka_unit_test(test_assign),       cmocka_unit_test(test_ready),
        cmocka_unit_test(test_leave),        cmocka_unit_test(test_input),
        cmocka_unit_test(test_input_credit), cmocka_unit_test(test_hang),
        cmocka_unit_test(test_roster),       cmocka_unit_test(test_probe_start),
        cmocka_unit_test(test_probe_begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
