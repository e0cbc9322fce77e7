/* SPDX-License-Identifier: Apache-2.0
 *
 * A double of libnccl: the interface of worker/nccl_api.h over TCP and host
 * memory. It waits where NCCL waits, refuses what NCCL refuses in NCCL's
 * words, and does wrong what the scenario says. docs/doubles.md has the list.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/doubles/export.h"
#include "tests/doubles/hide.h"
#include "tests/doubles/nccl_comm.h"
#include "tests/doubles/nccl_config.h"
#include "tests/doubles/nccl_cuda.h"
#include "tests/doubles/nccl_group.h"
#include "tests/doubles/nccl_reduce.h"
#include "tests/doubles/nccl_wire.h"

#define X(need, result, member, parameters, symbol)                            \
    DOUBLE_EXPORT result symbol parameters;
NCCL_API_MAP(X)
#undef X

DOUBLE_MARKER("libnccl");

enum { VERSION_2_29 = 22900 };

__attribute__((constructor)) static void library_open(void)
{
    hide_symbols(gpulaunch_double, "nccl");
}

/* --- What needs no communicator ----------------------------------------- */

static int check_pointer(const void *pointer, const char *call,
                         const char *name)
{
    return pointer ? NCCL_SUCCESS
                   : nccl_fail(NCCL_INVALID_ARGUMENT,
                               "%s : %s argument is NULL", call, name);
}

int ncclGetVersion(int *version)
{
    if (!version)
        return NCCL_INVALID_ARGUMENT;
    *version = (int)scenario_get()->nccl;
    return NCCL_SUCCESS;
}

int ncclGetUniqueId(struct nccl_unique_id *id)
{
    int status = check_pointer(id, "GetUniqueId", "out");
    int code;

    if (status != NCCL_SUCCESS)
        return status;
    status = boot_root(id);
    if (status == NCCL_SUCCESS && (code = fault_early(POINT_UID, -1)) != 0)
        status = nccl_fail((enum nccl_result)code,
                           "the scenario orders code %d", code);
    return status;
}

const char *ncclGetErrorString(int result)
{
    static const char *const texts[] = {
        "no error",
        "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        "unhandled system error (run with NCCL_DEBUG=INFO for details)",
        "internal error - please report this issue to the NCCL developers",
        "invalid argument (run with NCCL_DEBUG=WARN for details)",
        "invalid usage (run with NCCL_DEBUG=WARN for details)",
        "remote process exited or there was a network error",
        "NCCL operation in progress",
        "timeout",
    };
    int count = scenario_get()->nccl < VERSION_2_29 ? 8 : 9;

    return result >= 0 && result < count ? texts[result]
                                         : "unknown result code";
}

const char *ncclGetLastError(struct nccl_comm *comm)
{
    (void)comm;
    return nccl_last_error();
}

/* --- Communicators ------------------------------------------------------ */

/* Argument checks in NCCL's order, then a communicator without a life. */
static int init_prepare(struct nccl_comm **comm, int rank_count, int rank,
                        int id_count, const struct nccl_unique_id *ids,
                        const struct nccl_config *config)
{
    const struct nccl_cuda *cuda = nccl_cuda();
    struct config_full read;
    int physical = -1, ordinal = -1;

    if (!cuda)
        return NCCL_UNHANDLED_CUDA_ERROR;
    int status = nccl_cuda_result(cuda->device(&physical, &ordinal));
    if (status != NCCL_SUCCESS)
        return status;
    if (id_count <= 0 || id_count > rank_count)
        return nccl_fail(NCCL_INVALID_ARGUMENT,
                         "improper usage of ncclCommInitRank: nId = %d, "
                         "nranks=%d",
                         id_count, rank_count);
    status = check_pointer(comm, "CommInitRank", "newcomm");
    if (status == NCCL_SUCCESS &&
        (rank_count < 1 || rank < 0 || rank >= rank_count))
        status = nccl_fail(NCCL_INVALID_ARGUMENT,
                           "Invalid rank requested : %d/%d", rank, rank_count);
    if (status == NCCL_SUCCESS)
        status = config_read(&read, config, (int)scenario_get()->nccl);
    if (status != NCCL_SUCCESS)
        return status;
    *comm = comm_make(rank, rank_count, id_count, ids, physical, ordinal,
                      config_is_blocking(&read));
    if (!*comm || !group_add_init(*comm))
        return nccl_fail(NCCL_SYSTEM_ERROR, "no memory");
    comm_arrive(*comm);
    return NCCL_SUCCESS;
}

int ncclCommInitRankScalable(struct nccl_comm **comm, int rank_count, int rank,
                             int id_count, struct nccl_unique_id *ids,
                             struct nccl_config *config)
{
    if (comm)
        *comm = NULL;
    group_start();
    int status = init_prepare(comm, rank_count, rank, id_count, ids, config);
    return group_call_end(comm ? *comm : NULL, status);
}

int ncclCommInitRankConfig(struct nccl_comm **comm, int rank_count,
                           struct nccl_unique_id id, int rank,
                           struct nccl_config *config)
{
    return ncclCommInitRankScalable(comm, rank_count, rank, 1, &id, config);
}

