/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/logdir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/makeparents.h"
#include "proto/limits.h"
#include "proto/text.h"

enum {
    DIRECTORY_MODE = 0700,
    NAMES_BYTES = 128, /* /JOB/attempt-N/rank-R.err, and as much again */
    TEST_BYTES = 4096, /* a block: a full disk has room for less */
};

static int make_one(const char *path, struct gpul_error *err)
{
    struct stat st;
    if (stat(path, &st) == 0 || mkdir(path, DIRECTORY_MODE) == 0 ||
        errno == EEXIST) {
        return 0;
    }
    return gpul_fail_errno(err, errno, "cannot create %s", path);
}

/* The end of the next component of a path, from `at` on. */
static size_t component_end(const char *path, size_t at)
{
    at += strspn(path + at, "/");
    return at + strcspn(path + at, "/");
}

/* What of a path is there already. A path that is too long is refused where
 * it is made. */
static void note_old(struct logdir_made *made, const char *path)
{
    struct stat st;
    snprintf(made->path, sizeof(made->path), "%s", path);
    made->old_bytes = 0;
    for (size_t end = component_end(made->path, 0); end > made->old_bytes;
         end = component_end(made->path, end)) {
        char kept = made->path[end];
        made->path[end] = 0;
        bool is_there = stat(made->path, &st) == 0;
        made->path[end] = kept;
        if (!is_there) {
            return;
        }
        made->old_bytes = end;
    }
}

void logdir_unmake(const struct logdir_made *made)
{
    char path[PATH_MAX];
    size_t n = strlen(made->path);
    memcpy(path, made->path, n + 1);
    while (n > made->old_bytes) {
        path[n] = 0;
        rmdir(path); /* what is not empty stays, and so what is above it */
        while (n > made->old_bytes && path[n - 1] != '/') {
            n--;
        }
        while (n > made->old_bytes && path[n - 1] == '/') {
            n--;
        }
    }
}

/* The last part is judged by the caller. */
static int make_all(struct logdir_made *made, const char *path,
                    struct gpul_error *err)
{
    note_old(made, path);
    int rc = gpul_make_parents(path, err);
    return rc == 0 ? make_one(path, err) : rc;
}

static int check_directory(const char *path, struct gpul_error *err)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        return gpul_fail_errno(err, errno, "cannot use %s", path);
    }
    if (!S_ISDIR(st.st_mode)) {
        return gpul_fail(err, GPUL_EINVAL, "%s is not a directory", path);
    }
    if (access(path, R_OK | W_OK | X_OK) != 0) {
        return gpul_fail_errno(err, errno, "cannot write in %s", path);
    }
    return 0;
}

/* Write a block and take it away again: quotas and full disks show here. */
static int try_file(const char *path, struct gpul_error *err)
{
    char name[PATH_MAX];
    char block[TEST_BYTES] = {0};
    if (snprintf(name, sizeof(name), "%s/.gpulaunch-XXXXXX", path) >=
        (int)sizeof(name)) {
        return gpul_fail(err, GPUL_EINVAL, "%s: the path is too long", path);
    }
    int fd = mkostemp(name, O_CLOEXEC);
    if (fd < 0) {
        return gpul_fail_errno(err, errno, "cannot write in %s", path);
    }
    ssize_t put = write(fd, block, sizeof(block));
    int why = put < 0 ? errno : ENOSPC;
    int rc = put == (ssize_t)sizeof(block)
                 ? 0
                 : gpul_fail_errno(err, why, "cannot write in %s", path);
    if (close(fd) != 0 && rc == 0) {
        rc = gpul_fail_errno(err, errno, "cannot write in %s", path);
    }
    unlink(name);
    return rc;
}

/* It travels in messages and stands in lines for people, with the names of
 * the job and its files behind it. */
static int check_name(const char *path, struct gpul_error *err)
{
    if (!gpul_text_is_valid(path, GPUL_TEXT_LINE)) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s has bytes that are not UTF-8 or control "
                         "characters; choose another directory",
                         path);
    }
    if (strlen(path) + NAMES_BYTES > GPUL_PATH_BYTES_MAX) {
        return gpul_fail(err, GPUL_EINVAL,
                         "a path of %zu bytes is too long for the names of "
                         "log files; choose another directory",
                         strlen(path));
    }
    return 0;
}

