/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "agent_play.h"

#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proto/frame.h"
#include "proto/limits.h"

static void open_agent(struct play *p, struct agent_held held, bool tells_delay,
                       uint32_t addresses)
{
    static char hostname[] = "host-a", kernel[] = "6.1", boot_id[] = "b";
    *p = (struct play){.now_ms = 1000, .epoch = PLAY_EPOCH};
    gpul__facts__init(&p->facts);
    p->facts.hostname = hostname;
    p->facts.kernel = kernel;
    p->facts.boot_id = boot_id;
    p->facts.cores = 2;
    const struct agent_config config = {
        .job_id = "job-1",
        .node_name = "node-0",
        .version = "0",
        .coordinator = "127.0.0.1:9",
        .address_count = addresses,
        .instance = 7,
        .attach = held.generation != 0 ? 1 : 0,
        .held = held,
        .join_timeout_ms = 10000,
        .tells_delay = tells_delay,
        .facts = &p->facts,
    };
    agent_actions_init(&p->actions);
    assert_int_equal(agent_create(&p->agent, &config, p->now_ms, NULL), 0);
}

void play_open(struct play *p)
{
    open_agent(p, (struct agent_held){.generation = 0}, false, 1);
}

void play_open_telling(struct play *p)
{
    open_agent(p, (struct agent_held){.generation = 0}, true, 1);
}

void play_open_held(struct play *p, struct agent_held held)
{
    open_agent(p, held, false, 1);
}

void play_open_several(struct play *p, uint32_t addresses)
{
    open_agent(p, (struct agent_held){.generation = 0}, false, addresses);
}

void play_close(struct play *p)
{
    agent_destroy(p->agent);
    agent_actions_release(&p->actions);
}

/* ---- what the agent did -------------------------------------------------- */

