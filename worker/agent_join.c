/* SPDX-License-Identifier: Apache-2.0
 *
 * From the first dial to Hello: bounded tries that spread out.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/units.h"
#include "proto/limits.h"
#include "worker/agent_internal.h"

/* Waits between tries to connect: doubled from the first to the last, and
 * drawn between half and the whole of it, so that many agents spread out. */
enum { RETRY_FIRST_MS = 50, RETRY_LAST_MS = 5000 };

/* Refusals that are said as they come; more are left to the end. */
enum { SAID_MAX = 4 };

static void say(struct agent *a, const char *what)
{
    char left[AGENT_DURATION_BYTES];
    uint64_t left_ms = a->join_deadline_ms - a->now_ms;
    gpul_format_duration(left, (left_ms + 500) / 1000 * 1000);
    snprintf(a->say_text, sizeof(a->say_text), "%.400s; trying on for %s", what,
             left);
    agent_emit(a, AGENT_SAY)->text = a->say_text;
}

/* Who answers with a refusal may be right: then more time is of no use, and
 * whoever started this node wants to know at once. */
static void say_refusal(struct agent *a, const char *why)
{
    bool is_new = strncmp(a->said_error, why, sizeof(a->said_error) - 1) != 0;
    if (a->config.tells_delay && !a->is_leaving && is_new &&
        a->said < SAID_MAX && a->join_deadline_ms > a->now_ms) {
        a->said++;
        snprintf(a->said_error, sizeof(a->said_error), "%s", why);
        say(a, why);
    }
}

void agent_join_half(struct agent *a)
{
    char what[AGENT_TEXT_BYTES], waited[AGENT_DURATION_BYTES];
    bool is_joining = a->state == AGENT_CONNECTING || a->state == AGENT_HELLO;
    if (!is_joining || a->is_leaving || a->join_deadline_ms <= a->now_ms) {
        return;
    }
    gpul_format_duration(waited, a->join_ms / 2);
    snprintf(what, sizeof(what),
             "the coordinator at %s has not let this node in for %s: "
             "%.300s",
             a->config.coordinator, waited,
             a->last_error[0] != 0 ? a->last_error : "no answer");
    say(a, what);
}

/* One of several addresses may say nothing while the next would: so each has
 * its time, more in each round, and at first so little that the last of them
 * is tried before the time to join is over. */
void agent_dial(struct agent *a)
{
    uint32_t addresses = a->config.address_count;
    uint64_t share_ms = a->join_ms / addresses;
    share_ms = share_ms < GPUL_DIAL_MS ? share_ms : GPUL_DIAL_MS;
    agent_emit(a, AGENT_CONNECT)->bound_ms =
        addresses > 1 ? share_ms * (a->tries / addresses + 1) : UINT64_MAX;
}

/* After a try of the last address, or an answer: all are the coordinator's. */
static uint64_t wait_ms(struct agent *a)
{
    uint64_t wait = RETRY_FIRST_MS;
    uint32_t rounds = a->tries / a->config.address_count;
    for (uint32_t i = 0; i < rounds && wait < RETRY_LAST_MS; i++) {
        wait *= 2;
    }
    wait = wait < RETRY_LAST_MS ? wait : RETRY_LAST_MS;
    return wait / 2 + gpul_rng_below(&a->rng, wait / 2 + 1);
}

static void retry_later(struct agent *a, const char *why, bool is_answer)
{
    bool is_last = (a->tries + 1) % a->config.address_count == 0;
    a->retry_at_ms = a->now_ms + (is_last || is_answer ? wait_ms(a) : 0);
    a->tries++;
    agent_move(a, AGENT_CONNECTING);
    snprintf(a->last_error, sizeof(a->last_error), "%s", why);
}

void agent_reached(struct agent *a)
{
    a->is_reached = a->state == AGENT_CONNECTING;
}

void agent_connected(struct agent *a, const char *address)
{
    if (a->state != AGENT_CONNECTING) {
        return;
    }
    agent_move(a, AGENT_HELLO);
    a->is_reached = false;
    a->is_connected = true;
    Gpul__Facts facts = *a->config.facts;
    facts.address = agent_text(address);
    Gpul__Hello hello;
    gpul__hello__init(&hello);
    hello.protocol_min = GPUL_PROTOCOL_MIN;
    hello.protocol_max = GPUL_PROTOCOL;
    hello.version = agent_text(a->config.version);
    hello.job_id = agent_text(a->config.job_id);
    hello.node_name = agent_text(a->config.node_name);
    hello.instance = a->config.instance;
    hello.attach = a->config.attach;
    hello.held_generation = a->config.held.generation;
    hello.held_attempt = a->config.held.attempt;
    hello.facts = &facts;
    Gpul__Frame frame;
    gpul__frame__init(&frame);
    frame.body_case = GPUL__FRAME__BODY_HELLO;
    frame.hello = &hello;
    agent_send(a, AGENT_SEND, &frame);
}

void agent_unconnected(struct agent *a, const char *why)
{
    bool is_answer = a->is_reached || a->state == AGENT_HELLO;
    a->is_reached = false;
    if (a->state == AGENT_HELLO || a->state == AGENT_CONNECTING) {
        a->is_connected = false;
        if (is_answer) {
            say_refusal(a, why);
        }
        retry_later(a, why, is_answer);
    } else if (a->is_connected) {
        agent_lost(a, why);
    }
}

void agent_join_overdue(struct agent *a)
{
    char waited[AGENT_DURATION_BYTES];
    int exit_code = a->is_held ? AGENT_EXIT_LOST : AGENT_EXIT_DEADLINE;
    gpul_format_duration(waited, a->join_ms);
    /* What an earlier try was told says more than the silence of the last. */
    bool is_silent = a->is_reached && a->last_error[0] == 0;
    if (a->state == AGENT_HELLO || is_silent) {
        agent_leave(a, exit_code,
                    "connected to the coordinator at %s, but it did not answer "
                    "within %s",
                    a->config.coordinator, waited);
    } else if (a->state == AGENT_CONNECTING) {
        agent_leave(a, exit_code,
                    "no connection to the coordinator at %s within %s: %s",
                    a->config.coordinator, waited,
                    a->last_error[0] != 0 ? a->last_error : "no answer");
    }
    agent_stop(a, SIGTERM, agent_grace_ms(a));
}
