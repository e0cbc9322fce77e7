/* SPDX-License-Identifier: Apache-2.0
 *
 * One job of two nodes, again and again, each time with another allocation
 * that fails: the step says so, or does without, and nothing is left behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coordinator/rendezvous.h"
#include "coordinator/text.h"
#include "proto/limits.h"
#include "tests/lib/memory.h"

enum { NODES = 2, ALLOCATIONS_MAX = 1000 };

struct play {
    struct rendezvous *core;
    bool has_gpus;
    bool is_open;      /* no name is known beforehand */
    bool has_networks; /* one each */
    uint32_t attach;   /* number of the agents that join */
    uint32_t generation;
    int status; /* of the first step that failed */
    bool is_finished;
};

static void step(struct play *p, struct rendezvous_event event)
{
    struct rendezvous_actions actions;
    struct gpul_error err = {0};
    if (p->status != 0) {
        return;
    }
    p->status = rendezvous_step(p->core, &actions, &event, &err);
    assert_int_equal(p->status, err.status);
    assert_true(p->status == 0 || actions.count == 0);
    for (size_t i = 0; i < actions.count; i++) {
        p->is_finished =
            p->is_finished || actions.items[i].kind == RENDEZVOUS_FINISH;
    }
}

static void say(struct play *p, uint32_t conn, Gpul__Frame *frame)
{
    frame->epoch = frame->body_case == GPUL__FRAME__BODY_HELLO ? 0 : 1;
    frame->generation = frame->epoch == 0 ? 0 : p->generation;
    step(p, (struct rendezvous_event){
                .kind = RENDEZVOUS_PEER_MESSAGE, .conn = conn, .frame = frame});
}

static void operate(struct play *p, Gpul__Frame *frame)
{
    step(p, (struct rendezvous_event){.kind = RENDEZVOUS_OPERATOR_MESSAGE,
                                      .frame = frame});
}

static void send_job(struct play *p)
{
    char *names = wire_text("n[0-1]");
    Gpul__SelfTest self_test = GPUL__SELF_TEST__INIT;
    Gpul__Sweep sweep = GPUL__SWEEP__INIT;
    Gpul__Command command = GPUL__COMMAND__INIT;
    Gpul__Environment environment = GPUL__ENVIRONMENT__INIT;
    Gpul__Job job = GPUL__JOB__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    self_test.level = GPUL__SELF_TEST__LEVEL__QUICK;
    self_test.listen_deadline_ms = 1000;
    self_test.run_deadline_ms = 1000;
    self_test.sweep = &sweep;
    job.job_id = wire_text("j");
    job.mode = GPUL__JOB__MODE__RUN;
    job.node_count = NODES;
    job.ranks_per_node = 1;
    job.node_names = &names;
    job.n_node_names = p->is_open ? 0 : 1;
    job.join_timeout_ms = 1000;
    job.forwards_output = true;
    job.self_test = &self_test;
    job.command = &command;
    job.environment = &environment;
    frame.body_case = GPUL__FRAME__BODY_JOB;
    frame.job = &job;
    operate(p, &frame);
}

static void join(struct play *p, uint32_t conn)
{
    char name[] = {'n', (char)('0' + conn), 0};
    Gpul__Facts facts = GPUL__FACTS__INIT;
    Gpul__Hello hello = GPUL__HELLO__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    facts.address = wire_text("10.0.0.1");
    facts.gpus = p->has_gpus ? 1 : 0;
    facts.network_namespace = p->has_networks ? 1 + conn : 0;
    hello.protocol_min = 1;
    hello.protocol_max = 1;
    hello.job_id = wire_text("j");
    hello.node_name = name;
    hello.facts = &facts;
    hello.attach = p->attach;
    hello.held_generation = p->attach > 0 ? p->generation : 0;
    frame.body_case = GPUL__FRAME__BODY_HELLO;
    frame.hello = &hello;
    step(p, (struct rendezvous_event){.kind = RENDEZVOUS_PEER_OPENED,
                                      .conn = conn,
                                      .text = "10.9.0.1",
                                      .name = name});
    say(p, conn, &frame);
}

