/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent in a self-test on GPUs: the scout, one probe on each of two
 * devices (ranks 4 and 5 of the self-test), and the memory behind them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent_play.h"
#include "proto/limits.h"

#define ENDED "it ended without a result"
#define CRASH "it was ended by signal 11 (Segmentation fault)"
#define LATE "it did not end in time and was killed"

#define SCOUT "start_scout(probe_start)"
#define WATCH "start_watch(probe_start)"

/* ---- short cuts ---------------------------------------------------------- */

/* The scout has told of two devices with 100 MiB in use, and is gone. */
static void play_to_facts(struct play *p)
{
    play_to_assigned(p);
    assert_string_equal(play_scout(p), SCOUT);
    assert_string_equal(play_facts(p, 2, 100), "");
    assert_string_equal(play_probe_ended(p, 0, ENDED), "send(probe_facts:2:)");
}

static void play_to_probes(struct play *p)
{
    play_to_facts(p);
    assert_string_equal(play_probe_begin(p, 2),
                        "start_device(probe_begin:4+1:0:GPU-0) "
                        "start_device(probe_begin:5+1:1:GPU-1)");
    assert_int_equal(agent_state(p->agent), AGENT_PROBING);
}

enum phase { CUDA, UID, INIT, COLL, END };

/* Both probes are in this phase. */
static void play_to_phase(struct play *p, enum phase phase)
{
    play_to_probes(p);
    for (uint32_t i = 0; i < 2; i++) {
        if (phase > CUDA) {
            play_phase(p, i, GPUL__PROBE_PHASE__PHASE__CUDA);
        }
        if (phase > UID && i == 0) {
            assert_string_equal(play_probe_ids(p), "send_probes(probe_ids)");
        }
        if (phase > INIT) {
            play_phase(p, i, GPUL__PROBE_PHASE__PHASE__INIT);
        }
        if (phase > COLL) {
            play_phase(p, i, GPUL__PROBE_PHASE__PHASE__COLL);
        }
    }
}

/* Both probes have passed; the scout looks at the memory. */
static void play_to_clearing(struct play *p)
{
    play_to_phase(p, END);
    for (uint32_t i = 0; i < 2; i++) {
        assert_string_equal(play_device_result(p, i, ""), "");
    }
    assert_string_equal(play_probe_ended(p, 0, ENDED),
                        "send(probe_result:4:GPU-0:coll:)");
    assert_string_equal(play_probe_ended(p, 1, ENDED),
                        "send(probe_result:5:GPU-1:coll:) " WATCH);
    assert_int_equal(agent_state(p->agent), AGENT_CLEARING);
}

/* One tick after each `step_ms`, with the lease renewed, until so much time
 * has passed or the agent has done something beside its heartbeat. */
static const char *play_pass(struct play *p, uint64_t ms)
{
    const uint64_t step_ms = 250;
    const char *line = "";
    for (uint64_t t = 0; t < ms && line[0] == 0; t += step_ms) {
        play_ack(p);
        line = play_wait(p, step_ms < ms - t ? step_ms : ms - t);
        if (strncmp(line, "send(heartbeat)", 15) == 0) {
            line += line[15] == ' ' ? 16 : 15;
        }
    }
    return line;
}

/* ---- the scout ----------------------------------------------------------- */

/* Facts go out when the scout has ended, not before. */
static void test_scout(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_facts(&p);
    assert_int_equal(agent_state(p.agent), AGENT_ASSIGNED);
    assert_string_equal(play_launch(&p), "start_ranks");
    play_close(&p);
}

/* A scout that dies or hangs is told as a node on which GPUs cannot be
 * looked at; the host's self-test may then follow. */
