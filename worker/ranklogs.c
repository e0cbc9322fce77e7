/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ranklogs.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/makeparents.h"
#include "common/ownfolder.h"
#include "common/writeall.h"
#include "worker/evidence.h"

enum { NAME_BYTES = 32 };

void ranklogs_init(struct ranklogs *l)
{
    *l = (struct ranklogs){.folder = -1};
}

static void close_folder(struct ranklogs *l)
{
    if (l->folder >= 0) {
        close(l->folder);
        l->folder = -1;
    }
}

/* The folder of the job, as it was made: no link, and this user's. */
static int open_job(const struct ranklogs *l)
{
    return gpul_open_own_folder(AT_FDCWD, l->log_dir);
}

/* It was made for files that ranks may write; if they have not, it goes. */
static void leave_folder(struct ranklogs *l)
{
    int job = l->folder >= 0 ? open_job(l) : -1;
    if (job >= 0) {
        unlinkat(job, l->name, AT_REMOVEDIR);
        close(job);
    }
    close_folder(l);
}

static void forget_made(struct ranklogs *l)
{
    for (size_t i = 0; i < l->made_count; i++) {
        free(l->made[i]);
    }
    l->made_count = 0;
}

void ranklogs_release(struct ranklogs *l)
{
    leave_folder(l);
    forget_made(l);
    free(l->made);
    free(l->log_dir);
    ranklogs_init(l);
}

int ranklogs_begin(struct ranklogs *l, const char *log_dir, uint32_t attempt,
                   struct gpul_error *err)
{
    char name[RANKLOG_FOLDER_BYTES];
    snprintf(name, sizeof(name), "attempt-%u", attempt);
    return ranklogs_begin_folder(l, log_dir, name, err);
}

int ranklogs_begin_folder(struct ranklogs *l, const char *log_dir,
                          const char *name, struct gpul_error *err)
{
    leave_folder(l);
    free(l->log_dir);
    l->log_dir = NULL;
    l->resumes = false;
    snprintf(l->name, sizeof(l->name), "%s", name);
    if (log_dir[0] == 0) {
        return 0;
    }
    l->log_dir = strdup(log_dir);
    return l->log_dir != NULL ? 0
                              : gpul_fail(err, GPUL_ENOMEM,
                                          "out of memory for the log folder");
}

bool ranklogs_is_on(const struct ranklogs *l)
{
    return l->log_dir != NULL;
}

static void file_name(char name[NAME_BYTES], uint32_t rank,
                      enum ranklog_stream stream)
{
    snprintf(name, NAME_BYTES, "rank-%u.%s", rank,
             stream == RANKLOG_OUT ? "out" : "err");
}

void ranklogs_path(const struct ranklogs *l, char *path, size_t bytes,
                   uint32_t rank, enum ranklog_stream stream)
{
    char name[NAME_BYTES];
    file_name(name, rank, stream);
    int n = l->log_dir == NULL
                ? 0
                : snprintf(path, bytes, "%s/%s/%s", l->log_dir, l->name, name);
    if (n <= 0 || (size_t)n >= bytes) {
        path[0] = 0;
    }
}

/* ---- making ------------------------------------------------------------- */

/* Keeps "<folder>/<name>", or "<folder>" where there is no name. */
static int keep_made(struct ranklogs *l, const char *folder, const char *name)
{
    if (l->made_count == l->made_capacity) {
        size_t capacity = l->made_capacity == 0 ? 8 : 2 * l->made_capacity;
        char **made = realloc(l->made, capacity * sizeof(*made));
        if (made == NULL) {
            return GPUL_ENOMEM;
        }
        l->made = made;
        l->made_capacity = capacity;
    }
    char *copy = NULL;
    if (asprintf(&copy, "%s%s%s", folder, name[0] != 0 ? "/" : "", name) < 0) {
        return GPUL_ENOMEM;
    }
    l->made[l->made_count++] = copy;
    return 0;
}

