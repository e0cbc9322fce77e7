/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ranks.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/spawn.h"
#include "proto/limits.h"
#include "proto/text.h"
#include "worker/failure.h"
#include "worker/ports.h"

struct rank {
    pid_t pid; /* 0: not running */
    uint64_t started_ms;
};

/* Why ranks cannot be started; the first reason holds for those after it. */
struct refusal {
    int exec_errno; /* 0: none */
    char text[GPUL_ERROR_TEXT_BYTES];
};

struct ranks {
    struct output *output;
    struct ranklogs *logs;
    const struct launch *launch;
    struct rank *list; /* by local rank */
    uint32_t count;
    uint32_t alive;
    char *path; /* of the command, found once */
    int null_fd;
    struct refusal refusal;
    Gpul__Exit **exits; /* room for `count` */
    size_t exit_count;
    size_t taken;
};

int ranks_create(struct ranks **out, struct output *output,
                 struct ranklogs *logs, struct gpul_error *err)
{
    struct ranks *r = calloc(1, sizeof(*r));
    *out = r;
    if (r == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "ranks");
    }
    r->output = output;
    r->logs = logs;
    r->null_fd = -1;
    return 0;
}

static void free_exits(struct ranks *r, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        gpul__exit__free_unpacked(r->exits[i], NULL);
    }
    r->exit_count -= n;
    memmove(r->exits, r->exits + n, r->exit_count * sizeof(*r->exits));
    r->taken = 0;
}

static void forget(struct ranks *r)
{
    if (r->exits != NULL) {
        free_exits(r, r->exit_count);
    }
    free(r->exits);
    free(r->list);
    free(r->path);
    r->exits = NULL;
    r->list = NULL;
    r->path = NULL;
    r->count = 0;
    r->alive = 0;
    r->refusal.exec_errno = 0;
}

void ranks_destroy(struct ranks *r)
{
    if (r != NULL) {
        forget(r);
        free(r);
    }
}

static int make_room(struct ranks *r, uint32_t count, struct gpul_error *err)
{
    forget(r);
    r->list = calloc(count, sizeof(*r->list));
    r->exits = calloc(count, sizeof(*r->exits));
    if (r->list == NULL || r->exits == NULL) {
        forget(r);
        return gpul_fail(err, GPUL_ENOMEM, "%u ranks", count);
    }
    r->count = count;
    return 0;
}

/* ---- exits -------------------------------------------------------------- */

/* Text of an exit that the schema's own free can free. */
static bool set_text(char **slot, const char *text)
{
    char *copy = text[0] != 0 ? strdup(text) : NULL;
    if (copy != NULL) {
        *slot = copy;
    }
    return copy != NULL || text[0] == 0;
}

/* NULL without memory: the rank still counts as ended, and the coordinator
 * hears of it by Idle at the latest. */
static Gpul__Exit *add_exit(struct ranks *r, uint32_t rank)
{
    assert(r->exit_count < r->count);
    Gpul__Exit *e = malloc(sizeof(*e));
    if (e != NULL) {
        gpul__exit__init(e);
        e->rank = rank;
        r->exits[r->exit_count++] = e;
    }
    return e;
}

static void add_refused(struct ranks *r, uint32_t rank)
{
    Gpul__Exit *e = add_exit(r, rank);
    if (e != NULL) {
        e->exec_errno = (uint32_t)r->refusal.exec_errno;
        gpul_text_clean(r->refusal.text, GPUL_TEXT_BYTES_MAX);
        set_text(&e->text, r->refusal.text);
    }
}

static void add_port_taken(struct ranks *r, uint32_t rank, uint16_t port)
{
    char text[96];
    snprintf(text, sizeof(text),
             "port %u was taken by another program before the start", port);
    Gpul__Exit *e = add_exit(r, rank);
    if (e != NULL) {
        e->code = 1;
        e->is_bind_error = true;
        set_text(&e->text, text);
    }
}

bool ranks_have_exits(const struct ranks *r)
{
    return r->exit_count > r->taken;
}

size_t ranks_take_exits(struct ranks *r, Gpul__Exit ***exits)
{
    free_exits(r, r->taken);
    *exits = r->exits;
    r->taken = r->exit_count;
    return r->exit_count;
}

/* ---- starting ----------------------------------------------------------- */

static void refuse(struct ranks *r, int exec_errno, const char *text)
{
    r->refusal.exec_errno = exec_errno != 0 ? exec_errno : EINVAL;
    snprintf(r->refusal.text, sizeof(r->refusal.text), "%s", text);
}

