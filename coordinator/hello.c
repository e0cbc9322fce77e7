/* SPDX-License-Identifier: Apache-2.0
 *
 * Who gets in: a Hello is judged against the job, in a fixed order, and the
 * first rule it breaks is the reason it is refused for.
 */
#include <string.h>

#include "common/units.h"
#include "coordinator/core.h"

struct refusal {
    Gpul__Refuse__Reason reason; /* NONE: let it in */
    struct text text;
};

#define REFUSE(refusal, why, ...)                                              \
    do {                                                                       \
        (refusal)->reason = GPUL__REFUSE__REASON__##why;                       \
        text_format(&(refusal)->text, __VA_ARGS__);                            \
    } while (0)

static uint32_t common_version(const Gpul__Hello *hello)
{
    uint32_t highest = hello->protocol_max < GPUL_PROTOCOL ? hello->protocol_max
                                                           : GPUL_PROTOCOL;
    uint32_t lowest = hello->protocol_min > GPUL_PROTOCOL_MIN
                          ? hello->protocol_min
                          : GPUL_PROTOCOL_MIN;
    return highest >= lowest ? highest : 0;
}

/* The name of its key is the only one that it may have. */
static bool is_own_name(const struct peer *peer, const char *name)
{
    return peer->name == NULL || strcmp(peer->name, name) == 0;
}

/* Is this a node of our job that speaks our language, now? */
static void judge_peer(struct refusal *out, const struct rendezvous *r,
                       uint32_t conn, const Gpul__Frame *frame)
{
    const Gpul__Hello *hello = frame->hello;
    const struct peer *peer = &r->peers[conn];
    if (!is_own_name(peer, hello->node_name)) {
        REFUSE(out, WRONG_NAME,
               "a node from %s calls itself %s and has shown the key of %s; "
               "a key is good for one name only",
               peer->address, hello->node_name, peer->name);
    } else if (strcmp(hello->job_id, r->job.job_id) != 0) {
        REFUSE(out, WRONG_JOB,
               "node %s belongs to job %s and this coordinator runs job %s",
               hello->node_name, hello->job_id, r->job.job_id);
    } else if (common_version(hello) == 0) {
        REFUSE(out, VERSION,
               "node %s (gpulaunch-worker %s) speaks protocol %u to %u, this "
               "coordinator (%s) %u to %u; install the same release on both",
               hello->node_name, hello->version, hello->protocol_min,
               hello->protocol_max, r->config.version, GPUL_PROTOCOL_MIN,
               GPUL_PROTOCOL);
    } else if ((frame->epoch != 0 && frame->epoch != r->config.epoch) ||
               (frame->generation != 0 && frame->generation != r->generation)) {
        REFUSE(out, STALE,
               "node %s comes from epoch %u, generation %u and the job is at "
               "epoch %u, generation %u",
               hello->node_name, frame->epoch, frame->generation,
               r->config.epoch, r->generation);
    }
}

/* An agent of a node that was lost, or has had its end: that was told. */
static bool is_old_news(const struct node *node, const struct refusal *refusal,
                        const Gpul__Hello *hello)
{
    return refusal->reason == GPUL__REFUSE__REASON__JOB_OVER && node != NULL &&
           node->hostname != NULL && node->instance == hello->instance;
}

static bool is_same_agent(const struct node *node, const Gpul__Hello *hello)
{
    return node_is_here(node) && node->instance == hello->instance;
}

/* Is the place of this name free? */
static void judge_place(struct refusal *out, const struct rendezvous *r,
                        const struct node *node, uint32_t conn,
                        const Gpul__Hello *hello)
{
    if (r->phase >= PHASE_DRAINING) {
        REFUSE(out, JOB_OVER, "node %s came when the job had ended",
               hello->node_name);
    } else if (node == NULL && r->roster.was_open) {
        if (!r->roster.is_open) {
            REFUSE(out, SURPLUS,
                   "node %s from %s is one too many: job %s has its %u node%s "
                   "already",
                   hello->node_name, r->peers[conn].address, r->job.job_id,
                   r->roster.count, gpul_plural(r->roster.count));
        }
    } else if (node == NULL) {
        REFUSE(out, UNKNOWN_NAME,
               "no node of the name %s is expected in job %s", hello->node_name,
               r->job.job_id);
    } else if (node_is_here(node) && !is_same_agent(node, hello)) {
        REFUSE(out, DUPLICATE_NAME,
               "a second node of the name %s came from %s while the first, "
               "from %s, is there; give each its own name",
               node->name, r->peers[conn].address,
               r->peers[node->conn].address);
    } else if (node->is_away) {
        REFUSE(out, DUPLICATE_NAME,
               "a second node of the name %s came from %s while the first, "
               "from %s, is away for a moment; give each its own name",
               node->name, r->peers[conn].address, node->address);
    } else if (r->phase != PHASE_GATHERING) {
        REFUSE(out, TOO_LATE,
               "node %s came too late: the job has gone on to %s", node->name,
               phase_name(r->phase));
    }
}

