/* SPDX-License-Identifier: Apache-2.0
 *
 * One pipe of a rank: its bytes go into its log file, and to whoever shows
 * them. Edge.
 *
 * Happy path: the kernel moves the bytes from the pipe into the file (splice),
 * and they are read again from there; so at any instant each byte is in one of
 * the two, and an agent that dies loses none. What can go wrong: the file
 * cannot be made or written (a full disk): it is left alone from then on, and
 * the bytes are only shown; a file system without splice: they are copied.
 */
#ifndef WORKER_LOGPIPE_H
#define WORKER_LOGPIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "worker/ranklogs.h"

struct logpipe {
    struct ranklogs *logs;
    uint32_t rank;
    enum ranklog_stream stream;
    int fd;        /* reading end, does not block; owned */
    int log;       /* -1: not made yet; owned */
    uint64_t size; /* of the log */
    bool is_broken;
    bool copies; /* no splice here */
};

enum logpipe_progress { LOGPIPE_SOME, LOGPIPE_EMPTY, LOGPIPE_END };

/* `logs` is borrowed for its life. */
void logpipe_init(struct logpipe *p, struct ranklogs *logs, uint32_t rank,
                  enum ranklog_stream stream, int fd);
void logpipe_release(struct logpipe *p);

/* Make the log though nothing may have been written. Errors: those of
 * ranklogs_open; the log is broken then. */
int logpipe_make_log(struct logpipe *p, struct gpul_error *err);

/* Take what the pipe has, at most *n bytes. SOME: *n of them, in `bytes` too
 * unless that is NULL (*n is then of no buffer). `trouble`, which must be
 * empty, says what has just become wrong with the log. */
enum logpipe_progress logpipe_take(struct logpipe *p, char *bytes, size_t *n,
                                   struct gpul_error *trouble);

#endif
