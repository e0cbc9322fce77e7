/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ranks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/clock.h"
#include "proto/limits.h"
#include "worker/metric.h"
#include "worker/ports.h"
#include "worker/rankexits.h"
#include "worker/rankstart.h"

enum rank_state {
    RANK_FREE = 0, /* nobody has started it */
    RANK_HELD,     /* by the keeper, from an agent before us */
    RANK_OURS,     /* its start was sent, its end has not come */
    RANK_OVER,
};

struct rank {
    enum rank_state state;
    int32_t pid; /* 0: not known yet */
    uint64_t started_ms;
    /* Of a held one: RANK, or EXIT since that came; and its pipes. */
    struct keeper_packet last;
    int kept[KEEPER_KEPT_FDS_MAX];
    size_t kept_count;
    bool has_input; /* the last one */
    int metric;     /* that it tells its figure by, of ours; 0: none */
};

struct ranks {
    struct keeperlink *keeper;
    struct input *input;
    struct output *output;
    struct ranklogs *logs;
    struct hangwatch *watch;
    const struct launch *launch;
    struct rank *list; /* by local rank */
    uint32_t count;
    bool has_begun;           /* BEGIN was sent, by us or before us */
    uint32_t held_generation; /* 0: nothing is held */
    bool is_stopping;         /* what is held: nothing more is started */
    bool is_orphaned;         /* the keeper is gone: the end is near */
    uint32_t without_pipes;   /* held ones whose pipes did not come along */
    struct rankstart start;
    struct rankexits exits;
};

/* Else the keeper's duplicate would hold the rank's input open. */
static void on_input_closed(void *arg, uint32_t local_rank)
{
    struct ranks *r = arg;
    const struct keeper_packet packet = {.type = KEEPER_CLOSE,
                                         .slot = local_rank};
    keeperlink_send(r->keeper, &packet, NULL, 0, NULL);
}

int ranks_create(struct ranks **out, struct keeperlink *keeper,
                 const struct ranks_streams *streams, struct gpul_error *err)
{
    struct ranks *r = calloc(1, sizeof(*r));
    *out = r;
    if (r == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory for the ranks");
    }
    r->keeper = keeper;
    r->input = streams->input;
    r->output = streams->output;
    r->logs = streams->logs;
    r->watch = streams->watch;
    input_tell_closed(r->input, on_input_closed, r);
    rankstart_init(&r->start);
    rankexits_init(&r->exits, r->output, r->logs);
    return 0;
}

static void close_metric(struct rank *rank)
{
    if (rank->metric > 0) {
        close(rank->metric);
        rank->metric = 0;
    }
}

static void forget(struct ranks *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        for (size_t k = 0; k < r->list[i].kept_count; k++) {
            close(r->list[i].kept[k]);
        }
        close_metric(&r->list[i]);
    }
    rankexits_release(&r->exits);
    free(r->list);
    r->list = NULL;
    r->count = 0;
    r->has_begun = false;
    r->held_generation = 0;
    r->is_stopping = false;
    r->without_pipes = 0;
}

void ranks_destroy(struct ranks *r)
{
    if (r != NULL) {
        forget(r);
        rankstart_release(&r->start);
        free(r);
    }
}

static int make_room(struct ranks *r, uint32_t count, bool are_held,
                     struct gpul_error *err)
{
    forget(r);
    int rc = rankexits_begin(&r->exits, count, are_held, err);
    r->list = rc == 0 ? calloc(count, sizeof(*r->list)) : NULL;
    if (r->list == NULL) {
        return gpul_fail(rc == 0 ? err : NULL, GPUL_ENOMEM,
                         "out of memory for %u ranks", count);
    }
    r->count = count;
    return 0;
}

bool ranks_are_alive(const struct ranks *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        const struct rank *rank = &r->list[i];
        bool is_held_alive = rank->state == RANK_HELD &&
                             rank->last.type == KEEPER_RANK &&
                             rank->last.pid != 0;
        if (rank->state == RANK_OURS || is_held_alive) {
            return true;
        }
    }
    return false;
}