static void test_scout_fails(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_assigned(&p);
    play_scout(&p);
    assert_string_equal(play_probe_ended(&p, 0, CRASH),
                        "send(probe_facts:0:the process that looks at the "
                        "GPUs failed: " CRASH ")");
    play_scout(&p);
    assert_string_equal(play_pass(&p, 6999), "");
    assert_string_equal(play_pass(&p, 1), "kill_probes");
    assert_string_equal(play_probe_ended(&p, 0, "signal 9"),
                        "send(probe_facts:0:the process that looks at the "
                        "GPUs failed: " LATE ")");
    assert_string_equal(play_probe_start(&p), "start_probe(probe_start)");
    play_close(&p);
}

/* A scout is needed for as many probes as are begun, and of this
 * generation. */
static void test_begin_without_devices(void **state)
{
    (void)state;
    static const char fault[] =
        "disconnect leave 125 \"the coordinator at 127.0.0.1:9 sent "
        "probe_begin out of place\"";
    for (int i = 0; i < 3; i++) {
        struct play p;
        play_open(&p);
        if (i == 0) {
            play_to_assigned(&p);
        } else {
            play_to_facts(&p);
        }
        if (i == 2) {
            assert_string_equal(play_stop(&p, SIGTERM, 0), "send(idle)");
            play_to_assigned(&p);
        }
        assert_string_equal(play_probe_begin(&p, i == 1 ? 3 : 2), fault);
        play_close(&p);
    }
}

/* ---- the probes ---------------------------------------------------------- */

/* From the first phase to the command. */
static void test_pass(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_probes(&p);
    assert_string_equal(play_phase(&p, 1, GPUL__PROBE_PHASE__PHASE__CUDA),
                        "send(probe_phase:5:1)");
    assert_string_equal(play_probe_id(&p, 0), "send(probe_id)");
    play_close(&p);
    play_open(&p);
    play_to_clearing(&p);
    assert_string_equal(play_facts(&p, 2, 612), "");
    assert_string_equal(play_probe_ended(&p, 0, ENDED), "");
    assert_int_equal(agent_state(p.agent), AGENT_ASSIGNED);
    assert_string_equal(play_launch(&p), "start_ranks");
    play_close(&p);
}

/* A probe that dies in any phase is told with the phase that it was in, its
 * rank, its device and how it died; the other one stays until it is told to
 * stop. */
static void test_death(void **state)
{
    (void)state;
    static const char *const names[] = {"cuda", "uid", "init", "coll", "end"};
    for (enum phase phase = CUDA; phase <= END; phase++) {
        char expected[160];
        struct play p;
        play_open(&p);
        play_to_phase(&p, phase);
        snprintf(expected, sizeof(expected),
                 "send(probe_result:5:GPU-1:%s:" CRASH ")", names[phase]);
        assert_string_equal(play_probe_ended(&p, 1, CRASH), expected);
        assert_int_equal(agent_state(p.agent), AGENT_PROBING);
        assert_string_equal(play_stop(&p, SIGTERM, 9000),
                            "send_probes(stop:15:1500)");
        assert_string_equal(play_probe_ended(&p, 0, "aborted"), "send(idle)");
        play_close(&p);
    }
}

/* An error is told at once, since all others hang until they hear of it, and
 * a crash after it is no second error. */
static void test_error(void **state)
{
    (void)state;
    for (enum phase phase = CUDA; phase <= END; phase++) {
        struct play p;
        play_open(&p);
        play_to_phase(&p, phase);
        assert_string_equal(play_device_result(&p, 0, "no memory"),
                            "send(probe_result:4:GPU-0:coll:no memory)");
        assert_string_equal(play_device_result(&p, 0, "again"), "");
        assert_string_equal(play_probe_ended(&p, 0, CRASH), "");
        assert_string_equal(play_device_result(&p, 1, ""), "");
        assert_string_equal(play_probe_ended(&p, 1, ENDED),
                            "send(probe_result:5:GPU-1:coll:)");
        /* Nothing to wait for: the command will not start. */
        assert_int_equal(agent_state(p.agent), AGENT_ASSIGNED);
        play_close(&p);
    }
}

