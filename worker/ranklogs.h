/* SPDX-License-Identifier: Apache-2.0
 *
 * The log files of this node's ranks, byte for byte what they wrote:
 * <log_dir>/attempt-<n>/rank-<r>.out and .err. Files appear with the first
 * byte, and an empty folder goes, so a quiet success leaves nothing. Edge.
 *
 * The two innermost folders must be real folders of this user; files are
 * created, never opened: a log goes into no file that was there before. Only
 * an agent that goes on with another's ranks opens what that one made.
 */
#ifndef WORKER_RANKLOGS_H
#define WORKER_RANKLOGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* Name of a folder: "attempt-" and a number, and room. */
enum { RANKLOG_FOLDER_BYTES = 24 };

enum ranklog_stream { RANKLOG_OUT = 0, RANKLOG_ERR = 1, RANKLOG_STREAMS = 2 };

struct ranklogs {
    char *log_dir;                   /* absolute; NULL: no log files at all */
    char name[RANKLOG_FOLDER_BYTES]; /* of the folder below it */
    int folder;                      /* its descriptor, -1: not made yet */
    bool resumes; /* files of this folder may be there: add to them */
    char **made;  /* what was created, in order, below log_dir; owned */
    size_t made_count;
    size_t made_capacity;
};

void ranklogs_init(struct ranklogs *l);
/* Files stay. */
void ranklogs_release(struct ranklogs *l);

/* From now on logs belong to this attempt. `log_dir` may be "": none. */
int ranklogs_begin(struct ranklogs *l, const char *log_dir, uint32_t attempt,
                   struct gpul_error *err);

/* The same for another folder than an attempt's. */
int ranklogs_begin_folder(struct ranklogs *l, const char *log_dir,
                          const char *name, struct gpul_error *err);

/* After begin: this agent goes on where another has died. What is in this
 * folder of the job is to be removed by it too, and logs are added to. Errors:
 * GPUL_ENOMEM. */
int ranklogs_resume(struct ranklogs *l, const char *folder,
                    struct gpul_error *err);

bool ranklogs_is_on(const struct ranklogs *l);

/* Path of a log into `path`, whether it exists or not; "" if logs are off. */
void ranklogs_path(const struct ranklogs *l, char *path, size_t bytes,
                   uint32_t rank, enum ranklog_stream stream);

/* Create a log, or find its end when resuming, and return its descriptor, for
 * reading too, in *fd. Errors: GPUL_ESYS naming
 * the path; GPUL_EINVAL for a folder that is not this user's. */
int ranklogs_open(struct ranklogs *l, int *fd, uint32_t rank,
                  enum ranklog_stream stream, struct gpul_error *err);

/* Create <folder>/<name>, mode 0600, and return its descriptor in *fd. Needs
 * a log folder. Errors as open. */
int ranklogs_create(struct ranklogs *l, int *fd, const char *name,
                    struct gpul_error *err);

/* Create <folder>/<name> with mode 0600 and this content. Needs a
 * log folder. Errors as open. */
int ranklogs_put_file(struct ranklogs *l, const char *name, const char *text,
                      struct gpul_error *err);

/* Ranks may write rank-<r>.error.json: make the folder that they stand in, and
 * remove them with all else. Errors as open. */
int ranklogs_expect_errors(struct ranklogs *l, uint32_t first_rank,
                           uint32_t count, struct gpul_error *err);

/* The first n bytes of that file, the last n of the rank's stderr log; returns
 * how many, 0 where there is no such plain file, and its size in *size. */
size_t ranklogs_read_error(struct ranklogs *l, uint32_t rank, void *bytes,
                           size_t n, uint64_t *size);
size_t ranklogs_read_end(struct ranklogs *l, uint32_t rank, void *bytes,
                         size_t n, uint64_t *size);

/* Remove the files that were made here, and the folders if then empty. */
void ranklogs_remove(struct ranklogs *l);

/* Write all n bytes; GPUL_ESYS with the errno's text. Shared by the above
 * and whoever holds a descriptor of open. */
int ranklogs_write(int fd, const void *bytes, size_t n, struct gpul_error *err);

#endif
