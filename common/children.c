/* SPDX-License-Identifier: Apache-2.0 */
#include "common/children.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

void gpul_children_adopt(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* The list is whole only when it is read in one piece. */
static bool read_children(char *text, size_t bytes)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t n = read(fd, text, bytes - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    return n >= 0;
}

size_t gpul_children_find(pid_t *pids, size_t most)
{
    char text[GPUL_CHILDREN_MAX * 8];
    if (!read_children(text, sizeof(text))) {
        return gpul_children_scan(pids, most);
    }
    size_t count = 0;
    char *end;
    for (char *at = text; count < most; at = end + 1) {
        long pid = strtol(at, &end, 10);
        if (end == at || *end != ' ') {
            break; /* the end, or cut off within a number */
        }
        pids[count++] = (pid_t)pid;
    }
    return count;
}

static pid_t parent_of(pid_t pid)
{
    char path[64];
    char text[512];
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    /* "pid (name) state ppid": the name may hold anything, ")" too. */
    const char *end = strrchr(text, ')');
    return end != NULL && strlen(end) > 4 ? (pid_t)atoi(end + 4) : 0;
}

/* By the system call, since opendir() allocates. */
bool gpul_processes_each(void (*each)(void *arg, pid_t pid), void *arg)
{
    _Alignas(struct dirent64) char entries[32768];
    int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t n;
    while ((n = getdents64(fd, entries, sizeof(entries))) > 0) {
        for (ssize_t at = 0; at < n;) {
            const struct dirent64 *e = (const void *)(entries + at);
            pid_t pid = (pid_t)atoi(e->d_name);
            if (pid > 0) {
                each(arg, pid);
            }
            at += e->d_reclen;
        }
    }
    close(fd);
    return true;
}

struct found {
    pid_t *pids;
    size_t count;
    size_t most;
};

static void find_child(void *arg, pid_t pid)
{
    struct found *f = arg;
    if (f->count < f->most && parent_of(pid) == getpid()) {
        f->pids[f->count++] = pid;
    }
}

size_t gpul_children_scan(pid_t *pids, size_t most)
{
    struct found f = {pids, 0, most};
    gpul_processes_each(find_child, &f);
    return f.count;
}
