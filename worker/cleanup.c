/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/children.h"
#include "common/clock.h"
#include "worker/procstat.h"

enum {
    PAUSE_MS = 10,
    CHUNK_BYTES = 16384,
    VALUE_BYTES = 128,
    /* For a process in the middle of an exec, which takes less than one on a
     * machine that is not overloaded. */
    EXEC_LOOKS = 200,
    EXEC_PAUSE_MS = 1,
};

static const char variable[] = "GPULAUNCH_MARKER=";

/* Environments are read in pieces, however large they are. */
struct scanner {
    size_t matched; /* of the name; SIZE_MAX: this string is another */
    size_t used;
    char value[VALUE_BYTES];
};

/* true: `value` is whole. */
static bool scan(struct scanner *s, char byte)
{
    enum { NAME_BYTES = sizeof(variable) - 1 };
    if (s->matched == NAME_BYTES) {
        if (s->used < sizeof(s->value)) {
            s->value[s->used++] = byte;
        }
        return byte == 0;
    }
    if (byte == 0) {
        s->matched = 0;
    } else if (s->matched != SIZE_MAX) {
        s->matched = byte == variable[s->matched] ? s->matched + 1 : SIZE_MAX;
    }
    return false;
}

/* In the middle of an exec the old program is gone and the new one is not
 * whole yet. Threads of the kernel and zombies have no program. */
static bool is_in_exec(pid_t pid)
{
    char path[64];
    char target[1];
    struct procstat stat;
    snprintf(path, sizeof(path), "/proc/%d/exe", pid);
    return readlink(path, target, sizeof(target)) > 0 &&
           procstat_read_quick(&stat, pid) && !stat.has_code;
}

enum environment { NONE, WHOLE, TORN };

/* The first marker counts, as for getenv(). NONE: not a byte is there. TORN:
 * the program was replaced, or ended, while it was read; what it had is not
 * there any more, so its first byte is not either. */
static enum environment read_environment(struct scanner *s, pid_t pid,
                                         bool *is_found)
{
    char path[64];
    char chunk[CHUNK_BYTES];
    ssize_t n;
    enum environment state = NONE;
    memset(s, 0, sizeof(*s));
    *is_found = false;
    snprintf(path, sizeof(path), "/proc/%d/environ", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return WHOLE; /* it is gone, or hidden */
    }
    while (!*is_found && (n = read(fd, chunk, sizeof(chunk))) > 0) {
        state = WHOLE;
        for (ssize_t i = 0; i < n && !*is_found; i++) {
            *is_found = scan(s, chunk[i]);
        }
    }
    if (!*is_found && state == WHOLE && pread(fd, chunk, 1, 0) != 1) {
        state = TORN;
    }
    close(fd);
    *is_found = *is_found && s->value[s->used - 1] == 0;
    return state;
}

/* That there is no environment is believed of a process that was in no exec
 * before. */
static bool read_marker(struct scanner *s, pid_t pid)
{
    bool is_found;
    bool was_in_exec = true;
    enum environment state = read_environment(s, pid, &is_found);
    for (int i = 0; i < EXEC_LOOKS && state != WHOLE; i++) {
        if (state == NONE && !was_in_exec) {
            return false;
        }
        was_in_exec = is_in_exec(pid);
        if (was_in_exec) {
            poll(NULL, 0, EXEC_PAUSE_MS);
        }
        state = read_environment(s, pid, &is_found);
    }
    return is_found;
}

/* "<job>/<generation>/<rank>" */
static bool is_ours(const struct cleanup *c, const char *marker)
{
    char expected[VALUE_BYTES];
    int n = snprintf(expected, sizeof(expected), "%s/%u/", c->job_id,
                     c->generation);
    if (strncmp(marker, expected, (size_t)n) != 0) {
        return false;
    }
    char *end;
    const char *digits = marker + n;
    errno = 0;
    unsigned long rank = strtoul(digits, &end, 10);
    return digits[0] >= '0' && digits[0] <= '9' && *end == 0 && errno == 0 &&
           rank >= c->first_rank && rank - c->first_rank < c->rank_count;
}

static bool is_same_user(pid_t pid)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof(path), "/proc/%d", pid);
    return stat(path, &st) == 0 && st.st_uid == geteuid();
}

uint64_t cleanup_start_ticks(pid_t pid)
{
    struct procstat stat;
    return procstat_read(&stat, pid) ? stat.start_ticks : 0;
}

static bool belongs(const struct cleanup *c, pid_t pid)
{
    struct scanner s;
    return is_same_user(pid) && read_marker(&s, pid) && is_ours(c, s.value) &&
           cleanup_start_ticks(pid) >= c->since_ticks;
}

static int send_signal(int pidfd, int signal)
{
    return (int)syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0);
}

/* As long as the process behind the pidfd has not been waited for, its pid is
 * its own: so what was read was read of this process if the pidfd still takes
 * a signal afterwards. Linux before 5.3 has no pidfds; there the gap between
 * look and signal is that of every kill(1). */
static bool look_at(const struct cleanup *c, pid_t pid, int signal)
{
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    bool has_pidfd = pidfd >= 0;
    if (!has_pidfd && errno != ENOSYS) {
        return false;
    }
    bool is_found = belongs(c, pid);
    if (has_pidfd) {
        is_found = is_found && send_signal(pidfd, signal) == 0;
        close(pidfd);
    } else if (is_found) {
        is_found = kill(pid, signal) == 0;
    }
    return is_found;
}

struct cleanup_pass {
    const struct cleanup *cleanup;
    int signal;
    size_t count;
};

static void take_process(void *arg, pid_t pid)
{
    struct cleanup_pass *p = arg;
    if (pid != getpid() && look_at(p->cleanup, pid, p->signal)) {
        p->count++;
    }
}

size_t cleanup_look(const struct cleanup *c, int signal)
{
    struct cleanup_pass pass = {c, signal, 0};
    return gpul_processes_each(take_process, &pass) ? pass.count : SIZE_MAX;
}

size_t cleanup_run(const struct cleanup *c, uint64_t bound_ms)
{
    uint64_t end_ms = gpul_clock_ms() + bound_ms;
    size_t empty = 0;
    for (;;) {
        size_t count = cleanup_look(c, SIGKILL);
        empty = count == 0 ? empty + 1 : 0;
        if (empty == 2 || gpul_clock_ms() >= end_ms) {
            return count;
        }
        poll(NULL, 0, PAUSE_MS);
    }
}
