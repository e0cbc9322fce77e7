/* SPDX-License-Identifier: Apache-2.0
 *
 * What keeper and agent say to each other: one struct a packet over a
 * SOCK_SEQPACKET pair, descriptors beside it (SCM_RIGHTS). Both are the same
 * program image, so the struct is the format. docs/supervision.md, "Packets".
 */
#ifndef WORKER_KEEPERWIRE_H
#define WORKER_KEEPERWIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"

enum keeper_packet_type {
    /* keeper -> agent */
    KEEPER_STATE = 1,
    KEEPER_RANK = 2,
    KEEPER_STARTED = 3,
    KEEPER_EXIT = 4,
    KEEPER_UNCLEAN = 5,
    KEEPER_GONE = 6,
    KEEPER_SIGNAL = 7,
    KEEPER_ALIVE = 8, /* the answer to ASK */
    KEEPER_LAST_TO_AGENT = KEEPER_ALIVE,
    /* agent -> keeper */
    KEEPER_BEGIN = 16,
    KEEPER_START = 17,
    KEEPER_STOP = 18,
    KEEPER_PASS = 19,
    KEEPER_ABANDON = 20,
    KEEPER_LEAVE = 21,
    KEEPER_ATTACHED = 22,
    KEEPER_CLOSE = 23,
    KEEPER_ASK = 24,
    KEEPER_LAST_TO_KEEPER = KEEPER_ASK,
};

enum {
    KEEPER_TEXT_BYTES = 256,
    /* Descriptors of one rank: the child's 0, 1, 2 and what GPULAUNCH_*_FD
     * name; and our ends of their pipes, kept for the next agent. */
    KEEPER_CHILD_FDS_MAX = 6,
    KEEPER_KEPT_FDS_MAX = 5,
    /* The start specification, the child's, the kept ones; in this order. */
    KEEPER_FDS_MAX = 1 + KEEPER_CHILD_FDS_MAX + KEEPER_KEPT_FDS_MAX,
};

/* PASS: all ranks. */
#define KEEPER_ALL_SLOTS UINT32_MAX

/* The first packets of a keeper to an agent: STATE, and `following` more. For
 * each slot started RANK (pid 0 with errno and sentence: it could not be), and
 * EXIT if it has ended; then, if nothing of them is left, what is UNCLEAN and
 * GONE: so they are told to each agent until the next BEGIN. A generation of
 * 0 has none of these.
 *
 * Every packet; what a type does not use is zero. Times are gpul_clock_ms,
 * which is the same in all processes of a host. */
struct keeper_packet {
    uint32_t type;         /* enum keeper_packet_type */
    uint32_t slot;         /* local rank */
    uint32_t generation;   /* STATE, BEGIN; 0: no ranks yet */
    uint32_t attempt;      /* STATE, BEGIN */
    uint32_t first_rank;   /* STATE, BEGIN */
    uint32_t rank_count;   /* STATE, BEGIN */
    uint32_t agent;        /* STATE: which agent this is, from 0 */
    uint32_t grace_ms;     /* STATE, BEGIN */
    uint32_t orphan_ms;    /* STATE, BEGIN */
    uint32_t following;    /* STATE: packets after it that tell the rest */
    uint32_t child_fds;    /* START */
    uint32_t kept_fds;     /* START, RANK */
    int32_t pid;           /* RANK, STARTED; 0: it could not be started */
    int32_t signal;        /* STOP, PASS, SIGNAL; STATE: of the stop, or 0 */
    int32_t status;        /* EXIT: as of waitpid; LEAVE: exit code */
    int32_t exec_errno;    /* RANK, STARTED */
    bool is_out_of_memory; /* EXIT: its cgroup counted a kill */
    /* START, RANK: the last one kept is where its input is written. CLOSE: it
     * is let go of, since the input has ended, or the rank reads no more. */
    bool has_input;
    uint64_t instance;  /* STATE */
    uint64_t at_ms;     /* RANK, STARTED: its start; EXIT: its end */
    uint64_t cpu_ms;    /* EXIT */
    uint64_t rss_bytes; /* EXIT: largest resident set */
    /* RANK, STARTED: why not; UNCLEAN: "pid name (state, wait channel)";
     * BEGIN: job id, the marker's beginning. */
    char text[KEEPER_TEXT_BYTES];
};

/* A packet that has arrived, with the descriptors, which the receiver owns. */
struct keeper_mail {
    struct keeper_packet packet;
    int fds[KEEPER_FDS_MAX];
    size_t fd_count;
};

/* Send without waiting. Returns 0, EAGAIN (the peer does not read) or another
 * errno; EPIPE: the peer is gone, but what it said may still be received. The
 * descriptors stay the caller's. */
int keeperwire_send(int socket, const struct keeper_packet *packet,
                    const int *fds, size_t fd_count);

/* Receive without waiting, descriptors close-on-exec. Returns 0, EAGAIN,
 * EPIPE (the peer is gone), EBADMSG for a packet that is none, or EMFILE for
 * one that can be read, but whose descriptors found no room in this process;
 * then no descriptor is open. */
int keeperwire_receive(int socket, struct keeper_mail *mail);

void keeperwire_close_fds(struct keeper_mail *mail);

#endif