/* Can logs be written there? To its absolute path. */
static int resolve(char **out, const char *path, struct gpul_error *err)
{
    int rc = check_directory(path, err);
    if (rc == 0) {
        rc = try_file(path, err);
    }
    if (rc != 0) {
        return rc;
    }
    char *absolute = realpath(path, NULL);
    if (absolute == NULL) {
        return gpul_fail_errno(err, errno, "cannot use %s", path);
    }
    rc = check_name(absolute, err);
    if (rc == 0) {
        *out = absolute;
    } else {
        free(absolute);
    }
    return rc;
}

int logdir_open(char **out, struct logdir_made *made, const char *wanted,
                struct gpul_error *err)
{
    *out = NULL;
    int rc = make_all(made, wanted, err);
    if (rc == 0) {
        rc = resolve(out, wanted, err);
    }
    if (rc != 0) {
        logdir_unmake(made);
    }
    return rc;
}

/* `tail`: behind gpulaunch. */
static int state_path(char path[PATH_MAX], const char *tail,
                      struct gpul_error *err)
{
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    int n;
    if (state != NULL && state[0] == '/') {
        n = snprintf(path, PATH_MAX, "%s/gpulaunch%s", state, tail);
    } else if (home != NULL && home[0] == '/') {
        n = snprintf(path, PATH_MAX, "%s/.local/state/gpulaunch%s", home, tail);
    } else {
        return gpul_fail(err, GPUL_ENOTFOUND, "HOME is not set");
    }
    return n < PATH_MAX ? 0
                        : gpul_fail(err, GPUL_EINVAL, "the path is too long");
}

static int temporary_path(char path[PATH_MAX], struct gpul_error *err)
{
    const char *base = getenv("TMPDIR");
    int n = snprintf(path, PATH_MAX, "%s/gpulaunch-%lu",
                     base != NULL && base[0] == '/' ? base : "/tmp",
                     (unsigned long)getuid());
    return n < PATH_MAX ? 0 : gpul_fail(err, GPUL_EINVAL, "TMPDIR is too long");
}

static int open_state(char **out, struct logdir_made *made, const char *tail,
                      struct gpul_error *err)
{
    char path[PATH_MAX];
    int rc = state_path(path, tail, err);
    return rc == 0 ? logdir_open(out, made, path, err) : rc;
}

/* In a directory that others can write to, only a directory of our own that
 * is no link is trusted. */
static int open_temporary(char **out, struct logdir_made *made,
                          struct gpul_error *err)
{
    char path[PATH_MAX];
    int rc = temporary_path(path, err);
    if (rc != 0) {
        return rc;
    }
    note_old(made, path);
    rc = make_one(path, err);
    if (rc != 0) {
        return rc;
    }
    struct stat st;
    if (lstat(path, &st) != 0 || !S_ISDIR(st.st_mode) ||
        st.st_uid != getuid() || (st.st_mode & 077) != 0) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s is not a private directory of this user", path);
    }
    return resolve(out, path, err);
}

int logdir_open_default(char **out, struct logdir_made *made,
                        struct gpul_error *err)
{
    *out = NULL;
    if (open_state(out, made, "/logs", NULL) == 0) {
        return 0;
    }
    int rc = open_temporary(out, made, err);
    return rc == 0 ? 0
                   : gpul_wrap(err, rc, "no place for logs; give --log-dir");
}

int logdir_open_state(char **out, struct logdir_made *made,
                      struct gpul_error *err)
{
    *out = NULL;
    return open_state(out, made, "", NULL) == 0
               ? 0
               : open_temporary(out, made, err);
}

/* What is there of it, or else would have to be made, may be used. */
static bool may_be_made(const char *path)
{
    struct logdir_made made;
    note_old(&made, path);
    made.path[made.old_bytes] = '\0';
    return check_directory(made.old_bytes > 0 ? made.path : "/", NULL) == 0;
}

int logdir_find_state(char **out, struct gpul_error *err)
{
    char path[PATH_MAX];
    int rc = 0;
    if (state_path(path, "", NULL) != 0 || !may_be_made(path)) {
        rc = temporary_path(path, err);
    }
    *out = rc == 0 ? strdup(path) : NULL;
    return rc != 0        ? rc
           : *out != NULL ? 0
                          : gpul_fail(err, GPUL_ENOMEM, "out of memory");
}
