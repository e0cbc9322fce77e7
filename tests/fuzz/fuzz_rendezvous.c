/* SPDX-License-Identifier: Apache-2.0
 *
 * Any order of events, with any messages that the decoder lets pass, at any
 * times: the rendezvous keeps its invariants, sends only frames that their
 * receivers accept, says JobEnd at most once, and ends when everybody has
 * gone.
 *
 * Input: one byte for the job, then instructions: one byte what, one byte
 * which connection (and small choices), one byte how much later, and what the
 * instruction itself reads.
 */
#include <string.h>

#include "coordinator/rendezvous.h"
#include "coordinator/text.h"
#include "proto/limits.h"
#include "tests/fuzz/fuzz_away.h"
#include "tests/fuzz/fuzz_check.h"
#include "tests/fuzz/fuzz_links.h"
#include "tests/fuzz/fuzz_probes.h"
#include "tests/fuzz/fuzz_says.h"
#include "tests/lib/fuzz.h"
#include "tests/lib/memory.h"

enum { CONNS = 8, STEPS_MAX = 2000, LATER_MS = 50 };

struct input {
    const uint8_t *data;
    size_t n;
};

struct world {
    struct rendezvous *core;
    uint64_t now_ms;
    bool is_open[CONNS];
    bool has_operator;
    bool is_finished;
    uint32_t generation; /* newest that was sent */
    uint32_t attach;     /* agents that came back so far */
    uint32_t job_ends;
};

static uint8_t take(struct input *in)
{
    if (in->n == 0) {
        return 0;
    }
    in->n--;
    return *in->data++;
}

/* ---- what comes out ---- */

static size_t frame_bytes(const uint8_t *bytes)
{
    return GPUL_FRAME_PREFIX_BYTES + ((size_t)bytes[0] << 24 |
                                      (size_t)bytes[1] << 16 |
                                      (size_t)bytes[2] << 8 | (size_t)bytes[3]);
}

static void look_at_frames(struct world *w,
                           const struct rendezvous_action *action,
                           enum gpul_peer from)
{
    size_t n;
    for (size_t at = 0; at < action->byte_count; at += n) {
        const uint8_t *bytes = action->bytes + at;
        Gpul__Frame *frame;
        n = frame_bytes(bytes);
        FUZZ_CHECK(gpul_message_decode(&frame, bytes + GPUL_FRAME_PREFIX_BYTES,
                                       n - GPUL_FRAME_PREFIX_BYTES, from,
                                       NULL) == 0);
        if (frame->body_case == GPUL__FRAME__BODY_JOB_END) {
            w->job_ends++;
        }
        if (from == GPUL_PEER_COORDINATOR &&
            frame->body_case != GPUL__FRAME__BODY_JOB) {
            FUZZ_CHECK(frame->generation >= w->generation);
            w->generation = frame->generation;
        }
        gpul_message_release(frame);
    }
}

static void look_at(struct world *w, const struct rendezvous_action *action)
{
    switch (action->kind) {
    case RENDEZVOUS_SEND:
        FUZZ_CHECK(w->is_open[action->conn]);
        look_at_frames(w, action, GPUL_PEER_COORDINATOR);
        return;
    case RENDEZVOUS_SEND_MANY:
        for (size_t i = 0; i < action->conn_count; i++) {
            FUZZ_CHECK(w->is_open[action->conns[i]]);
        }
        look_at_frames(w, action, GPUL_PEER_COORDINATOR);
        return;
    case RENDEZVOUS_SEND_OPERATOR:
        FUZZ_CHECK(w->has_operator && w->job_ends == 0);
        look_at_frames(w, action, GPUL_PEER_DESK);
        return;
    case RENDEZVOUS_CLOSE:
        FUZZ_CHECK(w->is_open[action->conn]);
        w->is_open[action->conn] = false;
        return;
    case RENDEZVOUS_FINISH:
        FUZZ_CHECK(!w->is_finished);
        w->is_finished = true;
        return;
    default:
        return;
    }
}

static void step(struct world *w, struct rendezvous_event event)
{
    struct rendezvous_actions actions;
    event.now_ms = w->now_ms;
    if (w->is_finished) {
        return;
    }
    FUZZ_CHECK(rendezvous_step(w->core, &actions, &event, NULL) == 0);
    for (size_t i = 0; i < actions.count; i++) {
        look_at(w, &actions.items[i]);
    }
    rendezvous_check(w->core);
    FUZZ_CHECK(event.kind != RENDEZVOUS_TICK ||
               rendezvous_next_deadline_ms(w->core) > w->now_ms);
}

/* ---- what goes in ---- */