/* A probe that could not be started is one that has died. */
static void test_no_start(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_probes(&p);
    assert_string_equal(play_probe_ended(&p, 0, "no such file"),
                        "send(probe_result:4:GPU-0:cuda:no such file)");
    assert_string_equal(play_probe_ended(&p, 0, "twice"), "");
    play_close(&p);
}

/* Probes that hang in a phase, and whom nobody stops, are killed at their
 * deadline: two phases of 3 s or coll of 4 s, 1.5 s for an abort, and 7 s. */
static void test_hang(void **state)
{
    (void)state;
    static const struct {
        enum phase phase;
        const char *name;
        uint64_t ms;
    } table[] = {
        {CUDA, "cuda", 14500}, {UID, "uid", 14500}, {INIT, "init", 14500},
        {COLL, "coll", 12500}, {END, "end", 14500},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        char expected[160];
        struct play p;
        play_open(&p);
        play_to_phase(&p, table[i].phase);
        assert_string_equal(play_pass(&p, table[i].ms - 1), "");
        /* What it says of itself again is no progress. */
        if (table[i].phase == UID) {
            play_phase(&p, 0, GPUL__PROBE_PHASE__PHASE__CUDA);
        }
        assert_string_equal(play_pass(&p, 1), "kill_probes");
        snprintf(expected, sizeof(expected),
                 "send(probe_result:4:GPU-0:%s:" LATE ")", table[i].name);
        assert_string_equal(play_probe_ended(&p, 0, "signal 9"), expected);
        /* The other one would not even die. */
        assert_string_equal(play_pass(&p, 5000), "abandon");
        snprintf(expected, sizeof(expected),
                 "send(probe_result:5:GPU-1:%s:" LATE ")", table[i].name);
        char name[] = "7 gpulaunch-worker";
        char *list[] = {name};
        struct agent_event ended = {.type = AGENT_EVENT_PROBE_ENDED,
                                    .probe = 1,
                                    .text = name,
                                    .unclean = list,
                                    .unclean_count = 1};
        assert_string_equal(play_step(&p, &ended), expected);
        assert_string_equal(play_stop(&p, SIGTERM, 0),
                            "send(idle:7 gpulaunch-worker)");
        play_close(&p);
    }
}

/* Stop in any phase: the probes hear of it, have the time for their abort
 * and 1 s, and are then killed; Idle waits for the last of them. */
static void test_stop(void **state)
{
    (void)state;
    for (enum phase phase = CUDA; phase <= END; phase++) {
        struct play p;
        play_open(&p);
        play_to_phase(&p, phase);
        assert_string_equal(play_stop(&p, SIGTERM, 30000),
                            "send_probes(stop:15:1500)");
        assert_string_equal(play_stop(&p, SIGTERM, 20000), "");
        assert_string_equal(play_pass(&p, 2499), "");
        assert_string_equal(play_pass(&p, 1), "kill_probes");
        assert_string_equal(play_probe_ended(&p, 1, "signal 9"), "");
        assert_string_equal(play_phase(&p, 0, GPUL__PROBE_PHASE__PHASE__END),
                            "");
        assert_string_equal(play_probe_ended(&p, 0, "signal 9"), "send(idle)");
        play_close(&p);
    }
}

/* SIGKILL, a second signal, and Finish leave no time to abort; ranks that get
 * no grace are another matter. */
static void test_stop_at_once(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_phase(&p, INIT);
    assert_string_equal(play_stop(&p, SIGKILL, 9000), "kill_probes");
    play_close(&p);
    play_open(&p);
    play_to_phase(&p, INIT);
    assert_string_equal(play_stop(&p, SIGTERM, 0), "send_probes(stop:15:1500)");
    assert_string_equal(play_stop(&p, SIGKILL, 0), "kill_probes");
    play_close(&p);
    play_open(&p);
    play_to_phase(&p, INIT);
    assert_string_equal(play_signal(&p, SIGINT), "send_probes(stop:15:1500)");
    assert_string_equal(play_signal(&p, SIGINT), "kill_probes");
    play_close(&p);
    play_open(&p);
    play_to_phase(&p, INIT);
    assert_string_equal(play_finish(&p, true), "kill_probes");
    play_probe_ended(&p, 0, "signal 9");
    assert_string_equal(play_probe_ended(&p, 1, "signal 9"),
                        "send(idle) leave 0");
    play_close(&p);
}

