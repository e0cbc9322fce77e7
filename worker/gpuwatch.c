/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/gpuwatch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/spawn.h"
#include "worker/gpu_look.h"
#include "worker/gpu_visible.h"
#include "worker/node_env.h"

extern char **environ;

#define BOUND_TEXT "5 s"
_Static_assert(GPUWATCH_BOUND_MS == 5000, "BOUND_TEXT says it");

/* One look. On the heap: libuv lets go of its handles some time after they
 * are closed. */
struct look {
    uv_poll_t poll;
    uv_timer_t timer;
    uint32_t handle_count; /* that libuv still has */
    struct gpuwatch *watch;
    int fd;
    size_t bytes; /* that have come */
    struct gpu_look answer;
};

struct gpuwatch {
    uv_loop_t *loop;
    const char *node_name;
    gpuwatch_fn on_done;
    void *arg;
    struct look *look; /* NULL: none is under way */
    int child;         /* pidfd of the last process; -1: it has ended */
    struct gpu_look last;
};

int gpuwatch_create(struct gpuwatch **out, uv_loop_t *loop,
                    const char *node_name, gpuwatch_fn on_done, void *arg,
                    struct gpul_error *err)
{
    struct gpuwatch *g = calloc(1, sizeof(*g));
    *out = g;
    if (g == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory for watch of GPUs");
    }
    g->loop = loop;
    g->node_name = node_name;
    g->on_done = on_done;
    g->arg = arg;
    g->child = -1;
    return 0;
}

static void forget(struct gpuwatch *g)
{
    memset(&g->last, 0, sizeof(g->last));
}

/* ---- the end of a look --------------------------------------------------- */

static void on_closed(uv_handle_t *handle)
{
    struct look *look = handle->data;
    if (--look->handle_count == 0) {
        free(look);
    }
}

static void signal_child(const struct gpuwatch *g)
{
    if (g->child >= 0) {
        syscall(SYS_pidfd_send_signal, g->child, SIGKILL, NULL, 0);
    }
}

static void close_look(struct look *look)
{
    struct gpuwatch *g = look->watch;
    g->look = NULL;
    signal_child(g); /* nothing that it does now is of use */
    uv_poll_stop(&look->poll);
    uv_close((uv_handle_t *)&look->poll, on_closed);
    uv_close((uv_handle_t *)&look->timer, on_closed);
    close(look->fd);
}

/* `how` it ended short of an answer, which only tells something if it had an
 * NVML to ask. */
static void finish(struct look *look, const char *how)
{
    struct gpuwatch *g = look->watch;
    bool is_whole = look->bytes == sizeof(look->answer) &&
                    look->answer.count <= GPU_DEVICES_MAX;
    forget(g);
    if (is_whole) {
        g->last = look->answer;
    } else if (look->bytes > 0) {
        g->last.is_simulated = look->answer.is_simulated;
        snprintf(g->last.error, sizeof(g->last.error), "%s", how);
    }
    close_look(look);
    g->on_done(g->arg);
}

static void on_timer(uv_timer_t *timer)
{
    finish(timer->data, "NVML did not answer within " BOUND_TEXT);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct look *look = poll->data;
    size_t room = sizeof(look->answer) - look->bytes;
    (void)events;
    ssize_t n = status < 0
                    ? 0
                    : read(look->fd, (char *)&look->answer + look->bytes, room);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    look->bytes += n > 0 ? (size_t)n : 0;
    if (n <= 0 || look->bytes == sizeof(look->answer)) {
        finish(look, "the process that asked NVML ended without an answer");
    }
}

/* ---- its beginning ------------------------------------------------------- */

/* Is the last process still there, though it was killed? */
static bool is_stuck(struct gpuwatch *g)
{
    struct pollfd p = {.fd = g->child, .events = POLLIN};
    if (g->child >= 0 && poll(&p, 1, 0) == 0) {
        return true;
    }
    if (g->child >= 0) {
        close(g->child);
        g->child = -1;
    }
    return false;
}

