/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/savefile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/writeall.h"

enum {
    LINKS_MAX = 40, /* as many as Linux follows */
    TRIES_MAX = 100,
};

/* ---- the place ----------------------------------------------------------- */

/* Where the bytes go once all links at the end of the path are followed. */
struct place {
    int folder; /* -1: none */
    char name[NAME_MAX + 1];
    char temporary[NAME_MAX + 1];
};

/* The folder of `path`, which is meant from `from` on, to p->folder, and its
 * last component to p->name. The kernel follows the links within, by its own
 * rules for folders that others can write to. */
static int enter(struct place *p, int from, const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    size_t n = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    if (n >= sizeof(folder) || strlen(name) > NAME_MAX) {
        return ENAMETOOLONG;
    }
    memcpy(folder, n > 0 ? path : ".", n > 0 ? n : 1);
    folder[n > 0 ? n : 1] = '\0';
    snprintf(p->name, sizeof(p->name), "%s", name);
    p->folder = openat(from, folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return p->folder >= 0 ? 0 : errno;
}

/* A link that somebody else has put there would let him choose what file of
 * ours is replaced. */
static bool is_trusted(const struct stat *link)
{
    return link->st_uid == geteuid() || link->st_uid == 0;
}

/* One link further. */
static int follow(struct place *p)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(p->folder, p->name, target, sizeof(target));
    if (n < 0 || n >= PATH_MAX) {
        return n < 0 ? errno : ENAMETOOLONG;
    }
    target[n] = '\0';
    int from = p->folder;
    p->folder = -1;
    int why = enter(p, from, target);
    close(from);
    return why;
}

static void leave(struct place *p)
{
    if (p->folder >= 0) {
        close(p->folder);
        p->folder = -1;
    }
}

static int find_place(struct place *p, const char *path, struct gpul_error *err)
{
    struct stat st;
    *p = (struct place){.folder = -1};
    int why = enter(p, AT_FDCWD, path);
    for (int i = 0; why == 0; i++) {
        if (fstatat(p->folder, p->name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISLNK(st.st_mode)) {
            return 0;
        }
        if (!is_trusted(&st)) {
            leave(p);
            return gpul_fail(err, GPUL_EINVAL,
                             "%s is, or leads to, a symbolic link of user %u; "
                             "name a file",
                             path, st.st_uid);
        }
        why = i < LINKS_MAX ? follow(p) : ELOOP;
    }
    leave(p);
    return gpul_fail_errno(err, why, "cannot write %s", path);
}

/* ---- what is there ------------------------------------------------------- */

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

/* ---- a file beside it ---------------------------------------------------- */

/* A new file beside the place, of a name that nobody can know before. */
static int open_beside(struct place *p)
{
    for (int i = 0; i < TRIES_MAX; i++) {
        uint32_t random = 0;
        if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
            return -1;
        }
        if (snprintf(p->temporary, sizeof(p->temporary), "%s.%08" PRIx32,
                     p->name, random) >= (int)sizeof(p->temporary)) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int fd =
            openat(p->folder, p->temporary,
                   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0 || errno != EEXIST) {
            return fd;
        }
    }
    return -1;
}

static mode_t current_umask(void)
{
    mode_t mask = umask(0);
    umask(mask);
    return mask;
}

/* 0, or the errno of what failed; then the file is gone. */
static int fill(const struct place *p, int fd, const void *bytes, size_t n)
{
    int why = gpul_write_all(fd, bytes, n);
    if (why == 0 &&
        (fchmod(fd, 0666 & ~current_umask()) != 0 || fsync(fd) != 0)) {
        why = errno;
    }
    if (close(fd) != 0 && why == 0) {
        why = errno;
    }
    if (why != 0) {
        unlinkat(p->folder, p->temporary, 0);
    }
    return why;
}

static int write_beside(struct place *p, const char *path, const void *bytes,
                        size_t n, struct gpul_error *err)
{
    int fd = open_beside(p);
    int why = fd < 0 ? errno : fill(p, fd, bytes, n);
    return why == 0 ? 0 : gpul_fail_errno(err, why, "cannot write %s", path);
}

static int replace(struct place *p, const char *path, const void *bytes,
                   size_t n, struct gpul_error *err)
{
    int rc = write_beside(p, path, bytes, n, err);
    if (rc == 0 && renameat(p->folder, p->temporary, p->folder, p->name) != 0) {
        rc = gpul_fail_errno(err, errno, "cannot replace %s", path);
        unlinkat(p->folder, p->temporary, 0);
    }
    return rc;
}

static int write_special(const char *path, const void *bytes, size_t n,
                         struct gpul_error *err)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
    int why = fd < 0 ? errno : gpul_write_all(fd, bytes, n);
    if (fd >= 0) {
        close(fd);
    }
    return why == 0 ? 0 : gpul_fail_errno(err, why, "cannot write %s", path);
}

/* ---- the whole ----------------------------------------------------------- */

/* What `path` stands for; the caller leaves the place. */
static int look(struct place *p, bool *special, const char *path,
                struct gpul_error *err)
{
    int rc = find_place(p, path, err);
    if (rc == 0) {
        rc = is_special(special, path, err);
    }
    return rc;
}

int savefile_check(const char *path, struct gpul_error *err)
{
    struct place p;
    bool special = false;
    int rc = look(&p, &special, path, err);
    if (rc == 0 && special) {
        rc = write_special(path, "", 0, err);
    } else if (rc == 0) {
        rc = write_beside(&p, path, "\n", 1, err);
        if (rc == 0) {
            unlinkat(p.folder, p.temporary, 0);
        }
    }
    leave(&p);
    return rc;
}

int savefile_write(const char *path, const void *bytes, size_t n,
                   struct gpul_error *err)
{
    struct place p;
    bool special = false;
    int rc = look(&p, &special, path, err);
    if (rc == 0) {
        rc = special ? write_special(path, bytes, n, err)
                     : replace(&p, path, bytes, n, err);
    }
    leave(&p);
    return rc;
}