/* Make and open one folder that must be real and this user's. */
static int enter(int *out, int parent, const char *name, const char *shown,
                 struct gpul_error *err)
{
    if (mkdirat(parent, name, 0700) != 0 && errno != EEXIST) {
        return gpul_fail_errno(err, errno, "log folder %s", shown);
    }
    *out = gpul_open_own_folder(parent, name);
    if (*out < 0 && errno == EPERM) {
        return gpul_fail(err, GPUL_EINVAL,
                         "log folder %s: belongs to somebody else", shown);
    }
    return *out >= 0 ? 0 : gpul_fail_errno(err, errno, "log folder %s", shown);
}

static int make_folder(struct ranklogs *l, struct gpul_error *err)
{
    if (l->folder >= 0) {
        return 0;
    }
    int rc = gpul_make_parents(l->log_dir, err);
    int job = -1;
    if (rc == 0) {
        rc = enter(&job, AT_FDCWD, l->log_dir, l->log_dir, err);
    }
    if (rc == 0) {
        char path[PATH_MAX];
        snprintf(path, sizeof(path), "%s/%s", l->log_dir, l->name);
        rc = enter(&l->folder, job, l->name, path, err);
        close(job);
        if (rc == 0 && keep_made(l, l->name, "") != 0) {
            rc = gpul_fail(err, GPUL_ENOMEM, "log folder %s: out of memory",
                           path);
        }
    }
    return rc;
}

/* One that an agent before us has made; its end is where it goes on. */
static int reopen(const struct ranklogs *l, const char *name)
{
    struct stat st;
    int fd = openat(l->folder, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ||
                    st.st_uid != geteuid() || lseek(fd, 0, SEEK_END) < 0)) {
        close(fd);
        errno = EEXIST;
        fd = -1;
    }
    return fd;
}

