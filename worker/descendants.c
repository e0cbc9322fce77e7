/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/descendants.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

void descendants_adopt(void)
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

size_t descendants_find(pid_t *pids, size_t most)
{
    char text[DESCENDANTS_MAX * 8];
    if (!read_children(text, sizeof(text))) {
        return descendants_scan(pids, most);
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

size_t descendants_scan(pid_t *pids, size_t most)
{
    size_t count = 0;
    DIR *proc = opendir("/proc");
    if (proc == NULL) {
        return 0;
    }
    for (struct dirent *e; count < most && (e = readdir(proc)) != NULL;) {
        pid_t pid = (pid_t)atoi(e->d_name);
        if (pid > 0 && parent_of(pid) == getpid()) {
            pids[count++] = pid;
        }
    }
    closedir(proc);
    return count;
}

static bool is_first_of(struct descendants *d, pid_t target)
{
    for (size_t i = 0; i < d->group_count; i++) {
        if (d->groups[i] == target) {
            return false;
        }
    }
    if (d->group_count < DESCENDANTS_GROUPS_MAX) {
        d->groups[d->group_count++] = target;
    }
    return true;
}

/* A child that has not been waited for keeps its pid, and its group's id
 * with it, so neither can have come to mean somebody else. */
static void signal_one(struct descendants *d, pid_t pid)
{
    pid_t group = getpgid(pid);
    pid_t target = group > 1 && group != getpgrp() ? -group : pid;
    if (is_first_of(d, target)) {
        kill(target, d->signal);
        kill(target, SIGCONT);
    }
}

void descendants_sweep(struct descendants *d)
{
    if (d->signal == SIGKILL) {
        d->group_count = 0;
    }
    if (d->signal == 0) {
        return;
    }
    pid_t pids[DESCENDANTS_MAX];
    size_t count = descendants_find(pids, DESCENDANTS_MAX);
    for (size_t i = 0; i < count; i++) {
        signal_one(d, pids[i]);
    }
}

void descendants_stop(struct descendants *d, int signal)
{
    d->signal = signal;
    d->group_count = 0;
    descendants_sweep(d);
}

bool descendants_exist(void)
{
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static bool append_name(struct gpul_buf *out, pid_t pid)
{
    char path[64];
    char name[64] = "";
    snprintf(path, sizeof(path), "/proc/%d/comm", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t n = read(fd, name, sizeof(name) - 1);
        name[n > 0 ? n : 0] = 0;
        name[strcspn(name, "\n")] = 0;
        close(fd);
    }
    return gpul_buf_appendf(out, "%d %s", pid, name) == 0 &&
           gpul_buf_append(out, "", 1) == 0;
}

size_t descendants_list(struct gpul_buf *out, size_t most)
{
    pid_t pids[DESCENDANTS_MAX];
    most = most < DESCENDANTS_MAX ? most : DESCENDANTS_MAX;
    size_t found = descendants_find(pids, most);
    size_t count = 0;
    while (count < found && append_name(out, pids[count])) {
        count++;
    }
    return count;
}