int ncclCommSplit(struct nccl_comm *comm, int color, int key,
                  struct nccl_comm **out, struct nccl_config *config)
{
    struct config_full read;
    int status = check_pointer(comm, "CommSplit", "comm");

    if (status == NCCL_SUCCESS)
        status = check_pointer(out, "CommSplit", "newcomm");
    if (status == NCCL_SUCCESS)
        status = comm_ready(comm);
    if (status == NCCL_SUCCESS)
        *out = NULL; /* until all is done */
    if (status == NCCL_SUCCESS && config)
        status = config_read(&read, config, (int)scenario_get()->nccl);
    if (status != NCCL_SUCCESS)
        return status;
    bool is_blocking = config ? config_is_blocking(&read) : comm->is_blocking;
    comm->split = (struct split){color, key, is_blocking, out};
    status = comm_job(comm, comm_split);
    if (status == NCCL_SUCCESS && comm->is_blocking)
        return comm_wait(comm);
    return status == NCCL_SUCCESS ? atomic_load(&comm->async) : status;
}

int ncclCommGetAsyncError(struct nccl_comm *comm, int *result)
{
    int status = check_pointer(comm, "ncclGetAsyncError", "comm");

    if (status == NCCL_SUCCESS)
        status = check_pointer(result, "ncclGetAsyncError", "asyncError");
    if (status == NCCL_SUCCESS)
        *result = atomic_load(&comm->async);
    return status;
}

static int attribute(struct nccl_comm *comm, const char *call, int *place,
                     const char *name)
{
    int status = check_pointer(comm, call, "comm");

    if (status == NCCL_SUCCESS)
        status = check_pointer(place, call, name);
    return status == NCCL_SUCCESS ? comm_ready(comm) : status;
}

int ncclCommCount(struct nccl_comm *comm, int *count)
{
    int status = attribute(comm, "CommCount", count, "count");

    if (status == NCCL_SUCCESS)
        *count = comm->rank_count;
    return status;
}

int ncclCommUserRank(struct nccl_comm *comm, int *rank)
{
    int status = attribute(comm, "CommUserRank", rank, "rank");

    if (status == NCCL_SUCCESS)
        *rank = comm->rank;
    return status;
}

int ncclCommCuDevice(struct nccl_comm *comm, int *device)
{
    int status = attribute(comm, "CommCuDevice", device, "devid");

    if (status == NCCL_SUCCESS)
        *device = comm->ordinal;
    return status;
}

int ncclCommFinalize(struct nccl_comm *comm)
{
    if (!comm)
        return NCCL_SUCCESS;
    int status = comm_ready(comm);
    if (status == NCCL_SUCCESS && comm->is_finalized)
        status = NCCL_INVALID_ARGUMENT;
    if (status != NCCL_SUCCESS) {
        if (!comm->is_blocking)
            atomic_store(&comm->async, status);
        return status;
    }
    comm->is_finalized = true;
    status = comm_job(comm, comm_finalize);
    if (status == NCCL_SUCCESS && comm->is_blocking)
        return comm_wait(comm);
    return status == NCCL_SUCCESS ? atomic_load(&comm->async) : status;
}

int ncclCommDestroy(struct nccl_comm *comm)
{
    if (!comm)
        return NCCL_SUCCESS;
    int status = comm_ready(comm);
    if (status != NCCL_SUCCESS)
        return status;
    struct fault_orders orders =
        fault_call(comm->scenario, &comm->caller, POINT_DESTROY);
    fault_signal(&orders);
    fault_block(&orders);
    comm_drain(comm);
    comm_release(comm);
    return orders.code;
}

int ncclCommAbort(struct nccl_comm *comm)
{
    if (!comm)
        return NCCL_SUCCESS;
    struct fault_orders orders =
        fault_call(comm->scenario, &comm->caller, POINT_ABORT);
    fault_signal(&orders);
    fault_block(&orders);
    comm_abort(comm);
    comm_release(comm);
    return orders.code;
}

/* --- Operations --------------------------------------------------------- */

/* How many elements of the caller's buffers an operation touches. */
struct extent {
    size_t send;
    size_t receive;
};

/* From device addresses to the memory behind them. */
static int translate(struct op *op, const char *call, struct extent extent)
{
    const struct nccl_cuda *cuda = nccl_cuda();
    size_t bytes = reduce_bytes(op->type);

    if (!cuda)
        return NCCL_UNHANDLED_CUDA_ERROR;
    if (extent.send > 0) {
        const void *given = op->send;
        op->send = cuda->memory(given, extent.send * bytes);
        if (!op->send)
            return nccl_fail(NCCL_INVALID_ARGUMENT,
                             "%s : sendbuff %p is not a valid pointer", call,
                             given);
    }
    if (extent.receive > 0) {
        void *given = op->receive;
        op->receive = cuda->memory(given, extent.receive * bytes);
        if (!op->receive)
            return nccl_fail(NCCL_INVALID_ARGUMENT,
                             "%s : recvbuff %p is not a valid pointer", call,
                             given);
    }
    return NCCL_SUCCESS;
}

