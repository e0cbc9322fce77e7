/* SPDX-License-Identifier: Apache-2.0
 *
 * The coordinator's part of agent_play.h, and what brings an agent somewhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "agent_play.h"

#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proto/limits.h"

/* ---- what the coordinator says ------------------------------------------- */

const char *play_frame(struct play *p, Gpul__Frame *frame)
{
    frame->epoch = p->epoch;
    frame->generation = p->generation;
    struct agent_event event = {.type = AGENT_EVENT_MESSAGE, .frame = frame};
    return play_step(p, &event);
}

/* SPEAK(play, WELCOME, welcome, Gpul__Welcome, fields...) */
#define SPEAK(p, CASE, name, type, ...)                                        \
    do {                                                                       \
        type body;                                                             \
        gpul__##name##__init(&body);                                           \
        __VA_ARGS__;                                                           \
        Gpul__Frame frame;                                                     \
        gpul__frame__init(&frame);                                             \
        frame.body_case = GPUL__FRAME__BODY_##CASE;                            \
        frame.name = &body;                                                    \
        return play_frame(p, &frame);                                          \
    } while (0)

const char *play_welcome(struct play *p)
{
    SPEAK(p, WELCOME, welcome, Gpul__Welcome, body.protocol = GPUL_PROTOCOL,
          body.heartbeat_ms = 2000, body.lease_ms = 15000);
}

const char *play_job(struct play *p, Gpul__Job__Mode mode)
{
    char id[] = "job-1";
    SPEAK(p, JOB, job, Gpul__Job, body.job_id = id, body.mode = mode,
          body.grace_ms = 4000,
          body.log_dir =
              (char *)(uintptr_t)(p->log_dir != NULL ? p->log_dir : ""));
}

const char *play_assign(struct play *p)
{
    p->generation++;
    SPEAK(p, ASSIGN, assign, Gpul__Assign, body.node_count = 2,
          body.rank_count = 2, body.world_size = 3);
}

const char *play_roster(struct play *p)
{
    char addresses[] = "10.0.0.[1-2]";
    uint32_t ports[] = {20000, 21000};
    uint32_t counts[] = {2, 1};
    SPEAK(p, ROSTER, roster, Gpul__Roster, body.page_count = 1,
          body.node_count = 2, body.addresses = addresses,
          body.port_bases = ports, body.n_port_bases = 2,
          body.rank_counts = counts, body.n_rank_counts = 2);
}

const char *play_link_start(struct play *p)
{
    SPEAK(p, LINK_START, link_start, Gpul__LinkStart, body.token = 77,
          body.deadline_ms = 5000);
}

const char *play_link_peers(struct play *p)
{
    char addresses[] = "10.0.0.[1-2]";
    uint32_t ports[] = {40000, 40001};
    uint32_t counts[] = {1};
    SPEAK(p, LINK_PEERS, link_peers, Gpul__LinkPeers, body.page_count = 1,
          body.node_count = 2, body.addresses = addresses, body.ports = ports,
          body.n_ports = 2, body.counts = counts, body.n_counts = 1,
          body.deadline_ms = 5000);
}

const char *play_pair_start(struct play *p)
{
    char address[] = "10.0.0.1";
    char *addresses[] = {address};
    SPEAK(p, PAIR_START, pair_start, Gpul__PairStart, body.node_count = 2,
          body.addresses = addresses, body.n_addresses = 1,
          body.idle_ms = 5000);
}

const char *play_trial_start(struct play *p)
{
    char address[] = "10.0.0.2";
    SPEAK(p, TRIAL_START, trial_start, Gpul__TrialStart, body.trial = 1,
          body.peer_rank = 1, body.peer_address = address, body.peer_port = 5,
          body.run_ms = 200, body.bytes_max = 1, body.deadline_ms = 9000);
}

const char *play_pair_end(struct play *p)
{
    SPEAK(p, PAIR_END, pair_end, Gpul__PairEnd, (void)body);
}

const char *play_probe_start(struct play *p)
{
    char address[] = "10.0.0.1";
    SPEAK(p, PROBE_START, probe_start, Gpul__ProbeStart, body.node_count = 2,
          body.level = GPUL__SELF_TEST__LEVEL__QUICK, body.address = address,
          body.deadline_ms = 5000);
}

const char *play_probe_connect(struct play *p)
{
    char address[] = "10.0.0.2";
    SPEAK(p, PROBE_CONNECT, probe_connect, Gpul__ProbeConnect,
          body.address = address, body.port = 5, body.deadline_ms = 8000);
}

