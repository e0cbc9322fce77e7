/* SPDX-License-Identifier: Apache-2.0
 *
 * The collectives: one ring, whatever NCCL would choose. What a link line
 * says a transfer takes, it takes at least. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "tests/doubles/nccl_comm.h"
#include "tests/doubles/nccl_reduce.h"
#include "tests/doubles/nccl_wire.h"

enum { PIECE_BYTES = 1 << 20 }; /* of a broadcast */

static bool is_between(const struct scenario_link *link, const char *a,
                       const char *b)
{
    return (fnmatch(link->from, a, 0) == 0 && fnmatch(link->to, b, 0) == 0) ||
           (fnmatch(link->from, b, 0) == 0 && fnmatch(link->to, a, 0) == 0);
}

uint64_t link_cost_ns(const struct nccl_comm *comm, int to, size_t bytes)
{
    const struct scenario *scenario = comm->scenario;

    for (int i = scenario->link_count - 1; i >= 0; i--) {
        const struct scenario_link *link = &scenario->links[i];
        if (!is_between(link, scenario->node, comm->peers[to].node))
            continue;
        double cost = (double)link->latency_ns;
        if (link->bytes_per_s > 0)
            cost += (double)bytes * 1e9 / (double)link->bytes_per_s;
        return (uint64_t)(cost * comm->slowness);
    }
    return 0;
}

/* Sends to the next rank and receives from the one before. */
static int step(struct nccl_comm *comm, const void *out, size_t out_bytes,
                void *in, size_t in_bytes)
{
    int next = (comm->rank + 1) % comm->rank_count;
    uint64_t start = wire_now_ns();
    int status = wire_exchange(comm->next_fd, out, out_bytes, comm->prev_fd, in,
                               in_bytes, comm->abort_fd);

    if (status == NCCL_SUCCESS && out_bytes > 0 && comm->has_met)
        status = wire_sleep_until(start + link_cost_ns(comm, next, out_bytes),
                                  comm->abort_fd);
    return status;
}

int ring_gather(struct nccl_comm *comm, void *all, size_t bytes)
{
    char *blocks = all;
    int n = comm->rank_count, status = NCCL_SUCCESS;

    for (int s = 0; s < n - 1 && status == NCCL_SUCCESS; s++) {
        size_t out = (size_t)((comm->rank - s + n) % n);
        size_t in = (size_t)((comm->rank - s - 1 + n) % n);
        status =
            step(comm, blocks + out * bytes, bytes, blocks + in * bytes, bytes);
    }
    return status;
}

/* --- All-reduce --------------------------------------------------------- */

struct chunks {
    char *data;
    size_t count; /* elements in all */
    size_t bytes; /* of an element */
    int n;
};

static size_t chunk_start(const struct chunks *chunks, int chunk)
{
    size_t n = (size_t)chunks->n, c = (size_t)chunk;
    size_t rest = chunks->count % n;

    return chunks->count / n * c + (c < rest ? c : rest);
}

static size_t chunk_count(const struct chunks *chunks, int chunk)
{
    return chunk_start(chunks, chunk + 1) - chunk_start(chunks, chunk);
}

static char *chunk_at(const struct chunks *chunks, int chunk)
{
    return chunks->data + chunk_start(chunks, chunk) * chunks->bytes;
}

/* After this, a rank has the whole sum of the chunk behind its own. */
static int reduce_chunks(struct nccl_comm *comm, const struct op *op,
                         const struct chunks *chunks, char *arrived)
{
    int n = comm->rank_count, status = NCCL_SUCCESS;

    for (int s = 0; s < n - 1 && status == NCCL_SUCCESS; s++) {
        int out = (comm->rank - s + n) % n;
        int in = (comm->rank - s - 1 + n) % n;
        status = step(comm, chunk_at(chunks, out),
                      chunk_count(chunks, out) * chunks->bytes, arrived,
                      chunk_count(chunks, in) * chunks->bytes);
        if (status == NCCL_SUCCESS)
            reduce_add(chunk_at(chunks, in), arrived, chunk_count(chunks, in),
                       op->type, op->reduction);
    }
    return status;
}

