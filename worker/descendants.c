/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/descendants.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/children.h"
#include "worker/procstat.h"

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
static pid_t target_of(pid_t child)
{
    pid_t group = getpgid(child);
    return group > 1 && group != getpgrp() ? -group : child;
}

/* true: it has not been sent this signal before. */
static bool signal_one(struct descendants *d, pid_t child)
{
    pid_t target = target_of(child);
    bool is_first = is_first_of(d, target);
    if (is_first) {
        kill(target, d->signal);
    }
    return is_first;
}

static bool is_spared(const struct descendants *d, pid_t pid)
{
    for (size_t i = 0; i < DESCENDANTS_SPARED_MAX; i++) {
        if (d->spared[i] == pid) {
            return true;
        }
    }
    return false;
}

/* ---- those that are stopped ---------------------------------------------- */

enum {
    DEPTH_MAX = 64, /* of a process below its rank */
    TRIES = 3,      /* parents end, and their children become ours */
};

/* The child of ours that this one is below of, itself maybe; 0: none. */
static pid_t find_child(const struct procstat *process, pid_t pid)
{
    struct procstat at = *process;
    for (int depth = 0; depth < DEPTH_MAX; depth++) {
        if (at.parent == getpid()) {
            return pid;
        }
        pid = at.parent;
        if (pid <= 1 || !procstat_read_quick(&at, pid)) {
            return 0;
        }
    }
    return 0;
}

/* It got the signal with its group, or as a child. */
static void wake_if_stopped(void *arg, pid_t pid)
{
    const struct descendants *d = arg;
    struct procstat process;
    pid_t child = 0;
    for (int i = 0; i < TRIES && child == 0; i++) {
        if (!procstat_read_quick(&process, pid) || process.state != 'T') {
            return;
        }
        child = find_child(&process, pid);
    }
    bool is_below = child != 0 && !is_spared(d, child);
    if (is_below && (pid == child || target_of(child) == -process.group)) {
        kill(pid, SIGCONT);
    }
}

/* ---- the stop ------------------------------------------------------------ */

void descendants_sweep(struct descendants *d)
{
    bool has_news = false;
    if (d->signal == SIGKILL) {
        d->group_count = 0;
    }
    if (d->signal == 0) {
        return;
    }
    pid_t pids[GPUL_CHILDREN_MAX];
    size_t count = gpul_children_find(pids, GPUL_CHILDREN_MAX);
    for (size_t i = 0; i < count; i++) {
        if (!is_spared(d, pids[i])) {
            has_news |= signal_one(d, pids[i]);
        }
    }
    if (has_news && d->signal != SIGKILL) { /* which needs nobody awake */
        gpul_processes_each(wake_if_stopped, d);
    }
}

void descendants_stop(struct descendants *d, int signal)
{
    d->signal = signal;
    d->group_count = 0;
    descendants_sweep(d);
}

bool descendants_remain(const struct descendants *d)
{
    pid_t pids[DESCENDANTS_SPARED_MAX + 1];
    size_t count = gpul_children_find(pids, DESCENDANTS_SPARED_MAX + 1);
    size_t remain = count;
    for (size_t i = 0; i < count; i++) {
        remain -= is_spared(d, pids[i]) ? 1 : 0;
    }
    return remain > 0;
}

static bool describe(char text[DESCENDANTS_TEXT_BYTES], pid_t pid)
{
    struct procstat stat;
    if (!procstat_read(&stat, pid) || stat.state == 'Z') {
        return false;
    }
    snprintf(text, DESCENDANTS_TEXT_BYTES, "%d %s (%c%s%s)", pid, stat.name,
             stat.state, stat.wait_channel[0] != 0 ? ", " : "",
             stat.wait_channel);
    return true;
}

void descendants_describe(const struct descendants *d,
                          void (*each)(void *arg, const char *text), void *arg)
{
    pid_t pids[GPUL_CHILDREN_MAX];
    size_t count = gpul_children_find(pids, GPUL_CHILDREN_MAX);
    for (size_t i = 0; i < count; i++) {
        char text[DESCENDANTS_TEXT_BYTES];
        if (!is_spared(d, pids[i]) && describe(text, pids[i])) {
            each(arg, text);
        }
    }
}
