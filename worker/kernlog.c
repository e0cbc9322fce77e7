/* SPDX-License-Identifier: Apache-2.0
 *
 * Source: the kernel's Documentation/ABI/testing/dev-kmsg.
 */
#include "worker/kernlog.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "worker/evidence.h"
#include "worker/procstat.h"

enum {
    RECORD_BYTES = 8192, /* the kernel's CONSOLE_EXT_LOG_MAX */
    RECORDS_MAX = 4096,  /* of one look */
};

void kernlog_open_fd(struct kernlog *k, int fd)
{
    *k = (struct kernlog){.fd = fd, .is_whole = fd >= 0};
}

void kernlog_open(struct kernlog *k)
{
    int fd = procstat_is_first_namespace()
                 ? open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC)
                 : -1;
    if (fd >= 0 && lseek(fd, 0, SEEK_END) < 0) {
        close(fd);
        fd = -1;
    }
    kernlog_open_fd(k, fd);
}

void kernlog_close(struct kernlog *k)
{
    if (k->fd >= 0) {
        close(k->fd);
    }
    kernlog_open_fd(k, -1);
}

static void add(struct kernlog *k, int32_t pid)
{
    if (k->count == KERNLOG_PIDS) {
        memmove(k->pids, k->pids + 1, (--k->count) * sizeof(*k->pids));
    }
    k->pids[k->count++] = pid;
}

/* False: there is no more. EPIPE: records were overwritten, go on. */
static bool read_one(struct kernlog *k)
{
    char record[RECORD_BYTES];
    ssize_t n = read(k->fd, record, sizeof(record));
    if (n < 0 && (errno == EPIPE || errno == EINTR)) {
        k->is_whole = k->is_whole && errno == EINTR;
        return true;
    }
    int32_t pid = n > 0 ? evidence_oom_pid(record, (size_t)n) : 0;
    if (pid != 0) {
        add(k, pid);
    }
    return n > 0;
}

bool kernlog_has_killed(struct kernlog *k, int32_t pid)
{
    int left = RECORDS_MAX;
    while (k->fd >= 0 && left > 0 && read_one(k)) {
        left--;
    }
    k->is_whole = k->is_whole && left > 0;
    for (size_t i = 0; i < k->count; i++) {
        if (k->pids[i] == pid) {
            return true;
        }
    }
    return false;
}