static void send_job(struct world *w, uint8_t choice)
{
    char *names = wire_text("n[0-2]");
    ProtobufCBinaryData argument = {.len = 1, .data = (uint8_t *)names};
    Gpul__SelfTest self_test = GPUL__SELF_TEST__INIT;
    Gpul__Sweep sweep = GPUL__SWEEP__INIT;
    Gpul__Command command = GPUL__COMMAND__INIT;
    Gpul__Environment environment = GPUL__ENVIRONMENT__INIT;
    Gpul__InputTarget target = GPUL__INPUT_TARGET__INIT;
    Gpul__Hang hang = GPUL__HANG__INIT;
    Gpul__Job job = GPUL__JOB__INIT;
    Gpul__Check check = GPUL__CHECK__INIT;
    bool is_check = (choice & 130u) == 130u;
    self_test.level = choice & 1u;
    self_test.backend = (choice & 128u) != 0
                            ? GPUL__SELF_TEST__BACKEND__BACKEND_NCCL
                            : GPUL__SELF_TEST__BACKEND__BACKEND_AUTO;
    if (is_check) {
        self_test.backend = GPUL__SELF_TEST__BACKEND__BACKEND_HOST;
        check.survey_deadline_ms = 1000;
        check.is_strict = (choice & 64u) != 0;
        job.check = &check;
    }
    self_test.listen_deadline_ms = 1000;
    self_test.run_deadline_ms = 1000;
    self_test.sweep = &sweep;
    command.arguments = &argument;
    command.n_arguments = 1;
    job.job_id = wire_text("j");
    job.mode = is_check             ? GPUL__JOB__MODE__CHECK
               : (choice & 2u) != 0 ? GPUL__JOB__MODE__ENV
                                    : GPUL__JOB__MODE__RUN;
    job.node_count = 3;
    job.ranks_per_node = choice >> 2 & 3u;
    job.node_names = &names;
    job.n_node_names = job.ranks_per_node == 3 ? 0 : 1;
    job.join_timeout_ms = 5000;
    job.timeout_ms = (choice & 16u) != 0 ? 10000 : 0;
    job.grace_ms = 500;
    job.warning_signal = job.timeout_ms > 0 ? 10 : 0;
    job.warning_ms = 4000;
    target.is_all = (choice & 32u) != 0;
    job.input_target = &target;
    hang.watch = (choice & 1u) != 0 ? GPUL__HANG__WATCH__GIVEN
                                    : GPUL__HANG__WATCH__LEARNED;
    hang.limit_ms = (choice & 1u) != 0 ? 1000 : 0;
    hang.stops_job = (choice & 4u) != 0;
    job.hang = &hang;
    job.self_test = &self_test;
    job.command = &command;
    job.environment = &environment;
    job.forwards_output = (choice & 32u) != 0;
    job.report_all_ranks = (choice & 64u) != 0;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_JOB;
    frame.job = &job;
    step(w, (struct rendezvous_event){.kind = RENDEZVOUS_OPERATOR_MESSAGE,
                                      .frame = &frame});
}

static void from_node(struct world *w, uint32_t conn, Gpul__Frame *frame)
{
    bool is_hello = frame->body_case == GPUL__FRAME__BODY_HELLO;
    frame->epoch = is_hello ? 0 : 1;
    frame->generation = is_hello ? 0 : w->generation;
    if (w->is_open[conn]) {
        step(w, (struct rendezvous_event){.kind = RENDEZVOUS_PEER_MESSAGE,
                                          .conn = conn,
                                          .frame = frame});
    }
}

/* One of the messages that a byte decides. */
static void say(struct world *w, uint32_t conn, struct input *in,
                enum fuzz_says what)
{
    Gpul__Frame frame = GPUL__FRAME__INIT;
    fuzz_says_make(&frame, what, conn, take(in));
    from_node(w, conn, &frame);
}

static void say_exits(struct world *w, uint32_t conn, struct input *in)
{
    Gpul__Exit all[3];
    Gpul__Exit *list[3];
    Gpul__Exits exits = GPUL__EXITS__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    uint8_t choice = take(in);
    exits.exits = list;
    exits.n_exits = 1u + choice % 3u;
    for (size_t i = 0; i < exits.n_exits; i++) {
        uint8_t fate = take(in);
        gpul__exit__init(&all[i]);
        all[i].rank = (choice >> 2) + (uint32_t)i;
        all[i].code = fate < 200 ? 0 : fate;
        all[i].signal = fate == 199 ? 9 : 0;
        all[i].exec_errno = fate == 198 ? 2 : 0;
        all[i].is_bind_error = fate >= 240;
        list[i] = &all[i];
    }
    frame.body_case = GPUL__FRAME__BODY_EXITS;
    frame.exits = &exits;
    from_node(w, conn, &frame);
}