/* The coordinator makes 127 of ENOENT, 126 of all else. "Not found" is only
 * the command itself: not its interpreter, nor the working directory. */
static int sharpen_errno(const struct ranks *r, int exec_errno)
{
    const char *directory = r->launch->working_directory;
    if (exec_errno != ENOENT) {
        return exec_errno;
    }
    if (directory != NULL && access(directory, F_OK) != 0) {
        return ENOTDIR;
    }
    int at = directory != NULL ? open(directory, O_PATH | O_CLOEXEC) : AT_FDCWD;
    bool exists = faccessat(at, r->path, F_OK, 0) == 0;
    if (directory != NULL && at >= 0) {
        close(at);
    }
    return exists ? ENOEXEC : ENOENT;
}

static bool find_command(struct ranks *r, const struct env *env)
{
    if (r->path != NULL) {
        return true;
    }
    struct gpul_error err;
    int exec_errno = 0;
    const char *path_list = launch_variable(env->strings, "PATH");
    if (gpul_spawn_find(&r->path, &exec_errno, r->launch->arguments[0],
                        path_list[0] != 0 ? path_list : NULL,
                        r->launch->working_directory, &err) == 0) {
        return true;
    }
    refuse(r, exec_errno, err.text);
    return false;
}

static bool write_tf_config(struct ranks *r, const struct env *env)
{
    if (env->tf_config_path == NULL) {
        return true;
    }
    struct gpul_error err;
    const char *slash = strrchr(env->tf_config_path, '/');
    int rc = ranklogs_put_file(r->logs, slash + 1, env->tf_config_text, &err);
    if (rc != 0) {
        refuse(r, EIO, err.text);
    }
    return rc == 0;
}

/* A pipe whose reading end does not block. Returns 0 or an errno value. */
static int make_pipe(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return errno;
    }
    fcntl(ends[0], F_SETFL, O_RDONLY | O_NONBLOCK);
    return 0;
}

static int make_pipes(int pipes[RANKLOG_STREAMS][2])
{
    int failure = make_pipe(pipes[RANKLOG_OUT]);
    if (failure != 0) {
        return failure;
    }
    failure = make_pipe(pipes[RANKLOG_ERR]);
    if (failure != 0) {
        close(pipes[RANKLOG_OUT][0]);
        close(pipes[RANKLOG_OUT][1]);
    }
    return failure;
}

static int spawn(struct ranks *r, struct rank *rank, const struct env *env,
                 int pipes[RANKLOG_STREAMS][2], struct gpul_error *err)
{
    const struct gpul_spawn_fd fds[] = {
        {r->null_fd, 0},
        {pipes[RANKLOG_OUT][1], 1},
        {pipes[RANKLOG_ERR][1], 2},
    };
    const struct gpul_spawn spec = {
        .path = r->path,
        .arguments = r->launch->arguments,
        .environment = env->strings,
        .working_directory = r->launch->working_directory,
        .fds = fds,
        .fd_count = sizeof(fds) / sizeof(fds[0]),
        .parent_death_signal = SIGKILL,
    };
    int exec_errno = 0;
    int rc = gpul_spawn(&rank->pid, &exec_errno, &spec, err);
    if (rc != 0) {
        rank->pid = 0;
        refuse(r, sharpen_errno(r, exec_errno), err->text);
    }
    return rc;
}

/* A pipe that cannot be read closes, and the rank sees that. */
static void start_process(struct ranks *r, uint32_t local_rank,
                          const struct env *env, uint64_t now_ms)
{
    struct gpul_error err;
    struct rank *rank = &r->list[local_rank];
    int pipes[RANKLOG_STREAMS][2];
    int failure = make_pipes(pipes);
    if (failure != 0) {
        gpul_fail_errno(&err, failure, "pipe for a rank");
        refuse(r, failure, err.text);
        return;
    }
    int rc = spawn(r, rank, env, pipes, &err);
    for (int s = 0; s < RANKLOG_STREAMS; s++) {
        close(pipes[s][1]);
        if (rc != 0) {
            close(pipes[s][0]);
        } else {
            output_add(r->output, local_rank, (enum ranklog_stream)s,
                       pipes[s][0], NULL);
        }
    }
    rank->started_ms = now_ms;
    r->alive += rc == 0 ? 1 : 0;
}

