/* SPDX-License-Identifier: Apache-2.0
 *
 * What the ways to reach nodes use of reach.c. Nobody else includes this.
 */
#ifndef LAUNCHER_REACH_INTERNAL_H
#define LAUNCHER_REACH_INTERNAL_H

#include "common/spawn.h"
#include "launcher/reach.h"

enum { REACH_WORDS_BYTES = 400 }; /* of a child's last words */

struct reach_program {
    const char *path;
    char *const *arguments;
    char *const *environment; /* NULL: ours */
};

/* Start a child: 0 and 1 are to be in fds[0] and fds[1], 2 is filled in here
 * with a new memory file. Its earlier one is closed. */
int reach_spawn(struct reach *r, struct reach_child *child,
                const struct reach_program *program, struct gpul_spawn_fd *fds,
                size_t fd_count, int parent_death_signal,
                struct gpul_error *err);

/* A pipe with the key of this node; -1 where none is needed. */
int reach_open_key(int *fd, const struct reach_job *job, const char *node_name,
                   struct gpul_error *err);

/* reach_local.c: start the worker of one node as a child; null_fd becomes its
 * input and output. */
int reach_start_here(struct reach *r, const struct reach_job *job,
                     uint32_t index, int null_fd, struct gpul_error *err);

/* The coordinator or a worker of this pid; NULL: another child. */
struct reach_child *reach_child_of(struct reach *r, pid_t pid);

/* reach_orphans.c: children that were there before us are none of ours. One
 * that has ended is forgotten, since its pid may come to mean an orphan. */
int reach_note_strangers(struct reach *r, struct gpul_error *err);
void reach_forget_stranger(struct reach *r, pid_t pid);

/* The last whole lines that a child has written, as many as `bytes` hold with
 * the NUL: cleaned, a newline between two; "" if there are none. */
void reach_lines(char *lines, size_t bytes, const struct reach_child *child);

/* The same on one line. */
void reach_words(char words[REACH_WORDS_BYTES + 1],
                 const struct reach_child *child);

/* What it has written so far is not among its last words. */
void reach_forget_words(struct reach_child *child);

/* "ended with exit code 3: words" */
void reach_describe(struct gpul_buf *out, const struct reach_child *child);

#endif
