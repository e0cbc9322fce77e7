/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "worker/keeping.h"

/* A keeper on a stage: the test says what happens and reads what it does, and
 * says to its agent, as a line of text. */
static struct keeping k;
static uint64_t now_ms;
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
        keeping_add_unclean(&k, "7 stuck (D, nfs)");
    }
}

static const char *step(struct keeping_event event)
{
    struct keeping_actions actions;
    event.now_ms = now_ms;
    line[0] = 0;
    keeping_step(&k, &event, &actions);
    for (size_t i = 0; i < actions.count; i++) {
        say_action(&actions.items[i]);
    }
    return line;
}

static const char *step_type(enum keeping_event_type type)
{
    return step((struct keeping_event){.type = type});
}

static const char *packet(enum keeper_packet_type type, int32_t signal)
{
    struct keeper_packet p = {.type = type,
                              .slot = KEEPER_ALL_SLOTS,
                              .signal = signal,
                              .status = signal};
    return step((struct keeping_event){.type = KEEPING_PACKET, .packet = &p});
}

static const char *begin(uint32_t generation, uint32_t ranks)
{
    struct keeper_packet p = {.type = KEEPER_BEGIN,
                              .generation = generation,
                              .attempt = 2,
                              .first_rank = 8,
                              .rank_count = ranks,
                              .grace_ms = 3000,
                              .orphan_ms = 60000};
    return step((struct keeping_event){.type = KEEPING_PACKET, .packet = &p});
}

static const char *start(uint32_t slot)
{
    struct keeper_packet p = {.type = KEEPER_START, .slot = slot};
    return step((struct keeping_event){.type = KEEPING_PACKET, .packet = &p});
}

/* START and its answer. */
static void start_rank(uint32_t slot)
{
    char expected[32];
    snprintf(expected, sizeof(expected), "start(%u)", slot);
    assert_string_equal(start(slot), expected);
    assert_string_equal(step((struct keeping_event){.type = KEEPING_STARTED,
                                                    .slot = slot,
                                                    .kept_fds = 2,
                                                    .pid = 100 + (int)slot}),
                        "");
}

static const char *close_input(uint32_t slot)
{
    struct keeper_packet p = {.type = KEEPER_CLOSE, .slot = slot};
    return step((struct keeping_event){.type = KEEPING_PACKET, .packet = &p});
}

static const char *exited(uint32_t slot, int32_t status)
{
    return step((struct keeping_event){
        .type = KEEPING_EXITED, .slot = slot, .status = status});
}

static const char *agent_started(int32_t pid)
{
    return step(
        (struct keeping_event){.type = KEEPING_AGENT_STARTED, .pid = pid});
}

static const char *signaled(int32_t signal)
{
    return step(
        (struct keeping_event){.type = KEEPING_SIGNAL, .signal = signal});
}