static void get_ready(struct play *p, uint32_t conn)
{
    Gpul__Ready ready = GPUL__READY__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    ready.port_base = 20000;
    frame.body_case = GPUL__FRAME__BODY_READY;
    frame.ready = &ready;
    say(p, conn, &frame);
}

/* Two candidates and one that is none. */
static void open_links(struct play *p, uint32_t conn)
{
    static const char *const names[] = {"eth0", "ib0", "docker0"};
    Gpul__LinkInterface all[3];
    Gpul__LinkInterface *list[] = {&all[0], &all[1], &all[2]};
    Gpul__LinkListening listening = GPUL__LINK_LISTENING__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    for (uint32_t i = 0; i < 3; i++) {
        gpul__link_interface__init(&all[i]);
        all[i].name = wire_text(names[i]);
        all[i].address = wire_text(conn == 0 ? "10.0.0.1" : "10.0.0.2");
        all[i].port = i < 2 ? 40000 : 0;
        all[i].rejection = wire_text(i < 2 ? "" : "a bridge without a port");
    }
    listening.interfaces = list;
    listening.n_interfaces = 3;
    frame.body_case = GPUL__FRAME__BODY_LINK_LISTENING;
    frame.link_listening = &listening;
    say(p, conn, &frame);
}

static void dial(struct play *p, uint32_t conn)
{
    Gpul__LinkReport report = GPUL__LINK_REPORT__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_LINK_REPORT;
    frame.link_report = &report;
    say(p, conn, &frame);
}

/* Nobody is reached. */
static void dial_in_vain(struct play *p, uint32_t conn)
{
    uint8_t missed[] = {15};
    Gpul__LinkFailure failure = GPUL__LINK_FAILURE__INIT;
    Gpul__LinkFailure *list = &failure;
    Gpul__LinkReport report = GPUL__LINK_REPORT__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    failure.node_rank = 1 - conn;
    failure.kind = GPUL__LINK_FAILURE__KIND__REFUSED;
    report.missed.data = missed;
    report.missed.len = sizeof(missed);
    report.failures = &list;
    report.n_failures = 1;
    report.failure_count = 2;
    frame.body_case = GPUL__FRAME__BODY_LINK_REPORT;
    frame.link_report = &report;
    say(p, conn, &frame);
}

static void start_listening(struct play *p, uint32_t conn)
{
    Gpul__ProbeListening listening = GPUL__PROBE_LISTENING__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    listening.address = wire_text("10.0.0.2");
    listening.port = 30000;
    frame.body_case = GPUL__FRAME__BODY_PROBE_LISTENING;
    frame.probe_listening = &listening;
    say(p, conn, &frame);
}

static void pass(struct play *p, uint32_t conn)
{
    Gpul__ProbeRow row = GPUL__PROBE_ROW__INIT;
    Gpul__ProbeRow *rows = &row;
    Gpul__ProbeResult result = GPUL__PROBE_RESULT__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    row.bytes = 8;
    row.count = 2;
    row.iterations = 1;
    result.probe_rank = conn;
    result.rows = &rows;
    result.n_rows = 1;
    frame.body_case = GPUL__FRAME__BODY_PROBE_RESULT;
    frame.probe_result = &result;
    say(p, conn, &frame);
}

static void scout(struct play *p, uint32_t conn)
{
    char uuid[] = {'G', (char)('0' + conn), 0};
    char *finding = wire_text("power is capped");
    char *setting = wire_text("NCCL_DEBUG=WARN");
    Gpul__Library library = GPUL__LIBRARY__INIT;
    Gpul__Device device = GPUL__DEVICE__INIT;
    Gpul__Device *list = &device;
    Gpul__ProbeFacts facts = GPUL__PROBE_FACTS__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    device.uuid = uuid;
    device.findings = &finding;
    device.n_findings = 1;
    facts.nccl = &library;
    facts.cuda = &library;
    facts.devices = &list;
    facts.n_devices = 1;
    facts.settings = &setting;
    facts.n_settings = 1;
    frame.body_case = GPUL__FRAME__BODY_PROBE_FACTS;
    frame.probe_facts = &facts;
    say(p, conn, &frame);
}

