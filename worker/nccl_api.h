/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of NCCL's C interface that the self-test calls, declared here so
 * that no NVIDIA or AMD header is needed to build. RCCL exports the same
 * names. The library is opened at run time: NCCL_API_MAP names every symbol
 * once, `struct nccl_api` has one function pointer for each, and
 * worker/gpu_abi_check.c compares all of it with nccl.h where that is found.
 *
 * Source: nccl.h of NCCL 2.18 to 2.28. Results are plain ints, since a newer
 * library may return a code that is not in the enum; print those as numbers.
 */
#ifndef WORKER_NCCL_API_H
#define WORKER_NCCL_API_H

#include <limits.h>
#include <stddef.h>

#include "worker/cuda_api.h"

struct nccl_comm; /* ncclComm_t is a pointer to it */

/* Opaque to everybody but NCCL; worker/unique_id.h reads the address in it.
 * Passed by value, as NCCL does. */
enum { NCCL_UNIQUE_ID_BYTES = 128 };
struct nccl_unique_id {
    char internal[NCCL_UNIQUE_ID_BYTES];
};

enum nccl_result {
    NCCL_SUCCESS = 0,
    NCCL_UNHANDLED_CUDA_ERROR = 1,
    NCCL_SYSTEM_ERROR = 2,
    NCCL_INTERNAL_ERROR = 3,
    NCCL_INVALID_ARGUMENT = 4,
    NCCL_INVALID_USAGE = 5,
    NCCL_REMOTE_ERROR = 6,
    NCCL_IN_PROGRESS = 7,
};

enum nccl_op {
    NCCL_SUM = 0,
    NCCL_PROD = 1,
    NCCL_MAX = 2,
    NCCL_MIN = 3,
    NCCL_AVG = 4,
};

enum nccl_type {
    NCCL_INT8 = 0,
    NCCL_UINT8 = 1,
    NCCL_INT32 = 2,
    NCCL_UINT32 = 3,
    NCCL_INT64 = 4,
    NCCL_UINT64 = 5,
    NCCL_FLOAT16 = 6,
    NCCL_FLOAT32 = 7,
    NCCL_FLOAT64 = 8,
    NCCL_BFLOAT16 = 9,
};

/* ncclConfig_t as of 2.18. A library copies the smaller of `size` and its own
 * size over its defaults, then resets every field that is newer than
 * `version`; so this prefix serves all later ones too. */
struct nccl_config {
    size_t size;
    unsigned magic;
    unsigned version;
    int blocking;
    int cga_cluster_size;
    int min_ctas;
    int max_ctas;
    const char *net_name;
    int split_share;
    int unset; /* tail padding in 2.18, trafficClass in later ones */
};

enum {
    NCCL_CONFIG_VERSION = 21800,
    NCCL_UNSET_INT = INT_MIN,
    NCCL_NO_COLOR = -1,         /* takes part in a split, joins nothing */
    NCCL_VERSION_LEAST = 21400, /* first with ncclCommInitRankConfig */
};
#define NCCL_CONFIG_MAGIC 0xcafebeefu

/* Non-blocking, all else left to the library (and to its environment). */
static inline struct nccl_config nccl_config_nonblocking(void)
{
    return (struct nccl_config){.size = sizeof(struct nccl_config),
                                .magic = NCCL_CONFIG_MAGIC,
                                .version = NCCL_CONFIG_VERSION,
                                .blocking = 0,
                                .cga_cluster_size = NCCL_UNSET_INT,
                                .min_ctas = NCCL_UNSET_INT,
                                .max_ctas = NCCL_UNSET_INT,
                                .net_name = NULL,
                                .split_share = NCCL_UNSET_INT,
                                .unset = NCCL_UNSET_INT};
}

/* X(need, result type, member, parameters, symbol). `need` is REQUIRED or
 * OPTIONAL; the pointer of a missing optional symbol is NULL. */
