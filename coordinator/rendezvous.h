/* SPDX-License-Identifier: Apache-2.0
 *
 * The coordinator's mind: what happened goes in, what to do comes out. Pure.
 *
 * The edge feeds every event to rendezvous_step with the time at which it was
 * seen, does what the returned actions say, in order, and calls again with a
 * TICK when rendezvous_next_deadline_ms has passed. docs/protocol.md is the
 * story that this machine tells; `coordinator/phase.h` draws its phases.
 *
 * Cost: O(log n) for each event of a node; O(n) only when a phase ends or
 * something is said to all nodes. Memory is bounded by the number of nodes
 * and ranks in the Job and by proto/limits.h.
 */
#ifndef COORDINATOR_RENDEZVOUS_H
#define COORDINATOR_RENDEZVOUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "proto/message.h"

struct rendezvous;

struct rendezvous_config {
    uint32_t epoch;      /* start number of this coordinator, from 1 */
    uint64_t seed;       /* of the ring's tokens: nobody may guess it */
    const char *version; /* of the program; borrowed for ever */
};

/* What may have happened. */
enum rendezvous_event_kind {
    /* A connection came in: `conn`, `text` = the peer's address, `name` = the
     * node whose key it has shown (NULL: keys are not asked for). */
    RENDEZVOUS_PEER_OPENED = 1,
    /* `conn` is gone; `text` = what broke it, NULL if the peer closed it.
     * Not for connections that a CLOSE action ended. */
    RENDEZVOUS_PEER_CLOSED,
    RENDEZVOUS_PEER_MESSAGE, /* `conn` sent `frame` */
    RENDEZVOUS_OPERATOR_MESSAGE,
    RENDEZVOUS_OPERATOR_CLOSED,
    RENDEZVOUS_NOTICE, /* `text` is for the user to know */
    /* Since the start `count` connections were closed that did not show the
     * job's key; `text` says what they were. */
    RENDEZVOUS_STRANGERS,
    RENDEZVOUS_TICK, /* nothing but time passing */
};

/* All pointers are borrowed for the call. */
struct rendezvous_event {
    enum rendezvous_event_kind kind;
    uint64_t now_ms;  /* of a clock that never goes back */
    uint64_t real_ns; /* CLOCK_REALTIME then */
    /* Chosen by the edge, below the limit of the LISTEN action; may be used
     * again once the connection is closed. */
    uint32_t conn;
    uint64_t count;
    const char *text;
    const char *name;
    const Gpul__Frame *frame; /* as gpul_message_decode lets it pass */
};

/* What to do about it. */
enum rendezvous_action_kind {
    /* Accept connections for the job whose id is `text`, at most `limit` at a
     * time. */
    RENDEZVOUS_LISTEN = 1,
    RENDEZVOUS_SEND,      /* `bytes` to `conn` */
    RENDEZVOUS_SEND_MANY, /* the same `bytes` to each of `conns` */
    RENDEZVOUS_SEND_OPERATOR,
    RENDEZVOUS_ALLOW,  /* `conn` may send the messages of `mask` from now on */
    RENDEZVOUS_CLOSE,  /* end `conn`, after what is queued was written */
    RENDEZVOUS_LOG,    /* `text`, a fault or a detail for -v */
    RENDEZVOUS_FINISH, /* leave with `exit_code`; no event is wanted any more */
};

/* Which members count depends on the kind, see above. Pointers stay valid
 * until the next step. */
struct rendezvous_action {
    enum rendezvous_action_kind kind;
    uint32_t conn;
    const uint8_t *bytes; /* whole frames, with their prefix */
    size_t byte_count;
    const uint32_t *conns;
    size_t conn_count;
    uint64_t mask;
    uint32_t limit;
    const char *text;
    bool is_fault;
    int exit_code;
};

struct rendezvous_actions {
    const struct rendezvous_action *items;
    size_t count;
};

/* Returns 0 with *out (to be destroyed by the caller), or GPUL_ENOMEM. */
int rendezvous_create(struct rendezvous **out,
                      const struct rendezvous_config *config, uint64_t now_ms,
                      struct gpul_error *err);

/* NULL is fine. */
void rendezvous_destroy(struct rendezvous *r);

/* Take one event. Returns 0 with the actions, owned by `r`. On failure
 * (GPUL_ENOMEM; GPUL_ELIMIT, a frame of ours over its maximum) there are no
 * actions and `r` can only be destroyed. Nothing a peer or the front end
 * sends makes it fail otherwise. */
int rendezvous_step(struct rendezvous *r, struct rendezvous_actions *actions,
                    const struct rendezvous_event *event,
                    struct gpul_error *err);

/* When a TICK is wanted, UINT64_MAX if never. It may come early. */
uint64_t rendezvous_next_deadline_ms(const struct rendezvous *r);

/* Assert every invariant of the state: O(nodes), for tests and fuzzing. */
void rendezvous_check(const struct rendezvous *r);

#endif
