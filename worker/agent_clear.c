/* SPDX-License-Identifier: Apache-2.0
 *
 * After a self-test on GPUs: the command finds their memory as free as it
 * was before. The driver gives it back a moment after the process has ended,
 * so a short-lived scout looks, again and again, until it is; not for ever,
 * as it may be somebody else's.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/units.h"
#include "worker/agent_internal.h"

enum {
    BOUND_MS = 50000,
    /* Between two looks; doubled up to the last. */
    WAIT_FIRST_MS = 100,
    WAIT_LAST_MS = 1600,
    MARGIN_MS = 2000, /* the scout keeps its own deadline */
    NAMED_MAX = 3,    /* devices */
};

/* What may be in use beyond what the scout saw at first. */
static const uint64_t slack_bytes = UINT64_C(512) << 20;

static void notice(struct agent *a, const char *text)
{
    Gpul__Notice notice;
    gpul__notice__init(&notice);
    notice.text = agent_text(text);
    Gpul__Frame frame;
    gpul__frame__init(&frame);
    frame.body_case = GPUL__FRAME__BODY_NOTICE;
    frame.notice = &notice;
    agent_send(a, AGENT_SEND, &frame);
}

static void look(struct agent *a)
{
    struct agent_selftest *t = &a->test;
    t->has_looked = false;
    t->look_error[0] = 0;
    t->deadline_ms = agent_earlier(a->now_ms + t->scout_ms + MARGIN_MS,
                                   t->clear_deadline_ms);
    struct agent_action *start =
        agent_send_bytes(a, AGENT_START_PROBE, &t->scout_start);
    if (start != NULL) {
        agent_probe_begun(a, start, 0, AGENT_PROBE_WATCH);
    }
}

bool agent_clear_can_see(const Gpul__ProbeFacts *facts)
{
    return facts->nvml->path[0] != 0 && facts->nvml->error[0] == 0;
}

/* The command may start; what is wrong, if anything, has been said. */
static void end(struct agent *a)
{
    agent_move(a, AGENT_ASSIGNED);
    if (a->test.has_launch) {
        agent_launch(a);
    }
}

void agent_clear_begin(struct agent *a)
{
    struct agent_selftest *t = &a->test;
    agent_move(a, AGENT_CLEARING);
    t->clear_deadline_ms = a->now_ms + BOUND_MS;
    t->look_wait_ms = WAIT_FIRST_MS;
    t->has_launch = false;
    t->has_overrun = false;
    t->occupied[0] = 0;
    if (t->is_blind) {
        end(a);
    } else {
        look(a);
    }
}

/* What NVML knows of the processes there is a finding of the device. */
static const char *processes_of(const Gpul__Device *device)
{
    for (size_t i = 0; i < device->n_findings; i++) {
        if (strstr(device->findings[i], "process") != NULL) {
            return device->findings[i];
        }
    }
    return NULL;
}

static void name_device(struct agent_selftest *t, const Gpul__Device *device,
                        uint64_t before_bytes)
{
    size_t used = strlen(t->occupied);
    const char *processes = processes_of(device);
    snprintf(t->occupied + used, sizeof(t->occupied) - used,
             "%sdevice %u (%s) has %" PRIu64 " MiB in use, %" PRIu64
             " MiB before%s%s",
             used > 0 ? "; " : "", device->index, device->uuid,
             device->memory_used_bytes >> 20, before_bytes >> 20,
             processes != NULL ? ": " : "", processes != NULL ? processes : "");
}

static const Gpul__Device *find_device(const Gpul__ProbeFacts *facts,
                                       const struct agent_device *device)
{
    for (size_t i = 0; i < facts->n_devices; i++) {
        if (facts->devices[i]->index == device->index &&
            strcmp(facts->devices[i]->uuid, device->uuid) == 0) {
            return facts->devices[i];
        }
    }
    return NULL;
}

void agent_clear_facts(struct agent *a, const Gpul__ProbeFacts *facts)
{
    struct agent_selftest *t = &a->test;
    uint32_t count = 0;
    if (facts->error[0] != 0 || !agent_clear_can_see(facts)) {
        snprintf(t->look_error, sizeof(t->look_error), "%s",
                 facts->error[0] != 0         ? facts->error
                 : facts->nvml->error[0] != 0 ? facts->nvml->error
                                              : "NVML is gone");
        return;
    }
    t->has_looked = true;
    t->occupied[0] = 0;
    for (uint32_t i = 0; i < t->device_count; i++) {
        const struct agent_device *before = &t->devices[i];
        const Gpul__Device *now = find_device(facts, before);
        if (now != NULL &&
            now->memory_used_bytes > before->memory_used_bytes + slack_bytes &&
            count++ < NAMED_MAX) {
            name_device(t, now, before->memory_used_bytes);
        }
    }
    size_t used = strlen(t->occupied);
    if (count > NAMED_MAX) {
        snprintf(t->occupied + used, sizeof(t->occupied) - used,
                 "; and %u more device%s", count - NAMED_MAX,
                 gpul_plural(count - NAMED_MAX));
    }
}

static void give_up(struct agent *a)
{
    char text[GPUL_TEXT_BYTES_MAX];
    snprintf(text, sizeof(text),
             "GPU memory is not free again %d s after the self-test, and the "
             "command starts without it: %s",
             BOUND_MS / 1000, a->test.occupied);
    notice(a, text);
    end(a);
}

static void look_later(struct agent *a)
{
    struct agent_selftest *t = &a->test;
    t->look_at_ms =
        agent_earlier(a->now_ms + t->look_wait_ms, t->clear_deadline_ms);
    t->look_wait_ms *= t->look_wait_ms < WAIT_LAST_MS ? 2 : 1;
}

/* A scout that fails once will fail again: nobody is served by waiting. */
static void go_blind(struct agent *a, const char *how)
{
    const struct agent_selftest *t = &a->test;
    const char *why = t->has_overrun          ? "it took too long to look"
                      : t->look_error[0] != 0 ? t->look_error
                                              : how;
    char text[GPUL_TEXT_BYTES_MAX];
    snprintf(text, sizeof(text),
             "whether GPU memory is free again after the self-test cannot be "
             "seen: %s",
             why);
    notice(a, text);
    end(a);
}

void agent_clear_looked(struct agent *a, const char *how)
{
    const struct agent_selftest *t = &a->test;
    bool is_late = a->now_ms >= t->clear_deadline_ms;
    if (t->has_looked && t->occupied[0] == 0) {
        end(a);
    } else if (t->occupied[0] != 0 && is_late) {
        give_up(a);
    } else if (t->has_looked) {
        look_later(a);
    } else {
        go_blind(a, how);
    }
}

void agent_clear_tick(struct agent *a)
{
    struct agent_selftest *t = &a->test;
    if (a->state != AGENT_CLEARING || !agent_is_due(a, &t->look_at_ms)) {
        return;
    }
    if (a->now_ms >= t->clear_deadline_ms) {
        give_up(a);
    } else {
        look(a);
    }
}
