/* SPDX-License-Identifier: Apache-2.0
 *
 * What a rank that failed has left behind, made fit to be read: the last
 * lines of its stderr, what NCCL complained of, the kernel's word on its
 * death. All of it comes from the rank, so it may be anything. Pure.
 */
#ifndef WORKER_EVIDENCE_H
#define WORKER_EVIDENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpulaunch.pb-c.h"
#include "proto/limits.h"

/* Of the file in the ranks' log folder that torch writes the exception to:
 * "rank-3.error.json". */
#define EVIDENCE_ERROR_ENDING ".error.json"

/* The last lines, from the last `n` bytes; `is_cut`: there were more before
 * them, so the first line is left out (one that fills all of it is kept, with
 * "..." before it). What a terminal would not show is left out: escape
 * sequences, and the earlier states of a progress bar. Returns its length. */
size_t evidence_tail(char out[GPUL_TAIL_BYTES_MAX + 1], const char *bytes,
                     size_t n, bool is_cut);

enum { EVIDENCE_LINE_BYTES = 512, EVIDENCE_STREAMS = 2 };

/* NCCL's complaints in what a rank writes, as it goes by. All zero: none. */
struct evidence_nccl {
    struct {
        char bytes[EVIDENCE_LINE_BYTES]; /* of a line without an end yet */
        size_t used;
        bool is_wanted; /* whatever it says: the line before announced it */
    } open[EVIDENCE_STREAMS];
    char *found[GPUL_NCCL_WARNINGS_MAX]; /* owned */
    size_t count;
};

/* Bytes of a stream (0 or 1), cut anywhere. Without memory a line is missed. */
void evidence_nccl_take(struct evidence_nccl *e, unsigned stream,
                        const char *bytes, size_t n);
/* No more will come: a last line without its end counts. */
void evidence_nccl_end(struct evidence_nccl *e);
void evidence_nccl_release(struct evidence_nccl *e);

/* The process that was killed for want of memory, as a record of /dev/kmsg
 * says; 0: it says nothing of that kind. Source of its form: dump_header and
 * __oom_kill_process in the kernel's mm/oom_kill.c. */
int32_t evidence_oom_pid(const char *record, size_t n);

/* What is known of the memory of a rank that has ended. */
struct evidence_memory {
    bool is_killed;    /* the rank itself, by SIGKILL */
    bool has_counted;  /* its cgroup's counter rose: one in there was killed */
    bool has_counter;  /* such a kill would have been counted */
    bool is_in_log;    /* the kernel's log names the rank */
    bool is_log_whole; /* it would have */
};

/* Was it killed for want of memory? The log says who was; others, those of
 * other nodes too, may be in the same cgroup. No is only said where one of the
 * two would have shown it. */
Gpul__Exit__OutOfMemory evidence_judge_memory(const struct evidence_memory *m);

#endif
