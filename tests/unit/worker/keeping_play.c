/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "keeping_play.h"

struct keeping play_keeper;
uint64_t play_now_ms;
static char line[4096];

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
    size_t used = strlen(line);
    va_list args;
    va_start(args, format);
    vsnprintf(line + used, sizeof(line) - used, format, args);
    va_end(args);
}

static void say_action(const struct keeping_action *a)
{
    static const char *const names[] = {
        "",     "fork", "kill-agent", "begin",      "start", "stop",
        "pass", "list", "finish",     "undertaker", "leave", "close"};
    say("%s%s", line[0] != 0 ? " " : "", names[a->type]);
    if (a->type == KEEPING_DO_STOP) {
        say("(%d)", a->signal);
    } else if (a->type == KEEPING_DO_START || a->type == KEEPING_DO_CLOSE) {
        say("(%u)", a->slot);
    } else if (a->type == KEEPING_DO_PASS) {
        say("(%d to %d)", a->signal, (int)a->slot);
    } else if (a->type == KEEPING_DO_LEAVE) {
        say("(%d)", a->exit_code);
    } else if (a->type == KEEPING_DO_LIST) {
        keeping_add_unclean(&play_keeper, "7 stuck (D, nfs)");
    }
}

const char *play_step(struct keeping_event event)
{
    struct keeping_actions actions;
    event.now_ms = play_now_ms;
    line[0] = 0;
    keeping_step(&play_keeper, &event, &actions);
    for (size_t i = 0; i < actions.count; i++) {
        say_action(&actions.items[i]);
    }
    return line;
}

const char *play_type(enum keeping_event_type type)
{
    return play_step((struct keeping_event){.type = type});
}

const char *play_packet(enum keeper_packet_type type, int32_t signal)
{
    struct keeper_packet p = {.type = type,
                              .slot = KEEPER_ALL_SLOTS,
                              .signal = signal,
                              .status = signal};
    return play_step(
        (struct keeping_event){.type = KEEPING_PACKET, .packet = &p});
}

const char *play_begin(uint32_t generation, uint32_t ranks)
{
    struct keeper_packet p = {.type = KEEPER_BEGIN,
                              .generation = generation,
                              .attempt = 2,
                              .first_rank = 8,
                              .rank_count = ranks,
                              .grace_ms = 3000,
                              .orphan_ms = 60000};
    return play_step(
        (struct keeping_event){.type = KEEPING_PACKET, .packet = &p});
}

const char *play_start(uint32_t slot)
{
    struct keeper_packet p = {.type = KEEPER_START, .slot = slot};
    return play_step(
        (struct keeping_event){.type = KEEPING_PACKET, .packet = &p});
}

/* START and its answer. */
void play_start_rank(uint32_t slot)
{
    char expected[32];
    snprintf(expected, sizeof(expected), "start(%u)", slot);
    assert_string_equal(play_start(slot), expected);
    assert_string_equal(
        play_step((struct keeping_event){.type = KEEPING_STARTED,
                                         .slot = slot,
                                         .kept_fds = 2,
                                         .pid = 100 + (int)slot}),
        "");
}

const char *play_close_input(uint32_t slot)
{
    struct keeper_packet p = {.type = KEEPER_CLOSE, .slot = slot};
    return play_step(
        (struct keeping_event){.type = KEEPING_PACKET, .packet = &p});
}

const char *play_exited(uint32_t slot, int32_t status)
{
    return play_step((struct keeping_event){
        .type = KEEPING_EXITED, .slot = slot, .status = status});
}

const char *play_agent(int32_t pid)
{
    return play_step(
        (struct keeping_event){.type = KEEPING_AGENT_STARTED, .pid = pid});
}

const char *play_signaled(int32_t signal)
{
    return play_step(
        (struct keeping_event){.type = KEEPING_SIGNAL, .signal = signal});
}

/* Let time pass to the next deadline, which must be so far away. */
const char *play_wait(uint64_t ms)
{
    assert_int_equal(keeping_next_deadline_ms(&play_keeper), play_now_ms + ms);
    play_now_ms += ms;
    return play_type(KEEPING_TICK);
}

static void say_packet(const struct keeper_packet *p)
{
    say("%s", line[0] != 0 ? " " : "");
    switch (p->type) {
    case KEEPER_STATE:
        say("state(agent %u, generation %u, signal %d, %u more)", p->agent,
            p->generation, p->signal, p->following);
        break;
    case KEEPER_RANK:
    case KEEPER_STARTED:
        say("%s(%u: ", p->type == KEEPER_RANK ? "rank" : "started", p->slot);
        if (p->pid != 0) {
            say("%d)", p->pid);
        } else {
            say("%d %s)", p->exec_errno, p->text);
        }
        break;
    case KEEPER_EXIT:
        say("exit(%u: %d)", p->slot, p->status);
        break;
    case KEEPER_UNCLEAN:
        say("unclean(%s)", p->text);
        break;
    case KEEPER_GONE:
        say("gone");
        break;
    case KEEPER_ALIVE:
        say("alive");
        break;
    default:
        say("signal(%d)", p->signal);
    }
}

/* At most so many packets are taken. */
const char *play_told_some(int most)
{
    struct keeper_packet p;
    line[0] = 0;
    for (; most > 0 && keeping_next_packet(&play_keeper, &p); most--) {
        say_packet(&p);
        keeping_packet_sent(&play_keeper);
    }
    return line;
}

const char *play_told(void)
{
    return play_told_some(100);
}

void play_open(void)
{
    memset(&play_keeper, 0, sizeof(play_keeper));
    keeping_init(&play_keeper, 77);
    play_now_ms = 5000;
    assert_string_equal(play_type(KEEPING_TICK), "fork");
    play_agent(50);
    assert_string_equal(play_told(),
                        "state(agent 0, generation 0, signal 0, 0 more)");
}

void play_open_ranks(uint32_t count)
{
    play_open();
    assert_string_equal(play_begin(1, count), "begin");
    for (uint32_t i = 0; i < count; i++) {
        play_start_rank(i);
    }
    play_told();
}
