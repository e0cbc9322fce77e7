/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent in a self-test on GPUs: one probe on each of two devices.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <signal.h>
#include <stdio.h>

#include <cmocka.h>

#include "agent_play_gpu.h"
#include "proto/limits.h"

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

/* A probe that is stopped is told as such, whatever it had said before that
 * comes only now; and that it goes on. One that is none is nobody's business.
 */
static void test_halt(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    assert_string_equal(play_halted(&p, 0, SIGSTOP), "");
    play_to_probes(&p);
    play_phase(&p, 1, GPUL__PROBE_PHASE__PHASE__CUDA);
    assert_string_equal(play_halted(&p, 1, SIGSTOP),
                        "send(probe_phase:5:1:stopped)");
    assert_string_equal(play_phase(&p, 1, GPUL__PROBE_PHASE__PHASE__INIT),
                        "send(probe_phase:5:2:stopped)");
    assert_string_equal(play_phase(&p, 0, GPUL__PROBE_PHASE__PHASE__CUDA),
                        "send(probe_phase:4:1)");
    assert_string_equal(play_halted(&p, 1, 0), "send(probe_phase:5:2)");
    assert_string_equal(play_halted(&p, 7, SIGSTOP), "");
    assert_string_equal(play_halted(&p, UINT32_MAX, SIGSTOP), "");
    play_close(&p);
}

/* What is read in NCCL's log goes with what the probe says. */
static void test_stage(void **state)
{
    (void)state;
    struct agent_event event = {
        .type = AGENT_EVENT_PROBE_STAGE, .probe = 1, .stage = 4};
    struct play p;
    play_open(&p);
    play_to_probes(&p);
    assert_string_equal(play_step(&p, &event), "");
    assert_string_equal(play_phase(&p, 1, GPUL__PROBE_PHASE__PHASE__CUDA),
                        "send(probe_phase:5:1 stage 4)");
    assert_string_equal(play_phase(&p, 0, GPUL__PROBE_PHASE__PHASE__CUDA),
                        "send(probe_phase:4:1)");
    event.probe = UINT32_MAX;
    assert_string_equal(play_step(&p, &event), "");
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

/* Of probes that are killed at their deadline the one that waited for others
 * is not the cause, unless it was stopped. */
static void test_hang_of_another(void **state)
{
    (void)state;
    for (int is_halted = 0; is_halted < 2; is_halted++) {
        Gpul__ProbePhase said = GPUL__PROBE_PHASE__INIT;
        Gpul__Frame frame = GPUL__FRAME__INIT;
        struct play p;
        play_open(&p);
        play_to_phase(&p, COLL);
        said.phase = GPUL__PROBE_PHASE__PHASE__INIT;
        said.state = GPUL__PROBE_PHASE__STATE__STATE_WAITS;
        frame.body_case = GPUL__FRAME__BODY_PROBE_PHASE;
        frame.probe_phase = &said;
        play_probe_says(&p, 0, &frame);
        said.state = GPUL__PROBE_PHASE__STATE__STATE_INSIDE;
        play_probe_says(&p, 1, &frame);
        if (is_halted != 0) {
            play_halted(&p, 0, SIGSTOP);
        }
        assert_string_equal(play_pass(&p, 12500), "kill_probes");
        assert_string_equal(
            play_probe_ended(&p, 0, "signal 9"),
            is_halted != 0 ? "send(probe_result:4:GPU-0:coll:" LATE ")"
                           : "send(probe_result:4:GPU-0:coll:" LATE ":remote)");
        assert_string_equal(play_probe_ended(&p, 1, "signal 9"),
                            "send(probe_result:5:GPU-1:coll:" LATE ")");
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
    assert_string_equal(play_probe_ids(&p), "send(leave:unknown) disconnect "
                                            "send_probes(stop:15:1500)");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pass),
        cmocka_unit_test(test_halt),
        cmocka_unit_test(test_stage),
        cmocka_unit_test(test_death),
        cmocka_unit_test(test_error),
        cmocka_unit_test(test_no_start),
        cmocka_unit_test(test_hang),
        cmocka_unit_test(test_hang_of_another),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_stop_at_once),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_strange_frames),
        cmocka_unit_test(test_begin_of_a_probe),
        cmocka_unit_test(test_most_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
