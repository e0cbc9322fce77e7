/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/makesecret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/writeall.h"
#include "proto/secret.h"

enum { FILE_MODE = 0600 };

/* A new secret as a line to `fd`. *why is the errno of the write. */
static int put(int fd, int *why, struct gpul_error *err)
{
    struct gpul_secret secret;
    char text[GPUL_SECRET_TEXT_BYTES];
    *why = 0;
    int rc = gpul_secret_draw(&secret, err);
    if (rc != 0) {
        return rc;
    }
    gpul_secret_format(text, &secret);
    gpul_wipe(&secret, sizeof(secret));
    *why = gpul_write_all(fd, text, sizeof(text) - 1);
    gpul_wipe(text, sizeof(text));
    return 0;
}

/* ---- a file -------------------------------------------------------------- */

static int fill(int fd, const char *path, struct gpul_error *err)
{
    int why = 0;
    int rc = put(fd, &why, err);
    if (rc != 0) {
        return rc;
    }
    /* Whatever the umask has taken away. */
    if (why == 0 && (fchmod(fd, FILE_MODE) != 0 || fsync(fd) != 0)) {
        why = errno;
    }
    return why == 0 ? 0 : gpul_fail_errno(err, why, "cannot write %s", path);
}

int makesecret_file(const char *path, struct gpul_error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                  FILE_MODE);
    if (fd < 0 && errno == EEXIST) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s exists, and others may hold the same secret; name "
                         "a new file, or remove it first",
                         path);
    }
    if (fd < 0) {
        return gpul_fail_errno(err, errno, "cannot create %s", path);
    }
    int rc = fill(fd, path, err);
    if (close(fd) != 0 && rc == 0) {
        rc = gpul_fail_errno(err, errno, "cannot write %s", path);
    }
    if (rc != 0) {
        unlink(path);
    }
    return rc;
}

/* ---- a descriptor -------------------------------------------------------- */

static void warn(int fd)
{
    struct stat st;
    if (isatty(fd)) {
        dprintf(STDERR_FILENO,
                "gpulaunch: note: to keep a secret off the screen write it to "
                "a file: gpulaunch secret FILE\n");
    } else if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
               (st.st_mode & 077) != 0) {
        dprintf(STDERR_FILENO,
                "gpulaunch: warning: others may use the file that this goes to "
                "(mode %03o), so --secret-file will refuse it; run umask 077 "
                "first, or: gpulaunch secret FILE\n",
                st.st_mode & 0777);
    }
}

int makesecret_print(int fd, int *why, struct gpul_error *err)
{
    warn(fd);
    int rc = put(fd, why, err);
    return rc != 0 || *why == 0
               ? rc
               : gpul_fail_errno(err, *why, "cannot write the secret");
}