const char *play_scout(struct play *p)
{
    char address[] = "10.0.0.1";
    SPEAK(p, PROBE_START, probe_start, Gpul__ProbeStart, body.node_count = 2,
          body.level = GPUL__SELF_TEST__LEVEL__QUICK, body.deadline_ms = 5000,
          body.address = address,
          body.backend = GPUL__SELF_TEST__BACKEND__BACKEND_NCCL);
}

const char *play_probe_begin(struct play *p, uint32_t ranks)
{
    Gpul__SelfTest test;
    gpul__self_test__init(&test);
    Gpul__Sweep sweep = GPUL__SWEEP__INIT;
    test.sweep = &sweep;
    test.level = GPUL__SELF_TEST__LEVEL__QUICK;
    test.listen_deadline_ms = 3000;
    test.run_deadline_ms = 4000;
    SPEAK(p, PROBE_BEGIN, probe_begin, Gpul__ProbeBegin, body.first_rank = 4,
          body.rank_count = ranks, body.world_size = 4 + ranks,
          body.id_count = 1, body.self_test = &test,
          body.abort_deadline_ms = 1500, body.node_count = 2);
}

const char *play_probe_ids(struct play *p)
{
    static uint8_t id[GPUL_UNIQUE_ID_BYTES];
    ProtobufCBinaryData ids[] = {{sizeof(id), id}};
    SPEAK(p, PROBE_IDS, probe_ids, Gpul__ProbeIds, body.ids = ids,
          body.n_ids = 1);
}

const char *play_launch(struct play *p)
{
    SPEAK(p, LAUNCH, launch, Gpul__Launch, body.attempt = p->generation);
}

const char *play_stop(struct play *p, int signal, uint32_t grace_ms)
{
    SPEAK(p, STOP, stop, Gpul__Stop, body.signal = (uint32_t)signal,
          body.grace_ms = grace_ms);
}

const char *play_finish(struct play *p, bool keeps_logs)
{
    SPEAK(p, FINISH, finish, Gpul__Finish, body.keeps_logs = keeps_logs);
}

const char *play_credit(struct play *p, uint64_t bytes)
{
    SPEAK(p, CREDIT, credit, Gpul__Credit, body.bytes = bytes);
}

const char *play_pass_signal(struct play *p, int signal)
{
    SPEAK(p, SIGNAL, signal, Gpul__Signal, body.signal = (uint32_t)signal);
}

const char *play_input(struct play *p, const char *data, bool is_end)
{
    SPEAK(p, INPUT, input, Gpul__Input,
          body.data.data = (uint8_t *)(uintptr_t)data,
          body.data.len = strlen(data), body.is_end = is_end);
}

const char *play_refuse(struct play *p, const char *text)
{
    char copy[128];
    snprintf(copy, sizeof(copy), "%s", text);
    SPEAK(p, REFUSE, refuse, Gpul__Refuse,
          body.reason = GPUL__REFUSE__REASON__TOO_LATE, body.text = copy);
}

const char *play_ack(struct play *p)
{
    SPEAK(p, HEARTBEAT_ACK, heartbeat_ack, Gpul__HeartbeatAck,
          body.sequence = 1);
}

/* ---- short cuts ---------------------------------------------------------- */

void play_to_member(struct play *p)
{
    assert_string_equal(play_wait(p, 0), "connect");
    assert_string_equal(play_event(p, AGENT_EVENT_CONNECTED, "10.0.0.1"),
                        "send(hello)");
    assert_string_equal(play_welcome(p), "attached");
    assert_string_equal(play_job(p, GPUL__JOB__MODE__RUN), "");
    assert_int_equal(agent_state(p->agent), AGENT_MEMBER);
}

void play_to_assigned(struct play *p)
{
    if (agent_job(p->agent) == NULL) {
        play_to_member(p);
    }
    assert_string_equal(play_assign(p), "lease_ports");
    assert_string_equal(play_ports(p, 20000), "send(ready:20000)");
    assert_string_equal(play_roster(p), "");
    assert_int_equal(agent_state(p->agent), AGENT_ASSIGNED);
}

void play_to_running(struct play *p)
{
    play_to_assigned(p);
    assert_string_equal(play_launch(p), "start_ranks");
    assert_int_equal(agent_state(p->agent), AGENT_RUNNING);
}