static void welcome_node(struct rendezvous *r, const struct node *node,
                         const Gpul__Hello *hello)
{
    Gpul__Welcome welcome = GPUL__WELCOME__INIT;
    welcome.protocol = common_version(hello);
    welcome.version = wire_text(r->config.version);
    welcome.heartbeat_ms = GPUL_HEARTBEAT_MS;
    welcome.lease_ms = GPUL_LEASE_MS;
    Gpul__Frame frame = core_frame(r);
    frame.body_case = GPUL__FRAME__BODY_WELCOME;
    frame.welcome = &welcome;
    core_send(r, node, &frame);
    outbox_allow(&r->out, node->conn,
                 GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_HEARTBEAT) |
                     GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_NOTICE) |
                     GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_LEAVE));
}

static void tell_joined(struct rendezvous *r, const struct node *node)
{
    core_tell_member(r, GPUL__EVENT__KIND__NODE_JOINED, node, "");
    outbox_log(&r->out, false, "joined %s from %s", node->name,
               r->peers[node->conn].address);
}

bool hello_let_in(struct rendezvous *r, uint32_t conn, struct node *node,
                  const Gpul__Hello *hello)
{
    if (roster_join(&r->roster, node, conn, hello) != 0) {
        outbox_fail(&r->out, GPUL_ENOMEM, "out of memory for a node");
        return false;
    }
    r->peers[conn].node = node;
    guests_leave(&r->guests, conn);
    peers_expect(r, conn, GPUL_LEASE_MS);
    welcome_node(r, node, hello);
    return true;
}

/* Every place of an open roster is taken: now their order is known. */
static void close_roster(struct rendezvous *r)
{
    roster_close(&r->roster);
    for (uint32_t i = 0; i < r->roster.count; i++) {
        struct node *node = &r->roster.nodes[i];
        r->peers[node->conn].node = node;
    }
}

/* `node`: of that name, NULL: there is none yet. */
static void admit(struct rendezvous *r, uint32_t conn, struct node *node,
                  const Gpul__Hello *hello)
{
    if (node == NULL) {
        node = roster_add(&r->roster, hello->node_name);
        if (node == NULL) {
            outbox_fail(&r->out, GPUL_ENOMEM, "out of memory for a node");
            return;
        }
    }
    if (node_is_here(node)) {
        /* The same agent dialled again: its old connection is dead. */
        uint32_t old = node->conn;
        roster_leave(&r->roster, node);
        peers_end(r, old);
    }
    if (!hello_let_in(r, conn, node, hello)) {
        return;
    }
    tell_joined(r, node);
    r->pending = r->roster.count - r->roster.joined;
    if (r->pending == 0) {
        if (r->roster.is_open) {
            close_roster(r);
        }
        placing_begin(r, "every node is here");
    }
}

void hello_judge(struct rendezvous *r, uint32_t conn, const Gpul__Frame *frame)
{
    const Gpul__Hello *hello = frame->hello;
    struct node *node = roster_find(&r->roster, hello->node_name);
    struct refusal refusal = {.reason = GPUL__REFUSE__REASON__NONE};
    bool is_back = node != NULL && away_may_end(r, node, hello);
    judge_peer(&refusal, r, conn, frame);
    if (refusal.reason == GPUL__REFUSE__REASON__NONE && !is_back) {
        judge_place(&refusal, r, node, conn, hello);
    }
    if (is_old_news(node, &refusal, hello)) {
        peers_turn_away(r, conn, refusal.reason, refusal.text.bytes);
    } else if (refusal.reason != GPUL__REFUSE__REASON__NONE) {
        peers_refuse(r, conn, refusal.reason, refusal.text.bytes);
    } else if (is_back) {
        away_end(r, conn, node, hello);
    } else {
        admit(r, conn, node, hello);
    }
}
