/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/prober.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/spawn.h"
#include "proto/transport.h"

extern char **environ;

void prober_init(struct prober *p, uv_loop_t *loop,
                 const struct prober_handlers *handlers, void *arg)
{
    *p = (struct prober){.loop = loop, .handlers = *handlers, .arg = arg};
}

static void check_ended(struct prober *p)
{
    if (p->pid == 0 && p->channel == NULL) {
        p->handlers.on_ended(p->arg, p->how, p->is_abandoned);
    }
}

static void on_message(void *arg, const Gpul__Frame *frame)
{
    struct prober *p = arg;
    p->handlers.on_message(p->arg, frame);
}

/* A probe that says nonsense is as good as dead. */
static void on_closed(void *arg, const struct gpul_error *why)
{
    struct prober *p = arg;
    p->channel = NULL;
    if (why != NULL && why->status != GPUL_ECLOSED && p->pid != 0) {
        kill(p->pid, SIGKILL);
    }
    check_ended(p);
}

static int spawn(struct prober *p, int channel, struct gpul_error *err)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (n < 0) {
        return gpul_fail_errno(err, errno, "/proc/self/exe");
    }
    path[n] = 0;
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null_fd < 0) {
        return gpul_fail_errno(err, errno, "/dev/null");
    }
    char name[] = "gpulaunch-worker";
    char verb[] = "probe";
    char *arguments[] = {name, verb, NULL};
    /* What a library of the probe prints belongs to nobody's stdout. */
    const struct gpul_spawn_fd fds[] = {
        {null_fd, 0},
        {STDERR_FILENO, 1},
        {STDERR_FILENO, 2},
        {channel, 3},
    };
    const struct gpul_spawn spec = {
        .path = path,
        .arguments = arguments,
        .environment = environ,
        .fds = fds,
        .fd_count = sizeof(fds) / sizeof(fds[0]),
        .parent_death_signal = SIGKILL,
    };
    int exec_errno = 0;
    int rc = gpul_spawn(&p->pid, &exec_errno, &spec, err);
    close(null_fd);
    if (rc != 0) {
        p->pid = 0;
    }
    return rc;
}

int prober_start(struct prober *p, const uint8_t *bytes, size_t n,
                 struct gpul_error *err)
{
    static const struct gpul_transport_handlers handlers = {
        .on_message = on_message,
        .on_closed = on_closed,
    };
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        return gpul_fail_errno(err, errno, "channel of the probe");
    }
    snprintf(p->how, sizeof(p->how), "it ended without a result");
    p->is_abandoned = false;
    int rc = spawn(p, ends[1], err);
    close(ends[1]);
    if (rc != 0) {
        close(ends[0]);
        return rc;
    }
    rc = gpul_transport_open(&p->channel, p->loop, ends[0], GPUL_PEER_PROBE,
                             &handlers, p, err);
    if (rc != 0) {
        p->channel = NULL;
        kill(p->pid, SIGKILL); /* its end is then reported as any other */
        return 0;
    }
    prober_send(p, bytes, n);
    return 0;
}

void prober_send(struct prober *p, const uint8_t *bytes, size_t n)
{
    if (p->channel != NULL) {
        gpul_transport_send_bytes(p->channel, bytes, n, NULL);
    }
}

void prober_kill(struct prober *p)
{
    if (p->pid != 0) {
        kill(p->pid, SIGKILL);
    }
    if (p->channel != NULL) {
        gpul_transport_close(p->channel, 0);
    }
}

void prober_abandon(struct prober *p)
{
    if (p->pid == 0) {
        return;
    }
    snprintf(p->how, sizeof(p->how), "%d gpulaunch-worker", p->pid);
    p->is_abandoned = true;
    p->pid = 0;
    if (p->channel == NULL) {
        check_ended(p);
    } else {
        gpul_transport_close(p->channel, 0);
    }
}

bool prober_reap(struct prober *p, pid_t pid, int status)
{
    if (p->pid == 0 || pid != p->pid) {
        return false;
    }
    p->pid = 0;
    if (WIFSIGNALED(status)) {
        int signal = WTERMSIG(status);
        snprintf(p->how, sizeof(p->how), "it was ended by signal %d (%s)",
                 signal, strsignal(signal));
    } else if (WEXITSTATUS(status) != 0) {
        snprintf(p->how, sizeof(p->how), "it ended with exit code %d",
                 WEXITSTATUS(status));
    }
    check_ended(p);
    return true;
}