static int open_file(struct ranklogs *l, const char *name)
{
    int fd = openat(l->folder, name,
                    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 && errno == EEXIST && l->resumes ? reopen(l, name) : fd;
}

int ranklogs_create(struct ranklogs *l, int *out, const char *name,
                    struct gpul_error *err)
{
    assert(ranklogs_is_on(l));
    *out = -1;
    int rc = make_folder(l, err);
    if (rc != 0) {
        return rc;
    }
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s/%s", l->log_dir, l->name, name);
    int fd = open_file(l, name);
    if (fd < 0 && errno == ENOENT) { /* another node's agent saw it empty */
        close_folder(l);
        rc = make_folder(l, err);
        fd = rc == 0 ? open_file(l, name) : -1;
    }
    if (rc != 0) {
        return rc;
    }
    if (fd < 0) {
        return gpul_fail_errno(err, errno, "%s", path);
    }
    rc = keep_made(l, l->name, name);
    if (rc != 0) {
        close(fd);
        return gpul_fail(err, rc, "%s: out of memory", path);
    }
    *out = fd;
    return 0;
}

int ranklogs_open(struct ranklogs *l, int *fd, uint32_t rank,
                  enum ranklog_stream stream, struct gpul_error *err)
{
    char name[NAME_BYTES];
    file_name(name, rank, stream);
    return ranklogs_create(l, fd, name, err);
}

int ranklogs_write(int fd, const void *bytes, size_t n, struct gpul_error *err)
{
    int why = gpul_write_all(fd, bytes, n);
    return why == 0 ? 0 : gpul_fail_errno(err, why, "write");
}

int ranklogs_put_file(struct ranklogs *l, const char *name, const char *text,
                      struct gpul_error *err)
{
    int fd;
    int rc = ranklogs_create(l, &fd, name, err);
    if (rc != 0) {
        return rc;
    }
    rc = ranklogs_write(fd, text, strlen(text), err);
    if (rc != 0) {
        gpul_wrap(err, rc, "%s/%s/%s", l->log_dir, l->name, name);
    }
    close(fd);
    return rc;
}

/* ---- what ranks write themselves ---------------------------------------- */

int ranklogs_expect_errors(struct ranklogs *l, uint32_t first_rank,
                           uint32_t count, struct gpul_error *err)
{
    int rc = ranklogs_is_on(l) ? make_folder(l, err) : 0;
    for (uint32_t i = 0; rc == 0 && ranklogs_is_on(l) && i < count; i++) {
        char name[2 * NAME_BYTES];
        snprintf(name, sizeof(name), "rank-%u" EVIDENCE_ERROR_ENDING,
                 first_rank + i);
        rc = keep_made(l, l->name, name);
    }
    return rc;
}

/* The first `n` bytes of a file, or the last; only of a plain one of this
 * user's, since a rank may have put anything there. 0: there is none. */
static size_t read_file(struct ranklogs *l, const char *name, void *bytes,
                        size_t n, uint64_t *size, bool is_end)
{
    struct stat st;
    *size = 0;
    if (!ranklogs_is_on(l) || make_folder(l, NULL) != 0) {
        return 0;
    }
    int fd =
        openat(l->folder, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    ssize_t got = 0;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid()) {
        bool is_long = st.st_size > (off_t)n;
        *size = (uint64_t)st.st_size;
        got =
            pread(fd, bytes, n, is_end && is_long ? st.st_size - (off_t)n : 0);
    }
    close(fd);
    return got > 0 ? (size_t)got : 0;
}

size_t ranklogs_read_error(struct ranklogs *l, uint32_t rank, void *bytes,
                           size_t n, uint64_t *size)
{
    char name[2 * NAME_BYTES];
    snprintf(name, sizeof(name), "rank-%u" EVIDENCE_ERROR_ENDING, rank);
    return read_file(l, name, bytes, n, size, false);
}

size_t ranklogs_read_end(struct ranklogs *l, uint32_t rank, void *bytes,
                         size_t n, uint64_t *size)
{
    char name[NAME_BYTES];
    file_name(name, rank, RANKLOG_ERR);
    return read_file(l, name, bytes, n, size, true);
}

/* ---- another agent's ---------------------------------------------------- */

/* A stream of the entries of a folder of the job; NULL: there is none. */
static DIR *list_folder(const struct ranklogs *l, const char *name)
{
    int job = open_job(l);
    int fd = job >= 0 ? gpul_open_own_folder(job, name) : -1;
    DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
    if (fd >= 0 && entries == NULL) {
        close(fd);
    }
    if (job >= 0) {
        close(job);
    }
    return entries;
}

int ranklogs_resume(struct ranklogs *l, const char *folder,
                    struct gpul_error *err)
{
    l->resumes = true;
    DIR *entries = ranklogs_is_on(l) ? list_folder(l, folder) : NULL;
    if (entries == NULL) {
        return 0; /* nothing was written */
    }
    int rc = keep_made(l, folder, "");
    for (struct dirent *e; rc == 0 && (e = readdir(entries)) != NULL;) {
        if (e->d_name[0] != '.') {
            rc = keep_made(l, folder, e->d_name);
        }
    }
    closedir(entries);
    return rc == 0 ? 0 : gpul_fail(err, rc, "out of memory for log files");
}

/* ---- removing ----------------------------------------------------------- */

/* A file, or what a rank has put in its place if that is an empty folder. */
static void remove_file(int folder, const char *name)
{
    if (unlinkat(folder, name, 0) != 0 && errno == EISDIR) {
        unlinkat(folder, name, AT_REMOVEDIR);
    }
}

static void remove_made(int job, char *made)
{
    char *slash = strchr(made, '/');
    if (slash == NULL) {
        unlinkat(job, made, AT_REMOVEDIR);
        return;
    }
    *slash = 0;
    int folder = gpul_open_own_folder(job, made);
    if (folder >= 0) {
        remove_file(folder, slash + 1);
        close(folder);
    }
}

/* Files were made after their folder, so this order empties it first. Another
 * node's agent may use the same folders: the last one out removes them, as
 * what is not empty stays. */
void ranklogs_remove(struct ranklogs *l)
{
    int job = l->made_count > 0 ? open_job(l) : -1;
    for (size_t i = l->made_count; job >= 0 && i-- > 0;) {
        remove_made(job, l->made[i]);
    }
    if (job >= 0) {
        close(job);
        rmdir(l->log_dir);
    }
    forget_made(l);
}
