/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/jobfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/ownfolder.h"
#include "common/writeall.h"

/* Beside the logs: .../gpulaunch/logs and .../gpulaunch/jobs. `state` is
 * freed. */
static int put_jobs(char out[PATH_MAX], char *state, struct gpul_error *err)
{
    int used = snprintf(out, PATH_MAX, "%s/jobs", state);
    free(state);
    return used < PATH_MAX ? 0
                           : gpul_fail(err, GPUL_EINVAL,
                                       "the path of the state directory is "
                                       "too long");
}

static int default_folder(char out[PATH_MAX], struct logdir_made *made,
                          struct gpul_error *err)
{
    char *state = NULL;
    int rc = logdir_open_state(&state, made, err);
    return rc == 0 ? put_jobs(out, state, err) : rc;
}

/* The folder itself is no link and nobody else's; *fd is it. */
static int open_folder(int *fd, const char *path, struct gpul_error *err)
{
    struct stat st;
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        return gpul_fail_errno(err, errno, "cannot create %s", path);
    }
    *fd = gpul_open_own_folder(AT_FDCWD, path);
    if (*fd < 0) {
        return gpul_fail_errno(err, errno, "%s is not a directory of this user",
                               path);
    }
    if (fstat(*fd, &st) != 0 || (st.st_mode & 077) != 0) {
        close(*fd);
        return gpul_fail(err, GPUL_EINVAL,
                         "%s may be used by others: chmod 700 it, or name "
                         "another directory",
                         path);
    }
    return 0;
}

static int write_file(int folder, const char *name, const char *path,
                      const void *bytes, size_t n, struct gpul_error *err)
{
    int fd = openat(folder, name,
                    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return gpul_fail_errno(err, errno, "cannot create %s", path);
    }
    int why = gpul_write_all(fd, bytes, n);
    /* Whatever the umask has taken away. */
    if (why == 0 && (fchmod(fd, 0600) != 0 || fsync(fd) != 0)) {
        why = errno;
    }
    if (close(fd) != 0 && why == 0) {
        why = errno;
    }
    if (why != 0) {
        unlinkat(folder, name, 0);
        return gpul_fail_errno(err, why, "cannot write %s", path);
    }
    return 0;
}

/* Written beside its place, so that nobody ever sees half of it. */
static int replace_file(int folder, const char *name, const char *path,
                        const void *bytes, size_t n, struct gpul_error *err)
{
    char beside[NAME_MAX + 1];
    snprintf(beside, sizeof(beside), ".%.200s.new", name);
    unlinkat(folder, beside, 0); /* of a run that was killed */
    int rc = write_file(folder, beside, path, bytes, n, err);
    if (rc == 0 && renameat(folder, beside, folder, name) != 0) {
        rc = gpul_fail_errno(err, errno, "cannot write %s", path);
        unlinkat(folder, beside, 0);
    }
    return rc;
}

static int put(struct jobfile *f, const char *folder, const char *name,
               bool replaces, const void *bytes, size_t n,
               struct gpul_error *err)
{
    char place[PATH_MAX];
    int fd = -1, rc = 0;
    *f = (struct jobfile){.path = ""};
    if (folder != NULL) {
        char *absolute = realpath(folder, NULL);
        snprintf(place, sizeof(place), "%s",
                 absolute != NULL ? absolute : folder);
        free(absolute);
    } else {
        rc = default_folder(place, &f->made, err);
    }
    int used = snprintf(f->path, sizeof(f->path), "%.*s/%s", PATH_MAX - 80,
                        place, name);
    f->folder_bytes = (size_t)used - strlen(name) - 1;
    if (rc == 0) {
        rc = open_folder(&fd, place, err);
    }
    if (rc == 0) {
        rc = replaces ? replace_file(fd, name, f->path, bytes, n, err)
                      : write_file(fd, name, f->path, bytes, n, err);
        close(fd);
    }
    if (rc != 0) {
        logdir_unmake(&f->made);
        f->path[0] = '\0';
    }
    return rc;
}

int jobfile_default_folder(char out[PATH_MAX], struct gpul_error *err)
{
    char *state = NULL;
    int rc = logdir_find_state(&state, err);
    return rc == 0 ? put_jobs(out, state, err) : rc;
}

int jobfile_create(struct jobfile *f, const char *folder, const char *job_id,
                   const void *bytes, size_t n, struct gpul_error *err)
{
    return put(f, folder, job_id, false, bytes, n, err);
}

int jobfile_replace(struct jobfile *f, const char *folder, const char *name,
                    const void *bytes, size_t n, struct gpul_error *err)
{
    return put(f, folder, name, true, bytes, n, err);
}

void jobfile_remove(struct jobfile *f)
{
    if (f->path[0] == '\0') {
        return;
    }
    unlink(f->path);
    f->path[f->folder_bytes] = '\0';
    rmdir(f->path); /* not while other jobs have files in it */
    logdir_unmake(&f->made);
    f->path[0] = '\0';
}
