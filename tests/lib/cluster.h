/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole job in one process and virtual time: the real rendezvous, doubles
 * of the agents and of the front end, and wires between them that carry the
 * very bytes of the protocol, in order, each with a delay.
 *
 * A test describes the nodes, adds what goes wrong, runs the cluster, and
 * compares the trace or lets the watch (watch.h) judge every step.
 */
#ifndef TESTS_LIB_CLUSTER_H
#define TESTS_LIB_CLUSTER_H

#include "common/buf.h"
#include "common/rng.h"
#include "coordinator/rendezvous.h"
#include "tests/lib/simqueue.h"

/* What a rank does. */
struct rank_plan {
    uint64_t run_ms;
    uint32_t code;
    uint32_t signal;
    uint32_t exec_errno;
    bool is_bind_error;
    bool runs_for_ever; /* until it is stopped */
    uint32_t output_bytes;
    uint64_t stall_ms; /* 0: never; it stalls then, for so long */
    uint64_t stalls_for_ms;
};

/* What a probe on a GPU does at a step: pass it, the first ones. */
enum fake_fault {
    FAKE_WELL,
    FAKE_LIES,    /* it names a rank of another node */
    FAKE_REPENTS, /* it tells of another's end, and goes on all the same */
    FAKE_REPEATS, /* it gives its unique ID twice */
    FAKE_HANGS,   /* it goes no further, and says how it is from time to time */
    FAKE_SILENT,  /* nothing more is heard of it */
    FAKE_DIES,    /* its agent tells of a signal */
    FAKE_REMOTE,  /* it tells of another's end */
    FAKE_WRONG,   /* its data is wrong */
};

enum { FAKE_PROBES_MAX = 8 };

struct fake_probe {
    enum fake_fault fault;
    uint32_t at;       /* enum probes_step at which it happens */
    uint64_t after_ms; /* and how much later than the step would be */
    /* HANGS: what it says, or its agent of it. */
    Gpul__ProbePhase__State state;
    uint32_t progress;
};

/* An address of a node. Those with one index are on one network. */
struct fake_link {
    const char *name;
    const char *address;
    uint32_t mbits;
    bool is_rdma;
    bool is_tunnel;
    uint64_t cut_for; /* bits: node ranks that do not reach it */
    Gpul__LinkFailure__Kind kind;
    uint32_t answered_by;
};

enum { FAKE_LINKS_MAX = 3 };

enum fake_timer {
    FAKE_BEAT,
    FAKE_READY,
    FAKE_SURVEY, /* its facts are known */
    FAKE_LINKS,  /* its candidates are open */
    FAKE_DIALED,
    FAKE_FACTS,
    FAKE_LISTENING,
    FAKE_RESULT,
    FAKE_PAIRS, /* its probe of the pair trials listens */
    FAKE_TRIAL,
    FAKE_PAIRS_OVER,
    FAKE_STOPPED, /* what is left of its ranks has ended */
    FAKE_IDLE,
    FAKE_INPUT, /* its ranks take what input has come */
};

enum fake_state {
    FAKE_AWAY, /* not there: before dialling, after leaving or dying */
    FAKE_HELLO,
    FAKE_MEMBER,
    FAKE_ASSIGNED,
    FAKE_RUNNING,
    FAKE_STOPPING,
};

struct cluster;

