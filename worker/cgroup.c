/* SPDX-License-Identifier: Apache-2.0
 *
 * Foreign rules: cgroups(7), and the kernel's cgroup-v2.rst for cgroup.kill
 * (Linux 5.14), cgroup.events and memory.events.
 */
#include "worker/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"

enum { LIST_BYTES = 16384, PAUSE_MS = 5 };

static bool read_text(char *text, size_t bytes, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t n = read(fd, text, bytes - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    return n > 0;
}

/* Does the comma-separated `list` of `n` bytes hold `word`? */
static bool has_word(const char *list, size_t n, const char *word)
{
    size_t bytes = strlen(word);
    for (size_t at = 0; at + bytes <= n; at++) {
        bool starts = at == 0 || list[at - 1] == ',';
        bool ends = at + bytes == n || list[at + bytes] == ',';
        if (starts && ends && memcmp(list + at, word, bytes) == 0) {
            return true;
        }
    }
    return false;
}

/* Our path in the hierarchy of `controller` ("" for v2), from lines as
 * "4:memory:/a/b"; NULL: it is not there. Cuts `text`. */
static char *own_path(char *text, const char *controller)
{
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        char *list = strchr(line, ':');
        char *path = list != NULL ? strchr(list + 1, ':') : NULL;
        if (path == NULL) {
            continue;
        }
        size_t n = (size_t)(path - list - 1);
        if (controller[0] == 0 ? n == 0 : has_word(list + 1, n, controller)) {
            return strcmp(path + 1, "/") == 0 ? path + 2 : path + 1;
        }
    }
    return NULL;
}

/* snprintf into a path that must hold it all. */
__attribute__((format(printf, 2, 3))) static bool
put_path(char path[PATH_MAX], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(path, PATH_MAX, format, args);
    va_end(args);
    return n > 0 && n < PATH_MAX;
}

/* Where v2 is mounted: alone, or beside v1. */
static bool find_v2(char mount[PATH_MAX], const char *root)
{
    static const char *const places[] = {"/sys/fs/cgroup",
                                         "/sys/fs/cgroup/unified"};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        char file[PATH_MAX];
        if (put_path(file, "%s%s/cgroup.controllers", root, places[i]) &&
            access(file, F_OK) == 0) {
            return put_path(mount, "%s%s", root, places[i]);
        }
    }
    return false;
}

static bool find_own(char path[PATH_MAX], const char *root)
{
    char list[LIST_BYTES];
    char file[PATH_MAX];
    char mount[PATH_MAX];
    if (!put_path(file, "%s/proc/self/cgroup", root) ||
        !read_text(list, sizeof(list), file) || !find_v2(mount, root)) {
        return false;
    }
    const char *own = own_path(list, "");
    return own != NULL && put_path(path, "%s%s", mount, own);
}

/* ---- the leaf ------------------------------------------------------------ */

static int open_to_write(const struct cgroup *g, const char *name)
{
    char path[PATH_MAX];
    int fd = put_path(path, "%s/%s", g->path, name)
                 ? open(path, O_WRONLY | O_CLOEXEC)
                 : -1;
    return fd > 0 ? fd : 0;
}

static bool can_kill(const struct cgroup *g)
{
    char path[PATH_MAX];
    return put_path(path, "%s/cgroup.kill", g->path) && access(path, W_OK) == 0;
}

/* Whether it may be entered depends on who owns what between here and there,
 * on controllers, and on the kernel: so somebody tries. */
static bool can_enter(const struct cgroup *g)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        _exit(write(g->procs, "0", 1) == 1 ? 0 : 1);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return status == 0;
}

bool cgroup_make(struct cgroup *g, const char *root, const char *name)
{
    char own[PATH_MAX];
    memset(g, 0, sizeof(*g));
    if (!find_own(own, root) || !put_path(g->path, "%s/%s", own, name) ||
        mkdir(g->path, 0755) != 0) {
        g->path[0] = 0;
        return false;
    }
    g->procs = open_to_write(g, "cgroup.procs");
    if (g->procs != 0 && can_kill(g) && can_enter(g)) {
        return true;
    }
    cgroup_remove(g, 0);
    cgroup_close(g);
    g->path[0] = 0;
    return false;
}

void cgroup_kill(const struct cgroup *g)
{
    int fd = g->path[0] != 0 ? open_to_write(g, "cgroup.kill") : 0;
    if (fd != 0) {
        /* Refused only when it is gone, and then nothing is in it. */
        ssize_t n = write(fd, "1", 1);
        (void)n;
        close(fd);
    }
}

bool cgroup_is_populated(const struct cgroup *g)
{
    char path[PATH_MAX];
    char text[256];
    return g->path[0] != 0 && put_path(path, "%s/cgroup.events", g->path) &&
           read_text(text, sizeof(text), path) &&
           strstr(text, "populated 1") != NULL;
}

void cgroup_close(struct cgroup *g)
{
    if (g->procs != 0) {
        close(g->procs);
    }
    g->procs = 0;
}

bool cgroup_remove(struct cgroup *g, uint64_t bound_ms)
{
    uint64_t end_ms = gpul_clock_ms() + bound_ms;
    if (g->path[0] == 0) {
        return true;
    }
    while (rmdir(g->path) != 0 && errno != ENOENT) {
        if (errno != EBUSY || gpul_clock_ms() >= end_ms) {
            return false;
        }
        poll(NULL, 0, PAUSE_MS);
    }
    cgroup_close(g);
    g->path[0] = 0;
    return true;
}

/* ---- out of memory ------------------------------------------------------- */

static uint64_t read_count(const struct cgroup_oom *o)
{
    char text[512];
    ssize_t n = pread(o->fd, text, sizeof(text) - 1, 0);
    if (n <= 0) {
        return o->seen;
    }
    text[n] = 0;
    const char *at = strstr(text, "oom_kill ");
    return at != NULL ? strtoull(at + strlen("oom_kill "), NULL, 10) : o->seen;
}

static bool open_count(struct cgroup_oom *o, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    o->fd = fd > 0 ? fd : 0;
    return o->fd != 0;
}

/* In a container that sees the host's paths, but has its own cgroup mounted
 * as the root, it is the root. */
static bool open_v1(struct cgroup_oom *o, const char *root)
{
    char list[LIST_BYTES];
    char path[PATH_MAX];
    static const char format[] = "%s/sys/fs/cgroup/memory%s/memory.oom_control";
    if (!put_path(path, "%s/proc/self/cgroup", root) ||
        !read_text(list, sizeof(list), path)) {
        return false;
    }
    const char *own = own_path(list, "memory");
    return own != NULL &&
           ((put_path(path, format, root, own) && open_count(o, path)) ||
            (put_path(path, format, root, "") && open_count(o, path)));
}

void cgroup_oom_open(struct cgroup_oom *o, const char *root)
{
    char own[PATH_MAX];
    char path[PATH_MAX];
    memset(o, 0, sizeof(*o));
    bool is_open = find_own(own, root) &&
                   put_path(path, "%s/memory.events", own) &&
                   open_count(o, path);
    if (is_open || open_v1(o, root)) {
        cgroup_oom_skip(o);
    }
}

void cgroup_oom_close(struct cgroup_oom *o)
{
    if (o->fd != 0) {
        close(o->fd);
        o->fd = 0;
    }
}

bool cgroup_oom_take(struct cgroup_oom *o)
{
    if (o->fd == 0 || read_count(o) <= o->seen) {
        return false;
    }
    o->seen++;
    return true;
}

void cgroup_oom_skip(struct cgroup_oom *o)
{
    if (o->fd != 0) {
        o->seen = read_count(o);
    }
}
