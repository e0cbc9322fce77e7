/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/collective_host.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "worker/ringplan.h"
#include "worker/wait.h"

enum {
    /* 256 KiB: piece, scratch and what the kernel copies fit a second-level
     * cache of 1 MiB together. docs/records/allreduce.md has the tries. */
    PIECE_ELEMENTS_MAX = 64 << 10,
    /* Below this the system calls cost more than the cache gives. */
    PIECE_ELEMENTS_MIN = 4 << 10,
    /* The clock is read once in so many turns that moved something. */
    TURNS_PER_CLOCK = 32,
};

/* One direction of the ring. */
struct lane {
    uint64_t slot;               /* the one under way */
    struct ringplan_piece piece; /* of that slot */
    size_t done_bytes;           /* of that piece */
    uint64_t total_bytes;        /* of all slots so far */
};

struct exchange {
    const struct collective_host *c;
    struct ringplan plan;
    float *data;
    struct lane sending;
    struct lane receiving;
};

int collective_host_init(struct collective_host *c, const struct ringlink *link,
                         struct gpul_error *err)
{
    *c = (struct collective_host){.link = link};
    c->scratch = malloc(PIECE_ELEMENTS_MAX * sizeof(float));
    c->barrier = calloc(link->place.node_count, sizeof(float));
    if (c->scratch == NULL || c->barrier == NULL) {
        collective_host_release(c);
        return gpul_fail(err, GPUL_ENOMEM, "no memory for a piece of the ring");
    }
    return 0;
}

void collective_host_release(struct collective_host *c)
{
    free(c->scratch);
    free(c->barrier);
    *c = (struct collective_host){0};
}

/* A whole piece for large buffers; for smaller ones the size that still
 * makes two blocks, so that sending and receiving overlap. */
static uint64_t piece_elements(uint64_t count, uint32_t n)
{
    uint64_t elements = count / n / 2;
    if (elements > PIECE_ELEMENTS_MAX) {
        return PIECE_ELEMENTS_MAX;
    }
    return elements < PIECE_ELEMENTS_MIN ? PIECE_ELEMENTS_MIN : elements;
}

static size_t piece_bytes(const struct ringplan_piece *piece)
{
    return (size_t)piece->count * sizeof(float);
}

/* Go to the next slot that has something in it, or past the last. */
static void lane_seek(struct exchange *x, struct lane *lane)
{
    bool is_sending = lane == &x->sending;
    lane->done_bytes = 0;
    lane->piece.count = 0;
    for (;;) {
        lane->slot = ringplan_next(&x->plan, lane->slot);
        if (lane->slot == x->plan.slots) {
            return;
        }
        lane->piece = is_sending ? ringplan_send(&x->plan, lane->slot)
                                 : ringplan_receive(&x->plan, lane->slot);
        if (lane->piece.count > 0) {
            return;
        }
        lane->slot++;
    }
}

static void lane_advance(struct exchange *x, struct lane *lane, size_t n)
{
    lane->done_bytes += n;
    lane->total_bytes += n;
    if (lane->done_bytes == piece_bytes(&lane->piece)) {
        lane->slot++;
        lane_seek(x, lane);
    }
}

static bool lane_is_done(const struct exchange *x, const struct lane *lane)
{
    return lane->slot == x->plan.slots;
}

/* ---- sending and receiving ----------------------------------------------- */

static bool may_send(const struct exchange *x)
{
    return !lane_is_done(x, &x->sending) &&
           ringplan_needs(&x->plan, x->sending.slot) <= x->receiving.slot;
}

/* Returns whether anything moved, or a failure. */
static int send_some(struct exchange *x, struct gpul_error *err)
{
    struct lane *lane = &x->sending;
    if (!may_send(x)) {
        return 0;
    }
    const uint8_t *bytes = (const uint8_t *)(x->data + lane->piece.first);
    ssize_t n = send(x->c->link->right_fd, bytes + lane->done_bytes,
                     piece_bytes(&lane->piece) - lane->done_bytes,
                     MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return 0;
    }
    if (n < 0) {
        return ringlink_lost(x->c->link->right_name, "send", errno, err);
    }
    lane_advance(x, lane, (size_t)n);
    return 1;
}

