/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends and receives: one connection for each direction of each pair, made
 * when it is first needed. All of a group proceed at once; those of one
 * direction and one peer in their order. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/doubles/nccl_comm.h"
#include "tests/doubles/nccl_reduce.h"
#include "tests/doubles/nccl_wire.h"

struct transfer {
    int peer;
    bool sends;
    const char *out;
    char *in;
    size_t left;
};

struct exchange {
    struct transfer *transfers;
    size_t count;
    struct pollfd *fds; /* abort, listen, then one for each transfer */
    char *is_busy;      /* by rank and direction: an earlier one is under way */
    bool has_finished;  /* a transfer came to its end, so others may go on */
};

static size_t ops_count(const struct op *ops)
{
    size_t count = 0;

    for (; ops && ops->kind == POINT_SENDRECV; ops = ops->next)
        count++;
    return count;
}

/* The k-th send to oneself goes where the k-th receive from oneself wants. */
static int exchange_self(struct nccl_comm *comm, struct exchange *exchange)
{
    struct transfer *transfers = exchange->transfers;

    for (size_t i = 0, r = 0; i < exchange->count; i++) {
        if (!transfers[i].sends || transfers[i].peer != comm->rank)
            continue;
        while (r < exchange->count &&
               (transfers[r].sends || transfers[r].peer != comm->rank))
            r++;
        if (r == exchange->count || transfers[r].left != transfers[i].left)
            return nccl_fail(NCCL_INVALID_USAGE,
                             "rank %d sends to itself, but does not receive",
                             comm->rank);
        if (transfers[i].left > 0)
            memmove(transfers[r].in, transfers[i].out, transfers[i].left);
        transfers[i].left = transfers[r].left = 0;
        r++;
    }
    return NCCL_SUCCESS;
}

static int connect_sends(struct nccl_comm *comm, struct exchange *exchange)
{
    uint64_t magic = ((struct id_content *)(void *)comm->ids)->magic;
    int32_t self = comm->rank;
    int status = NCCL_SUCCESS;

    for (size_t i = 0; i < exchange->count && status == NCCL_SUCCESS; i++) {
        struct transfer *transfer = &exchange->transfers[i];
        if (transfer->sends && transfer->left > 0 &&
            comm->send_fds[transfer->peer] < 0)
            status = wire_connect(&comm->peers[transfer->peer].address, magic,
                                  &self, sizeof self, comm->abort_fd,
                                  &comm->send_fds[transfer->peer]);
    }
    return status;
}

static int accept_one(struct nccl_comm *comm)
{
    uint64_t magic = ((struct id_content *)(void *)comm->ids)->magic;
    int32_t from = -1;
    int fd = -1;
    int status = wire_accept(comm->listen_fd, magic, &from, sizeof from,
                             comm->abort_fd, &fd);

    if (status != NCCL_SUCCESS)
        return status;
    if (from < 0 || from >= comm->rank_count || comm->receive_fds[from] >= 0) {
        (void)close(fd);
        return nccl_fail(NCCL_INTERNAL_ERROR, "a second connection of rank %d",
                         from);
    }
    comm->receive_fds[from] = fd;
    return NCCL_SUCCESS;
}

/* Moves what can be moved and names what is to be waited for. */
static int advance(struct nccl_comm *comm, struct exchange *exchange,
                   size_t *pending)
{
    int status = NCCL_SUCCESS;

    *pending = 0;
    exchange->has_finished = false;
    memset(exchange->is_busy, 0, 2 * (size_t)comm->rank_count);
    exchange->fds[1].events = 0;
    for (size_t i = 0; i < exchange->count && status == NCCL_SUCCESS; i++) {
        struct transfer *transfer = &exchange->transfers[i];
        struct pollfd *fd = &exchange->fds[2 + i];
        char *is_busy =
            &exchange->is_busy[2 * transfer->peer + transfer->sends];
        *fd = (struct pollfd){.fd = -1};
        if (transfer->left == 0)
            continue;
        ++*pending;
        if (*is_busy)
            continue;
        *is_busy = 1;
        fd->fd = transfer->sends ? comm->send_fds[transfer->peer]
                                 : comm->receive_fds[transfer->peer];
        fd->events = transfer->sends ? POLLOUT : POLLIN;
        if (fd->fd < 0)
            exchange->fds[1].events = POLLIN; /* somebody has yet to come */
        else if (transfer->sends)
            status = wire_send(fd->fd, &transfer->out, &transfer->left);
        else
            status = wire_receive(fd->fd, &transfer->in, &transfer->left);
        exchange->has_finished |= transfer->left == 0;
    }
    return status;
}

static int exchange_run(struct nccl_comm *comm, struct exchange *exchange)
{
    size_t pending = 0;
    int status = exchange_self(comm, exchange);

    if (status == NCCL_SUCCESS)
        status = connect_sends(comm, exchange);
    exchange->fds[0] = (struct pollfd){comm->abort_fd, POLLIN, 0};
    exchange->fds[1] = (struct pollfd){.fd = comm->listen_fd};
    while (status == NCCL_SUCCESS) {
        status = advance(comm, exchange, &pending);
        if (status != NCCL_SUCCESS || pending == 0)
            break;
        if (exchange->has_finished)
            continue; /* nothing may be left that an event would tell of */
        exchange->fds[1].revents = 0;
        status = wire_wait(exchange->fds, 2 + exchange->count);
        if (status == NCCL_SUCCESS && exchange->fds[1].revents & POLLIN)
            status = accept_one(comm);
    }
    return status;
}

/* What the links make of all sends, one after the other. */
static uint64_t cost_ns(const struct nccl_comm *comm,
                        const struct exchange *exchange)
{
    uint64_t cost = 0;

    for (size_t i = 0; i < exchange->count; i++)
        if (exchange->transfers[i].sends &&
            exchange->transfers[i].peer != comm->rank)
            cost += link_cost_ns(comm, exchange->transfers[i].peer,
                                 exchange->transfers[i].left);
    return cost;
}

int peer_exchange(struct nccl_comm *comm, const struct op *ops)
{
    struct exchange exchange = {.count = ops_count(ops)};
    int status = NCCL_SYSTEM_ERROR;
    uint64_t end = wire_now_ns();

    exchange.transfers = calloc(exchange.count, sizeof *exchange.transfers);
    exchange.fds = calloc(exchange.count + 2, sizeof *exchange.fds);
    exchange.is_busy = calloc(2, (size_t)comm->rank_count);
    if (exchange.transfers && exchange.fds && exchange.is_busy) {
        for (size_t i = 0; i < exchange.count; i++, ops = ops->next)
            exchange.transfers[i] =
                (struct transfer){.peer = ops->peer,
                                  .sends = ops->sends,
                                  .out = ops->send,
                                  .in = ops->receive,
                                  .left = ops->count * reduce_bytes(ops->type)};
        end += cost_ns(comm, &exchange);
        status = exchange_run(comm, &exchange);
    } else {
        (void)nccl_fail(NCCL_SYSTEM_ERROR, "no memory");
    }
    if (status == NCCL_SUCCESS)
        status = wire_sleep_until(end, comm->abort_fd);
    free(exchange.transfers);
    free(exchange.fds);
    free(exchange.is_busy);
    return status;
}
