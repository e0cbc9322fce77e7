/* SPDX-License-Identifier: Apache-2.0
 *
 * A probe's two connections: it dials its right neighbour and is dialled by
 * its left one. Edge.
 *
 * Happy path: listen, tell the port to whoever gathers them, then dial and
 * accept at the same time. The dialler speaks first; the other side answers
 * only when that was right; so both have proved that they belong to the same
 * ring, and nobody without the token gets a byte out of a probe:
 *
 *     offset  bytes  (all numbers big-endian)
 *          0      8  "GPULRNG1"
 *          8      8  token of this self-test
 *         16      4  generation
 *         20      4  nodes in the ring
 *         24      4  node rank of the sender
 *
 * Failure modes: the right neighbour refuses, closes, or answers something
 * else; the left one never dials; the agent goes away; the deadline. Anybody
 * else who dials is dropped and costs at most one of RINGLINK_CALLERS_MAX
 * places of a few bytes; the one that has waited longest makes room.
 */
#ifndef WORKER_RINGLINK_H
#define WORKER_RINGLINK_H

#include <stdint.h>

#include "common/error.h"

enum {
    RINGLINK_HELLO_BYTES = 28,
    RINGLINK_CALLERS_MAX = 16,
    RINGLINK_NAME_BYTES = 400,
};

/* Who we are, and whose neighbour. */
struct ringlink_place {
    uint32_t rank;
    uint32_t node_count; /* at least 2 */
    uint32_t generation;
    uint64_t token;
    const char *left_name; /* borrowed; NULL or "": not known */
    const char *right_name;
};

struct ringlink {
    struct ringlink_place place;
    int watch_fd;  /* borrowed; readable or closed: the agent is gone. -1 */
    int listen_fd; /* -1 before listening and after the left one came */
    int left_fd;   /* receives; -1 before */
    int right_fd;  /* sends; -1 before */
    char here[RINGLINK_NAME_BYTES]; /* address:port listened on */
    /* "left neighbour (node c, 10.0.0.3:40001)", for messages. */
    char left_name[RINGLINK_NAME_BYTES];
    char right_name[RINGLINK_NAME_BYTES];
};

/* Asserts a valid place. No system call yet. */
void ringlink_init(struct ringlink *link, const struct ringlink_place *place,
                   int watch_fd);
void ringlink_release(struct ringlink *link);

/* Listen on a literal address, on a port of the system's choice, in *port.
 * Errors: GPUL_EINVAL (not a literal), GPUL_ESYS. */
int ringlink_listen(struct ringlink *link, const char *address, uint16_t *port,
                    struct gpul_error *err);

/* Dial the right neighbour, let the left one in. `deadline_ms` is a reading
 * of gpul_clock_ms. Errors: GPUL_EINVAL, GPUL_ESYS (of ours), GPUL_EPROTO
 * (what is there is not the neighbour), GPUL_ETIMEOUT, GPUL_ECLOSED (the
 * neighbour, or the agent). */
int ringlink_connect(struct ringlink *link, const char *address, uint16_t port,
                     uint64_t deadline_ms, struct gpul_error *err);

/* A system call on the connection to this neighbour failed: GPUL_ECLOSED. */
int ringlink_lost(const char *neighbour, const char *doing, int errno_value,
                  struct gpul_error *err);

#endif