static void add(float *restrict data, const float *restrict more, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        data[i] += more[i];
    }
}

/* Add the elements that became whole between two byte positions. */
static void add_whole(struct exchange *x, size_t before_bytes,
                      size_t after_bytes)
{
    size_t first = before_bytes / sizeof(float);
    size_t end = after_bytes / sizeof(float);
    add(x->data + x->receiving.piece.first + first, x->c->scratch + first,
        end - first);
}

static int receive_some(struct exchange *x, struct gpul_error *err)
{
    struct lane *lane = &x->receiving;
    if (lane_is_done(x, lane)) {
        return 0;
    }
    bool is_reduced = lane->piece.is_reduced;
    uint8_t *to = is_reduced ? (uint8_t *)x->c->scratch
                             : (uint8_t *)(x->data + lane->piece.first);
    ssize_t n =
        recv(x->c->link->left_fd, to + lane->done_bytes,
             piece_bytes(&lane->piece) - lane->done_bytes, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return 0;
    }
    if (n < 0) {
        return ringlink_lost(x->c->link->left_name, "receive", errno, err);
    }
    if (n == 0) {
        return ringlink_lost(x->c->link->left_name, "receive", ECONNRESET, err);
    }
    if (is_reduced) {
        add_whole(x, lane->done_bytes, lane->done_bytes + (size_t)n);
    }
    lane_advance(x, lane, (size_t)n);
    return 1;
}

/* ---- the loop ------------------------------------------------------------ */

static int exchange_timeout(const struct exchange *x, struct gpul_error *err)
{
    return gpul_fail(err, GPUL_ETIMEOUT,
                     "deadline reached; %" PRIu64 " bytes received from %s, "
                     "%" PRIu64 " bytes sent to %s",
                     x->receiving.total_bytes, x->c->link->left_name,
                     x->sending.total_bytes, x->c->link->right_name);
}

/* Neither direction moves: wait until one can. A neighbour that has all it
 * needs may close, so each is looked at only where something is wanted. */
static int exchange_wait(const struct exchange *x, uint64_t deadline_ms,
                         struct gpul_error *err)
{
    const struct ringlink *link = x->c->link;
    bool is_receiving = !lane_is_done(x, &x->receiving);
    struct pollfd fds[] = {
        {.fd = link->watch_fd, .events = POLLIN},
        {.fd = is_receiving ? link->left_fd : -1, .events = POLLIN},
        {.fd = may_send(x) ? link->right_fd : -1, .events = POLLOUT},
    };
    int status = wait_watched(fds, 3, deadline_ms, err);
    return status == GPUL_ETIMEOUT ? exchange_timeout(x, err) : status;
}

static int exchange_run(struct exchange *x, uint64_t deadline_ms,
                        struct gpul_error *err)
{
    unsigned turns = 0;
    int status = 0;
    while (status == 0 &&
           (!lane_is_done(x, &x->sending) || !lane_is_done(x, &x->receiving))) {
        int sent = send_some(x, err);
        int received = sent < 0 ? 0 : receive_some(x, err);
        if (sent < 0 || received < 0) {
            status = sent < 0 ? sent : received;
        } else if (sent == 0 && received == 0) {
            status = exchange_wait(x, deadline_ms, err);
        } else if (++turns % TURNS_PER_CLOCK == 0 &&
                   gpul_clock_ms() >= deadline_ms) {
            status = exchange_timeout(x, err);
        }
    }
    return status;
}

int collective_host_allreduce(struct collective_host *c, float *data,
                              uint64_t count, uint64_t deadline_ms,
                              struct gpul_error *err)
{
    const struct ringlink_place *place = &c->link->place;
    struct exchange x = {.c = c, .data = data};
    ringplan_init(&x.plan, place->rank, place->node_count, count,
                  piece_elements(count, place->node_count));
    lane_seek(&x, &x.sending);
    lane_seek(&x, &x.receiving);
    return exchange_run(&x, deadline_ms, err);
}

int collective_host_barrier(struct collective_host *c, uint64_t deadline_ms,
                            struct gpul_error *err)
{
    /* A sum is known only when everybody has put something in. */
    return collective_host_allreduce(c, c->barrier, c->link->place.node_count,
                                     deadline_ms, err);
}
