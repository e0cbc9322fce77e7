/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/gpu_comm.h"

#include <stdbool.h>
#include <string.h>

int gpu_comm_id(struct gpu *g, struct nccl_unique_id *out,
                struct gpul_error *err)
{
    memset(out, 0, sizeof(*out));
    static const char call[] = "ncclGetUniqueId";
    return gpu_nccl_check(g, call, GPU_CALL(g, call, nccl->get_unique_id(out)),
                          err);
}

/* Does the library agree on who we are? */
static int check_place(struct gpu *g, const struct gpu_comm_place *place,
                       struct gpul_error *err)
{
    struct nccl_comm *comm = atomic_load(&g->comm);
    int ranks = 0;
    int rank = -1;
    int status = gpu_nccl_check(
        g, "ncclCommCount",
        GPU_CALL(g, "ncclCommCount", nccl->comm_count(comm, &ranks)), err);
    if (status == 0) {
        status = gpu_nccl_check(
            g, "ncclCommUserRank",
            GPU_CALL(g, "ncclCommUserRank", nccl->comm_user_rank(comm, &rank)),
            err);
    }
    if (status == 0 &&
        (ranks != (int)place->ranks || rank != (int)place->rank)) {
        return gpul_fail(err, GPUL_EPROTO,
                         "NCCL says rank %d of %d, expected rank %u of %u",
                         rank, ranks, place->rank, place->ranks);
    }
    return status;
}

int gpu_comm_init(struct gpu *g, const struct gpu_comm_place *place,
                  struct nccl_unique_id *ids, struct gpul_error *err)
{
    struct nccl_config config = nccl_config_nonblocking();
    struct nccl_comm *comm = NULL;
    const char *call;
    int result;
    if (place->id_count == 1) {
        call = "ncclCommInitRankConfig";
        result = GPU_CALL(g, call,
                          nccl->comm_init_rank_config(&comm, (int)place->ranks,
                                                      ids[0], (int)place->rank,
                                                      &config));
    } else if (g->nccl->comm_init_rank_scalable == NULL) {
        return gpul_fail(err, GPUL_EPROTO,
                         "%u unique IDs, but this NCCL has no "
                         "ncclCommInitRankScalable",
                         place->id_count);
    } else {
        call = "ncclCommInitRankScalable";
        result = GPU_CALL(g, call,
                          nccl->comm_init_rank_scalable(
                              &comm, (int)place->ranks, (int)place->rank,
                              (int)place->id_count, ids, &config));
    }
    atomic_store(&g->comm, comm);
    int status = gpu_nccl_check(g, call, result, err);
    return status == 0 ? check_place(g, place, err) : status;
}

int gpu_comm_split(struct gpu *g, uint32_t group,
                   const struct gpu_comm_place *place, struct gpul_error *err)
{
    static const char call[] = "ncclCommSplit";
    struct nccl_comm *whole = atomic_load(&g->comm);
    bool is_alone = place->ranks == 1;
    int color = is_alone ? NCCL_NO_COLOR : (int)group;
    if (g->nccl->comm_split == NULL) {
        return gpul_fail(err, GPUL_EPROTO,
                         "a split by nodes, but this NCCL has no %s", call);
    }
    /* The whole one's state tells of the split; no configuration: its own. */
    int result = GPU_CALL(
        g, call,
        nccl->comm_split(whole, color, (int)place->rank, &g->split, NULL));
    int status = gpu_nccl_check(g, call, result, err);
    if (status != 0 || is_alone) {
        return status;
    }
    if (g->split == NULL) {
        return gpul_fail(err, GPUL_EPROTO, "%s gave no communicator", call);
    }
    atomic_store(&g->parent, whole);
    atomic_store(&g->comm, g->split);
    status = gpu_nccl_check(g, call, NCCL_IN_PROGRESS, err);
    return status == 0 ? check_place(g, place, err) : status;
}

int gpu_comm_finalize(struct gpu *g, struct gpul_error *err)
{
    static const char call[] = "ncclCommFinalize";
    struct nccl_comm *comm = atomic_load(&g->comm);
    return gpu_nccl_check(g, call, GPU_CALL(g, call, nccl->comm_finalize(comm)),
                          err);
}

int gpu_comm_destroy(struct gpu *g, struct gpul_error *err)
{
    static const char call[] = "ncclCommDestroy";
    struct nccl_comm *comm = atomic_load(&g->comm);
    /* Nothing to abort of this one from here on. */
    atomic_store(&g->comm, atomic_load(&g->parent));
    atomic_store(&g->parent, NULL);
    return gpu_nccl_check(g, call, GPU_CALL(g, call, nccl->comm_destroy(comm)),
                          err);
}

void gpu_comm_abort(struct gpu *g)
{
    struct nccl_comm *comm = atomic_load(&g->comm);
    struct nccl_comm *parent = atomic_load(&g->parent);
    if (comm != NULL) {
        g->nccl->comm_abort(comm);
    }
    if (parent != NULL && parent != comm) {
        g->nccl->comm_abort(parent);
    }
}
