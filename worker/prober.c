/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/prober.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/signals.h"
#include "common/spawn.h"
#include "proto/transport.h"
#include "worker/descendants.h"
#include "worker/probelog.h"

extern char **environ;

void prober_init(struct prober *p, uv_loop_t *loop,
                 const struct prober_handlers *handlers, void *arg)
{
    *p = (struct prober){.loop = loop, .handlers = *handlers, .arg = arg};
    for (uint32_t i = 0; i < AGENT_PROBES_MAX; i++) {
        p->processes[i].prober = p;
    }
}

static uint32_t number_of(const struct prober_process *c)
{
    return (uint32_t)(c - c->prober->processes);
}

static bool has_process(const struct prober *p)
{
    for (uint32_t i = 0; i < AGENT_PROBES_MAX; i++) {
        if (p->processes[i].pid != 0) {
            return true;
        }
    }
    return false;
}

/* No rank runs beside a probe: what is below us once the last one has ended
 * was started by its libraries. */
static void kill_leftovers(void)
{
    struct descendants leftovers = {0};
    descendants_stop(&leftovers, SIGKILL);
}

static void append(struct prober_process *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void append(struct prober_process *c, const char *format, ...)
{
    size_t used = strlen(c->how);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(c->how + used, sizeof(c->how) - used, format, arguments);
    va_end(arguments);
}

/* Whether the process or its channel is the first to end is chance, as it is
 * whether a kill of ours finds the process: what went wrong with the channel is
 * told in any case. */
static void describe_end(struct prober_process *c)
{
    bool is_signalled = WIFSIGNALED(c->status);
    bool was_killed = is_signalled && WTERMSIG(c->status) == SIGKILL;
    c->how[0] = 0;
    if (was_killed && c->fault[0] != 0) {
        append(c, "it was killed: %s", c->fault);
    } else if (is_signalled) {
        char name[GPUL_SIGNAL_TEXT_BYTES];
        append(c, "it was ended by %s",
               gpul_format_signal(name, (uint32_t)WTERMSIG(c->status)));
    } else if (WEXITSTATUS(c->status) != 0) {
        append(c, "it ended with exit code %d", WEXITSTATUS(c->status));
    } else {
        append(c, "it ended without a result");
    }
    if (!was_killed && c->fault[0] != 0) {
        append(c, "; it could not be talked to: %s", c->fault);
    }
    if (c->last_line[0] != 0) {
        append(c, "; the last that it wrote is \"%s\"", c->last_line);
    }
    if (c->log_path[0] != 0) {
        append(c, "; its log is %s", c->log_path);
    }
}

static void check_ended(struct prober_process *c)
{
    struct prober *p = c->prober;
    if (c->pid == 0 && c->channel == NULL) {
        if (!has_process(p)) {
            kill_leftovers();
        }
        if (!c->is_abandoned) {
            describe_end(c);
        }
        p->handlers.on_ended(p->arg, number_of(c), c->how, c->is_abandoned);
    }
}

static void on_message(void *arg, const Gpul__Frame *frame)
{
    struct prober_process *c = arg;
    struct agent_event event = {.type = AGENT_EVENT_PROBE_MESSAGE,
                                .probe = number_of(c),
                                .frame = frame};
    c->prober->handlers.on_event(c->prober->arg, &event);
}

/* It cannot be talked to: one that says nonsense, or we have no memory for what
 * it says. As good as dead, then. */
static void give_up(struct prober_process *c, const struct gpul_error *why)
{
    snprintf(c->fault, sizeof(c->fault), "%.*s", PROBER_FAULT_BYTES - 1,
             why->text);
    if (c->pid != 0) {
        kill(c->pid, SIGKILL);
    }
}

static void on_closed(void *arg, const struct gpul_error *why)
{
    struct prober_process *c = arg;
    c->channel = NULL;
    if (why != NULL && why->status != GPUL_ECLOSED) {
        give_up(c, why);
    }
    check_ended(c);
}

/* ---- starting ------------------------------------------------------------ */

/* Both ends of what connects a probe to us. */
struct ends {
    int channel[2];
    int output[2]; /* -1: none */
    int nccl[2];   /* likewise */
    int null_fd;
};

static void close_fd(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

/* What the probe has, or should have had. */
static void close_theirs(const struct ends *e)
{
    close_fd(e->channel[1]);
    close_fd(e->output[1]);
    close_fd(e->nccl[1]);
    close_fd(e->null_fd);
}

static void close_ours(const struct ends *e)
{
    close_fd(e->channel[0]);
    close_fd(e->output[0]);
    close_fd(e->nccl[0]);
}

static int open_ends(struct ends *e, const struct prober_start *start,
                     struct gpul_error *err)
{
    *e = (struct ends){{-1, -1}, {-1, -1}, {-1, -1}, -1};
    bool has_log = start->logs != NULL;
    bool has_nccl_log = has_log && start->nccl_log_name != NULL;
    e->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (e->null_fd < 0) {
        return gpul_fail_errno(err, errno, "/dev/null");
    }
    if ((has_log && pipe2(e->output, O_CLOEXEC) != 0) ||
        (has_nccl_log && pipe2(e->nccl, O_CLOEXEC) != 0)) {
        gpul_fail_errno(err, errno, "pipe of the probe");
    } else if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, e->channel)) {
        gpul_fail_errno(err, errno, "channel of the probe");
    } else {
        return 0;
    }
    close_theirs(e);
    close_ours(e);
    return GPUL_ESYS;
}

