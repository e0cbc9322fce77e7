/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/rankstart.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/spawn.h"
#include "worker/hangwatch.h"
#include "worker/metric.h"
#include "worker/startspec.h"

void rankstart_init(struct rankstart *s)
{
    *s = (struct rankstart){.launch = NULL};
    gpul_buf_init(&s->spec, STARTSPEC_BYTES_MAX);
}

void rankstart_release(struct rankstart *s)
{
    free(s->path);
    gpul_buf_release(&s->spec);
}

void rankstart_begin(struct rankstart *s, const struct launch *launch,
                     struct ranklogs *logs)
{
    free(s->path);
    s->path = NULL;
    s->exec_errno = 0;
    s->launch = launch;
    s->logs = logs;
}

void rankstart_refuse(struct rankstart *s, int exec_errno, const char *text)
{
    s->exec_errno = exec_errno != 0 ? exec_errno : EINVAL;
    snprintf(s->why_not, sizeof(s->why_not), "%s", text);
}

/* "Not found" is only the command itself: not its interpreter, nor the
 * working directory. */
int rankstart_sharpen(const struct rankstart *s, int exec_errno)
{
    const char *directory = s->launch->working_directory;
    if (exec_errno != ENOENT || s->path == NULL) {
        return exec_errno;
    }
    if (directory != NULL && access(directory, F_OK) != 0) {
        return ENOTDIR;
    }
    int at = directory != NULL ? open(directory, O_PATH | O_CLOEXEC) : AT_FDCWD;
    bool exists = faccessat(at, s->path, F_OK, 0) == 0;
    if (directory != NULL && at >= 0) {
        close(at);
    }
    return exists ? ENOEXEC : ENOENT;
}

/* ---- the specification --------------------------------------------------- */

static bool find_command(struct rankstart *s, const struct env *env)
{
    if (s->path != NULL) {
        return true;
    }
    struct gpul_error err;
    int exec_errno = 0;
    const char *path_list = launch_variable(env->strings, "PATH");
    if (gpul_spawn_find(&s->path, &exec_errno, s->launch->arguments[0],
                        path_list[0] != 0 ? path_list : NULL,
                        s->launch->working_directory, &err) == 0) {
        return true;
    }
    rankstart_refuse(s, exec_errno, err.text);
    return false;
}

static bool write_tf_config(struct rankstart *s, const struct env *env)
{
    if (env->tf_config_path == NULL) {
        return true;
    }
    struct gpul_error err;
    const char *slash = strrchr(env->tf_config_path, '/');
    int rc = ranklogs_put_file(s->logs, slash + 1, env->tf_config_text, &err);
    if (rc != 0) {
        rankstart_refuse(s, EIO, err.text);
    }
    return rc == 0;
}

static void put_place(struct startspec *spec, const struct binding_place *place)
{
    spec->has_cpus = true;
    memcpy(spec->cpus, place->cpus, sizeof(spec->cpus));
    spec->has_nodes = place->has_nodes;
    memcpy(spec->nodes, place->nodes, sizeof(spec->nodes));
}

static bool fill_spec(struct rankstart *s, const struct env *env,
                      uint32_t local_rank)
{
    struct startspec spec = {
        .path = s->path,
        .arguments = s->launch->arguments,
        .environment = env->strings,
        .working_directory = s->launch->working_directory,
        .raises_limits = true,
    };
    struct gpul_error err;
    if (s->launch->binding != NULL) {
        put_place(&spec, &s->launch->binding->places[local_rank]);
    }
    gpul_buf_clear(&s->spec);
    int rc = startspec_encode(&s->spec, &spec, &err);
    if (rc != 0) {
        rankstart_refuse(s, rc == GPUL_ELIMIT ? E2BIG : ENOMEM, err.text);
    }
    return rc == 0;
}

static bool make_spec(struct rankstart *s, uint32_t local_rank)
{
    struct gpul_error err;
    struct env env;
    if (env_build(&env, s->launch->plan, local_rank, &err) != 0) {
        rankstart_refuse(s, ENOMEM, err.text);
        return false;
    }
    bool is_made = find_command(s, &env) && write_tf_config(s, &env) &&
                   fill_spec(s, &env, local_rank);
    env_release(&env);
    return is_made;
}

/* ---- the descriptors ----------------------------------------------------- */

static void close_list(const int *fds, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        close(fds[i]);
    }
}

void rankstart_close(struct rankstart_fds *fds)
{
    close_list(fds->child, fds->child_count);
    close_list(fds->kept, fds->kept_count);
    fds->child_count = 0;
    fds->kept_count = 0;
}

static bool add_null(struct rankstart_fds *fds)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        fds->child[fds->child_count++] = fd;
    }
    return fd >= 0;
}

/* A pipe that the rank reads from. The end that we write to does not block. */
static bool add_input(struct rankstart_fds *fds, int *input)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return false;
    }
    fcntl(ends[1], F_SETFL, O_WRONLY | O_NONBLOCK);
    fds->child[fds->child_count++] = ends[0];
    *input = ends[1];
    return true;
}

/* A pipe that the rank writes to. The end that is kept does not block. */
static bool add_output(struct rankstart_fds *fds)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return false;
    }
    fcntl(ends[0], F_SETFL, O_RDONLY | O_NONBLOCK);
    fds->child[fds->child_count++] = ends[1];
    fds->kept[fds->kept_count++] = ends[0];
    return true;
}

static bool add_ends(struct rankstart_fds *fds, int (*make)(int ends[2]))
{
    int ends[2];
    errno = make(ends);
    if (errno != 0) {
        return false;
    }
    fds->child[fds->child_count++] = ends[1];
    fds->kept[fds->kept_count++] = ends[0];
    return true;
}

/* GPULAUNCH_BEAT_FD and GPULAUNCH_METRIC_FD, as the environment names them. */
static bool add_signs(const struct rankstart *s, struct rankstart_fds *fds)
{
    const struct env_input *in = &s->launch->input;
    return (in->beat_fd == 0 || add_ends(fds, hangwatch_pipe)) &&
           (in->metric_fd == 0 || add_ends(fds, metric_open));
}

static bool open_fds(struct rankstart *s, bool reads_input,
                     struct rankstart_fds *fds)
{
    int input = -1;
    *fds = (struct rankstart_fds){.has_input = reads_input};
    bool is_open = (reads_input ? add_input(fds, &input) : add_null(fds)) &&
                   add_output(fds) && add_output(fds) && add_signs(s, fds);
    int failure = errno;
    if (input >= 0) {
        fds->kept[fds->kept_count++] = input;
    }
    if (is_open) {
        return true;
    }
    struct gpul_error err;
    gpul_fail_errno(&err, failure, "pipe for a rank");
    rankstart_refuse(s, failure, err.text);
    rankstart_close(fds);
    return false;
}

bool rankstart_make(struct rankstart *s, uint32_t local_rank, bool reads_input,
                    struct rankstart_fds *fds)
{
    return make_spec(s, local_rank) && open_fds(s, reads_input, fds);
}
