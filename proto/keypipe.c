/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/keypipe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/writeall.h"

_Static_assert(sizeof(struct gpul_key) == sizeof(struct gpul_secret),
               "a key goes as a secret does");

/* ---- writing ------------------------------------------------------------- */

int gpul_keypipe_put_secret(int *fd, const struct gpul_secret *secret,
                            struct gpul_error *err)
{
    char line[GPUL_SECRET_TEXT_BYTES];
    int ends[2];
    *fd = -1;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return gpul_fail_errno(err, errno, "no pipe for a key");
    }
    gpul_secret_format(line, secret);
    /* An empty pipe takes a page at least (pipe(7)): this does not wait. */
    int why = gpul_write_all(ends[1], line, sizeof(line) - 1);
    gpul_wipe(line, sizeof(line));
    close(ends[1]);
    if (why != 0) {
        close(ends[0]);
        return gpul_fail_errno(err, why, "cannot write a key to a pipe");
    }
    *fd = ends[0];
    return 0;
}

int gpul_keypipe_put_key(int *fd, const struct gpul_key *key,
                         struct gpul_error *err)
{
    struct gpul_secret form;
    memcpy(form.bytes, key->bytes, sizeof(form.bytes));
    int rc = gpul_keypipe_put_secret(fd, &form, err);
    gpul_wipe(&form, sizeof(form));
    return rc;
}

/* ---- reading ------------------------------------------------------------- */

/* What comes until the end, or until there is more than a line. Returns how
 * much, or a failure. */
static ssize_t read_line(char *line, size_t n, int fd, const char *what,
                         struct gpul_error *err)
{
    uint64_t end_ms = gpul_clock_ms() + GPUL_KEYPIPE_MS;
    size_t used = 0;
    while (used < n) {
        uint64_t now_ms = gpul_clock_ms();
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (now_ms >= end_ms) {
            return gpul_fail(err, GPUL_ETIMEOUT,
                             "descriptor %d did not bring %s within %u s", fd,
                             what, GPUL_KEYPIPE_MS / 1000);
        }
        if (poll(&p, 1, (int)(end_ms - now_ms)) <= 0) {
            continue;
        }
        ssize_t got = read(fd, line + used, n - used);
        if (got < 0 && errno != EINTR && errno != EAGAIN) {
            return gpul_fail_errno(err, errno, "reading %s from descriptor %d",
                                   what, fd);
        }
        if (got == 0) {
            break;
        }
        used += got > 0 ? (size_t)got : 0;
    }
    return (ssize_t)used;
}

static int take(struct gpul_secret *out, int fd, const char *what,
                struct gpul_error *err)
{
    char line[GPUL_SECRET_TEXT_BYTES];
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISFIFO(st.st_mode)) {
        return gpul_fail(err, GPUL_EINVAL,
                         "descriptor %d is no pipe with %s; gpulaunch hands it "
                         "over when it starts this program",
                         fd, what);
    }
    ssize_t n = read_line(line, sizeof(line), fd, what, err);
    int rc = n < 0 ? (int)n : gpul_secret_parse(out, line, (size_t)n, NULL);
    gpul_wipe(line, sizeof(line));
    return n < 0 || rc == 0
               ? rc
               : gpul_fail(err, rc,
                           "descriptor %d does not hold %s: not one line of 64 "
                           "hexadecimal digits",
                           fd, what);
}

int gpul_keypipe_take_secret(struct gpul_secret *out, int fd,
                             struct gpul_error *err)
{
    gpul_wipe(out, sizeof(*out));
    int rc = take(out, fd, "the job's secret", err);
    close(fd);
    return rc;
}

int gpul_keypipe_take_key(struct gpul_key *out, int fd, struct gpul_error *err)
{
    struct gpul_secret form = {{0}};
    int rc = take(&form, fd, "this node's key", err);
    close(fd);
    memcpy(out->bytes, form.bytes, sizeof(out->bytes));
    gpul_wipe(&form, sizeof(form));
    return rc;
}
