/* SPDX-License-Identifier: Apache-2.0
 *
 * Random orders of events, against a model of what is around a keeper: an
 * agent that says anything, reads when it likes and dies; ranks that end when
 * they like, or only by SIGKILL, or never; time; signals.
 *
 * Always: at most one agent; STATE is followed by as many packets as it says;
 * an agent that has read everything knows each rank as it is. In the end no
 * agent works any more, or a signal comes: the keeper leaves in bounded time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/rng.h"
#include "worker/keeping.h"

enum {
    EVENTS_MIN = 100000,
    EVENTS_OF_RUN = 400,
    SLOTS = 5,
    GRACE_MS = 3000,
    ORPHAN_MS = 20000,
    /* The longest way out: orphaned, TERM, KILL, the agent's stay and its
     * end, what its probes left. */
    END_MS = ORPHAN_MS + KEEPING_ORDERLY_MS + GRACE_MS + 3 * KEEPING_KILL_MS +
             KEEPING_AGENT_END_MS,
};

enum knows { KNOWS_NOTHING, KNOWS_STARTED, KNOWS_FAILED, KNOWS_ENDED };

static struct keeping k;

static struct world {
    struct gpul_rng rng;
    uint64_t now_ms;
    bool has_agent;
    bool is_broken; /* the last phase: agents die at once */
    bool has_left;
    bool is_killed; /* the agent, by the keeper */
    bool is_stuck[SLOTS];
    bool is_alive[SLOTS];
    int32_t pids[SLOTS];
    int32_t statuses[SLOTS];
    uint32_t count;
    uint32_t orphans; /* descendants that are no ranks */
    int32_t next_pid;
    /* The agent's view. */
    enum knows knows[SLOTS];
    int32_t known_status[SLOTS];
    bool knows_gone;
    uint32_t following;
    uint64_t events;
} w;

static uint32_t pick(uint32_t n)
{
    return (uint32_t)gpul_rng_below(&w.rng, n);
}

static void step(struct keeping_event event);

static void start_slot(uint32_t slot)
{
    struct keeping_event event = {.type = KEEPING_STARTED, .slot = slot};
    if (pick(8) == 0) {
        event.exec_errno = ENOENT;
        event.text = "cannot be found";
    } else {
        event.pid = w.next_pid++;
        w.pids[slot] = event.pid;
        w.is_alive[slot] = true;
        w.is_stuck[slot] = pick(40) == 0;
    }
    step(event);
}

static void on_stop(int32_t signal)
{
    for (uint32_t i = 0; i < w.count; i++) {
        bool dies = signal == SIGKILL ? !w.is_stuck[i] : pick(2) == 0;
        if (w.is_alive[i] && dies) {
            w.is_alive[i] = false;
            w.statuses[i] = signal;
            w.orphans += pick(3) == 0;
            step((struct keeping_event){
                .type = KEEPING_EXITED, .slot = i, .status = signal});
        }
    }
    w.orphans = signal == SIGKILL ? 0 : w.orphans;
}

static void forget_view(void)
{
    memset(w.knows, 0, sizeof(w.knows));
    w.knows_gone = false;
    w.following = 0;
}

static void on_fork(void)
{
    assert_false(w.has_agent);
    w.has_agent = pick(10) != 0;
    w.is_killed = false;
    forget_view();
    step((struct keeping_event){.type = KEEPING_AGENT_STARTED,
                                .pid = w.has_agent ? w.next_pid++ : 0});
}

static void apply(const struct keeping_action *a)
{
    switch (a->type) {
    case KEEPING_DO_FORK_AGENT:
        on_fork();
        break;
    case KEEPING_DO_KILL_AGENT:
        w.is_killed = true;
        break;
    case KEEPING_DO_BEGIN:
        memset(w.is_alive, 0, sizeof(w.is_alive));
        memset(w.pids, 0, sizeof(w.pids));
        forget_view();
        w.count = k.rank_count;
        break;
    case KEEPING_DO_START:
        start_slot(a->slot);
        break;
    case KEEPING_DO_STOP:
        on_stop(a->signal);
        break;
    case KEEPING_DO_LIST:
        keeping_add_unclean(&k, "1 x (D, y)");
        break;
    case KEEPING_DO_LEAVE:
        w.has_left = true;
        break;
    default:
        break;
    }
}

static void step(struct keeping_event event)
{
    struct keeping_actions actions;
    assert_false(w.has_left);
    event.now_ms = w.now_ms;
    w.events++;
    keeping_step(&k, &event, &actions);
    for (size_t i = 0; i < actions.count; i++) {
        apply(&actions.items[i]);
    }
}

/* ---- the agent ----------------------------------------------------------- */

static void count_following(uint32_t type)
{
    if (w.following > 0) {
        assert_true(type == KEEPER_RANK || type == KEEPER_EXIT ||
                    type == KEEPER_UNCLEAN || type == KEEPER_GONE);
        w.following--;
    } else {
        assert_int_not_equal(type, KEEPER_RANK);
    }
}

static void read_packet(const struct keeper_packet *p)
{
    if (p->type == KEEPER_STATE) {
        w.following = p->following;
        return;
    }
    count_following(p->type);
    if (p->type == KEEPER_RANK || p->type == KEEPER_STARTED) {
        assert_int_equal(w.knows[p->slot], KNOWS_NOTHING);
        w.knows[p->slot] = p->pid != 0 ? KNOWS_STARTED : KNOWS_FAILED;
        assert_int_equal(p->pid, w.pids[p->slot]);
    } else if (p->type == KEEPER_EXIT) {
        assert_int_equal(w.knows[p->slot], KNOWS_STARTED);
        w.knows[p->slot] = KNOWS_ENDED;
        w.known_status[p->slot] = p->status;
    } else if (p->type == KEEPER_GONE) {
        w.knows_gone = true;
    }
}