static int spawn(pid_t *pid, const struct gpuwatch *g, int pipe_fd)
{
    char path[PATH_MAX], node[NODE_ENV_BYTES];
    char name[] = "gpulaunch-worker";
    char verb[] = GPUWATCH_VERB;
    char *arguments[] = {name, verb, NULL};
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    char **environment = node_env_make(node, g->node_name);
    int rc = GPUL_ESYS;
    if (n > 0 && null_fd >= 0 && environment != NULL) {
        const struct gpul_spawn_fd fds[] = {
            {null_fd, 0}, {null_fd, 1}, {null_fd, 2}, {pipe_fd, GPUWATCH_FD}};
        const struct gpul_spawn spec = {
            .path = path,
            .arguments = arguments,
            .environment = environment,
            .fds = fds,
            .fd_count = sizeof(fds) / sizeof(fds[0]),
            .parent_death_signal = SIGKILL,
        };
        int exec_errno;
        path[n] = 0;
        rc = gpul_spawn(pid, &exec_errno, &spec, NULL);
    }
    free(environment);
    if (null_fd >= 0) {
        close(null_fd);
    }
    return rc;
}

/* Nobody waits for the child before this: its pid is its own. */
static bool start_child(struct gpuwatch *g, int *fd)
{
    int ends[2];
    pid_t pid;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return false;
    }
    int rc = spawn(&pid, g, ends[1]);
    close(ends[1]);
    if (rc == 0) {
        g->child = (int)syscall(SYS_pidfd_open, pid, 0);
        if (g->child < 0) {
            kill(pid, SIGKILL);
        }
    }
    if (g->child < 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) {
        signal_child(g);
        close(ends[0]);
        return false;
    }
    *fd = ends[0];
    return true;
}

static struct look *make_look(struct gpuwatch *g, int fd)
{
    struct look *look = calloc(1, sizeof(*look));
    if (look == NULL || uv_poll_init(g->loop, &look->poll, fd) != 0) {
        free(look);
        return NULL;
    }
    uv_timer_init(g->loop, &look->timer);
    look->poll.data = look;
    look->timer.data = look;
    look->handle_count = 2;
    look->watch = g;
    look->fd = fd;
    return look;
}

void gpuwatch_begin(struct gpuwatch *g)
{
    int fd;
    forget(g);
    if (is_stuck(g)) {
        snprintf(g->last.error, sizeof(g->last.error),
                 "an earlier question to NVML still hangs in the kernel");
        return;
    }
    if (!start_child(g, &fd)) {
        return;
    }
    g->look = make_look(g, fd);
    if (g->look == NULL) {
        signal_child(g);
        close(fd);
        return;
    }
    uv_poll_start(&g->look->poll, UV_READABLE, on_readable);
    uv_update_time(g->loop); /* its clock stands still within a turn */
    uv_timer_start(&g->look->timer, on_timer, GPUWATCH_BOUND_MS, 0);
}

bool gpuwatch_is_looking(const struct gpuwatch *g)
{
    return g->look != NULL;
}

void gpuwatch_end(struct gpuwatch *g)
{
    if (g->look != NULL) {
        close_look(g->look);
    }
    forget(g);
}

void gpuwatch_destroy(struct gpuwatch *g)
{
    if (g == NULL) {
        return;
    }
    gpuwatch_end(g);
    if (g->child >= 0) {
        close(g->child);
    }
    free(g);
}

/* ---- telling ------------------------------------------------------------- */

static uint64_t find_own(const struct gpu_look *look, pid_t pid,
                         const struct rankstate_look *processes)
{
    uint64_t own = 0;
    for (uint32_t i = 0; i < look->count; i++) {
        const struct gpu_device *d = &look->devices[i];
        for (uint32_t k = 0; k < d->pid_count; k++) {
            if (rankstate_descends(processes, (pid_t)d->pids[k], pid)) {
                own |= UINT64_C(1) << i;
            }
        }
    }
    return own;
}

void gpuwatch_tell(char out[GPUL_FINDING_BYTES_MAX + 1],
                   const struct gpuwatch *g, const struct launch *launch,
                   uint32_t local_rank, pid_t pid,
                   const struct rankstate_look *processes)
{
    struct env env;
    out[0] = 0;
    if ((g->last.count == 0 && g->last.error[0] == 0) ||
        env_build(&env, launch->plan, local_rank, NULL) != 0) {
        return;
    }
    const char *order = launch_variable(env.strings, "CUDA_DEVICE_ORDER");
    const struct gpu_look_rank rank = {
        .visible = gpu_visible_value((const char *const *)env.strings),
        .has_bus_order = strcmp(order, "PCI_BUS_ID") == 0,
        .own = pid > 0 ? find_own(&g->last, pid, processes) : 0,
    };
    gpu_look_words(out, &g->last, &rank);
    env_release(&env);
}