static int spawn(pid_t *pid, const struct prober_start *start,
                 const struct ends *e, struct gpul_error *err)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (n < 0) {
        return gpul_fail_errno(err, errno, "/proc/self/exe");
    }
    path[n] = 0;
    if (access(path, X_OK) != 0) { /* a copy that has removed its file */
        snprintf(path, sizeof(path), "/proc/self/exe");
    }
    char name[] = "gpulaunch-worker";
    char verb[] = "probe";
    char *command = (char *)(uintptr_t)start->command;
    char *arguments[] = {name, verb, command, NULL};
    /* What a library of the probe prints belongs to nobody's stdout. */
    int output = e->output[1] >= 0 ? e->output[1] : STDERR_FILENO;
    const struct gpul_spawn_fd fds[] = {{e->null_fd, 0},
                                        {output, 1},
                                        {output, 2},
                                        {e->channel[1], 3},
                                        {e->nccl[1], AGENT_NCCL_LOG_FD}};
    size_t fd_count = sizeof(fds) / sizeof(fds[0]);
    const struct gpul_spawn spec = {
        .path = path,
        .arguments = arguments,
        .environment =
            start->environment != NULL ? start->environment : environ,
        .working_directory = start->working_directory,
        .fds = fds,
        .fd_count = e->nccl[1] >= 0 ? fd_count : fd_count - 1,
        .parent_death_signal = SIGKILL,
    };
    int exec_errno = 0;
    return gpul_spawn(pid, &exec_errno, &spec, err);
}

static void attach_log(struct prober_process *c, struct probelog **log, int fd,
                       struct ranklogs *logs, const char *name)
{
    struct gpul_error err;
    if (fd >= 0 &&
        probelog_open(log, c->prober->loop, fd, logs, name, &err) != 0) {
        give_up(c, &err);
    }
}

static void on_nccl_log(void *arg, const char *bytes, size_t n)
{
    struct prober_process *c = arg;
    if (nccl_log_take(&c->stage, bytes, n)) {
        struct agent_event event = {.type = AGENT_EVENT_PROBE_STAGE,
                                    .probe = number_of(c),
                                    .stage = c->stage.stage};
        c->prober->handlers.on_event(c->prober->arg, &event);
    }
}

static void close_logs(struct prober_process *c)
{
    probelog_close(c->log);
    probelog_close(c->nccl_log);
    c->log = NULL;
    c->nccl_log = NULL;
}

/* Whatever fails from here on ends the process, and its end is reported as
 * any other. */
static void attach(struct prober_process *c, const struct prober_start *start,
                   const struct ends *e)
{
    static const struct gpul_transport_handlers handlers = {
        .on_message = on_message,
        .on_closed = on_closed,
    };
    struct prober *p = c->prober;
    c->log_pattern = start->log_pattern;
    attach_log(c, &c->log, e->output[0], start->logs, start->log_name);
    attach_log(c, &c->nccl_log, e->nccl[0], start->logs, start->nccl_log_name);
    if (c->nccl_log != NULL) {
        c->stage = (struct nccl_log){0};
        probelog_show(c->nccl_log, on_nccl_log, c);
    }
    struct gpul_error err;
    if (gpul_transport_open(&c->channel, p->loop, e->channel[0],
                            GPUL_PEER_PROBE, &handlers, c, &err) != 0) {
        c->channel = NULL;
        give_up(c, &err);
        return;
    }
    gpul_transport_send_bytes(c->channel, start->bytes, start->n, NULL);
}