/* One agent: first how it behaves, then its state. */
struct fake_node {
    const char *name;
    const char *job_id;
    const char *hostname;
    const char *boot_id;
    const char *address;
    uint64_t network_namespace;
    struct fake_link links[FAKE_LINKS_MAX]; /* the first `link_count` */
    uint32_t link_count;                    /* 0: eth0 with `address` */
    const char *link_error;
    const char *link_rejection; /* of its docker0 */
    bool never_surveys;
    bool never_pongs;
    uint64_t survey_ms;
    uint64_t clock_ahead_ms;
    bool never_links;
    bool never_dials_links;
    bool lies_about_links;
    uint64_t instance;
    uint32_t protocol_min;
    uint32_t protocol_max;
    uint32_t gpus;
    uint64_t dial_ms;
    bool never_dials;
    uint64_t ready_ms; /* from Assign to Ready, and so on */
    uint64_t listen_ms;
    uint64_t probe_ms;
    uint64_t probe_ns; /* median of its all-reduce */
    uint64_t stop_ms;  /* from Stop to the ranks' end */
    uint64_t take_ms;  /* from input to its credit */
    /* The self-test on GPUs: what its scout finds, what its probes do. */
    const char *nccl_version;
    uint32_t driver_version; /* 13000 */
    const char *scout_error;
    const char *finding; /* of its first device */
    const char *model;   /* of its devices */
    const char *refused; /* of CUDA_VISIBLE_DEVICES */
    uint32_t link_gbps;  /* NVLink of its devices; 0: unknown */
    uint32_t nics;       /* RDMA cards that are up */
    uint32_t nic_gbits;  /* of each; 0: unknown */
    const char *setting;
    Gpul__ProbePhase__State scout_state; /* it says this where it never ends */
    bool never_facts;
    bool never_ids;    /* its roots make none */
    bool is_double;    /* its libraries are */
    bool has_one_id;   /* several cannot be used */
    bool has_no_split; /* nor can a communicator be split */
    bool has_twin;     /* its first device is node 0's */
    bool reuses_id;    /* every root of it gives the same bytes */
    uint64_t step_ms;  /* from one step of a probe to the next */
    struct fake_probe probes[FAKE_PROBES_MAX]; /* more of them behave */

    /* Pair trials: GB/s at most, and what its probe does. */
    double pair_gbps;
    uint64_t trial_ms;
    const char *pair_error;  /* why it listens nowhere */
    bool never_pairs;        /* nothing is heard of it */
    uint32_t hangs_in_trial; /* this one, from 1; 0: none */
    uint32_t dies_in_trial;
    bool never_ends_pairs;

    const char *ready_error;
    const char *probe_error;
    bool probe_is_remote; /* that is of another probe's end */
    bool probe_repents;   /* and a good result follows */
    uint64_t wrong_elements;
    const char *notice;  /* said at Launch */
    const char *goodbye; /* a notice at Finish */
    const char *unclean; /* said with Idle */
    bool never_ready;
    bool never_listens;
    bool never_results;
    bool never_idle;
    bool never_reports;
    bool never_takes;    /* input */
    uint64_t lies_about; /* so much more input than it has taken */
    bool is_stale;       /* repeats an exit of the generation before */
    bool redials; /* a new agent comes when the connection was cut early */
    unsigned loses_welcome; /* so many-th, with its connection; 0: none */
    unsigned dies_at;       /* body case at whose arrival it dies, 0: none */
    bool dies_silently;     /* the connection stays, nothing moves */
    bool is_mute;           /* it has died so */
    uint64_t restart_ms;  /* from a crash of an agent to the next one's dial */
    bool leaves_silently; /* the agent says nothing when its keeper dies */

    /* What its keeper has. */
    bool is_dead;    /* it has died */
    uint32_t attach; /* number of its agent */
    uint32_t held_generation;
    uint64_t rank_kept; /* bits: ranks that ended, and how */
    struct rank_plan kept[64];

    enum fake_state state;
    struct sim_link *link;
    uint32_t generation;
    uint32_t node_rank;
    uint32_t first_rank;
    uint32_t rank_count;
    uint32_t ranks_alive;
    uint64_t rank_alive;  /* bits of the first 64 local ranks */
    uint32_t probe_first; /* self-test ranks: its first, of all, and IDs */
    uint32_t probe_world;
    bool sweeps_node; /* its probes were told to */
    uint32_t id_count;
    uint32_t trial; /* that it was ordered last, and with whom */
    uint32_t trial_peer;
    uint64_t credit_bytes;
    bool has_input; /* some has come; of this generation, and so on */
    uint64_t input_bytes;
    uint64_t input_credited;
    bool has_input_end;
    uint32_t last_signal; /* that was passed on to it */
    uint32_t stop_signal;
    uint32_t refusal; /* reason, 0: none */
};

/* One connection. */
struct sim_link {
    struct sim_link *next;
    uint32_t conn;
    uint32_t node;
    bool is_open_there;  /* in the eyes of the coordinator */
    bool is_open_here;   /* of the node */
    uint64_t last_up_ms; /* bytes arrive in order */
    uint64_t last_down_ms;
};

struct watch;

struct cluster {
    uint64_t now_ms;
    struct rendezvous *core;
    struct sim_queue queue;
    struct fake_node *nodes;
    uint32_t node_count;
    struct sim_link *links;
    struct sim_link **by_conn;
    uint32_t conn_limit; /* 0: not listening yet */
    uint32_t conn_used;
    uint32_t *free_conns;
    uint32_t free_count;