/* Signals, standard input and its end. */
static void feed(struct world *w, uint32_t conn, struct input *in)
{
    static uint8_t data[GPUL_INPUT_BYTES_MAX];
    Gpul__Signal signal = GPUL__SIGNAL__INIT;
    Gpul__Input input = GPUL__INPUT__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    uint8_t choice = take(in);
    if (conn == 0) {
        signal.signal = 1u + choice % GPUL_SIGNAL_MAX;
        frame.body_case = GPUL__FRAME__BODY_SIGNAL;
        frame.signal = &signal;
    } else {
        input.data.data = data;
        input.data.len = choice < 128 ? choice + 1u : sizeof(data);
        input.is_end = choice == 127 || choice == 255;
        frame.body_case = GPUL__FRAME__BODY_INPUT;
        frame.input = &input;
    }
    if (w->has_operator) {
        step(w, (struct rendezvous_event){.kind = RENDEZVOUS_OPERATOR_MESSAGE,
                                          .frame = &frame});
    }
}

/* One of the self-test on GPUs. */
static void say_of_gpus(struct world *w, uint32_t conn, struct input *in,
                        uint8_t what)
{
    Gpul__Frame frame = GPUL__FRAME__INIT;
    fuzz_probes_make(&frame, what, conn, take(in));
    from_node(w, conn, &frame);
}

static void operate(struct world *w, struct input *in)
{
    Gpul__Cancel cancel = GPUL__CANCEL__INIT;
    Gpul__Credit credit = GPUL__CREDIT__INIT;
    Gpul__NodeGone gone = GPUL__NODE_GONE__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    uint8_t choice = take(in);
    if (choice < 32) {
        cancel.signal = choice;
        frame.body_case = GPUL__FRAME__BODY_CANCEL;
        frame.cancel = &cancel;
    } else if (choice < 200) {
        credit.node_rank = choice & 3u;
        credit.bytes = 1u + choice * 100u;
        frame.body_case = GPUL__FRAME__BODY_CREDIT;
        frame.credit = &credit;
    } else {
        gone.node_name = wire_text("n1");
        gone.text = wire_text("it is gone");
        frame.body_case = GPUL__FRAME__BODY_NODE_GONE;
        frame.node_gone = &gone;
    }
    if (w->has_operator) {
        step(w, (struct rendezvous_event){.kind = RENDEZVOUS_OPERATOR_MESSAGE,
                                          .frame = &frame});
    }
}

/* Bytes of the input as a message, if the decoder takes them. */
static void say_bytes(struct world *w, uint32_t conn, struct input *in)
{
    Gpul__Frame *frame;
    size_t n = take(in);
    n = n < in->n ? n : in->n;
    bool is_operator = conn == 0;
    enum gpul_peer from = is_operator ? GPUL_PEER_OPERATOR : GPUL_PEER_NODE;
    if (gpul_message_decode(&frame, in->data, n, from, NULL) == 0) {
        if (is_operator && w->has_operator) {
            step(w, (struct rendezvous_event){
                        .kind = RENDEZVOUS_OPERATOR_MESSAGE, .frame = frame});
        } else if (!is_operator && w->is_open[conn]) {
            step(w, (struct rendezvous_event){.kind = RENDEZVOUS_PEER_MESSAGE,
                                              .conn = conn,
                                              .frame = frame});
        }
        gpul_message_release(frame);
    }
    in->data += n;
    in->n -= n;
}

static void open_conn(struct world *w, uint32_t conn)
{
    /* Whose key it has; mostly keys are not asked for. */
    static const char *const names[] = {NULL, NULL, "n1", NULL, "n2"};
    if (!w->is_open[conn]) {
        w->is_open[conn] = true;
        step(w, (struct rendezvous_event){.kind = RENDEZVOUS_PEER_OPENED,
                                          .conn = conn,
                                          .text = "10.9.0.1",
                                          .name = names[conn % 5]});
    }
}

/* Another agent of a keeper, which may have died long ago. */
static void come_back(struct world *w, uint32_t conn, struct input *in)
{
    Gpul__Frame frame = GPUL__FRAME__INIT;
    uint8_t choice = take(in);
    open_conn(w, conn);
    fuzz_away_hello(&frame, choice == 255 ? 0 : ++w->attach, w->generation,
                    choice);
    from_node(w, conn, &frame);
}

static void say_leave(struct world *w, uint32_t conn, struct input *in)
{
    Gpul__Frame frame = GPUL__FRAME__INIT;
    fuzz_away_leave(&frame, take(in));
    from_node(w, conn, &frame);
}

