/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "agent_play_gpu.h"

#include <string.h>

#include <cmocka.h>

void play_to_facts(struct play *p)
{
    play_to_assigned(p);
    assert_string_equal(play_scout(p), SCOUT);
    assert_string_equal(play_facts(p, 2, 100), "");
    assert_string_equal(play_probe_ended(p, 0, ENDED), "send(probe_facts:2:)");
}

void play_to_probes(struct play *p)
{
    play_to_facts(p);
    assert_string_equal(play_probe_begin(p, 2),
                        "start_device(probe_begin:4+1:0:GPU-0) "
                        "start_device(probe_begin:5+1:1:GPU-1)");
    assert_int_equal(agent_state(p->agent), AGENT_PROBING);
}

void play_to_phase(struct play *p, enum phase phase)
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

void play_to_clearing(struct play *p)
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

const char *play_pass(struct play *p, uint64_t ms)
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

const char *play_halted(struct play *p, uint32_t probe, int signal)
{
    struct agent_event event = {
        .type = AGENT_EVENT_PROBE_HALTED, .probe = probe, .signal = signal};
    return play_step(p, &event);
}
