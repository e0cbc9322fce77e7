/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/scalechild.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/spawn.h"
#include "common/writeall.h"
#include "proto/text.h"

enum {
    STREAMS = 2,
    LINE_BYTES_MAX = 64 << 10, /* a longer one is cut, and passed on whole */
    READ_BYTES = 16 << 10,
    READS_MAX = 64,
    NUMBER_BYTES = 64,
    SIGNAL_BASE = 128,
};

struct stream {
    int fd; /* -1: at its end */
    struct gpul_buf line;
};

struct run {
    const struct scalechild *child;
    struct scalechild_end *end;
    struct stream streams[STREAMS];
    size_t room; /* for figures */
    pid_t pid;
    int status;
    bool is_over;
    bool is_failed; /* no memory */
};

/* ---- lines --------------------------------------------------------------- */

static void add_figure(struct run *r, uint32_t rank, double value)
{
    struct scalechild_end *end = r->end;
    if (end->figure_count == SCALECHILD_FIGURES_MAX) {
        return;
    }
    if (end->figure_count == r->room) {
        size_t room = r->room > 0 ? 2 * r->room : NUMBER_BYTES;
        void *grown = realloc(end->figures, room * sizeof(*end->figures));
        if (grown == NULL) {
            r->is_failed = true;
            return;
        }
        end->figures = grown;
        r->room = room;
    }
    end->figures[end->figure_count++] =
        (struct metricline_figure){.rank = rank, .value = value};
}

static void search(struct run *r, uint32_t rank, const char *text)
{
    regmatch_t found[2];
    char number[NUMBER_BYTES];
    double value;
    if (r->child->metric == NULL ||
        regexec(r->child->metric, text, 2, found, 0) != 0 ||
        found[1].rm_so < 0) {
        return;
    }
    size_t n = (size_t)(found[1].rm_eo - found[1].rm_so);
    if (n >= sizeof(number)) {
        return;
    }
    memcpy(number, text + found[1].rm_so, n);
    number[n] = '\0';
    if (metricline_number(&value, NULL, number)) {
        add_figure(r, rank, value);
    }
}

/* A terminal gets text only, as it does from run. */
static void pass_on(struct gpul_buf *line, bool is_whole)
{
    size_t n = line->used;
    if (isatty(STDERR_FILENO) && n > 0) {
        gpul_text_clean_line((char *)line->data, n);
        n = strlen((const char *)line->data);
    }
    gpul_write_all(STDERR_FILENO, line->data, n);
    if (is_whole) {
        gpul_write_all(STDERR_FILENO, "\n", 1);
    }
}

static void take_line(struct run *r, struct gpul_buf *line, bool is_whole)
{
    uint32_t rank;
    const char *rest;
    const char *text = gpul_buf_text(line);
    bool is_of_rank = text != NULL && metricline_label(&rank, &rest, text);
    if (is_of_rank) {
        search(r, rank, rest);
    }
    if (!r->child->is_quiet || (text != NULL && !is_of_rank)) {
        pass_on(line, is_whole);
    }
    gpul_buf_clear(line);
}

static void take_bytes(struct run *r, struct stream *s, const char *bytes,
                       size_t n)
{
    while (n > 0) {
        const char *newline = memchr(bytes, '\n', n);
        size_t take = newline != NULL ? (size_t)(newline - bytes) : n;
        size_t room = LINE_BYTES_MAX - s->line.used;
        bool is_whole = newline != NULL && take <= room;
        take = take < room ? take : room;
        if (gpul_buf_append(&s->line, bytes, take) != 0) {
            r->is_failed = true;
            return;
        }
        bytes += take + is_whole;
        n -= take + is_whole;
        if (is_whole || s->line.used == LINE_BYTES_MAX) {
            take_line(r, &s->line, is_whole);
        }
    }
}

/* As much as there is, up to more than a pipe holds: signals want their turn.
 */
static void take_stream(struct run *r, struct stream *s)
{
    char bytes[READ_BYTES];
    ssize_t n = 1;
    for (int i = 0; i < READS_MAX && s->fd >= 0 && n > 0; i++) {
        n = read(s->fd, bytes, sizeof(bytes));
        if (n > 0) {
            take_bytes(r, s, bytes, (size_t)n);
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            close(s->fd);
            s->fd = -1;
        }
    }
}

/* ---- the process --------------------------------------------------------- */