/* Without the coordinator the probes are stopped as well. */
static void test_lost(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_phase(&p, COLL);
    assert_string_equal(play_event(&p, AGENT_EVENT_LOST, "reset"),
                        "disconnect send_probes(stop:15:1500)");
    assert_string_equal(play_device_result(&p, 0, "aborted"), "");
    assert_string_equal(play_probe_ended(&p, 0, ENDED), "");
    assert_string_equal(
        play_probe_ended(&p, 1, ENDED),
        "leave 75 \"lost the coordinator at 127.0.0.1:9: reset\"");
    play_close(&p);
}

/* IDs of an older generation, and those that come when the probes have
 * failed, reach nobody; a second set is a fault. */
static void test_ids(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_probes(&p);
    p.generation--;
    assert_string_equal(play_probe_ids(&p), "");
    p.generation++;
    assert_string_equal(play_probe_ids(&p), "send_probes(probe_ids)");
    play_probe_ended(&p, 0, CRASH);
    play_probe_ended(&p, 1, CRASH);
    assert_string_equal(play_probe_ids(&p), "");
    play_close(&p);
    play_open(&p);
    play_to_phase(&p, INIT);
    assert_string_equal(play_probe_ids(&p),
                        "disconnect send_probes(stop:15:1500)");
    play_probe_ended(&p, 0, ENDED);
    assert_string_equal(play_probe_ended(&p, 1, ENDED),
                        "leave 125 \"the coordinator at 127.0.0.1:9 sent "
                        "probe_ids out of place\"");
    play_close(&p);
}

/* A frame of a probe counts for its kind and its generation only. */
static void test_strange_frames(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_probes(&p);
    assert_string_equal(play_facts(&p, 2, 0), "");
    assert_string_equal(play_listening(&p), "");
    assert_string_equal(play_probe_id(&p, 2), "");
    assert_string_equal(play_probe_id(&p, AGENT_PROBES_MAX), "");
    Gpul__ProbeId id;
    gpul__probe_id__init(&id);
    Gpul__Frame frame;
    gpul__frame__init(&frame);
    frame.body_case = GPUL__FRAME__BODY_PROBE_ID;
    frame.probe_id = &id;
    frame.generation = agent_generation(p.agent) + 1;
    struct agent_event old = {.type = AGENT_EVENT_PROBE_MESSAGE,
                              .frame = &frame};
    assert_string_equal(play_step(&p, &old), "");
    play_close(&p);
}

/* A probe gets the interface of its node, and a file for what NCCL logs. */
static void test_begin_of_a_probe(void **state)
{
    (void)state;
    static char name[] = "eth7", address[] = "10.0.0.1";
    static char loopback[] = "lo", loopback_address[] = "127.0.0.1";
    struct play p;
    Gpul__Interface list[2];
    Gpul__Interface *interfaces[] = {&list[0], &list[1]};
    play_open(&p);
    gpul__interface__init(&list[0]);
    gpul__interface__init(&list[1]);
    list[0].name = loopback;
    list[0].address = loopback_address;
    list[1].name = name;
    list[1].address = address;
    p.facts.interfaces = interfaces;
    p.facts.n_interfaces = 2;
    p.log_dir = "/logs/job-1";
    play_to_probes(&p);
    const struct agent_action *second = &p.actions.items[1];
    assert_int_equal(second->probe, 1);
    assert_int_equal(second->rank, 5);
    Gpul__Frame *frame;
    assert_int_equal(gpul_message_decode(&frame,
                                         p.actions.arena.data + second->offset +
                                             GPUL_FRAME_PREFIX_BYTES,
                                         second->n - GPUL_FRAME_PREFIX_BYTES,
                                         GPUL_PEER_AGENT, NULL),
                     0);
    assert_string_equal(frame->probe_begin->interface, "eth7");
    assert_string_equal(frame->probe_begin->debug_file, "/proc/self/fd/4");
    assert_int_equal(frame->probe_begin->world_size, 6);
    assert_int_equal(frame->probe_begin->self_test->run_deadline_ms, 4000);
    gpul_message_release(frame);
    play_close(&p);
}

