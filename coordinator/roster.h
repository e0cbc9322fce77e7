/* SPDX-License-Identifier: Apache-2.0
 *
 * The nodes of the job, in node-rank order: who is expected, who is here, on
 * which connection, and what is known of each. Pure.
 *
 * The order is fixed before anybody has joined, so the same members get the
 * same ranks whatever the order of their arrival. A roster may be open
 * instead: no name is known beforehand, each place goes to the next node that
 * asks, whatever its name, and is free again when that leaves. Once all places
 * are taken it is closed, which puts the nodes in the natural order of their
 * names; from then on it is as any other.
 */
#ifndef COORDINATOR_ROSTER_H
#define COORDINATOR_ROSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "proto/message.h"

#define NO_CONN UINT32_MAX

struct node {
    const char *name; /* owned; NULL: a place of an open roster is free */
    /* What the Hello said; one block, NULL until the first one. It outlives
     * the connection, so that a lost node can be named with its host. */
    char *hostname;
    char *boot_id;
    char *address;      /* or of link_address, once that is there */
    char *link_address; /* owned; by which all others reach it, or NULL */
    uint64_t network_namespace; /* 0: unknown */
    /* What the front end says of a worker that has ended, NULL: nothing. */
    char *last_words;
    uint32_t gone_why; /* gpul.NodeGone.Why, with last_words */
    uint64_t instance; /* of its keeper */
    uint32_t attach;   /* number of its keeper's agent */
    uint32_t gpus;
    uint32_t conn; /* NO_CONN: not here */

    /* The place in the generation, see assign.h. */
    uint32_t first_rank;
    uint32_t rank_count;
    uint32_t host_rank_count;
    uint32_t host_node_index;
    uint32_t host_node_count;
    uint32_t port_base;  /* 0 until Ready */
    uint32_t probe_port; /* 0 until ProbeListening */
    char *probe_address; /* where it is not `address` */

    uint32_t ranks_left;       /* not ended, or not reported yet */
    uint64_t uncredited_bytes; /* of Output, relayed and not credited */
    uint64_t orphan_bytes;     /* the same of connections that are gone */
    bool has_answered;         /* what the phase waits for */
    bool is_idle;              /* nothing of this generation is alive there */
    bool is_resuming;          /* idle, but its next agent has not said so */
    bool is_away;              /* not here, and waited for */
    bool is_away_told;         /* for so long that the user knows */
    bool has_accounted;        /* it left, and said what is left there */
};

struct roster {
    struct node *nodes;
    struct node **by_name; /* sorted, for the look-up */
    uint32_t count;
    uint32_t joined; /* nodes with a connection */
    uint32_t named;  /* in by_name: `count`, or fewer while it is open */
    uint32_t host_count;
    bool is_spread; /* over several hosts, or network namespaces of one */
    bool is_open;
    bool was_open; /* or is */
};

/* Expect the nodes named by host-list expressions, in the order given or in
 * natural order; without an expression the roster is open, with node_count
 * places. On failure it is empty. Errors: GPUL_EINVAL with a sentence (a bad
 * expression, a name twice, not node_count names), GPUL_ENOMEM. */
int roster_init(struct roster *r, const Gpul__Job *job, struct gpul_error *err);

/* An all-zero roster may be released too. */
void roster_release(struct roster *r);

/* The expected node of this name, or NULL. */
struct node *roster_find(const struct roster *r, const char *name);

uint32_t roster_index(const struct roster *r, const struct node *node);

/* A free place of an open roster for this name, which is new; NULL: out of
 * memory. Pointers to other nodes stay good. */
struct node *roster_add(struct roster *r, const char *name);

/* Its place is free again, and nothing is known of it. The roster is open, and
 * the node not here. */
void roster_remove(struct roster *r, struct node *node);

/* No place is free: put the nodes in order. A pointer to a node means another
 * one afterwards. */
void roster_close(struct roster *r);

/* Put a node on a connection and keep what it says of itself. Returns 0, or
 * GPUL_ENOMEM and nothing changed. */
int roster_join(struct roster *r, struct node *node, uint32_t conn,
                const Gpul__Hello *hello);

/* The address by which all others reach it. Returns 0 or GPUL_ENOMEM. */
int roster_set_address(struct node *node, const char *address);

/* Take the node off its connection. */
void roster_leave(struct roster *r, struct node *node);

/* The connections of all members into `conns` (room for `joined`). */
void roster_conns(const struct roster *r, uint32_t *conns);

bool node_is_here(const struct node *node);

/* The host's name as the node told it, "" before its first Hello. */
const char *node_hostname(const struct node *node);

/* Do both run on one host (name and boot id)? */
bool node_shares_host(const struct node *a, const struct node *b);

bool node_has_rank(const struct node *node, uint32_t rank);

#endif
