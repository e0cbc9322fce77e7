/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of a communicator: jobs on a thread of its own, batches on a
 * stream, and an end that leaves nothing behind. */
#include "tests/doubles/nccl_comm.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/doubles/nccl_cuda.h"
#include "tests/doubles/nccl_debug.h"
#include "tests/doubles/nccl_reduce.h"
#include "tests/doubles/nccl_wire.h"

/* --- Making and freeing ------------------------------------------------- */

static void fds_close(int *fds, int count)
{
    for (int i = 0; fds && i < count; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
    free(fds);
}

static int *fds_make(int count)
{
    int *fds = malloc((size_t)count * sizeof *fds);

    for (int i = 0; fds && i < count; i++)
        fds[i] = -1;
    return fds;
}

static void comm_free(struct nccl_comm *comm)
{
    int single[] = {comm->next_fd, comm->prev_fd, comm->listen_fd,
                    comm->abort_fd};

    for (size_t i = 0; i < sizeof single / sizeof single[0]; i++)
        if (single[i] >= 0)
            (void)close(single[i]);
    fds_close(comm->send_fds, comm->rank_count);
    fds_close(comm->receive_fds, comm->rank_count);
    free(comm->peers);
    free(comm->ids);
    (void)pthread_cond_destroy(&comm->changed);
    (void)pthread_mutex_destroy(&comm->lock);
    free(comm);
}

struct nccl_comm *comm_make(int rank, int rank_count, int id_count,
                            const struct nccl_unique_id *ids, int physical,
                            int ordinal, bool is_blocking)
{
    struct nccl_comm *comm = calloc(1, sizeof *comm);

    if (!comm)
        return NULL;
    comm->scenario = scenario_get();
    comm->caller.rank = comm->rank = rank;
    comm->caller.gpu = comm->physical = physical;
    comm->ordinal = ordinal;
    comm->rank_count = rank_count;
    comm->is_blocking = is_blocking;
    comm->slowness = fault_slowness(comm->scenario, rank, physical);
    comm->next_fd = comm->prev_fd = comm->listen_fd = -1;
    comm->child_abort_fd = -1;
    comm->users = 1;
    (void)pthread_mutex_init(&comm->lock, NULL);
    (void)pthread_cond_init(&comm->changed, NULL);
    comm->abort_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    comm->send_fds = fds_make(rank_count);
    comm->receive_fds = fds_make(rank_count);
    comm->peers = calloc((size_t)rank_count, sizeof *comm->peers);
    comm->ids = calloc((size_t)id_count, sizeof *comm->ids);
    comm->id_count = id_count;
    if (comm->abort_fd < 0 || !comm->send_fds || !comm->receive_fds ||
        !comm->peers || !comm->ids) {
        comm_free(comm);
        return NULL;
    }
    memcpy(comm->ids, ids, (size_t)id_count * sizeof *ids);
    return comm;
}

/* Gives up one hold; the lock is held, and is not afterwards. */
static void leave(struct nccl_comm *comm)
{
    unsigned users = --comm->users;

    (void)pthread_mutex_unlock(&comm->lock);
    if (users == 0)
        comm_free(comm);
}

void comm_release(struct nccl_comm *comm)
{
    (void)pthread_mutex_lock(&comm->lock);
    leave(comm);
}

/* --- Jobs --------------------------------------------------------------- */

struct job {
    struct nccl_comm *comm;
    int (*run)(struct nccl_comm *comm);
};

static void *job_run(void *argument)
{
    struct job job = *(struct job *)argument;
    struct nccl_comm *comm = job.comm;

    free(argument);
    int status = job.run(comm);
    (void)pthread_mutex_lock(&comm->lock);
    comm->has_job = false;
    /* What went wrong on the stream meanwhile stays. */
    int running = NCCL_IN_PROGRESS;
    (void)atomic_compare_exchange_strong(&comm->async, &running, status);
    (void)pthread_cond_broadcast(&comm->changed);
    leave(comm);
    return NULL;
}

/* Counts the job before its thread can end it. */
static void job_count(struct nccl_comm *comm)
{
    (void)pthread_mutex_lock(&comm->lock);
    comm->has_job = true;
    comm->users++;
    int ready = NCCL_SUCCESS;
    (void)atomic_compare_exchange_strong(&comm->async, &ready,
                                         NCCL_IN_PROGRESS);
    (void)pthread_mutex_unlock(&comm->lock);
}

int comm_job(struct nccl_comm *comm, int (*run)(struct nccl_comm *comm))
{
    struct job *job = malloc(sizeof *job);
    pthread_attr_t attributes;
    pthread_t thread;

    if (!job)
        return nccl_fail(NCCL_SYSTEM_ERROR, "no memory");
    *job = (struct job){comm, run};
    job_count(comm);
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int error = pthread_create(&thread, &attributes, job_run, job);
    (void)pthread_attr_destroy(&attributes);
    if (error == 0)
        return NCCL_SUCCESS;
    free(job);
    (void)pthread_mutex_lock(&comm->lock);
    comm->has_job = false;
    comm->users--; /* the caller's own hold is left */
    atomic_store(&comm->async, NCCL_SYSTEM_ERROR);
    (void)pthread_mutex_unlock(&comm->lock);
    return nccl_fail(NCCL_SYSTEM_ERROR, "pthread_create failed : %s",
                     strerror(error));
}

int comm_wait(struct nccl_comm *comm)
{
    (void)pthread_mutex_lock(&comm->lock);
    while (comm->has_job)
        (void)pthread_cond_wait(&comm->changed, &comm->lock);
    (void)pthread_mutex_unlock(&comm->lock);
    return atomic_load(&comm->async);
}

/* What a fault orders of something that an abort can end. */
static int obey(struct nccl_comm *comm, const struct fault_orders *orders)
{
    int status = NCCL_SUCCESS;

    fault_signal(orders);
    if (orders->late_ms > 0)
        status = wire_sleep_until(wire_now_ns() + orders->late_ms * 1000000,
                                  comm->abort_fd);
    if (status == NCCL_SUCCESS && orders->code != 0)
        status = nccl_fail((enum nccl_result)orders->code,
                           "the scenario orders code %d", orders->code);
    return status;
}

int comm_obey(struct nccl_comm *comm, enum scenario_point point)
{
    struct fault_orders orders =
        fault_call(comm->scenario, &comm->caller, point);
    int status = obey(comm, &orders);

    return status == NCCL_SUCCESS && orders.hangs
               ? wire_sleep_forever(comm->abort_fd)
               : status;
}

/* NCCL makes the context of the device in the call itself, even where it is
 * not to block: a rank that comes late is late there. */
void comm_arrive(struct nccl_comm *comm)
{
    comm->orders = fault_call(comm->scenario, &comm->caller, POINT_INIT);
    struct fault_orders in_call = {.late_ms = comm->orders.late_ms,
                                   .never_arrives = comm->orders.never_arrives};
    fault_block(&in_call);
    comm->orders.late_ms = 0;
}

int comm_init(struct nccl_comm *comm)
{
    struct fault_orders orders = comm->orders;
    int status = obey(comm, &orders);

    if (status == NCCL_SUCCESS) {
        nccl_debug("ncclCommInitRankConfig comm %p rank %d nranks %d - Init "
                   "START",
                   (void *)comm, comm->rank, comm->rank_count);
        status = boot_join(comm);
    }
    bool hangs = orders.hangs;
    if (status == NCCL_SUCCESS) {
        nccl_debug("Bootstrap timings total");
        orders = fault_call(comm->scenario, &comm->caller, POINT_CONNECT);
        status = obey(comm, &orders);
        hangs = hangs || orders.hangs;
    }
    if (status == NCCL_SUCCESS && hangs)
        status = wire_sleep_forever(comm->abort_fd);
    if (status == NCCL_SUCCESS) {
        nccl_debug("P2P Chunksize set to 131072");
        status = boot_barrier(comm);
    }
    if (status == NCCL_SUCCESS)
        nccl_debug("ncclCommInitRankConfig comm %p rank %d - Init COMPLETE",
                   (void *)comm, comm->rank);
    comm->has_met = status == NCCL_SUCCESS;
    return status;
}

int comm_finalize(struct nccl_comm *comm)
{
    int status = comm_obey(comm, POINT_FINALIZE);

    if (status == NCCL_SUCCESS)
        comm_drain(comm);
    return status;
}

int comm_ready(struct nccl_comm *comm)
{
    int status = atomic_load(&comm->async);

    if (status == NCCL_IN_PROGRESS)
        return nccl_fail(NCCL_INVALID_ARGUMENT,
                         "Attempt to use communicator before the previous "
                         "operation returned ncclSuccess");
    return status;
}

void comm_drain(struct nccl_comm *comm)
{
    (void)pthread_mutex_lock(&comm->lock);
    while (comm->done != comm->issued && !comm->is_aborted)
        (void)pthread_cond_wait(&comm->changed, &comm->lock);
    (void)pthread_mutex_unlock(&comm->lock);
}

void comm_abort(struct nccl_comm *comm)
{
    (void)pthread_mutex_lock(&comm->lock);
    comm->is_aborted = true;
    (void)eventfd_write(comm->abort_fd, 1);
    if (comm->child_abort_fd >= 0)
        (void)eventfd_write(comm->child_abort_fd, 1);
    (void)pthread_cond_broadcast(&comm->changed);
    while (comm->is_running || comm->has_job)
        (void)pthread_cond_wait(&comm->changed, &comm->lock);
    (void)pthread_mutex_unlock(&comm->lock);
}

/* --- Batches ------------------------------------------------------------ */

void batch_free(struct batch *batch)
{
    while (batch->ops) {
        struct op *next = batch->ops->next;
        free(batch->ops);
        batch->ops = next;
    }
    free(batch);
}

/* One bit of the result, wrong where the scenario wants it. */
static void flip(const struct op *op, size_t count, size_t bytes)
{
    char *data = op->receive;

    if (!op->orders.flips || op->orders.element >= count ||
        op->orders.bit >= bytes * 8)
        return;
    data += op->orders.element * bytes + op->orders.bit / 8;
    *data = (char)(*data ^ (1 << op->orders.bit % 8));
}

/* A hang is the device's: its kernel is not begun, and neither is anything
 * else. A stall is the rank's part in the transfer, as when a proxy thread
 * stands still: the device goes on. */
static int op_hang(struct nccl_comm *comm, const struct fault_orders *orders)
{
    const struct nccl_cuda *cuda = nccl_cuda();
    bool halts = cuda && orders->hangs;

    if (!orders->hangs && !orders->stalls)
        return NCCL_SUCCESS;
    if (halts)
        cuda->halt(1);
    int status = wire_sleep_forever(comm->abort_fd);
    if (halts)
        cuda->halt(0);
    return status;
}

static int op_run(struct nccl_comm *comm, const struct op *op)
{
    size_t bytes = reduce_bytes(op->type), count = op->count;
    int status = obey(comm, &op->orders);

    if (status == NCCL_SUCCESS)
        status = op_hang(comm, &op->orders);
    if (status != NCCL_SUCCESS)
        return status;
    switch (op->kind) {
    case POINT_ALLREDUCE:
        status = ring_all_reduce(comm, op);
        break;
    case POINT_ALLGATHER:
        status = ring_all_gather(comm, op);
        count *= (size_t)comm->rank_count;
        break;
    case POINT_REDUCESCATTER:
        status = ring_reduce_scatter(comm, op);
        break;
    default:
        status = ring_broadcast(comm, op);
        break;
    }
    if (status == NCCL_SUCCESS)
        flip(op, count, bytes);
    return status;
}

/* Collectives first, in their order; then all sends and receives at once. */
static int ops_run(struct batch *batch)
{
    struct op *exchange = NULL, **last = &exchange, **at = &batch->ops;
    int status = NCCL_SUCCESS;

    while (*at) {
        struct op *op = *at;
        if (op->kind != POINT_SENDRECV) {
            at = &op->next;
            continue;
        }
        *at = op->next;
        op->next = NULL;
        *last = op;
        last = &op->next;
    }
    for (struct op *op = batch->ops; op && status == NCCL_SUCCESS;
         op = op->next)
        status = op_run(batch->comm, op);
    *at = exchange; /* one list again */
    for (struct op *op = exchange; op && status == NCCL_SUCCESS; op = op->next)
        status = obey(batch->comm, &op->orders);
    for (struct op *op = exchange; op && status == NCCL_SUCCESS; op = op->next)
        status = op_hang(batch->comm, &op->orders);
    if (exchange && status == NCCL_SUCCESS)
        status = peer_exchange(batch->comm, exchange);
    return status;
}

static void batch_run(void *argument)
{
    struct batch *batch = argument;
    struct nccl_comm *comm = batch->comm;
    int status = NCCL_SUCCESS;

    (void)pthread_mutex_lock(&comm->lock);
    while (comm->done != batch->ticket && !comm->is_aborted)
        (void)pthread_cond_wait(&comm->changed, &comm->lock);
    comm->is_running = !comm->is_aborted;
    bool runs = comm->is_running;
    (void)pthread_mutex_unlock(&comm->lock);
    if (runs)
        status = ops_run(batch);
    if (status != NCCL_SUCCESS && !comm->is_aborted) {
        /* The kernel on the device would go on waiting for data. */
        atomic_store(&comm->async, status);
        (void)wire_sleep_forever(comm->abort_fd);
    }
    batch_free(batch);
    (void)pthread_mutex_lock(&comm->lock);
    if (runs)
        comm->is_running = false;
    comm->done++;
    (void)pthread_cond_broadcast(&comm->changed);
    leave(comm);
}

static int batch_push(struct nccl_comm *comm)
{
    struct batch *batch = comm->launching;
    const struct nccl_cuda *cuda = nccl_cuda();
    int status =
        cuda ? nccl_cuda_result(cuda->launch(batch->stream, batch_run, batch))
             : NCCL_UNHANDLED_CUDA_ERROR;

    comm->launching = NULL;
    if (status == NCCL_SUCCESS)
        return status;
    batch_free(batch);
    (void)pthread_mutex_lock(&comm->lock);
    comm->done++;
    leave(comm);
    return status;
}

int comm_launch(struct nccl_comm *comm, struct batch *batch)
{
    (void)pthread_mutex_lock(&comm->lock);
    batch->ticket = comm->issued++;
    comm->users++;
    (void)pthread_mutex_unlock(&comm->lock);
    comm->launching = batch;
    return comm->is_blocking ? batch_push(comm) : comm_job(comm, batch_push);
}
