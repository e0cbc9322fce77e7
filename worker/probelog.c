/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/probelog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    NAME_BYTES = 32,
    TAIL_BYTES = 2 * PROBELOG_LINE_BYTES,
    /* One turn of the loop takes this much at most from one probe. */
    READS_MAX = 16,
};

struct probelog {
    uv_poll_t poll;
    int fd;
    struct ranklogs *logs;
    char name[NAME_BYTES]; /* "": no file */
    int file;              /* -1: not there (yet) */
    size_t written;
    char tail[TAIL_BYTES]; /* the last bytes */
    size_t tail_bytes;
    probelog_show_fn show; /* NULL: nobody looks */
    void *arg;
};

static void keep_tail(struct probelog *l, const char *bytes, size_t n)
{
    if (n >= TAIL_BYTES) {
        memcpy(l->tail, bytes + n - TAIL_BYTES, TAIL_BYTES);
        l->tail_bytes = TAIL_BYTES;
        return;
    }
    size_t kept = l->tail_bytes;
    if (kept > TAIL_BYTES - n) {
        size_t dropped = kept - (TAIL_BYTES - n);
        memmove(l->tail, l->tail + dropped, kept - dropped);
        kept -= dropped;
    }
    memcpy(l->tail + kept, bytes, n);
    l->tail_bytes = kept + n;
}

/* A file that cannot be made or written is not tried again: the self-test
 * does not depend on it. */
static void write_file(struct probelog *l, const char *bytes, size_t n)
{
    if (l->name[0] == 0) {
        return;
    }
    if (l->file < 0 && ranklogs_create(l->logs, &l->file, l->name, NULL) != 0) {
        l->name[0] = 0;
        return;
    }
    size_t room = PROBELOG_FILE_BYTES_MAX - l->written;
    n = n < room ? n : room;
    if (ranklogs_write(l->file, bytes, n, NULL) != 0) {
        l->name[0] = 0;
    }
    l->written += n;
}

static void stop_reading(struct probelog *l)
{
    uv_poll_stop(&l->poll);
}

/* Take in what is there, at most `reads` pieces. */
static void take(struct probelog *l, int reads)
{
    char bytes[4096];
    for (int i = 0; i < reads; i++) {
        ssize_t n = read(l->fd, bytes, sizeof(bytes));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && errno == EAGAIN) {
            return;
        }
        if (n <= 0) {
            stop_reading(l);
            return;
        }
        keep_tail(l, bytes, (size_t)n);
        write_file(l, bytes, (size_t)n);
        if (l->show != NULL) {
            l->show(l->arg, bytes, (size_t)n);
        }
    }
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)events;
    if (status < 0) {
        stop_reading(poll->data);
    } else {
        take(poll->data, READS_MAX);
    }
}

int probelog_open(struct probelog **out, uv_loop_t *loop, int fd,
                  struct ranklogs *logs, const char *name,
                  struct gpul_error *err)
{
    struct probelog *l = calloc(1, sizeof(*l));
    *out = NULL;
    if (l == NULL) {
        close(fd);
        return gpul_fail(err, GPUL_ENOMEM,
                         "out of memory for output of a probe");
    }
    fcntl(fd, F_SETFL, O_RDONLY | O_NONBLOCK);
    int rc = uv_poll_init(loop, &l->poll, fd);
    if (rc != 0) {
        free(l);
        close(fd);
        return gpul_fail(err, GPUL_ESYS, "pipe of a probe: %s",
                         uv_strerror(rc));
    }
    l->poll.data = l;
    l->fd = fd;
    l->logs = logs;
    l->file = -1;
    if (name != NULL && ranklogs_is_on(logs)) {
        snprintf(l->name, sizeof(l->name), "%s", name);
    }
    uv_poll_start(&l->poll, UV_READABLE, on_readable);
    *out = l;
    return 0;
}

void probelog_show(struct probelog *l, probelog_show_fn show, void *arg)
{
    l->show = show;
    l->arg = arg;
}

void probelog_finish(struct probelog *l, char line[PROBELOG_LINE_BYTES])
{
    enum { PIPE_READS = 256 }; /* a full pipe, whatever its size */
    take(l, PIPE_READS);
    size_t end = l->tail_bytes;
    while (end > 0 && strchr("\r\n\t ", l->tail[end - 1]) != NULL) {
        end--;
    }
    size_t begin = end;
    while (begin > 0 && l->tail[begin - 1] != '\n' &&
           end - begin < PROBELOG_LINE_BYTES - 1) {
        begin--;
    }
    memcpy(line, l->tail + begin, end - begin);
    line[end - begin] = 0;
}

void probelog_path(const struct probelog *l, char *path, size_t bytes)
{
    int n = l->file < 0 ? 0
                        : snprintf(path, bytes, "%s/%s/%s", l->logs->log_dir,
                                   l->logs->name, l->name);
    if (n <= 0 || (size_t)n >= bytes) {
        path[0] = 0;
    }
}

static void on_closed(uv_handle_t *handle)
{
    struct probelog *l = handle->data;
    close(l->fd);
    if (l->file >= 0) {
        close(l->file);
    }
    free(l);
}

void probelog_close(struct probelog *l)
{
    if (l != NULL) {
        uv_close((uv_handle_t *)&l->poll, on_closed);
    }
}