bool ranks_have_begun(const struct ranks *r)
{
    return r->has_begun;
}

void ranks_tell_restart(const struct ranks *r, uint32_t agent,
                        char text[GPUL_TEXT_BYTES_MAX])
{
    snprintf(text, GPUL_TEXT_BYTES_MAX,
             "the agent of this node was restarted (agent %u); the console may "
             "lack some lines%s",
             agent,
             ranklogs_is_on(r->logs) ? ", the log files are complete" : "");
}

bool ranks_have_exits(const struct ranks *r)
{
    return rankexits_wait(&r->exits);
}

size_t ranks_take_exits(struct ranks *r, Gpul__Exit ***exits)
{
    return rankexits_take(&r->exits, exits);
}

/* Four pipes, a figure and two logs a rank, beside what the agent holds anyway.
 * The ranks do not inherit this: they have the keeper's limits. */
static void raise_descriptor_limit(uint32_t ranks)
{
    enum { OTHERS = 128 };
    struct rlimit limit;
    rlim_t need = (rlim_t)ranks * (2 * RANKLOG_STREAMS + 3) + OTHERS;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < need) {
        limit.rlim_cur = need < limit.rlim_max ? need : limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* ---- ends ---------------------------------------------------------------- */

/* The keeper could not start it. */
static void end_refused(struct ranks *r, uint32_t local_rank,
                        const struct keeper_packet *why)
{
    int exec_errno = why->exec_errno != 0 ? why->exec_errno : EINVAL;
    r->list[local_rank].state = RANK_OVER;
    input_ended(r->input, local_rank);
    hangwatch_ended(r->watch, local_rank);
    rankexits_add_refused(&r->exits, r->launch->first_rank + local_rank,
                          rankstart_sharpen(&r->start, exec_errno), why->text);
}

/* The one place where the end of a rank that ran is told. */
static void end_rank(struct ranks *r, uint32_t local_rank,
                     const struct keeper_packet *end)
{
    struct rank *rank = &r->list[local_rank];
    uint64_t ran_ms =
        end->at_ms > rank->started_ms ? end->at_ms - rank->started_ms : 0;
    rank->state = RANK_OVER;
    input_ended(r->input, local_rank);
    struct rankend told = {
        .status = end->status,
        .pid = rank->pid,
        .ran_ms = ran_ms,
        .cpu_ms = end->cpu_ms,
        .rss_bytes = end->rss_bytes,
        .is_out_of_memory = end->is_out_of_memory,
    };
    if (rank->metric > 0) {
        metric_read(told.metric, rank->metric);
        hangwatch_pace(r->watch, local_rank, &told.steps, &told.steps_ms);
        close_metric(rank);
    }
    hangwatch_ended(r->watch, local_rank);
    rankexits_add_ended(&r->exits, r->launch, local_rank, &told);
}

/* ---- starting ------------------------------------------------------------ */

/* Read what the rank writes and how it beats, and write what it reads. A pipe
 * that cannot be read closes, and the rank sees that. */
static void add_pipes(struct ranks *r, uint32_t local_rank, const int *kept,
                      size_t kept_count, bool has_input, bool is_adopted)
{
    bool has_beats = r->launch->input.beat_fd > 0;
    if (has_input && kept_count > 0) {
        input_add(r->input, local_rank, kept[--kept_count]);
    }
    for (size_t i = 0; i < kept_count; i++) {
        if (i < RANKLOG_STREAMS) {
            output_add(r->output, local_rank, (enum ranklog_stream)i, kept[i],
                       NULL);
        } else if (i == RANKLOG_STREAMS && has_beats) {
            hangwatch_add(r->watch, local_rank, kept[i], is_adopted);
        } else if (r->launch->input.metric_fd > 0 &&
                   r->list[local_rank].metric == 0) {
            r->list[local_rank].metric = kept[i];
        } else {
            close(kept[i]);
        }
    }
}

/* Before the first START. */
static int begin(struct ranks *r, const struct ranks_begin *begin,
                 struct gpul_error *err)
{
    if (r->has_begun) {
        return 0;
    }
    struct keeper_packet packet = {
        .type = KEEPER_BEGIN,
        .generation = begin->generation,
        .attempt = begin->attempt,
        .first_rank = r->launch->first_rank,
        .rank_count = r->count,
        .grace_ms = begin->grace_ms,
        .orphan_ms = begin->orphan_ms,
    };
    snprintf(packet.text, sizeof(packet.text), "%s", begin->job->job_id);
    int rc = keeperlink_send(r->keeper, &packet, NULL, 0, err);
    r->has_begun = rc == 0;
    return rc;
}

/* Without a keeper nothing is to be said of a rank: the node is lost. */
static void send_start(struct ranks *r, uint32_t local_rank,
                       const struct ranks_begin *all, struct rankstart_fds *fds)
{
    struct gpul_error err;
    int rc = begin(r, all, &err);
    if (rc == 0) {
        rc = keeperlink_start(r->keeper, local_rank, &r->start.spec, fds->child,
                              fds->child_count, fds->kept, fds->kept_count,
                              fds->has_input, &err);
    }
    if (rc == GPUL_ECLOSED) {
        r->is_orphaned = true;
    } else if (rc != 0) {
        rankstart_refuse(&r->start, errno, err.text);
    } else {
        r->list[local_rank].state = RANK_OURS;
        r->list[local_rank].started_ms = gpul_clock_ms();
        add_pipes(r, local_rank, fds->kept, fds->kept_count, fds->has_input,
                  false);
        fds->kept_count = 0;
    }
    rankstart_close(fds);
}

static void start_rank(struct ranks *r, uint32_t local_rank,
                       const struct ranks_begin *all)
{
    struct rankstart *s = &r->start;
    struct rankstart_fds fds;
    uint32_t rank = r->launch->first_rank + local_rank;
    uint16_t own_port = (uint16_t)(r->launch->port_base + local_rank);
    if (s->exec_errno == 0 && !ports_check_free(own_port)) {
        r->list[local_rank].state = RANK_OVER;
        rankexits_add_port_taken(&r->exits, rank, own_port);
        return;
    }
    bool reads_input = input_is_for(all->job, rank);
    if (s->exec_errno == 0 &&
        rankstart_make(s, local_rank, reads_input, &fds)) {
        send_start(r, local_rank, all, &fds);
    }
    if (s->exec_errno != 0) {
        r->list[local_rank].state = RANK_OVER;
        rankexits_add_refused(&r->exits, rank, s->exec_errno, s->why_not);
    }
}

/* A held rank is ours from now on. */
static void adopt(struct ranks *r, uint32_t local_rank)
{
    struct rank *rank = &r->list[local_rank];
    rank->state = RANK_OURS;
    add_pipes(r, local_rank, rank->kept, rank->kept_count, rank->has_input,
              true);
    rank->kept_count = 0;
    hangwatch_started(r->watch, local_rank, rank->last.pid);
    if (rank->last.type == KEEPER_EXIT) {
        end_rank(r, local_rank, &rank->last);
    } else if (rank->last.pid == 0) {
        end_refused(r, local_rank, &rank->last);
    }
}

/* A rank whose output nobody reads stands still once its pipe is full, and one
 * whose input nobody ends waits for ever. */
static int check_held(const struct ranks *r, struct gpul_error *err)
{
    uint32_t n = r->without_pipes;
    return n == 0 ? 0
                  : gpul_fail(err, GPUL_ELIMIT,
                              "its new agent cannot take over the pipes of %u "
                              "rank%s: too many open files; raise ulimit -n",
                              n, n == 1 ? "" : "s");
}

int ranks_start(struct ranks *r, const struct launch *launch,
                const struct ranks_begin *all, struct gpul_error *err)
{
    bool are_held =
        ranks_are_held(r, all->generation) && r->count == launch->rank_count;
    int rc = are_held ? check_held(r, err)
                      : make_room(r, launch->rank_count, false, err);
    if (rc == 0) {
        rc = input_begin(r->input, all->generation, all->job,
                         launch->first_rank, launch->rank_count, err);
    }
    if (rc != 0) {
        return rc;
    }
    r->launch = launch;
    r->held_generation = 0;
    rankstart_begin(&r->start, launch, r->logs);
    hangwatch_begin(r->watch, all->job->hang, launch);
    raise_descriptor_limit(r->count);
    /* Without the folder torch says so, and its exception stays unread. */
    ranklogs_expect_errors(r->logs, launch->first_rank, r->count, NULL);
    for (uint32_t i = 0; i < r->count && !r->is_orphaned; i++) {
        if (r->list[i].state == RANK_HELD) {
            adopt(r, i);
        } else if (!r->is_stopping) {
            start_rank(r, i, all);
        }
    }
    input_started(r->input);
    return 0;
}

int ranks_fail(struct ranks *r, const Gpul__Assign *assign,
               const struct gpul_error *why, struct gpul_error *err)
{
    int exec_errno = why->status == GPUL_ELIMIT   ? E2BIG
                     : why->status == GPUL_ENOMEM ? ENOMEM
                                                  : EINVAL;
    int rc = make_room(r, assign->rank_count, false, err);
    if (rc != 0) {
        return rc;
    }
    for (uint32_t i = 0; i < assign->rank_count; i++) {
        rankexits_add_refused(&r->exits, assign->first_rank + i, exec_errno,
                              why->text);
    }
    return 0;
}

/* ---- what the keeper says ------------------------------------------------ */

int ranks_hold(struct ranks *r, const struct keeper_packet *state,
               struct gpul_error *err)
{
    if (state->generation == 0 || state->rank_count == 0 ||
        state->rank_count > GPUL_RANKS_PER_NODE_MAX) {
        return 0;
    }
    int rc = make_room(r, state->rank_count, true, err);
    if (rc == 0) {
        raise_descriptor_limit(r->count);
        r->has_begun = true;
        r->held_generation = state->generation;
        r->is_stopping = state->signal != 0;
    }
    return rc;
}

bool ranks_are_held(const struct ranks *r, uint32_t generation)
{
    return r->held_generation != 0 && r->held_generation == generation;
}

static void on_held(struct ranks *r, struct rank *rank,
                    struct keeper_mail *mail)
{
    if (rank->state != RANK_FREE || r->held_generation == 0) {
        return;
    }
    rank->state = RANK_HELD;
    rank->started_ms = mail->packet.at_ms;
    rank->pid = mail->packet.pid;
    rank->last = mail->packet;
    rank->has_input = mail->packet.has_input;
    r->without_pipes += mail->fd_count < mail->packet.kept_fds ? 1 : 0;
    while (mail->fd_count > KEEPER_KEPT_FDS_MAX) {
        close(mail->fds[--mail->fd_count]);
    }
    rank->kept_count = mail->fd_count;
    memcpy(rank->kept, mail->fds, mail->fd_count * sizeof(*mail->fds));
    mail->fd_count = 0;
}

static void on_started(struct ranks *r, struct rank *rank,
                       const struct keeper_packet *p)
{
    if (rank->state != RANK_OURS) {
        return;
    }
    rank->started_ms = p->at_ms != 0 ? p->at_ms : rank->started_ms;
    rank->pid = p->pid;
    hangwatch_started(r->watch, p->slot, p->pid);
    if (p->pid == 0) {
        end_refused(r, p->slot, p);
    }
}

static void on_exit_of(struct ranks *r, struct rank *rank,
                       const struct keeper_packet *p)
{
    if (rank->state == RANK_OURS) {
        end_rank(r, p->slot, p);
    } else if (rank->state == RANK_HELD) {
        rank->last = *p;
    }
}

void ranks_take_mail(struct ranks *r, struct keeper_mail *mail)
{
    const struct keeper_packet *p = &mail->packet;
    if (p->slot < r->count) {
        struct rank *rank = &r->list[p->slot];
        if (p->type == KEEPER_RANK) {
            on_held(r, rank, mail);
        } else if (p->type == KEEPER_STARTED) {
            on_started(r, rank, p);
        } else if (p->type == KEEPER_EXIT) {
            on_exit_of(r, rank, p);
        }
    }
    keeperwire_close_fds(mail);
}
