/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/logpipe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "proto/limits.h"

enum { COPY_BYTES = 16 << 10 };

void logpipe_init(struct logpipe *p, struct ranklogs *logs, uint32_t rank,
                  enum ranklog_stream stream, int fd)
{
    *p = (struct logpipe){
        .logs = logs, .rank = rank, .stream = stream, .fd = fd, .log = -1};
}

void logpipe_release(struct logpipe *p)
{
    close(p->fd);
    if (p->log >= 0) {
        close(p->log);
    }
}

static bool has_log(const struct logpipe *p)
{
    return ranklogs_is_on(p->logs) && !p->is_broken;
}

static int give_up_log(struct logpipe *p, struct gpul_error *err)
{
    char path[GPUL_PATH_BYTES_MAX + 1];
    p->is_broken = true;
    ranklogs_path(p->logs, path, sizeof(path), p->rank, p->stream);
    return gpul_wrap(err, GPUL_ESYS, "%s", path);
}

int logpipe_make_log(struct logpipe *p, struct gpul_error *err)
{
    if (p->log >= 0 || !has_log(p)) {
        return 0;
    }
    int rc = ranklogs_open(p->logs, &p->log, p->rank, p->stream, err);
    p->is_broken = rc != 0;
    p->size = rc == 0 ? (uint64_t)lseek(p->log, 0, SEEK_CUR) : 0;
    return rc;
}

/* ---- through this process ------------------------------------------------ */

static enum logpipe_progress copy(struct logpipe *p, char *bytes, size_t *n,
                                  struct gpul_error *trouble)
{
    char own[COPY_BYTES];
    size_t most = bytes == NULL && *n > sizeof(own) ? sizeof(own) : *n;
    char *to = bytes != NULL ? bytes : own;
    ssize_t got;
    do {
        got = read(p->fd, to, most);
    } while (got < 0 && errno == EINTR);
    if (got <= 0) {
        return got < 0 && errno == EAGAIN ? LOGPIPE_EMPTY : LOGPIPE_END;
    }
    *n = (size_t)got;
    if (has_log(p) && logpipe_make_log(p, trouble) == 0 &&
        ranklogs_write(p->log, to, *n, trouble) != 0) {
        give_up_log(p, trouble);
    }
    return LOGPIPE_SOME;
}

/* ---- through the kernel -------------------------------------------------- */

/* Without taking anything: a log is only made for what is there. */
static enum logpipe_progress look(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (poll(&p, 1, 0) <= 0) {
        return LOGPIPE_EMPTY;
    }
    return (p.revents & POLLIN) != 0 ? LOGPIPE_SOME : LOGPIPE_END;
}

/* What was moved to the end of the log, once more. */
static void read_again(struct logpipe *p, char *bytes, size_t *n,
                       struct gpul_error *trouble)
{
    size_t used = 0;
    ssize_t got = 1;
    while (used < *n && got > 0) {
        got = pread(p->log, bytes + used, *n - used, (off_t)(p->size + used));
        used += got > 0 ? (size_t)got : 0;
    }
    if (used < *n) {
        gpul_fail_errno(trouble, got < 0 ? errno : EIO, "read");
        p->copies = true;
    }
    *n = used;
}

static enum logpipe_progress move(struct logpipe *p, char *bytes, size_t *n,
                                  struct gpul_error *trouble)
{
    ssize_t got;
    do {
        got = splice(p->fd, NULL, p->log, NULL, *n, SPLICE_F_NONBLOCK);
    } while (got < 0 && errno == EINTR);
    if (got > 0) {
        size_t moved = (size_t)got;
        *n = moved;
        if (bytes != NULL) {
            read_again(p, bytes, n, trouble);
        }
        p->size += moved;
        return LOGPIPE_SOME;
    }
    if (got == 0) {
        return LOGPIPE_END;
    }
    if (errno == EAGAIN) {
        return LOGPIPE_EMPTY;
    }
    if (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP) {
        p->copies = true;
    } else {
        gpul_fail_errno(trouble, errno, "write");
        give_up_log(p, trouble);
    }
    return copy(p, bytes, n, trouble); /* it took nothing */
}

enum logpipe_progress logpipe_take(struct logpipe *p, char *bytes, size_t *n,
                                   struct gpul_error *trouble)
{
    if (!has_log(p) || p->copies) {
        return copy(p, bytes, n, trouble);
    }
    enum logpipe_progress progress = look(p->fd);
    if (progress != LOGPIPE_SOME) {
        return progress;
    }
    if (logpipe_make_log(p, trouble) != 0) {
        return copy(p, bytes, n, trouble);
    }
    return move(p, bytes, n, trouble);
}