static void make_communicator(struct play *p, uint32_t conn)
{
    uint8_t bytes[GPUL_UNIQUE_ID_BYTES] = {1};
    Gpul__ProbePhase phase = GPUL__PROBE_PHASE__INIT;
    Gpul__ProbeId id = GPUL__PROBE_ID__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    phase.probe_rank = conn;
    phase.phase = GPUL__PROBE_PHASE__PHASE__INIT;
    phase.text = wire_text("communicator ready");
    frame.body_case = GPUL__FRAME__BODY_PROBE_PHASE;
    frame.probe_phase = &phase;
    say(p, conn, &frame);
    id.id.data = bytes;
    id.id.len = sizeof(bytes);
    frame.body_case = GPUL__FRAME__BODY_PROBE_ID;
    frame.probe_id = &id;
    if (conn == 0) {
        say(p, conn, &frame);
    }
}

static void end_rank(struct play *p, uint32_t conn)
{
    Gpul__Exit one = GPUL__EXIT__INIT;
    Gpul__Exit *list = &one;
    Gpul__Exits exits = GPUL__EXITS__INIT;
    Gpul__Idle idle = GPUL__IDLE__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    char *unclean = wire_text("4711 python");
    one.rank = conn;
    one.code = 3;
    exits.exits = &list;
    exits.n_exits = 1;
    idle.unclean = &unclean;
    idle.n_unclean = 1;
    frame.body_case = GPUL__FRAME__BODY_EXITS;
    frame.exits = &exits;
    say(p, conn, &frame);
    frame.body_case = GPUL__FRAME__BODY_IDLE;
    frame.idle = &idle;
    say(p, conn, &frame);
}

static void leave(struct play *p, uint32_t conn)
{
    step(p, (struct rendezvous_event){.kind = RENDEZVOUS_PEER_CLOSED,
                                      .conn = conn});
}

/* The agent dies and its successor comes, while the ranks run. */
static void come_back(struct play *p, uint32_t conn)
{
    leave(p, conn);
    p->attach++;
    join(p, conn);
}

/* The same before the launch: everybody is stopped, and all is begun anew. */
static void begin_anew(struct play *p, uint32_t conn)
{
    if (conn == 0) {
        return;
    }
    leave(p, conn);
    p->attach++;
    p->generation--; /* of none */
    join(p, conn);
    p->generation++;
    for (uint32_t i = 0; i < NODES; i++) {
        Gpul__Idle idle = GPUL__IDLE__INIT;
        Gpul__Frame frame = GPUL__FRAME__INIT;
        frame.body_case = GPUL__FRAME__BODY_IDLE;
        frame.idle = &idle;
        say(p, i, &frame);
    }
    p->generation++;
}

/* The keeper has died, as the front end and the agent tell. */
static void lose_keeper(struct play *p, uint32_t conn)
{
    char name[] = {'n', (char)('0' + conn), 0};
    Gpul__NodeGone gone = GPUL__NODE_GONE__INIT;
    Gpul__Leave left = GPUL__LEAVE__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    char *unclean = wire_text("4711 python");
    gone.node_name = name;
    gone.text = wire_text("it was killed");
    frame.body_case = GPUL__FRAME__BODY_NODE_GONE;
    frame.node_gone = &gone;
    operate(p, &frame);
    left.text = wire_text("its keeper ended");
    left.unclean = &unclean;
    left.n_unclean = 1;
    frame.body_case = GPUL__FRAME__BODY_LEAVE;
    frame.leave = &left;
    say(p, conn, &frame);
}

/* The user does not want it any more. */
static void cancel(struct play *p, uint32_t conn)
{
    Gpul__Cancel cancel = GPUL__CANCEL__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    cancel.signal = 2;
    frame.body_case = GPUL__FRAME__BODY_CANCEL;
    frame.cancel = &cancel;
    if (conn == 0) {
        operate(p, &frame);
    }
}