static void say_of_links(struct world *w, uint32_t conn, struct input *in,
                         bool is_report)
{
    Gpul__Frame frame = GPUL__FRAME__INIT;
    if (is_report) {
        fuzz_links_report(&frame, take(in));
    } else {
        fuzz_links_listening(&frame, take(in));
    }
    from_node(w, conn, &frame);
}

static void say_of_check(struct world *w, uint32_t conn, struct input *in,
                         enum fuzz_check what)
{
    Gpul__Frame frame = GPUL__FRAME__INIT;
    fuzz_check_make(&frame, what, take(in));
    from_node(w, conn, &frame);
}

static void close_conn(struct world *w, uint32_t conn)
{
    if (w->is_open[conn]) {
        w->is_open[conn] = false;
        step(w, (struct rendezvous_event){.kind = RENDEZVOUS_PEER_CLOSED,
                                          .conn = conn,
                                          .text = NULL});
    }
}

static void tick(struct world *w)
{
    uint64_t due_ms = rendezvous_next_deadline_ms(w->core);
    if (due_ms != UINT64_MAX && due_ms > w->now_ms) {
        w->now_ms = due_ms;
    }
    step(w, (struct rendezvous_event){.kind = RENDEZVOUS_TICK});
}

static void close_operator(struct world *w)
{
    if (w->has_operator) {
        w->has_operator = false;
        step(w, (struct rendezvous_event){.kind = RENDEZVOUS_OPERATOR_CLOSED});
    }
}

static void obey(struct world *w, struct input *in)
{
    /* Behind the others, whose numbers the corpus knows. */
    enum {
        SAYINGS = FUZZ_SAYS_BYTES + 1,
        ON_GPUS = SAYINGS + 5,
        TAKE = ON_GPUS + FUZZ_PROBES_KINDS,
        FEED,
        RETURN,
        LEAVE,
        LISTEN,
        DIAL,
        STALL,
        CHECK,
        INSTRUCTIONS = CHECK + FUZZ_CHECK_KINDS,
    };
    uint8_t what = take(in) % INSTRUCTIONS;
    uint32_t conn = take(in) % CONNS;
    w->now_ms += (uint64_t)take(in) * LATER_MS;
    if (what == FUZZ_SAYS_EXITS) {
        say_exits(w, conn, in);
    } else if (what == FUZZ_SAYS_BYTES) {
        say_bytes(w, conn, in);
    } else if (what < SAYINGS) {
        say(w, conn, in, (enum fuzz_says)what);
    } else if (what == TAKE) {
        say(w, conn, in, FUZZ_SAYS_TAKEN);
    } else if (what == STALL) {
        say(w, conn, in, FUZZ_SAYS_STALL);
    } else if (what >= CHECK) {
        say_of_check(w, conn, in, (enum fuzz_check)(what - CHECK));
    } else if (what == FEED) {
        feed(w, conn, in);
    } else if (what == RETURN) {
        come_back(w, conn, in);
    } else if (what == LEAVE) {
        say_leave(w, conn, in);
    } else if (what == LISTEN || what == DIAL) {
        say_of_links(w, conn, in, what == DIAL);
    } else if (what >= ON_GPUS) {
        say_of_gpus(w, conn, in, (uint8_t)(what - ON_GPUS));
    } else if (what == SAYINGS) {
        open_conn(w, conn);
    } else if (what == SAYINGS + 1) {
        close_conn(w, conn);
    } else if (what == SAYINGS + 2) {
        tick(w);
    } else if (what == SAYINGS + 3) {
        operate(w, in);
    } else if (conn == 0) {
        close_operator(w);
    }
}

/* When all have gone, time alone brings the end. */
static void end(struct world *w)
{
    close_operator(w);
    for (uint32_t conn = 0; conn < CONNS; conn++) {
        close_conn(w, conn);
    }
    for (int i = 0; i < STEPS_MAX && !w->is_finished; i++) {
        tick(w);
    }
    FUZZ_CHECK(w->is_finished && w->job_ends <= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct input in = {.data = data, .n = n};
    struct world w = {.has_operator = true};
    struct rendezvous_config config = {
        .epoch = 1, .seed = 7, .version = "0.1.0"};
    memory_watch();
    FUZZ_CHECK(rendezvous_create(&w.core, &config, 0, NULL) == 0);
    send_job(&w, take(&in));
    for (int i = 0; i < STEPS_MAX && in.n > 0 && !w.is_finished; i++) {
        obey(&w, &in);
    }
    end(&w);
    rendezvous_destroy(w.core);
    FUZZ_CHECK(memory_held() == 0);
    return 0;
}