/* All devices that a node may have. */
static void test_most_devices(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_assigned(&p);
    play_scout(&p);
    play_facts(&p, AGENT_PROBES_MAX, 0);
    play_probe_ended(&p, 0, ENDED);
    play_probe_begin(&p, AGENT_PROBES_MAX);
    assert_int_equal(p.actions.count, AGENT_PROBES_MAX);
    for (uint32_t i = 0; i < AGENT_PROBES_MAX; i++) {
        assert_int_equal(p.actions.items[i].probe, i);
        assert_int_equal(p.actions.items[i].kind, AGENT_PROBE_DEVICE);
    }
    play_close(&p);
}

/* ---- the memory ---------------------------------------------------------- */

/* Memory that comes back late: the scout looks again, at longer and longer
 * intervals, and a Launch that has come meanwhile is then carried out. */
static void test_memory_late(void **state)
{
    (void)state;
    static const uint64_t waits[] = {100, 200, 400, 800, 1600, 1600};
    struct play p;
    play_open(&p);
    play_to_clearing(&p);
    assert_string_equal(play_launch(&p), "");
    for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
        assert_string_equal(play_facts(&p, 2, 613), "");
        assert_string_equal(play_probe_ended(&p, 0, ENDED), "");
        if (waits[i] > 1) {
            assert_string_equal(play_pass(&p, waits[i] - 1), "");
        }
        assert_string_equal(play_pass(&p, 1), WATCH);
    }
    assert_string_equal(play_facts(&p, 2, 100), "");
    assert_string_equal(play_probe_ended(&p, 0, ENDED), "start_ranks");
    assert_int_equal(agent_state(p.agent), AGENT_RUNNING);
    assert_int_equal(agent_attempt(p.agent), 1);
    play_close(&p);
}

/* Memory that does not come back holds the command up for 50 s; what uses it
 * is named. */
static void test_memory_lost(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_clearing(&p);
    play_launch(&p);
    uint64_t start_ms = p.now_ms;
    const char *line = WATCH;
    while (strcmp(line, WATCH) == 0) {
        play_facts(&p, 2, 3000);
        assert_string_equal(play_probe_ended(&p, 0, ENDED), "");
        line = play_pass(&p, 2000);
    }
    assert_int_equal(p.now_ms - start_ms, 50000);
    assert_string_equal(
        line,
        "send(heartbeat notice:GPU memory is not free again 50 s after the "
        "self-test, and the command starts without it: device 0 (GPU-0) has "
        "3000 MiB in use, 100 MiB before: 1 process (77) uses the GPU already; "
        "device 1 (GPU-1) has 3000 MiB in use, 100 MiB before: 1 process (77) "
        "uses the GPU already) start_ranks");
    play_close(&p);
}

/* A scout that fails, or hangs, cannot say: that is told, and all goes on. */
static void test_memory_unseen(void **state)
{
    (void)state;
    static const char unseen[] = "send(notice:whether GPU memory is free "
                                 "again after the self-test cannot be seen: ";
    char expected[300];
    struct play p;
    play_open(&p);
    play_to_clearing(&p);
    snprintf(expected, sizeof(expected), "%s%s)", unseen, CRASH);
    assert_string_equal(play_probe_ended(&p, 0, CRASH), expected);
    assert_int_equal(agent_state(p.agent), AGENT_ASSIGNED);
    play_close(&p);

    play_open(&p);
    play_to_clearing(&p);
    assert_string_equal(play_no_facts(&p, "NVML is gone"), "");
    snprintf(expected, sizeof(expected), "%sNVML is gone)", unseen);
    assert_string_equal(play_probe_ended(&p, 0, ENDED), expected);
    play_close(&p);

    play_open(&p);
    play_to_clearing(&p);
    play_launch(&p);
    assert_string_equal(play_pass(&p, 6999), "");
    assert_string_equal(play_pass(&p, 1), "kill_probes");
    snprintf(expected, sizeof(expected),
             "%sit took too long to look) start_ranks", unseen);
    assert_string_equal(play_probe_ended(&p, 0, "signal 9"), expected);
    play_close(&p);
}