static void say(struct play *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void say(struct play *p, const char *format, ...)
{
    size_t used = strlen(p->line);
    if (used > 0 && p->line[used - 1] != '(') {
        used += (size_t)snprintf(p->line + used, PLAY_LINE_BYTES - used, " ");
    }
    va_list args;
    va_start(args, format);
    vsnprintf(p->line + used, PLAY_LINE_BYTES - used, format, args);
    va_end(args);
}

static void say_result(struct play *p, const char *name,
                       const Gpul__ProbeResult *r)
{
    if (r->device_uuid[0] == 0) {
        say(p, "%s:%s:%s", name, r->phase, r->error);
    } else {
        say(p, "%s:%u:%s:%s:%s%s", name, r->probe_rank, r->device_uuid,
            r->phase, r->error, r->is_remote ? ":remote" : "");
    }
}

static void say_frame(struct play *p, const Gpul__Frame *f)
{
    const char *name = gpul_message_rule((uint32_t)f->body_case)->name;
    switch (f->body_case) {
    case GPUL__FRAME__BODY_HELLO:
        say(p, f->hello->attach > 0 ? "%s:%u:%u" : "%s", name, f->hello->attach,
            f->hello->held_generation);
        break;
    case GPUL__FRAME__BODY_LEAVE:
        say(p, "%s:%s", name,
            f->leave->is_clean        ? "clean"
            : f->leave->n_unclean > 0 ? f->leave->unclean[0]
                                      : "unknown");
        break;
    case GPUL__FRAME__BODY_READY:
        say(p, "%s:%u%s", name, f->ready->port_base, f->ready->error);
        break;
    case GPUL__FRAME__BODY_EXITS:
        say(p, "%s:%zu", name, f->exits->n_exits);
        break;
    case GPUL__FRAME__BODY_IDLE:
        say(p, "%s%s%s", name, f->idle->n_unclean > 0 ? ":" : "",
            f->idle->n_unclean > 0 ? f->idle->unclean[0] : "");
        break;
    case GPUL__FRAME__BODY_PROBE_RESULT:
        say_result(p, name, f->probe_result);
        break;
    case GPUL__FRAME__BODY_PROBE_FACTS:
        say(p, "%s:%zu:%s", name, f->probe_facts->n_devices,
            f->probe_facts->error);
        break;
    case GPUL__FRAME__BODY_PROBE_BEGIN:
        say(p, "%s:%u+%u:%u:%s", name, f->probe_begin->first_rank,
            f->probe_begin->rank_count, f->probe_begin->device_index,
            f->probe_begin->device_uuid);
        break;
    case GPUL__FRAME__BODY_PROBE_PHASE:
        say(p, "%s:%u:%d%s", name, f->probe_phase->probe_rank,
            (int)f->probe_phase->phase,
            f->probe_phase->state == GPUL__PROBE_PHASE__STATE__STATE_STOPPED
                ? ":stopped"
                : "");
        if (f->probe_phase->stage != 0) {
            say(p, "stage %u", f->probe_phase->stage);
        }
        break;
    case GPUL__FRAME__BODY_PAIR_END:
        say(p, "%s:%s", name, f->pair_end->error);
        break;
    case GPUL__FRAME__BODY_STOP:
        say(p, "%s:%u:%u", name, f->stop->signal, f->stop->grace_ms);
        break;
    case GPUL__FRAME__BODY_NOTICE:
        say(p, "%s:%s", name, f->notice->text);
        break;
    default:
        say(p, "%s", name);
    }
    if (f->body_case != GPUL__FRAME__BODY_HELLO) {
        assert_int_equal(f->epoch, PLAY_EPOCH);
        assert_int_equal(f->generation, agent_generation(p->agent));
    }
}

/* Whole frames, each valid for its receiver. */
static void say_frames(struct play *p, const struct agent_action *action)
{
    const uint8_t *at = p->actions.arena.data + action->offset;
    const uint8_t *end = at + action->n;
    enum gpul_peer from =
        action->type == AGENT_SEND ? GPUL_PEER_NODE : GPUL_PEER_AGENT;
    while (at < end) {
        size_t n = (size_t)at[0] << 24 | (size_t)at[1] << 16 |
                   (size_t)at[2] << 8 | at[3];
        Gpul__Frame *frame;
        struct gpul_error err;
        at += GPUL_FRAME_PREFIX_BYTES;
        assert_true(n <= (size_t)(end - at));
        int rc = gpul_message_decode(&frame, at, n, from, &err);
        if (rc != 0) {
            print_error("%s\n", err.text);
        }
        assert_int_equal(rc, 0);
        say_frame(p, frame);
        gpul_message_release(frame);
        at += n;
    }
}

static void say_action(struct play *p, const struct agent_action *action)
{
    static const char *const names[] = {
        [AGENT_CONNECT] = "connect",
        [AGENT_SEND] = "send(",
        [AGENT_LEASE_PORTS] = "lease_ports",
        [AGENT_START_PROBE] = "start_probe(",
        [AGENT_SEND_PROBES] = "send_probes(",
        [AGENT_KILL_PROBES] = "kill_probes",
        [AGENT_START_RANKS] = "start_ranks",
        [AGENT_REPORT_ENV] = "report_env",
        [AGENT_STOP_RANKS] = "stop_ranks",
        [AGENT_KILL_RANKS] = "kill_ranks",
        [AGENT_ABANDON] = "abandon",
        [AGENT_CREDIT] = "credit",
        [AGENT_DISCARD_OUTPUT] = "discard_output",
        [AGENT_REMOVE_LOGS] = "remove_logs",
        [AGENT_DISCONNECT] = "disconnect",
        [AGENT_LEAVE] = "leave",
        [AGENT_ATTACHED] = "attached",
        [AGENT_RENEW_PORTS] = "renew_ports",
        [AGENT_PASS_SIGNAL] = "pass_signal",
        [AGENT_FEED] = "feed",
        [AGENT_OPEN_LINKS] = "open_links",
        [AGENT_DIAL_LINKS] = "dial_links",
        [AGENT_CLOSE_LINKS] = "close_links",
        [AGENT_SAY] = "say",
    };
    static const char *const starts[] = {
        [AGENT_PROBE_HOST] = "start_probe(",
        [AGENT_PROBE_SCOUT] = "start_scout(",
        [AGENT_PROBE_DEVICE] = "start_device(",
        [AGENT_PROBE_WATCH] = "start_watch(",
        [AGENT_PROBE_PAIRS] = "start_pairs(",
    };
    bool is_start = action->type == AGENT_START_PROBE;
    say(p, "%s", is_start ? starts[action->kind] : names[action->type]);
    switch (action->type) {
    case AGENT_SEND:
    case AGENT_START_PROBE:
    case AGENT_SEND_PROBES:
        say_frames(p, action);
        strcat(p->line, ")");
        break;
    case AGENT_STOP_RANKS:
    case AGENT_PASS_SIGNAL:
        say(p, "%d", action->signal);
        break;
    case AGENT_RENEW_PORTS:
        say(p, "%u", action->port_base);
        break;
    case AGENT_OPEN_LINKS:
        say(p, "%u", (unsigned)action->token);
        break;
    case AGENT_DIAL_LINKS:
        say(p, "%s", action->peers->addresses);
        break;
    case AGENT_FEED:
        say(p, "%zu%s", action->input->data.len,
            action->input->is_end ? " end" : "");
        break;
    case AGENT_CREDIT:
        say(p, "%u", (unsigned)action->bytes);
        break;
    case AGENT_SAY:
        say(p, "\"%s\"", action->text);
        break;
    case AGENT_LEAVE:
        p->has_left = true;
        say(p, "%d", action->exit_code);
        if (action->text != NULL) {
            say(p, "\"%s\"", action->text);
        }
        break;
    default:
        break;
    }
}

const char *play_step(struct play *p, struct agent_event *event)
{
    event->now_ms = p->now_ms;
    p->line[0] = 0;
    p->status = agent_step(p->agent, event, &p->actions, NULL);
    assert_true(p->status == 0 || p->may_fail);
    for (size_t i = 0; !p->may_fail && i < p->actions.count; i++) {
        say_action(p, &p->actions.items[i]);
    }
    return p->line;
}

/* ---- what happens on the node -------------------------------------------- */

const char *play_event(struct play *p, enum agent_event_type type,
                       const char *text)
{
    struct agent_event event = {.type = type, .text = text};
    return play_step(p, &event);
}

const char *play_ports(struct play *p, uint16_t port_base)
{
    struct agent_event event = {.type = AGENT_EVENT_PORTS,
                                .port_base = port_base};
    return play_step(p, &event);
}

const char *play_signal(struct play *p, int signal)
{
    struct agent_event event = {.type = AGENT_EVENT_SIGNAL, .signal = signal};
    return play_step(p, &event);
}

const char *play_exits(struct play *p, uint32_t first_rank, uint32_t n,
                       uint32_t code)
{
    enum { MOST = 600 };
    static Gpul__Exit exits[MOST];
    static Gpul__Exit *list[MOST];
    assert_true(n <= MOST);
    for (uint32_t i = 0; i < n; i++) {
        gpul__exit__init(&exits[i]);
        exits[i].rank = first_rank + i;
        exits[i].code = code;
        list[i] = &exits[i];
    }
    struct agent_event event = {
        .type = AGENT_EVENT_RANKS_ENDED, .exits = list, .exit_count = n};
    return play_step(p, &event);
}

const char *play_gone(struct play *p, const char *unclean)
{
    char text[64];
    char *list[] = {text};
    struct agent_event event = {.type = AGENT_EVENT_ALL_GONE};
    if (unclean != NULL) {
        snprintf(text, sizeof(text), "%s", unclean);
        event.unclean = list;
        event.unclean_count = 1;
    }
    return play_step(p, &event);
}

const char *play_probe_says(struct play *p, uint32_t probe, Gpul__Frame *frame)
{
    frame->generation = agent_generation(p->agent);
    struct agent_event event = {
        .type = AGENT_EVENT_PROBE_MESSAGE, .probe = probe, .frame = frame};
    return play_step(p, &event);
}

const char *play_pair_listening(struct play *p)
{
    uint32_t port = 40000;
    Gpul__PairListening listening = GPUL__PAIR_LISTENING__INIT;
    listening.ports = &port;
    listening.n_ports = 1;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_PAIR_LISTENING;
    frame.pair_listening = &listening;
    return play_probe_says(p, 0, &frame);
}

const char *play_trial_result(struct play *p)
{
    Gpul__TrialWay way = GPUL__TRIAL_WAY__INIT;
    Gpul__TrialResult result = GPUL__TRIAL_RESULT__INIT;
    result.trial = 1;
    result.sending = &way;
    result.receiving = &way;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_TRIAL_RESULT;
    frame.trial_result = &result;
    return play_probe_says(p, 0, &frame);
}

const char *play_probe_ended(struct play *p, uint32_t probe, const char *how)
{
    struct agent_event event = {
        .type = AGENT_EVENT_PROBE_ENDED, .probe = probe, .text = how};
    return play_step(p, &event);
}

const char *play_probe_result(struct play *p)
{
    Gpul__ProbeRow row;
    gpul__probe_row__init(&row);
    row.bytes = 8;
    row.count = 2;
    row.iterations = 1;
    row.min_ns = row.median_ns = row.max_ns = row.mean_ns = 5;
    Gpul__ProbeRow *rows[] = {&row};
    char phase[] = "coll";
    Gpul__ProbeResult result;
    gpul__probe_result__init(&result);
    result.rows = rows;
    result.n_rows = 1;
    result.phase = phase;
    Gpul__Frame frame;
    gpul__frame__init(&frame);
    frame.body_case = GPUL__FRAME__BODY_PROBE_RESULT;
    frame.probe_result = &result;
    return play_probe_says(p, 0, &frame);
}

#define SAYS(p, probe, CASE, name, type, ...)                                  \
    do {                                                                       \
        type body;                                                             \
        gpul__##name##__init(&body);                                           \
        __VA_ARGS__;                                                           \
        Gpul__Frame frame;                                                     \
        gpul__frame__init(&frame);                                             \
        frame.body_case = GPUL__FRAME__BODY_##CASE;                            \
        frame.name = &body;                                                    \
        return play_probe_says(p, probe, &frame);                              \
    } while (0)

const char *play_listening(struct play *p)
{
    char address[] = "10.0.0.1";
    SAYS(p, 0, PROBE_LISTENING, probe_listening, Gpul__ProbeListening,
         body.address = address, body.port = 4000);
}

/* NVML of a scout: `error` NULL where it could be used. */
static Gpul__Library make_nvml(const char *error)
{
    static char path[] = "/lib/libnvidia-ml.so.1";
    Gpul__Library nvml = GPUL__LIBRARY__INIT;
    if (error == NULL) {
        nvml.path = path;
    } else {
        nvml.error = (char *)(uintptr_t)error;
    }
    return nvml;
}

const char *play_facts(struct play *p, uint32_t devices, uint64_t used_mib)
{
    return play_facts_without(p, devices, used_mib, NULL);
}

const char *play_facts_without(struct play *p, uint32_t devices,
                               uint64_t used_mib, const char *nvml_error)
{
    Gpul__Library nvml = make_nvml(nvml_error);
    static char finding[] = "1 process (77) uses the GPU already";
    char *findings[] = {finding};
    char uuids[AGENT_PROBES_MAX][16];
    Gpul__Device list[AGENT_PROBES_MAX];
    Gpul__Device *pointers[AGENT_PROBES_MAX];
    Gpul__Library library = GPUL__LIBRARY__INIT;
    for (uint32_t i = 0; i < devices; i++) {
        gpul__device__init(&list[i]);
        snprintf(uuids[i], sizeof(uuids[i]), "GPU-%u", i);
        list[i].index = i;
        list[i].uuid = uuids[i];
        list[i].memory_used_bytes = used_mib << 20;
        list[i].findings = findings;
        list[i].n_findings = used_mib > 0 ? 1 : 0;
        pointers[i] = &list[i];
    }
    SAYS(p, 0, PROBE_FACTS, probe_facts, Gpul__ProbeFacts, body.nccl = &library,
         body.cuda = &library, body.nvml = &nvml, body.devices = pointers,
         body.n_devices = devices);
}

const char *play_no_facts(struct play *p, const char *error)
{
    Gpul__Library library = GPUL__LIBRARY__INIT;
    SAYS(p, 0, PROBE_FACTS, probe_facts, Gpul__ProbeFacts, body.nccl = &library,
         body.cuda = &library, body.nvml = &library,
         body.error = (char *)(uintptr_t)error);
}

const char *play_probe_id(struct play *p, uint32_t probe)
{
    static uint8_t id[GPUL_UNIQUE_ID_BYTES];
    SAYS(p, probe, PROBE_ID, probe_id, Gpul__ProbeId, body.id.data = id,
         body.id.len = sizeof(id));
}

const char *play_phase(struct play *p, uint32_t probe,
                       Gpul__ProbePhase__Phase phase)
{
    /* Its rank is the agent's to know. */
    SAYS(p, probe, PROBE_PHASE, probe_phase, Gpul__ProbePhase,
         body.phase = phase, body.probe_rank = 99);
}

const char *play_device_result(struct play *p, uint32_t probe,
                               const char *error)
{
    char phase[] = "coll";
    SAYS(p, probe, PROBE_RESULT, probe_result, Gpul__ProbeResult,
         body.phase = phase, body.error = (char *)(uintptr_t)error);
}

const char *play_wait(struct play *p, uint64_t ms)
{
    p->now_ms += ms;
    return play_event(p, AGENT_EVENT_TICK, NULL);
}

const char *play_keeper_lost(struct play *p, const char *unclean)
{
    char text[64];
    char *list[] = {text};
    struct agent_event event = {.type = AGENT_EVENT_KEEPER_LOST};
    if (unclean != NULL) {
        snprintf(text, sizeof(text), "%s", unclean);
        event.unclean = list;
        event.unclean_count = 1;
    }
    return play_step(p, &event);
}
