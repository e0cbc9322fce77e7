/* SPDX-License-Identifier: Apache-2.0
 *
 * A communicator of the double of libnccl: its rank, its sockets, what has
 * been asked of it and how it ended. */
#ifndef DOUBLES_NCCL_COMM_H
#define DOUBLES_NCCL_COMM_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "tests/doubles/fault.h"
#include "worker/nccl_api.h"

/* What every rank tells all others when they meet. */
struct peer {
    int32_t rank;
    int32_t version;
    uint64_t pci;
    struct cuda_uuid uuid;
    struct sockaddr_in address; /* where it takes sends */
    char node[SCENARIO_TEXT];
};

/* The bytes of a unique ID; NCCL's own begins in the same way (src/include/
 * bootstrap.h: magic, then a socket address). */
struct id_content {
    uint64_t magic;
    struct sockaddr_in address;
};

struct batch;
struct op;

/* What ncclCommSplit asks of a rank. */
struct split {
    int color;
    int key;
    bool is_blocking;
    struct nccl_comm **out; /* written when all is done */
};

struct nccl_comm {
    const struct scenario *scenario;
    struct fault_caller caller; /* only the user's thread and the job count */
    struct fault_orders orders; /* of its init */
    int rank;
    int rank_count;
    int physical; /* device, as the scenario counts, and as the process does */
    int ordinal;
    bool is_blocking;
    bool is_finalized;
    bool has_met; /* from here on transfers take what links say */
    double slowness;
    struct nccl_unique_id *ids;
    int id_count;

    /* Made by the init job; then only the running batch uses them. */
    int next_fd;
    int prev_fd;
    int listen_fd; /* for sends of others */
    int *send_fds; /* by rank; -1: none yet */
    int *receive_fds;
    struct peer *peers;

    int abort_fd; /* readable once is_aborted */
    atomic_bool is_aborted;
    atomic_int async; /* what ncclCommGetAsyncError says */

    struct batch *launching; /* by the job */
    struct split split;      /* by the job */

    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned users;  /* caller, job, batches; guarded by lock, as all below */
    bool has_job;    /* one thing done outside a stream: init, launch, end */
    uint64_t issued; /* batches; they run in the order of their issue */
    uint64_t done;
    bool is_running;
    int child_abort_fd; /* of a split under way; -1: none */
};

/* --- nccl_boot.c: how ranks meet ---------------------------------------- */

/* A new ID, whose root thread waits in this process for its ranks. */
int boot_root(struct nccl_unique_id *id);

/* Checks in at the root, joins the ring, learns who all others are, and
 * refuses what NCCL refuses. */
int boot_join(struct nccl_comm *comm);

/* Ends when every rank has come here. */
int boot_barrier(struct nccl_comm *comm);

/* --- nccl_comm.c: its life ---------------------------------------------- */

/* A communicator of the calling thread's device; nothing has begun. NULL
 * without memory or descriptors. */
struct nccl_comm *comm_make(int rank, int rank_count, int id_count,
                            const struct nccl_unique_id *ids, int physical,
                            int ordinal, bool is_blocking);

/* Sets the state to NCCL_IN_PROGRESS and has a thread of the communicator
 * run `run`, whose result becomes the state. */
int comm_job(struct nccl_comm *comm, int (*run)(struct nccl_comm *comm));

/* Waits for the job under way; the state it leaves. */
int comm_wait(struct nccl_comm *comm);

/* The jobs. */
int comm_init(struct nccl_comm *comm);
int comm_finalize(struct nccl_comm *comm);
int comm_split(struct nccl_comm *comm); /* nccl_split.c; sets *split.out */

/* The part of an init that is done in the caller's thread, before the job:
 * what the scenario orders of it. Nothing ends it but the process's end. */
void comm_arrive(struct nccl_comm *comm);

/* Does what the scenario orders at `point`; an abort ends it. */
int comm_obey(struct nccl_comm *comm, enum scenario_point point);

/* 0 when the last call has ended; what it ended with else. */
int comm_ready(struct nccl_comm *comm);

/* Ends every wait of this communicator and waits until nothing runs. */
void comm_abort(struct nccl_comm *comm);

/* Waits until every batch that was issued is done. */
void comm_drain(struct nccl_comm *comm);

/* Gives up the caller's hold; the last batch's frees. */
void comm_release(struct nccl_comm *comm);

/* Operations of one group on one communicator, for its stream. */
struct batch {
    struct nccl_comm *comm;
    struct cuda_stream *stream;
    struct op *ops;
    uint64_t ticket;
};

/* Puts a batch into its stream; owns it. */
int comm_launch(struct nccl_comm *comm, struct batch *batch);
void batch_free(struct batch *batch);

/* --- nccl_ring.c and nccl_peer.c: operations on host memory -------------- */

struct op {
    struct op *next;
    enum scenario_point kind; /* POINT_ALLREDUCE to POINT_SENDRECV */
    bool sends;               /* for POINT_SENDRECV */
    const void *send;
    void *receive;
    size_t count;
    int type;
    int reduction;
    int peer; /* of a send or receive; the root of a broadcast */
    struct fault_orders orders;
};

int ring_all_reduce(struct nccl_comm *comm, const struct op *op);
int ring_all_gather(struct nccl_comm *comm, const struct op *op);
int ring_reduce_scatter(struct nccl_comm *comm, const struct op *op);
int ring_broadcast(struct nccl_comm *comm, const struct op *op);

/* Each rank's `bytes` bytes at its place in `all`, to all ranks. */
int ring_gather(struct nccl_comm *comm, void *all, size_t bytes);

/* Every send and receive from `ops` on, at once. */
int peer_exchange(struct nccl_comm *comm, const struct op *ops);

/* Nanoseconds that `bytes` bytes take from here to rank `to`. */
uint64_t link_cost_ns(const struct nccl_comm *comm, int to, size_t bytes);

#endif
