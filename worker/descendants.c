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

typedef void (*visit_fn)(pid_t pid, void *arg);

void descendants_adopt(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* The kernel's list of our children, where it is configured in. The list is
 * read anew from its start by each read at offset 0 only, so it is read in
 * one piece as far as it fits; who is left out turns up in a later pass. */
static bool visit_list(visit_fn visit, void *arg)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    char text[32 << 10];
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    char *at = text;
    for (char *end; *at != 0; at = end) {
        long pid = strtol(at, &end, 10);
        if (end == at || *end != ' ') {
            break; /* cut off within a number */
        }
        end++;
        visit((pid_t)pid, arg);
    }
    return true;
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

/* Where there is no list: all processes whose parent we are. */
static void visit_all(visit_fn visit, void *arg)
{
    DIR *proc = opendir("/proc");
    if (proc == NULL) {
        return;
    }
    for (struct dirent *e; (e = readdir(proc)) != NULL;) {
        pid_t pid = (pid_t)atoi(e->d_name);
        if (pid > 0 && parent_of(pid) == getpid()) {
            visit(pid, arg);
        }
    }
    closedir(proc);
}

static void visit_children(visit_fn visit, void *arg)
{
    if (!visit_list(visit, arg)) {
        visit_all(visit, arg);
    }
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
static void signal_one(pid_t pid, void *arg)
{
    struct descendants *d = arg;
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
    if (d->signal != 0) {
        visit_children(signal_one, d);
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

struct listing {
    struct gpul_buf *out;
    size_t count;
    size_t most;
};

static void list_one(pid_t pid, void *arg)
{
    struct listing *listing = arg;
    if (listing->count == listing->most) {
        return;
    }
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
    if (gpul_buf_appendf(listing->out, "%d %s", pid, name) == 0 &&
        gpul_buf_append(listing->out, "", 1) == 0) {
        listing->count++;
    }
}

size_t descendants_list(struct gpul_buf *out, size_t most)
{
    struct listing listing = {.out = out, .most = most};
    visit_children(list_one, &listing);
    return listing.count;
}