/* Where memory could not be seen before, nobody looks for it after: a finding
 * has told. Where it could, the loss of NVML is told. */
static void test_memory_blind(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_assigned(&p);
    assert_string_equal(play_scout(&p), SCOUT);
    play_facts_without(&p, 2, 0, "NVML was not found");
    play_probe_ended(&p, 0, ENDED);
    play_probe_begin(&p, 2);
    for (uint32_t i = 0; i < 2; i++) {
        play_device_result(&p, i, "");
    }
    play_probe_ended(&p, 0, ENDED);
    assert_string_equal(play_probe_ended(&p, 1, ENDED),
                        "send(probe_result:5:GPU-1:coll:)");
    assert_int_equal(agent_state(p.agent), AGENT_ASSIGNED);
    assert_string_equal(play_launch(&p), "start_ranks");
    play_close(&p);

    play_open(&p);
    play_to_clearing(&p);
    play_facts_without(&p, 2, 0, "NVML: Uninitialized");
    assert_string_equal(play_probe_ended(&p, 0, ENDED),
                        "send(notice:whether GPU memory is free again after "
                        "the self-test cannot be seen: NVML: Uninitialized)");
    play_close(&p);
}

/* Stop while the memory is waited for: the scout is killed, a Launch that
 * was kept is forgotten, and the next generation begins anew. */
static void test_memory_stop(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_clearing(&p);
    play_launch(&p);
    assert_string_equal(play_stop(&p, SIGTERM, 5000), "kill_probes");
    assert_string_equal(play_probe_ended(&p, 0, "signal 9"), "send(idle)");
    play_to_running(&p);
    play_close(&p);

    play_open(&p);
    play_to_clearing(&p);
    play_facts(&p, 2, 3000);
    play_probe_ended(&p, 0, ENDED);
    assert_string_equal(play_stop(&p, SIGTERM, 5000), "send(idle)");
    assert_string_equal(play_pass(&p, 3000), "");
    play_close(&p);
}

/* Out of CLEARING with nothing alive the agent leaves at once; a second
 * Launch is a fault. */
static void test_memory_leave(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_clearing(&p);
    play_facts(&p, 2, 3000);
    play_probe_ended(&p, 0, ENDED);
    assert_string_equal(play_finish(&p, true), "leave 0");
    play_close(&p);

    play_open(&p);
    play_to_clearing(&p);
    play_launch(&p);
    play_launch(&p);
    assert_non_null(strstr(p.line, "kill_probes"));
    assert_string_equal(play_probe_ended(&p, 0, "signal 9"),
                        "leave 125 \"the coordinator at 127.0.0.1:9 sent "
                        "launch out of place\"");
    play_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scout),
        cmocka_unit_test(test_scout_fails),
        cmocka_unit_test(test_begin_without_devices),
        cmocka_unit_test(test_pass),
        cmocka_unit_test(test_death),
        cmocka_unit_test(test_error),
        cmocka_unit_test(test_no_start),
        cmocka_unit_test(test_hang),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_stop_at_once),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_strange_frames),
        cmocka_unit_test(test_begin_of_a_probe),
        cmocka_unit_test(test_most_devices),
        cmocka_unit_test(test_memory_late),
        cmocka_unit_test(test_memory_lost),
        cmocka_unit_test(test_memory_unseen),
        cmocka_unit_test(test_memory_blind),
        cmocka_unit_test(test_memory_stop),
        cmocka_unit_test(test_memory_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
