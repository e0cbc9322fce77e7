/* SPDX-License-Identifier: Apache-2.0
 *
 * Orphans of the job on this machine: the kernel hands them to us.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/children.h"
#include "common/clock.h"
#include "launcher/reach_internal.h"

enum {
    NUMBER_BYTES = 32,
    NAME_BYTES = 32,
    POLL_US = 1000,
    /* What an undertaker may take: 5 s for what will not die, 1 s for its
     * cgroup. A large process takes its time to die, too. */
    UNDERTAKER_MS = 7000,
    SWEEP_MS = 8000,
};

/* A shell that had started something and then exec'ed us. */
int reach_note_strangers(struct reach *r, struct gpul_error *err)
{
    pid_t pids[GPUL_CHILDREN_MAX];
    size_t count = gpul_children_find(pids, GPUL_CHILDREN_MAX);
    if (count == 0) {
        return 0;
    }
    r->strangers = calloc(count, sizeof(*r->strangers));
    if (r->strangers == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    memcpy(r->strangers, pids, count * sizeof(*r->strangers));
    r->stranger_count = count;
    return 0;
}

/* Its pid may come to mean an orphan. */
void reach_forget_stranger(struct reach *r, pid_t pid)
{
    for (size_t i = 0; i < r->stranger_count; i++) {
        if (r->strangers[i] == pid) {
            r->strangers[i] = 0;
        }
    }
}

/* Every other child is an orphan of the job's, but those that were children
 * of this process before gpulaunch ran in it. */
static bool is_stranger(const struct reach *r, pid_t pid)
{
    for (size_t i = 0; i < r->stranger_count; i++) {
        if (r->strangers[i] == pid) {
            return true;
        }
    }
    return false;
}

/* "pid (name) state ...": false: it has ended. The name may hold anything. */
static bool read_name(pid_t pid, char name[NAME_BYTES])
{
    char path[64];
    char text[512];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
    if (fd >= 0) {
        close(fd);
    }
    text[n > 0 ? n : 0] = '\0';
    const char *open_bracket = strchr(text, '(');
    char *close_bracket = strrchr(text, ')');
    if (open_bracket == NULL || close_bracket == NULL ||
        strlen(close_bracket) < 3 || close_bracket[2] == 'Z') {
        return false;
    }
    *close_bracket = '\0';
    snprintf(name, NAME_BYTES, "%s", open_bracket + 1);
    return true;
}

static void note_left(struct reach_sweep *out, pid_t pid, const char *name)
{
    size_t used = strlen(out->text);
    if (used + NAME_BYTES + NUMBER_BYTES < sizeof(out->text)) {
        snprintf(out->text + used, sizeof(out->text) - used, "%s%d %s",
                 used > 0 ? ", " : "", (int)pid, name);
    }
    out->left++;
}

/* What there is now; killed, but for undertakers that are `spared`. */
static void kill_orphans(struct reach *r, bool spares, struct reach_sweep *out)
{
    pid_t pids[GPUL_CHILDREN_MAX];
    char name[NAME_BYTES];
    size_t count = gpul_children_find(pids, GPUL_CHILDREN_MAX);
    out->left = 0;
    out->text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        if (reach_child_of(r, pids[i]) != NULL || is_stranger(r, pids[i]) ||
            !read_name(pids[i], name)) {
            continue;
        }
        note_left(out, pids[i], name);
        bool is_undertaker = strcmp(name, "gpulaunch-under") == 0;
        if (!spares || !is_undertaker) {
            kill(pids[i], SIGKILL);
            out->has_killed |= !is_undertaker;
        }
    }
}

bool reach_has_casualty(const struct reach *r)
{
    if (!r->adopts) {
        return false; /* what runs elsewhere is the coordinator's to tell */
    }
    for (uint32_t i = 0; i < r->worker_count; i++) {
        if (r->workers[i].has_ended && r->workers[i].status != 0) {
            return true;
        }
    }
    return false;
}

/* Killing a process may hand us its children, hence the rounds. */
void reach_sweep(struct reach *r, struct reach_sweep *out)
{
    uint64_t begin_ms = gpul_clock_ms();
    uint64_t now_ms = begin_ms;
    *out = (struct reach_sweep){.left = 0};
    do {
        reach_reap(r);
        kill_orphans(r, now_ms < begin_ms + UNDERTAKER_MS, out);
        if (out->left == 0) {
            return;
        }
        usleep(POLL_US);
        now_ms = gpul_clock_ms();
    } while (now_ms < begin_ms + SWEEP_MS);
}
