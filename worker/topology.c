/* SPDX-License-Identifier: Apache-2.0
 *
 * Happy path: spawn, read until the pipe closes, wait, check the size. The
 * structure crosses the pipe as it is: both ends are one program.
 */
#include "worker/topology.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/spawn.h"
#include "proto/text.h"

extern char **environ;

enum { PATIENCE_MS = 5000, TEXT_BYTES = 400 };

/* ---- starting it --------------------------------------------------------- */

static int spawn(pid_t *pid, const char *program, const char *root,
                 const int ends[2], struct gpul_error *err)
{
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null_fd < 0) {
        return gpul_fail_errno(err, errno, "/dev/null");
    }
    char name[] = "gpulaunch-worker";
    char verb[] = TOPOLOGY_VERB;
    char *folder = (char *)(uintptr_t)root;
    char *arguments[] = {name, verb, folder, NULL};
    const struct gpul_spawn_fd fds[] = {
        {null_fd, 0}, {ends[1], 1}, {null_fd, 2}};
    const struct gpul_spawn spec = {
        .path = program,
        .arguments = arguments,
        .environment = environ,
        .fds = fds,
        .fd_count = sizeof(fds) / sizeof(fds[0]),
        .parent_death_signal = SIGKILL,
    };
    int exec_errno = 0;
    int rc = gpul_spawn(pid, &exec_errno, &spec, err);
    close(null_fd);
    return rc;
}

/* ---- reading from it ----------------------------------------------------- */

/* Returns the bytes read until the end, or -1 when time was up. */
static ssize_t read_all(int fd, void *out, size_t bytes)
{
    uint64_t end_ms = gpul_clock_ms() + PATIENCE_MS;
    size_t have = 0;
    while (have < bytes) {
        uint64_t now_ms = gpul_clock_ms();
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (now_ms >= end_ms) {
            return -1;
        }
        if (poll(&p, 1, (int)(end_ms - now_ms)) > 0) {
            ssize_t n = read(fd, (char *)out + have, bytes - have);
            if (n == 0) {
                break;
            }
            have += n > 0 ? (size_t)n : 0;
        }
    }
    return (ssize_t)have;
}

static int await(pid_t pid)
{
    int status = 0;
    pid_t got;
    do {
        got = waitpid(pid, &status, 0);
    } while (got < 0 && errno == EINTR);
    return got == pid ? status : -1;
}

/* What a process that failed has said instead of a machine. */
static int complain(struct binding_machine *m, size_t bytes, int status,
                    struct gpul_error *err)
{
    char text[TEXT_BYTES];
    if (WIFSIGNALED(status)) {
        return gpul_fail(err, GPUL_ESYS, "hwloc was ended by signal %d",
                         WTERMSIG(status));
    }
    size_t n = bytes < sizeof(text) ? bytes : sizeof(text) - 1;
    memcpy(text, m, n);
    text[n] = 0;
    gpul_text_clean_line(text, sizeof(text));
    return gpul_fail(err, GPUL_ESYS, "%s",
                     n > 0 ? text : "hwloc ended without a word");
}

int topology_read(struct binding_machine *out, const char *program,
                  const char *root, struct gpul_error *err)
{
    int ends[2];
    pid_t pid;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return gpul_fail_errno(err, errno, "pipe of hwloc");
    }
    int rc = spawn(&pid, program, root, ends, err);
    close(ends[1]);
    if (rc != 0) {
        close(ends[0]);
        return rc;
    }
    ssize_t n = read_all(ends[0], out, sizeof(*out));
    close(ends[0]);
    if (n < 0) {
        kill(pid, SIGKILL);
    }
    int status = await(pid);
    if (n < 0) {
        return gpul_fail(err, GPUL_ESYS, "hwloc took more than %d s",
                         PATIENCE_MS / 1000);
    }
    return status == 0 && (size_t)n == sizeof(*out)
               ? 0
               : complain(out, (size_t)n, status, err);
}
