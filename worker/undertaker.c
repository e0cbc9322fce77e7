/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/undertaker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { DESCRIPTORS_MAX = 65536, REMOVE_MS = 1000 };

static void close_range_or_loop(unsigned int first, unsigned int last)
{
    if (first > last || syscall(SYS_close_range, first, last, 0) == 0) {
        return;
    }
    for (unsigned int fd = first; fd <= last && fd < DESCRIPTORS_MAX; fd++) {
        close((int)fd);
    }
}

static void close_all_but(int kept)
{
    close_range_or_loop(0, (unsigned int)kept - 1);
    close_range_or_loop((unsigned int)kept + 1, ~0u);
}

static void bury(const struct cleanup *marker, const struct cgroup *cgroup)
{
    struct cgroup leaf = *cgroup;
    leaf.procs = 0; /* closed with all else */
    cgroup_kill(&leaf);
    cleanup_run(marker, CLEANUP_BOUND_MS);
    cgroup_remove(&leaf, REMOVE_MS);
}

static bool is_orderly(int pipe)
{
    char byte;
    ssize_t n;
    do {
        n = read(pipe, &byte, 1);
    } while (n < 0 && errno == EINTR);
    return n == 1;
}

/* From signals, from terminals, and from whoever waits for a pipe to end. */
static void hide(int pipe)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setsid();
    prctl(PR_SET_NAME, "gpulaunch-under");
    close_all_but(pipe);
}

int undertaker_fork(struct undertaker *u, const struct cleanup *marker,
                    const struct cgroup *cgroup, void (*forget)(void *arg),
                    void *arg)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return errno;
    }
    pid_t pid = fork();
    int fork_errno = errno;
    if (pid == 0) {
        if (forget != NULL) {
            forget(arg);
        }
        hide(ends[0]);
        if (!is_orderly(ends[0])) {
            bury(marker, cgroup);
        }
        _exit(0);
    }
    close(ends[0]);
    if (pid < 0) {
        close(ends[1]);
        return fork_errno;
    }
    u->pid = pid;
    u->pipe = ends[1];
    return 0;
}

void undertaker_release(struct undertaker *u)
{
    /* One that is dead takes no byte, and needs none. */
    if (u->pipe != 0 && write(u->pipe, "", 1) < 0) {
        undertaker_close(u);
    }
    undertaker_close(u);
}

void undertaker_close(struct undertaker *u)
{
    if (u->pipe != 0) {
        close(u->pipe);
        u->pipe = 0;
    }
}
