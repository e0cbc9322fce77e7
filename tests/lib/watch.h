/* SPDX-License-Identifier: Apache-2.0
 *
 * Judges a cluster from outside, step by step: what must never happen, and
 * what the end must be. It sees only what goes over the wires, in both
 * directions, and works out by itself what decides the job. A broken rule
 * prints the seed and ends the process.
 */
#ifndef TESTS_LIB_WATCH_H
#define TESTS_LIB_WATCH_H

#include "common/rolemap.h"
#include "tests/lib/cluster.h"

#define WATCH_NO_CONN UINT32_MAX

/* One double, as seen through its connections. */
struct watch_node {
    uint32_t conn; /* that was welcomed, WATCH_NO_CONN: none */
    uint32_t first_rank;
    uint32_t rank_count; /* 0: no place yet */
    uint64_t heard_ms;   /* when it last said something */
    uint64_t instance;   /* with which it was welcomed */
    bool is_ready;
    bool has_linked; /* it has dialled the others */
    bool has_told;   /* its result on host memory */
    bool is_idle;
    bool reads_input;     /* its ranks may still */
    uint64_t input_taken; /* bytes that it has given credit for */
    bool is_away;
    bool is_gone;     /* the front end told so while it was still here */
    uint64_t away_ms; /* since when */
    uint32_t attach;  /* number of its agent */
};

enum { WATCH_DEVICES_MAX = 512, WATCH_IDS_MAX = 8 };

/* The self-test on GPUs, see watchprobes.h. */
struct watch_probes {
    uint32_t gpuless_count; /* nodes that reported no GPU */
    uint32_t fact_count;    /* scouts heard */
    uint32_t device_count;
    char uuids[WATCH_DEVICES_MAX][32];
    char version[32];
    bool is_unusable;
    bool has_versions; /* several */
    bool has_twins;
    bool has_one_id;
    bool has_no_split;
    bool falls_back; /* to host memory */

    uint32_t world_size; /* 0: no ProbeBegin yet */
    uint32_t begin_count;
    uint32_t next_rank;
    uint32_t id_count;
    bool has_id[WATCH_IDS_MAX];
    uint8_t ids[WATCH_IDS_MAX][128];
    bool has_sent_ids;
    bool is_good[WATCH_DEVICES_MAX];
    uint32_t good_count;
};

struct watch {
    uint64_t seed;
    struct watch_node *nodes; /* by the double's index */
    uint32_t *first_ranks;    /* by node rank, of generation 1 */
    bool *rank_ended;
    struct gpul_rolemap roles;

    uint32_t generation;
    uint32_t next_rank; /* while places are given out */
    uint32_t assigned;  /* nodes with a place in this generation */
    uint32_t world_size;
    uint32_t ready;
    uint32_t linked;
    uint32_t told;
    uint32_t members;
    uint32_t deciders_left;
    bool is_launched;
    bool is_restarting;
    bool has_retried;
    uint64_t input_bytes; /* that the front end has sent */
    bool has_launched;    /* in any generation */
    bool is_doomed;       /* a node is away: this generation comes to nothing */
    uint32_t anew;        /* generations that were begun so */
    uint32_t returns;     /* of nodes while their ranks ran */
    uint32_t stall_reports;
    bool has_ended;    /* JobEnd was told */
    bool has_finished; /* Finish was sent */
    /* The step being taken. */
    bool is_tick;
    bool is_hello;
    uint32_t attach; /* that it says; its agent may have died meanwhile */
    uint64_t instance;
    uint32_t held_generation;
    uint32_t hello_conn;
    const struct fake_node *dropped; /* whose connection was closed in it */
    uint64_t dropped_instance;       /* as it was then; it may dial again */

    struct watch_probes probes;
    bool is_suspicious; /* a probe told of another's end */

    bool is_decided;
    bool is_by_time; /* decided at a tick: by which deadline is not known */
    uint32_t expected_code;
};

/* Judge `c` from now on: after the nodes are described, before the start. */
void watch_init(struct watch *w, struct cluster *c, uint64_t seed);
void watch_release(struct watch *w);

/* Called by the cluster; nothing happens without a watch. */
void watch_before(struct cluster *c, const struct rendezvous_event *event);
void watch_sent(struct cluster *c, const struct sim_link *link,
                const Gpul__Frame *frame);
void watch_told(struct cluster *c, const Gpul__Frame *frame);
void watch_closed(struct cluster *c, uint32_t conn);
void watch_after(struct cluster *c, const struct rendezvous_event *event);

/* ---- for its parts ---- */

#define WATCH_RULE(c, holds, what)                                             \
    do {                                                                       \
        if (!(holds)) {                                                        \
            watch_broken(c, what);                                             \
        }                                                                      \
    } while (0)

void watch_broken(const struct cluster *c, const char *what);

/* The job ends by this code, unless something came before. */
void watch_decide(struct watch *w, uint32_t code);

/* Time enough has passed: the job must have ended, once, and rightly. */
void watch_end(struct cluster *c);

#endif