static void reap(struct run *r)
{
    if (waitpid(r->pid, &r->status, WNOHANG) == r->pid) {
        r->is_over = true;
    }
}

static void take_signals(struct run *r)
{
    struct signalfd_siginfo info;
    while (read(r->child->signal_fd, &info, sizeof(info)) ==
           (ssize_t)sizeof(info)) {
        int number = (int)info.ssi_signo;
        if (number == SIGCHLD) {
            reap(r);
            continue;
        }
        if (r->end->signal == 0) {
            r->end->signal = number;
        }
        if (!r->is_over) {
            kill(r->pid, number);
        }
    }
}

static int attend(struct run *r, struct gpul_error *err)
{
    while (!r->is_over) {
        struct pollfd fds[] = {
            {.fd = r->child->signal_fd, .events = POLLIN},
            {.fd = r->streams[0].fd, .events = POLLIN},
            {.fd = r->streams[1].fd, .events = POLLIN},
        };
        if (poll(fds, 1 + STREAMS, -1) < 0 && errno != EINTR) {
            return gpul_fail_errno(err, errno, "cannot wait for a run");
        }
        take_signals(r);
        for (size_t i = 0; i < STREAMS; i++) {
            take_stream(r, &r->streams[i]);
        }
    }
    for (size_t i = 0; i < STREAMS; i++) {
        take_stream(r, &r->streams[i]);
        if (r->streams[i].line.used > 0) {
            take_line(r, &r->streams[i].line, true);
        }
    }
    return r->is_failed ? gpul_fail(err, GPUL_ENOMEM, "out of memory") : 0;
}

static int start(struct run *r, struct gpul_error *err)
{
    int pipes[STREAMS][2] = {{-1, -1}, {-1, -1}};
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int rc = 0, why = 0;
    if (nothing < 0 || pipe2(pipes[0], O_CLOEXEC) != 0 ||
        pipe2(pipes[1], O_CLOEXEC) != 0) {
        rc = gpul_fail_errno(err, errno, "cannot start a run");
    }
    for (size_t i = 0; i < STREAMS && rc == 0; i++) {
        r->streams[i].fd = pipes[i][0];
        fcntl(pipes[i][0], F_SETFL, O_NONBLOCK);
    }
    if (rc == 0) {
        struct gpul_spawn_fd fds[] = {
            {nothing, 0}, {pipes[0][1], 1}, {pipes[1][1], 2}};
        struct gpul_spawn spawn = {.path = r->child->path,
                                   .arguments = r->child->arguments,
                                   .environment = r->child->environment,
                                   .fds = fds,
                                   .fd_count = 1 + STREAMS,
                                   .parent_death_signal = SIGTERM};
        rc = gpul_spawn(&r->pid, &why, &spawn, err);
    }
    for (size_t i = 0; i < STREAMS; i++) {
        if (pipes[i][1] >= 0) {
            close(pipes[i][1]);
        }
        if (rc != 0 && pipes[i][0] >= 0) {
            close(pipes[i][0]);
            r->streams[i].fd = -1;
        }
    }
    if (nothing >= 0) {
        close(nothing);
    }
    return rc;
}

/* SIGTERM makes it clean up behind itself, within its --grace. */
static void end_now(struct run *r)
{
    kill(r->pid, SIGTERM);
    while (waitpid(r->pid, &r->status, 0) < 0 && errno == EINTR) {
    }
}

int scalechild_run(struct scalechild_end *end, const struct scalechild *child,
                   struct gpul_error *err)
{
    struct run r = {.child = child, .end = end};
    *end = (struct scalechild_end){0};
    for (size_t i = 0; i < STREAMS; i++) {
        r.streams[i].fd = -1;
        gpul_buf_init(&r.streams[i].line, LINE_BYTES_MAX + 1);
    }
    int rc = start(&r, err);
    if (rc == 0) {
        rc = attend(&r, err);
        if (!r.is_over) {
            end_now(&r);
        }
        end->exit_code = WIFSIGNALED(r.status)
                             ? SIGNAL_BASE + WTERMSIG(r.status)
                             : WEXITSTATUS(r.status);
    }
    for (size_t i = 0; i < STREAMS; i++) {
        if (r.streams[i].fd >= 0) {
            close(r.streams[i].fd);
        }
        gpul_buf_release(&r.streams[i].line);
    }
    return rc;
}