enum story {
    ON_HOST,
    ON_GPUS,
    WITH_CRASHES,
    OPEN,
    WITH_LINKS,
    IN_VAIN,
    CANCELED,
    STORIES
};

/* The whole job; returns what the first step that failed gave. */
static int play(size_t fail_at, enum story story)
{
    enum { ACTS = 10 };
    typedef void (*act_fn)(struct play *, uint32_t);
    static const act_fn acts[STORIES][ACTS] = {
        [ON_HOST] = {join, get_ready, start_listening, pass, end_rank, leave},
        [ON_GPUS] = {join, get_ready, scout, make_communicator, pass, end_rank,
                     leave},
        [WITH_CRASHES] = {join, get_ready, begin_anew, get_ready,
                          start_listening, pass, come_back, lose_keeper},
        [OPEN] = {join, get_ready, start_listening, pass, end_rank, leave},
        [WITH_LINKS] = {join, get_ready, open_links, dial, start_listening,
                        pass, end_rank, leave},
        [IN_VAIN] = {join, get_ready, open_links, dial_in_vain, end_rank,
                     leave},
        [CANCELED] = {join, get_ready, start_listening, pass, cancel, end_rank,
                      leave},
    };
    struct play p = {.has_gpus = story == ON_GPUS,
                     .is_open = story == OPEN,
                     .has_networks = story >= WITH_LINKS,
                     .generation = 1};
    struct rendezvous_config config = {
        .epoch = 1, .seed = 7, .version = "0.1.0"};
    memory_watch();
    memory_fail_at(fail_at);
    int rc = rendezvous_create(&p.core, &config, 0, NULL);
    if (rc == 0) {
        send_job(&p);
        for (size_t i = 0; i < ACTS && acts[story][i] != NULL; i++) {
            acts[story][i](&p, 0);
            acts[story][i](&p, 1);
        }
        rc = p.status;
        assert_true(p.is_finished == (rc == 0));
    }
    rendezvous_destroy(p.core);
    assert_int_equal(memory_held(), 0);
    return rc;
}

static void fail_each_allocation(enum story story)
{
    size_t told = 0;
    size_t done_without = 0;
    assert_int_equal(play(0, story), 0);
    for (size_t n = 1; n < ALLOCATIONS_MAX; n++) {
        int rc = play(n, story);
        assert_true(rc == 0 || rc == GPUL_ENOMEM);
        told += rc != 0;
        done_without += rc == 0;
    }
    /* The job has far fewer allocations than were tried: the rest passed. */
    assert_in_range(told, 20, 200);
    assert_true(done_without > 0);
}

/* Each allocation of the job fails once. Those that only cost a detail of the
 * report are done without; every other one is told. */
static void test_each_allocation(void **state)
{
    (void)state;
    fail_each_allocation(ON_HOST);
}

/* The same with the self-test on GPUs. */
static void test_each_allocation_on_gpus(void **state)
{
    (void)state;
    fail_each_allocation(ON_GPUS);
}

/* And where agents die, and at last the keepers. */
static void test_each_allocation_with_crashes(void **state)
{
    (void)state;
    fail_each_allocation(WITH_CRASHES);
}

/* And where no name is known beforehand. */
static void test_each_allocation_of_open_job(void **state)
{
    (void)state;
    fail_each_allocation(OPEN);
}

/* And where addresses are proved, or nobody reaches anybody. */
static void test_each_allocation_with_links(void **state)
{
    (void)state;
    fail_each_allocation(WITH_LINKS);
    fail_each_allocation(IN_VAIN);
}

/* And where the user stops it. */
static void test_each_allocation_canceled(void **state)
{
    (void)state;
    fail_each_allocation(CANCELED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_allocation),
        cmocka_unit_test(test_each_allocation_on_gpus),
        cmocka_unit_test(test_each_allocation_with_crashes),
        cmocka_unit_test(test_each_allocation_of_open_job),
        cmocka_unit_test(test_each_allocation_with_links),
        cmocka_unit_test(test_each_allocation_canceled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