/* clang-format off */
#define NCCL_API_MAP(X)                                                        \
    X(REQUIRED, int, get_version, (int *version), ncclGetVersion)              \
    X(REQUIRED, int, get_unique_id, (struct nccl_unique_id *id),               \
      ncclGetUniqueId)                                                         \
    X(REQUIRED, const char *, get_error_string, (int result),                  \
      ncclGetErrorString)                                                      \
    X(OPTIONAL, const char *, get_last_error, (struct nccl_comm *comm),        \
      ncclGetLastError)                                                        \
    X(REQUIRED, int, comm_init_rank_config,                                    \
      (struct nccl_comm **comm, int rank_count, struct nccl_unique_id id,      \
       int rank, struct nccl_config *config),                                  \
      ncclCommInitRankConfig)                                                  \
    X(OPTIONAL, int, comm_init_rank_scalable,                                  \
      (struct nccl_comm **comm, int rank_count, int rank, int id_count,        \
       struct nccl_unique_id *ids, struct nccl_config *config),                \
      ncclCommInitRankScalable)                                                \
    X(OPTIONAL, int, comm_split,                                               \
      (struct nccl_comm *comm, int color, int key, struct nccl_comm **out,     \
       struct nccl_config *config),                                            \
      ncclCommSplit)                                                           \
    X(REQUIRED, int, comm_get_async_error,                                     \
      (struct nccl_comm *comm, int *result), ncclCommGetAsyncError)            \
    X(REQUIRED, int, comm_finalize, (struct nccl_comm *comm),                  \
      ncclCommFinalize)                                                        \
    X(REQUIRED, int, comm_destroy, (struct nccl_comm *comm), ncclCommDestroy)  \
    X(REQUIRED, int, comm_abort, (struct nccl_comm *comm), ncclCommAbort)      \
    X(REQUIRED, int, comm_count, (struct nccl_comm *comm, int *count),         \
      ncclCommCount)                                                           \
    X(REQUIRED, int, comm_user_rank, (struct nccl_comm *comm, int *rank),      \
      ncclCommUserRank)                                                        \
    X(REQUIRED, int, comm_cu_device, (struct nccl_comm *comm, int *device),    \
      ncclCommCuDevice)                                                        \
    X(REQUIRED, int, all_reduce,                                               \
      (const void *send, void *receive, size_t count, int type, int op,        \
       struct nccl_comm *comm, struct cuda_stream *stream),                    \
      ncclAllReduce)                                                           \
    X(REQUIRED, int, all_gather,                                               \
      (const void *send, void *receive, size_t send_count, int type,           \
       struct nccl_comm *comm, struct cuda_stream *stream),                    \
      ncclAllGather)                                                           \
    X(REQUIRED, int, reduce_scatter,                                           \
      (const void *send, void *receive, size_t receive_count, int type,        \
       int op, struct nccl_comm *comm, struct cuda_stream *stream),            \
      ncclReduceScatter)                                                       \
    X(REQUIRED, int, broadcast,                                                \
      (const void *send, void *receive, size_t count, int type, int root,      \
       struct nccl_comm *comm, struct cuda_stream *stream),                    \
      ncclBroadcast)                                                           \
    X(REQUIRED, int, send,                                                     \
      (const void *send, size_t count, int type, int peer,                     \
       struct nccl_comm *comm, struct cuda_stream *stream),                    \
      ncclSend)                                                                \
    X(REQUIRED, int, recv,                                                     \
      (void *receive, size_t count, int type, int peer,                        \
       struct nccl_comm *comm, struct cuda_stream *stream),                    \
      ncclRecv)                                                                \
    X(REQUIRED, int, group_start, (void), ncclGroupStart)                      \
    X(REQUIRED, int, group_end, (void), ncclGroupEnd)
/* clang-format on */

struct nccl_api {
#define X(need, result, member, parameters, symbol) result(*member) parameters;
    NCCL_API_MAP(X)
#undef X
};

/* A double of this library exports this symbol, and every report made with
 * it says SIMULATED. The real libraries have no such symbol. */
#define GPU_DOUBLE_MARKER "gpulaunch_double"

#endif