/* Let time pass to the next deadline, which must be so far away. */
static const char *wait_for(uint64_t ms)
{
    assert_int_equal(keeping_next_deadline_ms(&k), now_ms + ms);
    now_ms += ms;
    return step_type(KEEPING_TICK);
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
static const char *told_some(int most)
{
    struct keeper_packet p;
    line[0] = 0;
    for (; most > 0 && keeping_next_packet(&k, &p); most--) {
        say_packet(&p);
        keeping_packet_sent(&k);
    }
    return line;
}

static const char *told(void)
{
    return told_some(100);
}

static void open_keeper(void)
{
    memset(&k, 0, sizeof(k));
    keeping_init(&k, 77);
    now_ms = 5000;
    assert_string_equal(step_type(KEEPING_TICK), "fork");
    agent_started(50);
    assert_string_equal(told(),
                        "state(agent 0, generation 0, signal 0, 0 more)");
}

static void open_ranks(uint32_t count)
{
    open_keeper();
    assert_string_equal(begin(1, count), "begin");
    for (uint32_t i = 0; i < count; i++) {
        start_rank(i);
    }
    told();
}

/* ---- a run --------------------------------------------------------------- */

/* Begin, start, end by themselves, gone, begin again, leave. */
static void test_run(void **state)
{
    (void)state;
    open_keeper();
    assert_string_equal(begin(1, 2), "begin");
    start_rank(0);
    start_rank(1);
    assert_string_equal(told(), "started(0: 100) started(1: 101)");
    exited(1, 256);
    assert_false(keeping_wants_look(&k));
    exited(0, 0);
    assert_true(keeping_wants_look(&k));
    assert_string_equal(told(), "exit(1: 256) exit(0: 0)");
    assert_string_equal(step_type(KEEPING_NONE_LEFT), "finish");
    assert_string_equal(told(), "gone");
    assert_false(keeping_wants_look(&k));
    assert_string_equal(begin(2, 1), "begin");
    start_rank(0);
    assert_string_equal(told(), "started(0: 100)");
    exited(0, 0);
    assert_string_equal(step_type(KEEPING_NONE_LEFT), "finish");
    assert_string_equal(packet(KEEPER_LEAVE, 3), "stop(9)");
    assert_string_equal(step_type(KEEPING_NONE_LEFT), "");
    assert_string_equal(step_type(KEEPING_AGENT_ENDED), "stop(9)");
    assert_string_equal(step_type(KEEPING_NONE_LEFT), "leave(3)");
}

/* The agent's escalation; SIGKILL is sent again until nobody is left. */
static void test_stop(void **state)
{
    (void)state;
    open_ranks(2);
    assert_string_equal(packet(KEEPER_PASS, SIGUSR1), "pass(10 to -1)");
    assert_string_equal(packet(KEEPER_STOP, SIGTERM), "stop(15)");
    exited(0, 15);
    assert_int_equal(keeping_next_deadline_ms(&k), UINT64_MAX);
    assert_string_equal(packet(KEEPER_STOP, SIGKILL), "stop(9)");
    assert_string_equal(wait_for(KEEPING_SWEEP_MS), "stop(9)");
    assert_string_equal(wait_for(KEEPING_SWEEP_MS), "stop(9)");
    assert_string_equal(packet(KEEPER_ABANDON, 0), "list finish");
    assert_string_equal(told(), "exit(0: 15) unclean(7 stuck (D, nfs)) gone");
    assert_int_equal(keeping_next_deadline_ms(&k), UINT64_MAX);
    /* It ended after all. */
    exited(1, 9);
    assert_string_equal(told(), "exit(1: 9)");
}

/* What probes leave is stopped without ranks, and told by GONE as well. */
static void test_stop_without_ranks(void **state)
{
    (void)state;
    open_keeper();
    assert_string_equal(packet(KEEPER_STOP, SIGKILL), "stop(9)");
    assert_true(keeping_wants_look(&k));
    assert_string_equal(step_type(KEEPING_NONE_LEFT), "finish");
    assert_string_equal(told(), "gone");
}

/* Starts that fail, that come too late, twice, or for no slot. */
static void test_starts_refused(void **state)
{
    (void)state;
    open_keeper();
    assert_string_equal(start(0), "");
    begin(1, 3);
    assert_string_equal(begin(2, 3), "");
    assert_string_equal(start(0), "start(0)");
    step((struct keeping_event){.type = KEEPING_STARTED,
                                .slot = 0,
                                .exec_errno = ENOENT,
                                .text = "cannot execute x"});
    assert_string_equal(start(0), "");
    assert_string_equal(start(3), "");
    packet(KEEPER_STOP, SIGTERM);
    assert_string_equal(start(1), "");
    assert_string_equal(told(), "started(0: 2 cannot execute x) "
                                "started(1: 125 the ranks are being stopped)");
}

/* ---- agents that end ----------------------------------------------------- */

/* The next agent is told all there is, how much that is, and then the news. */
static void test_replay(void **state)
{
    (void)state;
    open_ranks(3);
    exited(1, 0);
    assert_string_equal(step_type(KEEPING_AGENT_ENDED), "");
    exited(2, 256); /* while there is none */
    assert_string_equal(told(), "");
    assert_string_equal(wait_for(0), "fork");
    agent_started(51);
    assert_string_equal(told_some(3),
                        "state(agent 1, generation 1, signal 0, 5 more) "
                        "rank(0: 100) rank(1: 101)");
    exited(0, 9); /* not among the five */
    assert_string_equal(told(),
                        "exit(1: 0) rank(2: 102) exit(2: 256) exit(0: 9)");
    step_type(KEEPING_NONE_LEFT);
    step_type(KEEPING_AGENT_ENDED);
    agent_started(52);
    assert_string_equal(
        told(), "state(agent 2, generation 1, signal 0, 7 more) rank(0: 100) "
                "exit(0: 9) rank(1: 101) exit(1: 0) rank(2: 102) "
                "exit(2: 256) gone");
}

/* The last descriptor is where the input is written, until it is closed; a
 * second CLOSE, or one for no slot, is nothing. */
static void test_close(void **state)
{
    (void)state;
    struct keeper_packet p;
    open_keeper();
    begin(1, 1);
    start(0);
    step((struct keeping_event){.type = KEEPING_STARTED,
                                .slot = 0,
                                .kept_fds = 3,
                                .has_input = true,
                                .pid = 100});
    told();
    step_type(KEEPING_AGENT_ENDED);
    agent_started(51);
    told_some(1);
    assert_true(keeping_next_packet(&k, &p));
    assert_int_equal(p.kept_fds, 3);
    assert_true(p.has_input);
    assert_string_equal(told(), "rank(0: 100)");
    assert_string_equal(close_input(1), "");
    assert_string_equal(close_input(KEEPER_ALL_SLOTS), "");
    assert_string_equal(close_input(0), "close(0)");
    assert_string_equal(close_input(0), "");
    step_type(KEEPING_AGENT_ENDED);
    agent_started(52);
    told_some(1);
    assert_true(keeping_next_packet(&k, &p));
    assert_int_equal(p.kept_fds, 2);
    assert_false(p.has_input);
}

/* A stop that is under way, a start that failed, and what was unclean. */
static void test_replay_stop(void **state)
{
    (void)state;
    open_ranks(2);
    packet(KEEPER_STOP, SIGTERM);
    step_type(KEEPING_AGENT_ENDED);
    agent_started(51);
    assert_string_equal(told(),
                        "state(agent 1, generation 1, signal 15, 2 more) "
                        "rank(0: 100) rank(1: 101)");
    packet(KEEPER_ABANDON, 0);
    step_type(KEEPING_AGENT_ENDED);
    agent_started(52);
    assert_string_equal(told(),
                        "state(agent 2, generation 1, signal 0, 4 more) "
                        "rank(0: 100) rank(1: 101) unclean(7 stuck (D, nfs)) "
                        "gone");
}

/* At once, then later and later, until one has attached. */
static void test_retries(void **state)
{
    (void)state;
    open_keeper();
    for (uint64_t i = 0; i < 13; i++) {
        now_ms += KEEPING_SHORT_LIFE_MS; /* no failure, but no success */
        assert_string_equal(step_type(KEEPING_AGENT_ENDED), "");
        assert_string_equal(wait_for(i < 10 ? i * 100 : 1000), "fork");
        agent_started(51);
    }
    packet(KEEPER_ATTACHED, 0);
    step_type(KEEPING_AGENT_ENDED);
    assert_string_equal(wait_for(0), "fork");
}

/* Five that fail at once are enough; ranks are stopped in order. */
static void test_given_up(void **state)
{
    (void)state;
    open_ranks(1);
    step_type(KEEPING_AGENT_ENDED); /* had attached: no failure */
    for (uint64_t i = 0; i < 5; i++) {
        assert_string_equal(wait_for(i * 100), "fork");
        if (i % 2 == 0) {
            agent_started(51);
            step_type(KEEPING_AGENT_ENDED);
        } else {
            agent_started(0); /* fork failed */
        }
        assert_string_equal(line, i < 4 ? "" : "stop(15)");
    }
    assert_string_equal(wait_for(3000), "stop(9)");
    exited(0, 9);
    assert_string_equal(step_type(KEEPING_NONE_LEFT), "finish leave(125)");
}

/* No agent attaches: the same stop, 75; one that is there may watch. */
static void test_orphaned(void **state)
{
    (void)state;
    open_ranks(1);
    step_type(KEEPING_AGENT_ENDED);
    wait_for(0);
    agent_started(51);
    told();
    assert_string_equal(wait_for(60000), "stop(15)");
    assert_string_equal(packet(KEEPER_STOP, SIGUSR1), "");
    exited(0, 15);
    assert_string_equal(step_type(KEEPING_NONE_LEFT), "finish");
    assert_string_equal(told(), "exit(0: 15) gone");
    assert_string_equal(wait_for(KEEPING_LINGER_MS), "kill-agent");
    assert_string_equal(step_type(KEEPING_AGENT_ENDED), "stop(9)");
    assert_string_equal(step_type(KEEPING_NONE_LEFT), "leave(75)");
}

/* One that attaches in time ends the wait, one that only starts does not. */
static void test_attached_in_time(void **state)
{
    (void)state;
    open_ranks(1);
    step_type(KEEPING_AGENT_ENDED);
    wait_for(0);
    now_ms += 30000;
    agent_started(51);
    assert_int_equal(keeping_next_deadline_ms(&k), now_ms + 30000);
    packet(KEEPER_ATTACHED, 0);
    assert_int_equal(keeping_next_deadline_ms(&k), UINT64_MAX);
}

/* ---- leaving ------------------------------------------------------------- */

/* What does not die is left after its time, and the agent with it. */
static void test_unkillable(void **state)
{
    (void)state;
    open_ranks(1);
    packet(KEEPER_STOP, SIGKILL);
    assert_string_equal(packet(KEEPER_LEAVE, 75), "stop(9)");
    for (int i = 0; i < 49; i++) {
        assert_string_equal(wait_for(KEEPING_SWEEP_MS), "stop(9)");
    }
    assert_string_equal(wait_for(KEEPING_SWEEP_MS), "kill-agent");
    step_type(KEEPING_TICK);
    assert_string_equal(line, "kill-agent leave(75)");
}

/* An agent that says LEAVE and stays is killed; if that fails, it is left. */
static void test_agent_stays(void **state)
{
    (void)state;
    open_keeper();
    packet(KEEPER_LEAVE, 0);
    assert_string_equal(step_type(KEEPING_NONE_LEFT), "finish");
    assert_string_equal(wait_for(KEEPING_AGENT_END_MS), "kill-agent");
    assert_string_equal(wait_for(KEEPING_KILL_MS), "kill-agent leave(0)");
}

/* A signal is the agent's matter; if it does not leave, the keeper's. */
static void test_signal(void **state)
{
    (void)state;
    open_ranks(1);
    assert_string_equal(signaled(SIGTERM), "");
    assert_string_equal(signaled(SIGINT), "");
    assert_string_equal(told(), "signal(2) signal(15)");
    assert_string_equal(wait_for(KEEPING_ORDERLY_MS + 3000),
                        "kill-agent stop(15)");
    step_type(KEEPING_AGENT_ENDED);
    assert_string_equal(signaled(SIGTERM), "stop(9)");
    exited(0, 9);
    assert_string_equal(step_type(KEEPING_NONE_LEFT), "finish leave(143)");
}

/* An agent that dies of its order to leave is not replaced, and without an
 * agent the keeper stops by itself. */
static void test_signal_without_agent(void **state)
{
    (void)state;
    open_ranks(1);
    signaled(SIGHUP);
    assert_string_equal(step_type(KEEPING_AGENT_ENDED), "stop(15)");
    exited(0, 15);
    assert_string_equal(step_type(KEEPING_NONE_LEFT), "finish leave(129)");
    open_ranks(1);
    step_type(KEEPING_AGENT_ENDED);
    assert_string_equal(signaled(SIGINT), "stop(15)");
    exited(0, 15);
    assert_string_equal(step_type(KEEPING_NONE_LEFT), "finish leave(130)");
}

/* One that is killed is replaced, but not for ever. */
static void test_undertakers(void **state)
{
    (void)state;
    open_ranks(1);
    for (int i = 1; i < KEEPING_UNDERTAKERS_MAX; i++) {
        assert_string_equal(step_type(KEEPING_UNDERTAKER_ENDED), "undertaker");
    }
    assert_string_equal(step_type(KEEPING_UNDERTAKER_ENDED), "");
    exited(0, 0);
    step_type(KEEPING_NONE_LEFT);
    assert_string_equal(step_type(KEEPING_UNDERTAKER_ENDED), "");
}

/* Nonsense changes nothing. */
/* A question is answered behind what is owed, once; the next agent has not
 * asked it. */
static void test_asked(void **state)
{
    (void)state;
    open_keeper();
    assert_string_equal(packet(KEEPER_ASK, 0), "");
    assert_string_equal(packet(KEEPER_ASK, 0), "");
    step((struct keeping_event){.type = KEEPING_SIGNAL, .signal = SIGTERM});
    assert_string_equal(told(), "signal(15) alive");
    assert_string_equal(told(), "");
    packet(KEEPER_ASK, 0);
    step_type(KEEPING_AGENT_ENDED);
    assert_string_equal(told(), "");
}

static void test_nonsense(void **state)
{
    (void)state;
    open_keeper();
    assert_string_equal(begin(0, 1), "");
    assert_string_equal(begin(1, 0), "");
    assert_string_equal(begin(1, GPUL_RANKS_PER_NODE_MAX + 1), "");
    assert_string_equal(packet(KEEPER_STOP, 0), "");
    assert_string_equal(packet(KEEPER_STOP, 65), "");
    assert_string_equal(packet(KEEPER_PASS, -1), "");
    assert_string_equal(packet(KEEPER_STATE, 0), "");
    assert_string_equal(packet(KEEPER_ABANDON, 0), "");
    assert_string_equal(step_type(KEEPING_NONE_LEFT), "");
    assert_string_equal(told(), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_stop_without_ranks),
        cmocka_unit_test(test_starts_refused),
        cmocka_unit_test(test_replay),
        cmocka_unit_test(test_close),
        cmocka_unit_test(test_replay_stop),
        cmocka_unit_test(test_retries),
        cmocka_unit_test(test_given_up),
        cmocka_unit_test(test_orphaned),
        cmocka_unit_test(test_attached_in_time),
        cmocka_unit_test(test_unkillable),
        cmocka_unit_test(test_agent_stays),
        cmocka_unit_test(test_signal),
        cmocka_unit_test(test_signal_without_agent),
        cmocka_unit_test(test_undertakers),
        cmocka_unit_test(test_asked),
        cmocka_unit_test(test_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