static int check_op(const struct nccl_comm *comm, const struct op *op,
                    const char *call)
{
    if (op->peer < 0 || op->peer >= comm->rank_count)
        return nccl_fail(NCCL_INVALID_ARGUMENT,
                         "%s : invalid root %d (root should be in the 0..%d "
                         "range)",
                         call, op->peer, comm->rank_count);
    if (reduce_bytes(op->type) == 0)
        return nccl_fail(NCCL_INVALID_ARGUMENT, "%s : invalid type %d", call,
                         op->type);
    if (op->reduction < NCCL_SUM || op->reduction > NCCL_AVG)
        return nccl_fail(NCCL_INVALID_ARGUMENT,
                         "%s : invalid reduction operation %d", call,
                         op->reduction);
    return NCCL_SUCCESS;
}

static int op_ask(struct nccl_comm *comm, const struct op *given,
                  const char *call, struct extent extent,
                  struct cuda_stream *stream)
{
    const struct nccl_cuda *cuda = nccl_cuda();
    int status = comm_ready(comm);

    if (status == NCCL_SUCCESS)
        status = check_op(comm, given, call);
    if (status == NCCL_SUCCESS)
        status = cuda ? nccl_cuda_result(cuda->stream(&stream))
                      : NCCL_UNHANDLED_CUDA_ERROR;
    if (status != NCCL_SUCCESS)
        return status;
    struct op *op = malloc(sizeof *op);
    if (!op)
        return nccl_fail(NCCL_SYSTEM_ERROR, "no memory");
    *op = *given;
    op->orders = fault_call(comm->scenario, &comm->caller, op->kind);
    if (op->orders.code != 0)
        status = nccl_fail((enum nccl_result)op->orders.code,
                           "the scenario orders code %d", op->orders.code);
    else
        status = translate(op, call, extent);
    if (status != NCCL_SUCCESS) {
        free(op);
        return status;
    }
    return group_add_op(comm, op, stream);
}

static int op_call(struct nccl_comm *comm, const struct op *op,
                   const char *call, struct extent extent,
                   struct cuda_stream *stream)
{
    int status = check_pointer(comm, call, "comm");

    if (status != NCCL_SUCCESS)
        return status;
    group_start();
    return group_call_end(comm, op_ask(comm, op, call, extent, stream));
}

int ncclAllReduce(const void *send, void *receive, size_t count, int type,
                  int op, struct nccl_comm *comm, struct cuda_stream *stream)
{
    return op_call(comm,
                   &(struct op){.kind = POINT_ALLREDUCE,
                                .send = send,
                                .receive = receive,
                                .count = count,
                                .type = type,
                                .reduction = op},
                   "AllReduce", (struct extent){count, count}, stream);
}

int ncclAllGather(const void *send, void *receive, size_t send_count, int type,
                  struct nccl_comm *comm, struct cuda_stream *stream)
{
    size_t ranks = comm ? (size_t)comm->rank_count : 0;

    return op_call(comm,
                   &(struct op){.kind = POINT_ALLGATHER,
                                .send = send,
                                .receive = receive,
                                .count = send_count,
                                .type = type},
                   "AllGather", (struct extent){send_count, send_count * ranks},
                   stream);
}

int ncclReduceScatter(const void *send, void *receive, size_t receive_count,
                      int type, int op, struct nccl_comm *comm,
                      struct cuda_stream *stream)
{
    size_t ranks = comm ? (size_t)comm->rank_count : 0;

    return op_call(comm,
                   &(struct op){.kind = POINT_REDUCESCATTER,
                                .send = send,
                                .receive = receive,
                                .count = receive_count,
                                .type = type,
                                .reduction = op},
                   "ReduceScatter",
                   (struct extent){receive_count * ranks, receive_count},
                   stream);
}

int ncclBroadcast(const void *send, void *receive, size_t count, int type,
                  int root, struct nccl_comm *comm, struct cuda_stream *stream)
{
    bool is_root = comm && comm->rank == root;

    return op_call(comm,
                   &(struct op){.kind = POINT_BROADCAST,
                                .send = send,
                                .receive = receive,
                                .count = count,
                                .type = type,
                                .peer = root},
                   "Broadcast", (struct extent){is_root ? count : 0, count},
                   stream);
}

int ncclSend(const void *send, size_t count, int type, int peer,
             struct nccl_comm *comm, struct cuda_stream *stream)
{
    return op_call(comm,
                   &(struct op){.kind = POINT_SENDRECV,
                                .sends = true,
                                .send = send,
                                .count = count,
                                .type = type,
                                .peer = peer},
                   "Send", (struct extent){count, 0}, stream);
}

int ncclRecv(void *receive, size_t count, int type, int peer,
             struct nccl_comm *comm, struct cuda_stream *stream)
{
    return op_call(comm,
                   &(struct op){.kind = POINT_SENDRECV,
                                .receive = receive,
                                .count = count,
                                .type = type,
                                .peer = peer},
                   "Recv", (struct extent){0, count}, stream);
}

int ncclGroupStart(void)
{
    group_start();
    return NCCL_SUCCESS;
}

int ncclGroupEnd(void)
{
    return group_end();
}