static int spread_chunks(struct nccl_comm *comm, const struct chunks *chunks)
{
    int n = comm->rank_count, status = NCCL_SUCCESS;

    for (int s = 0; s < n - 1 && status == NCCL_SUCCESS; s++) {
        int out = (comm->rank + 1 - s + n) % n;
        int in = (comm->rank - s + n) % n;
        status =
            step(comm, chunk_at(chunks, out),
                 chunk_count(chunks, out) * chunks->bytes, chunk_at(chunks, in),
                 chunk_count(chunks, in) * chunks->bytes);
    }
    return status;
}

int ring_all_reduce(struct nccl_comm *comm, const struct op *op)
{
    struct chunks chunks = {.data = op->receive,
                            .count = op->count,
                            .bytes = reduce_bytes(op->type),
                            .n = comm->rank_count};
    int whole = (comm->rank + 1) % comm->rank_count;
    char *arrived = malloc((op->count / (size_t)chunks.n + 1) * chunks.bytes);

    if (!arrived)
        return nccl_fail(NCCL_SYSTEM_ERROR, "no memory");
    if (op->count > 0)
        memmove(op->receive, op->send, op->count * chunks.bytes);
    int status = reduce_chunks(comm, op, &chunks, arrived);
    free(arrived);
    if (status != NCCL_SUCCESS)
        return status;
    reduce_finish(chunk_at(&chunks, whole), chunk_count(&chunks, whole),
                  op->type, op->reduction, comm->rank_count);
    return spread_chunks(comm, &chunks);
}

/* --- The others --------------------------------------------------------- */

int ring_all_gather(struct nccl_comm *comm, const struct op *op)
{
    size_t bytes = op->count * reduce_bytes(op->type);

    if (bytes == 0)
        return NCCL_SUCCESS;
    memmove((char *)op->receive + (size_t)comm->rank * bytes, op->send, bytes);
    return ring_gather(comm, op->receive, bytes);
}

int ring_reduce_scatter(struct nccl_comm *comm, const struct op *op)
{
    size_t bytes = op->count * reduce_bytes(op->type);
    const char *own = op->send;
    char *room = malloc(2 * bytes + 1);
    char *sum = room, *arrived = room + bytes;
    int n = comm->rank_count, status = NCCL_SUCCESS;

    if (!room)
        return nccl_fail(NCCL_SYSTEM_ERROR, "no memory");
    for (int s = 0; s < n && bytes > 0; s++) {
        size_t block = (size_t)((comm->rank - s - 1 + n) % n);
        if (s == 0) {
            memcpy(sum, own + block * bytes, bytes);
            continue;
        }
        status = step(comm, sum, bytes, arrived, bytes);
        if (status != NCCL_SUCCESS)
            break;
        reduce_add(arrived, own + block * bytes, op->count, op->type,
                   op->reduction);
        char *other = sum;
        sum = arrived;
        arrived = other;
    }
    if (status == NCCL_SUCCESS && bytes > 0) {
        reduce_finish(sum, op->count, op->type, op->reduction, n);
        memcpy(op->receive, sum, bytes);
    }
    free(room);
    return status;
}

int ring_broadcast(struct nccl_comm *comm, const struct op *op)
{
    size_t bytes = op->count * reduce_bytes(op->type);
    int next = (comm->rank + 1) % comm->rank_count;
    int status = NCCL_SUCCESS;

    if (comm->rank == op->peer && bytes > 0)
        memmove(op->receive, op->send, bytes);
    for (size_t at = 0; at < bytes && status == NCCL_SUCCESS;) {
        size_t piece = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
        char *data = (char *)op->receive + at;
        if (comm->rank != op->peer)
            status = step(comm, NULL, 0, data, piece);
        if (status == NCCL_SUCCESS && next != op->peer)
            status = step(comm, data, piece, NULL, 0);
        at += piece;
    }
    return status;
}
