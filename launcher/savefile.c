/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/savefile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/writeall.h"

/* Something that exists and is no regular file, or /dev/stdout whatever it
 * stands for; directories and links to nothing are refused. */
static int is_special(bool *special, const char *path, struct gpul_error *err)
{
    struct stat st;
    *special = false;
    if (stat(path, &st) != 0) {
        if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode)) {
            return gpul_fail(err, GPUL_EINVAL,
                             "%s is a link to nothing; name a file", path);
        }
        return 0;
    }
    if (S_ISDIR(st.st_mode)) {
        return gpul_fail(err, GPUL_EINVAL, "%s is a directory; name a file",
                         path);
    }
    *special = !S_ISREG(st.st_mode) || strncmp(path, "/dev/", 5) == 0;
    return 0;
}

static int open_special(const char *path, struct gpul_error *err)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        return gpul_fail_errno(err, errno, "cannot write %s", path);
    }
    return fd;
}

/* A temporary file beside `path`, through links; its name goes to `name`
 * (PATH_MAX bytes), the true place to `place`. */
static int open_beside(char *name, char *place, const char *path,
                       struct gpul_error *err)
{
    if (realpath(path, place) == NULL) {
        snprintf(place, PATH_MAX, "%s", path);
    }
    int n = snprintf(name, PATH_MAX, "%s.XXXXXX", place);
    if (n >= PATH_MAX) {
        return gpul_fail(err, GPUL_EINVAL, "%s: the path is too long", path);
    }
    int fd = mkostemp(name, O_CLOEXEC);
    if (fd < 0) {
        return gpul_fail_errno(err, errno, "cannot write %s", path);
    }
    return fd;
}

int savefile_check(const char *path, struct gpul_error *err)
{
    char name[PATH_MAX], place[PATH_MAX];
    bool special = false;
    int rc = is_special(&special, path, err);
    if (rc != 0) {
        return rc;
    }
    int fd =
        special ? open_special(path, err) : open_beside(name, place, path, err);
    if (fd < 0) {
        return fd;
    }
    int why = special ? 0 : gpul_write_all(fd, "\n", 1);
    if (why != 0) {
        rc = gpul_fail_errno(err, why, "cannot write %s", path);
    }
    close(fd);
    if (!special) {
        unlink(name);
    }
    return rc;
}

static mode_t current_umask(void)
{
    mode_t mask = umask(0);
    umask(mask);
    return mask;
}

static int replace(const char *path, const void *bytes, size_t n,
                   struct gpul_error *err)
{
    char name[PATH_MAX], place[PATH_MAX];
    int fd = open_beside(name, place, path, err);
    if (fd < 0) {
        return fd;
    }
    int rc = 0;
    int why = gpul_write_all(fd, bytes, n);
    if (why == 0 &&
        (fchmod(fd, 0666 & ~current_umask()) != 0 || fsync(fd) != 0)) {
        why = errno;
    }
    if (why != 0) {
        rc = gpul_fail_errno(err, why, "cannot write %s", path);
    }
    if (close(fd) != 0 && rc == 0) {
        rc = gpul_fail_errno(err, errno, "cannot write %s", path);
    }
    if (rc == 0 && rename(name, place) != 0) {
        rc = gpul_fail_errno(err, errno, "cannot replace %s", path);
    }
    if (rc != 0) {
        unlink(name);
    }
    return rc;
}

int savefile_write(const char *path, const void *bytes, size_t n,
                   struct gpul_error *err)
{
    bool special = false;
    int rc = is_special(&special, path, err);
    if (rc != 0) {
        return rc;
    }
    if (!special) {
        return replace(path, bytes, n, err);
    }
    int fd = open_special(path, err);
    if (fd < 0) {
        return fd;
    }
    int why = gpul_write_all(fd, bytes, n);
    if (why != 0) {
        rc = gpul_fail_errno(err, why, "cannot write %s", path);
    }
    close(fd);
    return rc;
}