int prober_start(struct prober *p, const struct prober_start *start,
                 struct gpul_error *err)
{
    struct prober_process *c = &p->processes[start->probe];
    struct ends ends;
    assert(c->pid == 0 && c->channel == NULL);
    int rc = open_ends(&ends, start, err);
    if (rc != 0) {
        return rc;
    }
    rc = spawn(&c->pid, start, &ends, err);
    close_theirs(&ends);
    if (rc != 0) {
        c->pid = 0;
        close_ours(&ends);
        return rc;
    }
    c->is_abandoned = false;
    c->fault[0] = 0;
    c->last_line[0] = 0;
    c->log_path[0] = 0;
    attach(c, start, &ends);
    return 0;
}

/* ---- while they run ------------------------------------------------------ */

void prober_send(struct prober *p, const uint8_t *bytes, size_t n)
{
    for (uint32_t i = 0; i < AGENT_PROBES_MAX; i++) {
        if (p->processes[i].channel != NULL) {
            gpul_transport_send_bytes(p->processes[i].channel, bytes, n, NULL);
        }
    }
}

/* It hears nothing while it is stopped, and says nothing either. */
static void look_at(struct prober_process *c)
{
    siginfo_t info = {0};
    struct agent_event event = {.type = AGENT_EVENT_PROBE_HALTED,
                                .probe = number_of(c)};
    if (waitid(P_PID, (id_t)c->pid, &info, WSTOPPED | WCONTINUED | WNOHANG) !=
            0 ||
        info.si_pid != c->pid) {
        return;
    }
    if (info.si_code == CLD_STOPPED) {
        event.signal = info.si_status;
    }
    c->prober->handlers.on_event(c->prober->arg, &event);
}

void prober_look(struct prober *p)
{
    for (uint32_t i = 0; i < AGENT_PROBES_MAX; i++) {
        if (p->processes[i].pid != 0) {
            look_at(&p->processes[i]);
        }
    }
}

void prober_kill(struct prober *p)
{
    for (uint32_t i = 0; i < AGENT_PROBES_MAX; i++) {
        struct prober_process *c = &p->processes[i];
        if (c->pid != 0) {
            kill(c->pid, SIGKILL);
        }
        if (c->channel != NULL) {
            gpul_transport_close(c->channel, 0);
        }
    }
}

void prober_release(struct prober *p)
{
    prober_kill(p);
    for (uint32_t i = 0; i < AGENT_PROBES_MAX; i++) {
        close_logs(&p->processes[i]);
    }
}

/* ---- the end ------------------------------------------------------------- */

static void abandon(struct prober_process *c)
{
    snprintf(c->how, sizeof(c->how), "%d gpulaunch-worker", c->pid);
    c->is_abandoned = true;
    c->pid = 0;
    close_logs(c);
    if (c->channel == NULL) {
        check_ended(c);
    } else {
        gpul_transport_close(c->channel, 0);
    }
}

void prober_abandon(struct prober *p)
{
    for (uint32_t i = 0; i < AGENT_PROBES_MAX; i++) {
        if (p->processes[i].pid != 0) {
            abandon(&p->processes[i]);
        }
    }
}

/* Where its log is; "" if there is none. */
static void find_log(struct prober_process *c)
{
    probelog_path(c->log, c->log_path, sizeof(c->log_path));
    char *slash = strrchr(c->log_path, '/');
    if (slash != NULL && c->log_pattern != NULL) {
        size_t used = (size_t)(slash + 1 - c->log_path);
        snprintf(slash + 1, sizeof(c->log_path) - used, "%s", c->log_pattern);
    }
}

/* What it wrote last: an abort says why there. */
static void finish_logs(struct prober_process *c)
{
    if (c->nccl_log != NULL) { /* its words are for the file */
        probelog_finish(c->nccl_log, c->last_line);
        c->last_line[0] = 0;
    }
    if (c->log != NULL) {
        probelog_finish(c->log, c->last_line);
        find_log(c);
    }
    close_logs(c);
}

bool prober_reap(struct prober *p, pid_t pid, int status)
{
    for (uint32_t i = 0; i < AGENT_PROBES_MAX; i++) {
        struct prober_process *c = &p->processes[i];
        if (c->pid == pid) {
            c->pid = 0;
            c->status = status;
            finish_logs(c);
            if (c->channel != NULL) {
                gpul_transport_end_input(c->channel);
            }
            check_ended(c);
            return true;
        }
    }
    return false;
}