static void start_rank(struct ranks *r, uint32_t local_rank, uint64_t now_ms)
{
    uint32_t rank = r->launch->first_rank + local_rank;
    struct gpul_error err;
    struct env env;
    uint16_t own_port = (uint16_t)(r->launch->port_base + local_rank);
    if (r->refusal.exec_errno == 0 && !ports_check_free(own_port)) {
        add_port_taken(r, rank, own_port);
        return;
    }
    if (r->refusal.exec_errno == 0) {
        if (env_build(&env, r->launch->plan, local_rank, &err) != 0) {
            refuse(r, ENOMEM, err.text);
        } else {
            if (find_command(r, &env) && write_tf_config(r, &env)) {
                start_process(r, local_rank, &env, now_ms);
            }
            env_release(&env);
        }
    }
    if (r->refusal.exec_errno != 0) {
        add_refused(r, rank);
    }
}

/* Two pipes a rank, beside what the worker holds anyway. The limit is raised
 * only where it would not do, since the ranks inherit it. */
static void raise_descriptor_limit(uint32_t ranks)
{
    enum { OTHERS = 128 };
    struct rlimit limit;
    rlim_t need = (rlim_t)ranks * RANKLOG_STREAMS + OTHERS;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < need) {
        limit.rlim_cur = need < limit.rlim_max ? need : limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int ranks_start(struct ranks *r, const struct launch *launch, uint64_t now_ms,
                struct gpul_error *err)
{
    int rc = make_room(r, launch->rank_count, err);
    if (rc != 0) {
        return rc;
    }
    r->launch = launch;
    raise_descriptor_limit(r->count);
    r->null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (r->null_fd < 0) {
        refuse(r, errno, "cannot open /dev/null");
    }
    for (uint32_t i = 0; i < r->count; i++) {
        start_rank(r, i, now_ms);
    }
    if (r->null_fd >= 0) {
        close(r->null_fd);
        r->null_fd = -1;
    }
    return 0;
}

int ranks_fail(struct ranks *r, const Gpul__Assign *assign, int exec_errno,
               const char *text, struct gpul_error *err)
{
    int rc = make_room(r, assign->rank_count, err);
    if (rc != 0) {
        return rc;
    }
    refuse(r, exec_errno, text);
    for (uint32_t i = 0; i < assign->rank_count; i++) {
        add_refused(r, assign->first_rank + i);
    }
    return 0;
}

/* ---- ending ------------------------------------------------------------- */

bool ranks_are_alive(const struct ranks *r)
{
    return r->alive > 0;
}

static bool is_bind_error(struct ranks *r, uint32_t local_rank, uint64_t ran_ms)
{
    uint16_t ports[LAUNCH_PORTS_MAX];
    struct failure_end end = {.ran_ms = ran_ms, .ports = ports};
    if (ran_ms > FAILURE_EARLY_MS) {
        return false;
    }
    output_tail(r->output, local_rank, &end.tail, &end.tail_bytes);
    end.port_count = launch_ports(r->launch, local_rank, ports);
    if (end.tail_bytes == 0) {
        return false;
    }
    /* The job's shared ports are rightly taken while other ranks run. */
    end.is_port_taken = !ports_check_free(ports[0]);
    return failure_is_bind_error(&end);
}

static void add_ended(struct ranks *r, uint32_t local_rank, int status,
                      uint64_t ran_ms)
{
    uint32_t rank = r->launch->first_rank + local_rank;
    Gpul__Exit *e = add_exit(r, rank);
    if (e == NULL) {
        return;
    }
    e->ran_ms = ran_ms;
    if (WIFSIGNALED(status)) {
        e->signal = (uint32_t)WTERMSIG(status);
    } else {
        e->code = (uint32_t)WEXITSTATUS(status);
        e->is_bind_error = e->code != 0 && is_bind_error(r, local_rank, ran_ms);
    }
    if (status != 0) {
        char path[GPUL_PATH_BYTES_MAX + 1];
        output_touch_log(r->output, local_rank);
        ranklogs_path(r->logs, path, sizeof(path), rank, RANKLOG_ERR);
        if (access(path, F_OK) == 0) {
            set_text(&e->log, path);
        }
    }
}

void ranks_reap(struct ranks *r, pid_t pid, int status, uint64_t now_ms)
{
    for (uint32_t i = 0; i < r->count; i++) {
        if (r->list[i].pid == pid) {
            r->list[i].pid = 0;
            r->alive--;
            add_ended(r, i, status, now_ms - r->list[i].started_ms);
            return;
        }
    }
}
