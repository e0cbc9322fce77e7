/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/survey_read.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/writeall.h"
#include "proto/limits.h"
#include "worker/survey_themes.h"

enum {
    FIRST_FD = 3, /* behind the three of stdio */
    AREAS_MAX = 4,
    REASON_BYTES = GPUL_FACT_UNKNOWN_BYTES_MAX,
};

/* In the order of their facts. */
static const struct theme {
    void (*look)(struct survey *s, const struct survey_request *r);
    const char *areas[AREAS_MAX]; /* in which it has facts; NULL behind */
    bool is_storage;
} themes[] = {
    {survey_os, {"os"}, false},
    {survey_cpu, {"cpu"}, false},
    {survey_memory, {"memory", "shm"}, false},
    {survey_limits, {"limit"}, false},
    {survey_cgroups, {"memory", "pids", "cpu"}, false},
    {survey_pci, {"pci"}, false},
    {survey_nvidia, {"nvidia"}, false},
    {survey_gpu, {"gpu"}, false},
    {survey_rdma, {"rdma"}, false},
    {survey_net, {"net"}, false},
    {survey_names, {"net"}, false},
    {survey_environment, {"env", "environment", "nccl"}, false},
    {survey_software, {"lib", "python", "command"}, false},
    {survey_storage, {"data"}, true},
};
enum { THEMES = sizeof(themes) / sizeof(themes[0]) };

/* A process that looks. */
struct looker {
    pid_t pid; /* 0: it was not made, or is done with */
    int fd;    /* -1: closed */
    uint64_t end_ms;
    struct gpul_buf bytes;     /* that have come */
    char reason[REASON_BYTES]; /* why it did not end well; "": it did */
};

static uint32_t bound_of(const struct theme *theme,
                         const struct survey_request *request)
{
    return request->deadline_ms + (theme->is_storage ? SURVEY_STORAGE_MS : 0);
}

/* ---- the process --------------------------------------------------------- */

static void tell(void *arg, const Gpul__Fact *fact)
{
    struct gpul_buf bytes;
    gpul_buf_init(&bytes, GPUL_SURVEY_BYTES_MAX);
    if (survey_encode(&bytes, fact) == 0) {
        gpul_write_all(*(const int *)arg, bytes.data, bytes.used);
    }
    gpul_buf_release(&bytes);
}

_Noreturn static void run_theme(const struct theme *theme, int fd, pid_t parent,
                                const struct survey_request *request)
{
    struct survey s = {.on_fact = tell, .arg = &fd};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_DFL);
    /* One that hangs must not hold what others wait for to be closed. */
    if (fd > FIRST_FD) {
        close_range(FIRST_FD, (unsigned)fd - 1, 0);
    }
    close_range((unsigned)fd + 1, UINT_MAX, 0);
    if (getppid() != parent) {
        _exit(1); /* it went before that was set */
    }
    theme->look(&s, request);
    _exit(s.is_short ? 1 : 0);
}

static void start(struct looker *l, const struct theme *theme,
                  const struct survey_request *request)
{
    int ends[2];
    pid_t parent = getpid();
    gpul_buf_init(&l->bytes, GPUL_SURVEY_BYTES_MAX);
    l->fd = -1;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        snprintf(l->reason, sizeof(l->reason), "no pipe: %s", strerror(errno));
        return;
    }
    l->pid = fork();
    if (l->pid == 0) {
        close(ends[0]);
        run_theme(theme, ends[1], parent, request);
    }
    close(ends[1]);
    if (l->pid < 0) {
        snprintf(l->reason, sizeof(l->reason), "no process: %s",
                 strerror(errno));
        l->pid = 0;
        close(ends[0]);
        return;
    }
    l->fd = ends[0];
    l->end_ms = gpul_clock_ms() + bound_of(theme, request);
}

/* ---- hearing it ---------------------------------------------------------- */

static void read_more(struct looker *l)
{
    char bytes[4096];
    ssize_t n = read(l->fd, bytes, sizeof(bytes));
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
        return;
    }
    if (n > 0 && gpul_buf_append(&l->bytes, bytes, (size_t)n) == 0) {
        return;
    }
    close(l->fd);
    l->fd = -1;
}