    Gpul__Job job; /* change it before cluster_start */
    Gpul__SelfTest self_test;
    Gpul__Sweep sweep;
    Gpul__Check check; /* see fake_check_begin */
    Gpul__Command command;
    Gpul__Environment environment;
    Gpul__InputTarget input_target; /* for job.input_target to point to */
    ProtobufCBinaryData argument;
    char *names; /* host-list expression */

    /* Delay of one message; NULL: 1 ms. */
    uint64_t (*delay_ms)(struct cluster *c);
    /* NULL: every rank runs for 100 ms and ends with 0. */
    struct rank_plan (*plan)(struct cluster *c, uint32_t rank,
                             uint32_t generation);
    /* GB/s of the path between two nodes, by their indices, 0: there is none.
     * NULL: as fast as the nodes are. */
    double (*path_gbps)(struct cluster *c, uint32_t from, uint32_t to);
    struct gpul_rng rng;
    void *arg;
    struct watch *watch; /* NULL: nobody judges */

    bool has_operator;
    bool gives_credit;
    uint64_t output_bytes; /* that reached the front end */
    uint64_t input_bytes;  /* that the front end has for the ranks */
    bool ends_input;       /* and then no more */
    uint64_t input_window; /* of the job, for the check */
    uint64_t input_granted;
    uint64_t input_sent;
    bool has_input_end;
    uint32_t report_count;
    uint32_t job_end_count;
    uint32_t exit_code;
    bool is_finished; /* FINISH was seen */
    int finish_code;

    bool is_traced;
    struct gpul_buf trace;
    uint64_t sent_bytes; /* coordinator to nodes */
    uint64_t step_count;
};

/* `count` nodes named `prefix`0 .. on one host, that all behave. */
void cluster_init(struct cluster *c, const char *prefix, uint32_t count,
                  uint32_t ranks_per_node);
void cluster_release(struct cluster *c);

/* One more agent, which the job does not expect, like that of `like` in all
 * but its instance; pointers to nodes from before are invalid. */
struct fake_node *cluster_add(struct cluster *c, uint32_t like);

/* The front end sends its Job; nodes dial as they like. */
void cluster_start(struct cluster *c);

/* Let time pass up to and including `until_ms`, or to FINISH. */
void cluster_run(struct cluster *c, uint64_t until_ms);

/* After FINISH: what was sent to the nodes arrives, and the end of their
 * connections; nothing else happens any more. */
void cluster_settle(struct cluster *c);

/* The front end says something, or goes, at `at_ms`. */
void cluster_operate(struct cluster *c, uint64_t at_ms,
                     const Gpul__Frame *frame);
void cluster_cancel(struct cluster *c, uint64_t at_ms, uint32_t signal,
                    bool is_immediate, bool is_timeout);
void cluster_signal(struct cluster *c, uint64_t at_ms, uint32_t signal);
void cluster_operator_leaves(struct cluster *c, uint64_t at_ms);

/* At a given time a node dies, keeper and agent; its agent only; its keeper.
 */
void cluster_kill(struct cluster *c, uint32_t node, uint64_t at_ms);
void cluster_crash(struct cluster *c, uint32_t node, uint64_t at_ms);
void cluster_kill_keeper(struct cluster *c, uint32_t node, uint64_t at_ms);

/* The front end tells that the processes of a node have ended. */
void cluster_tell_gone(struct cluster *c, uint32_t node, uint64_t at_ms);

/* ---- for the doubles ---- */

/* `node` opens a connection; NULL if the coordinator does not listen yet. */
struct sim_link *cluster_connect(struct cluster *c, uint32_t node);

/* Bytes of a frame from the node on its link. */
void cluster_send(struct cluster *c, struct sim_link *link,
                  const Gpul__Frame *frame);

/* The node closes the link. */
void cluster_hang_up(struct cluster *c, struct sim_link *link);

/* Something of `node` happens `after_ms` from now. */
void cluster_plan(struct cluster *c, enum sim_kind kind, uint32_t node,
                  uint32_t number, uint32_t generation, uint64_t after_ms);

/* A line of the trace: "<ms> text". */
void cluster_note(struct cluster *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
