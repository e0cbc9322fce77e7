/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/fuzz_says.h"

#include "coordinator/text.h"
#include "proto/limits.h"

static void make_hello(Gpul__Frame *frame, uint32_t conn, uint8_t choice)
{
    static char name[] = "n0";
    static Gpul__Facts facts;
    static Gpul__Hello hello;
    gpul__facts__init(&facts);
    gpul__hello__init(&hello);
    name[1] = (char)('0' + choice % 4);
    facts.hostname = wire_text((choice & 128u) != 0 ? "h1" : "h");
    facts.address = wire_text((choice & 64u) != 0 ? "127.0.0.1" : "10.0.0.1");
    facts.cores = 1;
    facts.gpus = choice >> 4 & 3u;
    hello.protocol_min = 1;
    hello.protocol_max = 1;
    hello.job_id = wire_text("j");
    hello.node_name = name;
    hello.instance = conn;
    hello.facts = &facts;
    frame->body_case = GPUL__FRAME__BODY_HELLO;
    frame->hello = &hello;
}

static void make_ready(Gpul__Frame *frame, uint32_t conn, uint8_t choice)
{
    static Gpul__Ready ready;
    (void)conn;
    gpul__ready__init(&ready);
    ready.port_base = choice * 257u;
    ready.error = wire_text(ready.port_base == 0 ? "none" : "");
    frame->body_case = GPUL__FRAME__BODY_READY;
    frame->ready = &ready;
}

static void make_listening(Gpul__Frame *frame, uint32_t conn, uint8_t choice)
{
    static Gpul__ProbeListening listening;
    (void)conn;
    gpul__probe_listening__init(&listening);
    listening.address = wire_text("10.0.0.2");
    listening.port = 1u + choice;
    frame->body_case = GPUL__FRAME__BODY_PROBE_LISTENING;
    frame->probe_listening = &listening;
}

static void make_result(Gpul__Frame *frame, uint32_t conn, uint8_t choice)
{
    static Gpul__ProbeRow row;
    static Gpul__ProbeRow *rows[] = {&row, &row};
    static Gpul__ProbeResult result;
    (void)conn;
    gpul__probe_row__init(&row);
    gpul__probe_result__init(&result);
    row.bytes = 8;
    row.count = 2;
    row.iterations = 1;
    row.median_ns = choice;
    result.rows = rows;
    result.n_rows = choice > 250 ? choice % 3u : 1;
    result.wrong_elements = choice == 249 ? 1 : 0;
    result.error = wire_text(choice == 240 || choice == 248 ? "broken" : "");
    result.is_remote = choice == 240;
    result.probe_rank = choice & 7u;
    frame->body_case = GPUL__FRAME__BODY_PROBE_RESULT;
    frame->probe_result = &result;
}

static void make_idle(Gpul__Frame *frame, uint32_t conn, uint8_t choice)
{
    static char *unclean;
    static Gpul__Idle idle;
    (void)conn;
    gpul__idle__init(&idle);
    unclean = wire_text("4711 python");
    idle.unclean = &unclean;
    idle.n_unclean = choice == 255 ? 1 : 0;
    frame->body_case = GPUL__FRAME__BODY_IDLE;
    frame->idle = &idle;
}

static void make_output(Gpul__Frame *frame, uint32_t conn, uint8_t choice)
{
    static uint8_t data[GPUL_OUTPUT_BYTES_MAX];
    static Gpul__Output output;
    (void)conn;
    gpul__output__init(&output);
    output.rank = choice & 15u;
    output.stream = GPUL__OUTPUT__STREAM__STDERR;
    output.data.data = data;
    output.data.len = 1 + (size_t)(choice >> 4) * 2000;
    frame->body_case = GPUL__FRAME__BODY_OUTPUT;
    frame->output = &output;
}

static void make_report(Gpul__Frame *frame, uint32_t conn, uint8_t choice)
{
    static Gpul__EnvReport report;
    (void)conn;
    gpul__env_report__init(&report);
    report.rank = choice & 15u;
    report.is_last = choice < 200;
    frame->body_case = GPUL__FRAME__BODY_ENV_REPORT;
    frame->env_report = &report;
}

static void make_taken(Gpul__Frame *frame, uint32_t conn, uint8_t choice)
{
    static Gpul__InputCredit credit;
    (void)conn;
    gpul__input_credit__init(&credit);
    credit.bytes = choice & 127u;
    credit.is_closed = choice >= 128;
    frame->body_case = GPUL__FRAME__BODY_INPUT_CREDIT;
    frame->input_credit = &credit;
}

/* Two ranks that stall or go on. */
static void make_stall(Gpul__Frame *frame, uint32_t conn, uint8_t choice)
{
    static Gpul__StallRow rows[2];
    static Gpul__StallRow *list[] = {&rows[0], &rows[1]};
    static Gpul__Stall stall;
    gpul__stall__init(&stall);
    for (uint32_t i = 0; i < 2; i++) {
        gpul__stall_row__init(&rows[i]);
        rows[i].rank = (conn + 7) % 8 + i * (choice & 1u);
        rows[i].kind = (Gpul__StallRow__Kind)(1 + ((choice >> 1) + i) % 3);
        rows[i].steps = choice >> 3 & 3u;
        rows[i].silence_ms = choice * 100u;
        rows[i].limit_ms = choice >> 5;
        rows[i].state = wire_text((choice & 64u) != 0 ? "T" : "S");
        rows[i].wait_channel = wire_text((choice & 32u) != 0 ? "pipe" : "");
        rows[i].cpu_ms = choice;
        rows[i].look_ms = choice >> 1;
    }
    stall.rows = list;
    stall.n_rows = 1u + (choice >> 7);
    frame->body_case = GPUL__FRAME__BODY_STALL;
    frame->stall = &stall;
}

void fuzz_says_make(Gpul__Frame *frame, enum fuzz_says what, uint32_t conn,
                    uint8_t choice)
{
    typedef void (*make_fn)(Gpul__Frame *, uint32_t, uint8_t);
    static const make_fn makers[] = {
        [FUZZ_SAYS_HELLO] = make_hello,
        [FUZZ_SAYS_READY] = make_ready,
        [FUZZ_SAYS_LISTENING] = make_listening,
        [FUZZ_SAYS_RESULT] = make_result,
        [FUZZ_SAYS_IDLE] = make_idle,
        [FUZZ_SAYS_OUTPUT] = make_output,
        [FUZZ_SAYS_REPORT] = make_report,
        [FUZZ_SAYS_TAKEN] = make_taken,
        [FUZZ_SAYS_STALL] = make_stall,
    };
    makers[what](frame, conn, choice);
}