/* Killed, and left behind if that does not end it. */
static void give_up(struct looker *l, const struct theme *theme,
                    const struct survey_request *request)
{
    snprintf(l->reason, sizeof(l->reason), "no answer within %g s",
             (double)bound_of(theme, request) / 1e3);
    kill(l->pid, SIGKILL);
    waitpid(l->pid, NULL, WNOHANG);
    l->pid = 0;
    close(l->fd);
    l->fd = -1;
}

/* It has closed its pipe: it ends at once, or is killed. */
static void bury(struct looker *l)
{
    int status = 0;
    pid_t got;
    do {
        got = waitpid(l->pid, &status, 0);
    } while (got < 0 && errno == EINTR);
    if (got == l->pid && WIFSIGNALED(status)) {
        snprintf(l->reason, sizeof(l->reason),
                 "the process that looked was ended by signal %d",
                 WTERMSIG(status));
    } else if (got == l->pid && WEXITSTATUS(status) != 0) {
        snprintf(l->reason, sizeof(l->reason),
                 "the process that looked ran out of memory");
    }
    l->pid = 0;
}

/* The next deadline of those that still look; UINT64_MAX: none does. */
static uint64_t next_end(struct looker *lookers, struct pollfd *polled,
                         const struct survey_request *request)
{
    uint64_t next_ms = UINT64_MAX;
    uint64_t now_ms = gpul_clock_ms();
    for (size_t i = 0; i < THEMES; i++) {
        struct looker *l = &lookers[i];
        if (l->fd >= 0 && now_ms >= l->end_ms) {
            give_up(l, &themes[i], request);
        }
        polled[i] = (struct pollfd){.fd = l->fd, .events = POLLIN};
        if (l->fd >= 0 && l->end_ms < next_ms) {
            next_ms = l->end_ms;
        }
    }
    return next_ms;
}

static void hear_all(struct looker *lookers,
                     const struct survey_request *request)
{
    struct pollfd polled[THEMES];
    uint64_t next_ms;
    while ((next_ms = next_end(lookers, polled, request)) != UINT64_MAX) {
        uint64_t now_ms = gpul_clock_ms();
        int wait_ms = next_ms > now_ms ? (int)(next_ms - now_ms) : 0;
        if (poll(polled, THEMES, wait_ms) <= 0) {
            continue;
        }
        for (size_t i = 0; i < THEMES; i++) {
            if (polled[i].revents != 0 && lookers[i].fd >= 0) {
                read_more(&lookers[i]);
            }
        }
    }
}

/* ---- all of it ----------------------------------------------------------- */

static void take(struct survey *out, struct looker *l,
                 const struct theme *theme)
{
    if (l->pid > 0) {
        bury(l);
    }
    if (l->bytes.used > 0) {
        survey_decode(out, (const char *)l->bytes.data, l->bytes.used);
    }
    for (size_t i = 0; l->reason[0] != 0 && theme->areas[i] != NULL; i++) {
        char key[GPUL_FACT_KEY_BYTES_MAX];
        snprintf(key, sizeof(key), "survey.%s", theme->areas[i]);
        survey_unknown(out, key, "%s", l->reason);
    }
    gpul_buf_release(&l->bytes);
}

int survey_read(struct survey *out, const struct survey_request *request,
                struct gpul_error *err)
{
    struct looker lookers[THEMES] = {{0}};
    size_t started = 0;
    *out = (struct survey){0};
    for (size_t i = 0; i < THEMES; i++) {
        start(&lookers[i], &themes[i], request);
        started += lookers[i].pid > 0;
    }
    hear_all(lookers, request);
    for (size_t i = 0; i < THEMES; i++) {
        take(out, &lookers[i], &themes[i]);
    }
    int rc = out->is_short ? GPUL_ENOMEM : started == 0 ? GPUL_ESYS : 0;
    if (rc != 0) {
        survey_release(out);
        return gpul_fail(err, rc, "%s",
                         rc == GPUL_ENOMEM
                             ? "out of memory for the survey"
                             : "no process could be made to look");
    }
    return 0;
}
