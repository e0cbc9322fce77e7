/* SPDX-License-Identifier: Apache-2.0
 *
 * What a thread has asked for and has not begun. */
#include "tests/doubles/nccl_group.h"

#include <stdlib.h>

#include "tests/doubles/nccl_wire.h"

/* What the calling thread has asked for since ncclGroupStart. */
struct asked { /* one operation, or an init when it has no batch */
    struct asked *next;
    struct nccl_comm *comm;
    struct batch *batch;
};

static _Thread_local struct {
    int depth;
    int error;
    struct asked *first;
} group;

static struct asked *group_find(const struct nccl_comm *comm)
{
    struct asked *asked = group.first;

    while (asked && asked->comm != comm)
        asked = asked->next;
    return asked;
}

/* The group's entry for a communicator, new where there is none. */
static struct asked *group_entry(struct nccl_comm *comm)
{
    struct asked *asked = group_find(comm);
    struct asked **at = &group.first;

    if (asked)
        return asked;
    asked = calloc(1, sizeof *asked);
    if (!asked)
        return NULL;
    asked->comm = comm;
    while (*at)
        at = &(*at)->next;
    *at = asked;
    return asked;
}

void group_start(void)
{
    group.depth++;
}

/* Starts what an entry asks for and drops the entry. */
static int asked_start(struct asked *asked)
{
    struct nccl_comm *comm = asked->comm;
    struct batch *batch = asked->batch;

    free(asked);
    return batch ? comm_launch(comm, batch) : comm_job(comm, comm_init);
}

/* Nothing of a group that failed is begun. */
static void asked_drop(struct asked *asked, int error)
{
    if (asked->batch)
        batch_free(asked->batch);
    else
        atomic_store(&asked->comm->async, error);
    free(asked);
}

static bool is_blocking_init(const struct asked *asked)
{
    return !asked->batch && asked->comm->is_blocking;
}

/* Blocking inits of one group must meet each other: all start, then all are
 * waited for. */
static int inits_run(struct asked *first)
{
    int status = NCCL_SUCCESS;

    for (struct asked *at = first; at; at = at->next)
        if (is_blocking_init(at)) {
            int started = comm_job(at->comm, comm_init);
            status = status ? status : started;
        }
    for (struct asked *at = first; at; at = at->next)
        if (is_blocking_init(at)) {
            int ended = comm_wait(at->comm);
            status = status ? status : ended;
        }
    return status;
}

int group_end(void)
{
    int error = group.error, status = NCCL_SUCCESS;
    struct asked *first = group.first, *next;
    bool is_blocking = true;

    if (group.depth == 0)
        return nccl_fail(NCCL_INVALID_USAGE,
                         "ncclGroupEnd: not in a group call.");
    if (--group.depth > 0)
        return NCCL_SUCCESS;
    group.error = NCCL_SUCCESS;
    group.first = NULL;
    if (error == NCCL_SUCCESS)
        status = inits_run(first);
    for (struct asked *at = first; at; at = next) {
        next = at->next;
        is_blocking = is_blocking && at->comm->is_blocking;
        if (error != NCCL_SUCCESS) {
            asked_drop(at, error);
        } else if (is_blocking_init(at)) {
            free(at); /* has been run */
        } else {
            int started = asked_start(at);
            status = status ? status : started;
        }
    }
    if (error != NCCL_SUCCESS)
        return error;
    return status == NCCL_SUCCESS && !is_blocking ? NCCL_IN_PROGRESS : status;
}

int group_call_end(struct nccl_comm *comm, int status)
{
    if (status != NCCL_SUCCESS && group.error == NCCL_SUCCESS)
        group.error = status;
    if (status != NCCL_SUCCESS && comm && !comm->is_blocking)
        atomic_store(&comm->async, status);
    int ended = group_end();
    if (status != NCCL_SUCCESS)
        return status;
    if (ended == NCCL_IN_PROGRESS)
        return atomic_load(&comm->async);
    return ended;
}

bool group_add_init(struct nccl_comm *comm)
{
    return group_entry(comm) != NULL;
}

int group_add_op(struct nccl_comm *comm, struct op *op,
                 struct cuda_stream *stream)
{
    struct asked *asked = group_entry(comm);
    struct op **at;

    if (asked && !asked->batch) {
        asked->batch = calloc(1, sizeof *asked->batch);
        if (asked->batch)
            *asked->batch = (struct batch){.comm = comm, .stream = stream};
    }
    if (!asked || !asked->batch) {
        free(op);
        return nccl_fail(NCCL_SYSTEM_ERROR, "no memory");
    }
    if (asked->batch->stream != stream) {
        free(op);
        return nccl_fail(NCCL_INVALID_USAGE,
                         "the double takes one stream for each communicator "
                         "of a group");
    }
    for (at = &asked->batch->ops; *at;)
        at = &(*at)->next;
    *at = op;
    return NCCL_SUCCESS;
}
