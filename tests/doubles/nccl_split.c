/* SPDX-License-Identifier: Apache-2.0
 *
 * A communicator split into groups: the ranks tell each other their colours
 * and keys over the ring that they have, the first rank of each group makes
 * an ID for it, and each group meets as after an init. Source: NCCL 2.28,
 * src/init.cc ncclCommSplit, commGetSplitInfo, ncclCommInitRankFunc.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/doubles/nccl_comm.h"
#include "tests/doubles/nccl_wire.h"

/* What every rank tells all others. */
struct member {
    int32_t color;
    int32_t key;
};

struct group {
    int rank; /* own, in it */
    int rank_count;
    int first; /* the rank of the whole that is its rank 0 */
};

/* In the order of the keys; those with the same key in their old order. */
static struct group find_group(const struct nccl_comm *comm,
                               const struct member *members)
{
    const struct member *self = &members[comm->rank];
    struct group group = {.first = -1};

    for (int i = 0; i < comm->rank_count; i++) {
        const struct member *other = &members[i];
        if (other->color != self->color)
            continue;
        group.rank_count++;
        if (other->key < self->key ||
            (other->key == self->key && i < comm->rank))
            group.rank++;
        if (group.first < 0 || other->key < members[group.first].key)
            group.first = i;
    }
    return group;
}

/* An abort of the whole ends the group's meeting too. */
static int group_join(struct nccl_comm *comm, struct nccl_comm *child)
{
    (void)pthread_mutex_lock(&comm->lock);
    comm->child_abort_fd = child->abort_fd;
    bool is_aborted = comm->is_aborted;
    (void)pthread_mutex_unlock(&comm->lock);
    int status = is_aborted ? NCCL_INTERNAL_ERROR : boot_join(child);
    if (status == NCCL_SUCCESS)
        status = boot_barrier(child);
    (void)pthread_mutex_lock(&comm->lock);
    comm->child_abort_fd = -1;
    (void)pthread_mutex_unlock(&comm->lock);
    child->has_met = status == NCCL_SUCCESS;
    return status;
}

/* Faults go on counting, by the rank in the whole. */
static int group_make(struct nccl_comm *comm, const struct group *group,
                      const struct nccl_unique_id *id)
{
    struct nccl_comm *child =
        comm_make(group->rank, group->rank_count, 1, id, comm->physical,
                  comm->ordinal, comm->split.is_blocking);

    if (!child)
        return nccl_fail(NCCL_SYSTEM_ERROR, "no memory");
    child->caller = comm->caller;
    child->slowness = comm->slowness;
    int status = group_join(comm, child);
    if (status == NCCL_SUCCESS)
        __atomic_store_n(comm->split.out, child, __ATOMIC_RELEASE);
    else
        comm_release(child);
    return status;
}

static int split_with(struct nccl_comm *comm, struct member *members,
                      struct nccl_unique_id *ids)
{
    members[comm->rank] = (struct member){comm->split.color, comm->split.key};
    int status = ring_gather(comm, members, sizeof *members);
    struct group group = find_group(comm, members);

    if (status == NCCL_SUCCESS && group.first == comm->rank &&
        comm->split.color != NCCL_NO_COLOR)
        status = boot_root(&ids[comm->rank]);
    if (status == NCCL_SUCCESS)
        status = ring_gather(comm, ids, sizeof *ids);
    if (status == NCCL_SUCCESS && comm->split.color != NCCL_NO_COLOR)
        status = group_make(comm, &group, &ids[group.first]);
    return status;
}

int comm_split(struct nccl_comm *comm)
{
    size_t n = (size_t)comm->rank_count;
    struct member *members = calloc(n, sizeof *members);
    struct nccl_unique_id *ids = calloc(n, sizeof *ids);
    int status = members && ids ? comm_obey(comm, POINT_SPLIT)
                                : nccl_fail(NCCL_SYSTEM_ERROR, "no memory");

    if (status == NCCL_SUCCESS) {
        comm_drain(comm);
        status = split_with(comm, members, ids);
    }
    free(members);
    free(ids);
    return status;
}