/* Nothing is left to be told: then it is as the agent thinks. */
static void check_view(void)
{
    for (uint32_t i = 0; i < k.rank_count; i++) {
        enum keeping_slot_state state = k.slots[i].state;
        assert_int_equal(w.knows[i], state == KEEPING_EMPTY    ? KNOWS_NOTHING
                                     : state == KEEPING_FAILED ? KNOWS_FAILED
                                     : w.is_alive[i]           ? KNOWS_STARTED
                                                               : KNOWS_ENDED);
        if (w.knows[i] == KNOWS_ENDED) {
            assert_int_equal(w.known_status[i], w.statuses[i]);
        }
    }
    assert_int_equal(w.following, 0);
    if (k.state == KEEPING_IDLE && k.generation != 0) {
        assert_true(w.knows_gone);
    }
}

static void agent_reads(uint32_t most)
{
    struct keeper_packet p;
    bool has_more = true;
    while (most-- > 0 && (has_more = keeping_next_packet(&k, &p))) {
        read_packet(&p);
        keeping_packet_sent(&k);
    }
    if (!has_more) {
        check_view();
    }
}

static void agent_says(void)
{
    static const uint32_t types[] = {
        KEEPER_BEGIN, KEEPER_BEGIN,    KEEPER_START, KEEPER_START,
        KEEPER_START, KEEPER_START,    KEEPER_START, KEEPER_STOP,
        KEEPER_PASS,  KEEPER_ATTACHED, KEEPER_STATE, KEEPER_ABANDON,
        KEEPER_CLOSE};
    struct keeper_packet p = {
        .type = types[pick(sizeof(types) / sizeof(types[0]))],
        .slot = pick(SLOTS + 1),
        .generation = pick(100),
        .rank_count = pick(SLOTS + 1),
        .grace_ms = GRACE_MS,
        .orphan_ms = ORPHAN_MS,
        .signal = pick(3) == 0 ? SIGKILL : SIGTERM,
    };
    if (pick(300) == 0) {
        p.type = KEEPER_LEAVE;
        p.status = 3;
    }
    /* An agent acts once it knows all; see keeperwire.h. */
    if (k.telling == KEEPING_TELLS_NEWS) {
        step((struct keeping_event){.type = KEEPING_PACKET, .packet = &p});
    }
}

/* ---- the world ----------------------------------------------------------- */

static void end_agent(void)
{
    w.has_agent = false;
    step((struct keeping_event){.type = KEEPING_AGENT_ENDED});
}

static void end_rank(void)
{
    uint32_t slot = pick(SLOTS);
    if (w.is_alive[slot] && !w.is_stuck[slot]) {
        w.is_alive[slot] = false;
        w.statuses[slot] = (int32_t)pick(3) << 8;
        step((struct keeping_event){
            .type = KEEPING_EXITED, .slot = slot, .status = w.statuses[slot]});
    }
}

static void look(void)
{
    uint32_t alive = 0;
    for (uint32_t i = 0; i < SLOTS; i++) {
        alive += w.is_alive[i];
    }
    if (!w.has_left && keeping_wants_look(&k) && alive + w.orphans == 0) {
        step((struct keeping_event){.type = KEEPING_NONE_LEFT});
    }
}

static void pass_time(void)
{
    uint64_t next = keeping_next_deadline_ms(&k);
    uint64_t most = pick(4000);
    bool is_due = next <= w.now_ms + most;
    w.now_ms = !is_due ? w.now_ms + most : next > w.now_ms ? next : w.now_ms;
    if (is_due) {
        step((struct keeping_event){.type = KEEPING_TICK});
    }
}

static void happen(void)
{
    uint32_t what = pick(100);
    if (w.is_killed && w.has_agent) {
        end_agent();
    } else if (what < 40 && w.has_agent && !w.is_broken) {
        agent_says();
    } else if (what < 60 && w.has_agent) {
        agent_reads(1 + pick(6));
    } else if (what < 64 && w.has_agent) {
        end_agent();
    } else if (what < 72 && !w.is_broken) {
        end_rank();
    } else if (what == 72 && pick(10) == 0) {
        step((struct keeping_event){.type = KEEPING_SIGNAL, .signal = SIGTERM});
    } else if (what < 78) {
        step((struct keeping_event){.type = KEEPING_UNDERTAKER_ENDED});
    } else {
        pass_time();
    }
    look();
}

static uint64_t run(uint64_t seed)
{
    memset(&w, 0, sizeof(w));
    memset(&k, 0, sizeof(k));
    gpul_rng_init(&w.rng, seed);
    w.now_ms = pick(100000);
    w.next_pid = 10;
    keeping_init(&k, seed);
    step((struct keeping_event){.type = KEEPING_TICK});
    while (!w.has_left && w.events < EVENTS_OF_RUN) {
        happen();
    }
    uint64_t since_ms = w.now_ms;
    w.is_broken = true;
    if (!w.has_left) {
        step((struct keeping_event){.type = KEEPING_SIGNAL, .signal = SIGTERM});
    }
    while (!w.has_left) {
        happen();
        assert_in_range(w.now_ms - since_ms, 0, END_MS);
    }
    return w.events;
}

static uint64_t seed;

static void test_random(void **state)
{
    (void)state;
    uint64_t events = 0;
    for (seed = 0; events < EVENTS_MIN; seed++) {
        events += run(seed);
    }
    print_message("%llu events\n", (unsigned long long)events);
}

/* After a failure that is the one to look at. */
static int tell_seed(void **state)
{
    (void)state;
    print_message("up to seed %llu\n", (unsigned long long)seed);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random)};
    return cmocka_run_group_tests(tests, NULL, tell_seed);
}
