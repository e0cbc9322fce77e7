/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/reach_local.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/children.h"
#include "common/clock.h"
#include "common/signals.h"
#include "common/spawn.h"
#include "proto/keypipe.h"
#include "proto/text.h"

enum {
    WORDS_BYTES = 400,         /* of a child's last words */
    WORDS_BYTES_MAX = 1 << 20, /* of all its words */
    NUMBER_BYTES = 32,
    ADDRESS_BYTES = 32,
    POLL_US = 1000,
    NAME_BYTES = 32,
    /* What an undertaker may take: 5 s for what will not die, 1 s for its
     * cgroup. A large process takes its time to die, too. */
    UNDERTAKER_MS = 7000,
    SWEEP_MS = 8000,
};

/* ---- finding ------------------------------------------------------------- */

static int find_one(char *out, const char *directory, const char *name,
                    struct gpul_error *err)
{
    static const char *const places[] = {"", "/../libexec/gpulaunch"};
    for (size_t i = 0; i < 2; i++) {
        int n = snprintf(out, PATH_MAX, "%s%s/%s", directory, places[i], name);
        if (n < PATH_MAX && access(out, X_OK) == 0) {
            return 0;
        }
    }
    return gpul_fail(err, GPUL_ENOTFOUND,
                     "%s is neither in %s nor in %s/../libexec/gpulaunch; "
                     "install gpulaunch as a whole",
                     name, directory, directory);
}

int reach_local_find(struct reach_local *r, struct gpul_error *err)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n < 0) {
        return gpul_fail_errno(err, errno, "cannot read /proc/self/exe");
    }
    self[n] = '\0';
    char *slash = strrchr(self, '/');
    if (slash != NULL) {
        *slash = '\0';
    }
    int rc = find_one(r->coordinator_path, self, "gpulaunch-coordinator", err);
    return rc != 0 ? rc
                   : find_one(r->worker_path, self, "gpulaunch-worker", err);
}

/* ---- starting ------------------------------------------------------------ */

/* A child's standard error: a file in memory, so that it neither blocks the
 * child nor needs a reader. It takes WORDS_BYTES_MAX and no more; the offset,
 * which we share with the child, tells how much has been written. A limit on
 * file sizes that does not let it grow so far bounds it as well. */
static int open_words(struct gpul_error *err)
{
    int fd = memfd_create("gpulaunch-stderr", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        return gpul_fail_errno(err, errno, "cannot create a memory file");
    }
    if (ftruncate(fd, WORDS_BYTES_MAX) == 0) {
        (void)fcntl(fd, F_ADD_SEALS, F_SEAL_GROW);
    }
    return fd;
}

static int start_child(struct reach_local *r, struct reach_child *child,
                       const char *path, char *const *arguments,
                       struct gpul_spawn_fd *fds, size_t fd_count,
                       int parent_death_signal, struct gpul_error *err)
{
    child->words_fd = open_words(err);
    if (child->words_fd < 0) {
        return child->words_fd;
    }
    fds[2] = (struct gpul_spawn_fd){child->words_fd, 2};
    struct gpul_spawn spec = {
        .path = path,
        .arguments = arguments,
        .environment = environ,
        .fds = fds,
        .fd_count = fd_count,
        .parent_death_signal = parent_death_signal,
    };
    int exec_errno = 0;
    int rc = gpul_spawn(&child->pid, &exec_errno, &spec, err);
    if (rc != 0) {
        return gpul_wrap(err, rc, "cannot start %s", path);
    }
    r->alive++;
    return 0;
}

static int start_coordinator(struct reach_local *r,
                             const struct reach_local_job *job, int null_fd,
                             struct gpul_error *err)
{
    char name[] = "gpulaunch-coordinator", insecure[] = "--insecure";
    char *arguments[] = {name, job->secret == NULL ? insecure : NULL, NULL};
    int secret_fd = -1;
    int rc = job->secret == NULL
                 ? 0
                 : gpul_keypipe_put_secret(&secret_fd, job->secret, err);
    if (rc != 0) {
        return rc;
    }
    struct gpul_spawn_fd fds[] = {
        {null_fd, 0},
        {null_fd, 1},
        {-1, 2},
        {job->operator_fd, 3},
        {job->listen_fd, 4},
        {secret_fd, GPUL_KEYPIPE_OF_COORDINATOR},
    };
    rc = start_child(r, &r->coordinator, r->coordinator_path, arguments, fds,
                     secret_fd >= 0 ? 6 : 5, 0, err);
    if (secret_fd >= 0) {
        close(secret_fd);
    }
    return rc;
}

/* A pipe with the key of this node; -1 where none is needed. */
static int open_key(int *fd, const struct reach_local_job *job,
                    const char *node_name, struct gpul_error *err)
{
    struct gpul_key key;
    *fd = -1;
    if (job->secret == NULL) {
        return 0;
    }
    int rc = gpul_key_of_node(&key, job->secret, job->job_id, node_name, err);
    if (rc == 0) {
        rc = gpul_keypipe_put_key(fd, &key, err);
    }
    gpul_wipe(&key, sizeof(key));
    return rc;
}

/* The longest start-up comes first; then all workers are on their way while
 * the coordinator still loads. */
static int start_worker(struct reach_local *r,
                        const struct reach_local_job *job, uint32_t index,
                        int null_fd, struct gpul_error *err)
{
    char program[] = "gpulaunch-worker";
    char connect[] = "--connect", id_flag[] = "--job", name_flag[] = "--name";
    char join[] = "--join-timeout", insecure[] = "--insecure";
    char address[ADDRESS_BYTES], name[NUMBER_BYTES], seconds[NUMBER_BYTES];
    char id[NAME_MAX];
    snprintf(address, sizeof(address), "127.0.0.1:%u", job->port);
    snprintf(name, sizeof(name), REACH_LOCAL_PREFIX "%" PRIu32, index);
    snprintf(seconds, sizeof(seconds), "%" PRIu32,
             (job->join_timeout_ms - 1) / 1000 + 1);
    snprintf(id, sizeof(id), "%s", job->job_id);
    char *arguments[] = {program, connect,
                         address, id_flag,
                         id,      name_flag,
                         name,    join,
                         seconds, job->secret == NULL ? insecure : NULL,
                         NULL};
    int key_fd;
    int rc = open_key(&key_fd, job, name, err);
    if (rc != 0) {
        return rc;
    }
    struct gpul_spawn_fd fds[] = {
        {null_fd, 0}, {null_fd, 1}, {-1, 2}, {key_fd, GPUL_KEYPIPE_OF_NODE}};
    /* Should we be killed, the coordinator stops the job; but it cannot tell
     * a worker that has not joined yet. */
    rc = start_child(r, &r->workers[index], r->worker_path, arguments, fds,
                     key_fd >= 0 ? 4 : 3, SIGTERM, err);
    if (key_fd >= 0) {
        close(key_fd);
    }
    return rc;
}

/* A shell that had started something and then exec'ed us. */
static int note_strangers(struct reach_local *r, struct gpul_error *err)
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

int reach_local_start(struct reach_local *r, const struct reach_local_job *job,
                      struct gpul_error *err)
{
    r->workers = calloc(job->node_count, sizeof(*r->workers));
    if (r->workers == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    r->worker_count = job->node_count;
    r->coordinator.words_fd = -1;
    for (uint32_t i = 0; i < r->worker_count; i++) {
        r->workers[i].words_fd = -1;
    }
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null_fd < 0) {
        return gpul_fail_errno(err, errno, "cannot open /dev/null");
    }
    /* Orphans of a dead worker come to us, so that none gets away. */
    gpul_children_adopt();
    int rc = note_strangers(r, err);
    if (rc == 0) {
        rc = start_coordinator(r, job, null_fd, err);
    }
    for (uint32_t i = 0; rc == 0 && i < r->worker_count; i++) {
        rc = start_worker(r, job, i, null_fd, err);
    }
    close(null_fd);
    if (rc != 0) {
        reach_local_kill_all(r);
    }
    return rc;
}

/* ---- ending -------------------------------------------------------------- */

static struct reach_child *child_of(struct reach_local *r, pid_t pid)
{
    if (r->coordinator.pid == pid) {
        return &r->coordinator;
    }
    for (uint32_t i = 0; i < r->worker_count; i++) {
        if (r->workers[i].pid == pid) {
            return &r->workers[i];
        }
    }
    return NULL;
}

/* Its pid may come to mean an orphan. */
static void forget_stranger(struct reach_local *r, pid_t pid)
{
    for (size_t i = 0; i < r->stranger_count; i++) {
        if (r->strangers[i] == pid) {
            r->strangers[i] = 0;
        }
    }
}

bool reach_local_reap(struct reach_local *r)
{
    bool any = false;
    for (;;) {
        int status = 0;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid < 0 && errno == EINTR) {
            continue;
        }
        if (pid <= 0) {
            return any;
        }
        struct reach_child *child = child_of(r, pid);
        if (child == NULL) {
            forget_stranger(r, pid);
            continue;
        }
        child->pid = 0;
        child->has_ended = true;
        child->status = status;
        r->alive--;
        any = true;
    }
}

void reach_local_signal_worker(const struct reach_local *r, uint32_t index,
                               int number)
{
    if (r->workers[index].pid > 0) {
        kill(r->workers[index].pid, number);
    }
}

void reach_local_signal_workers(const struct reach_local *r, int number)
{
    for (uint32_t i = 0; i < r->worker_count; i++) {
        reach_local_signal_worker(r, i, number);
    }
}

void reach_local_signal_coordinator(const struct reach_local *r, int number)
{
    if (r->coordinator.pid > 0) {
        kill(r->coordinator.pid, number);
    }
}

void reach_local_kill_all(struct reach_local *r)
{
    reach_local_signal_workers(r, SIGKILL);
    reach_local_signal_coordinator(r, SIGKILL);
    while (r->alive > 0) {
        if (!reach_local_reap(r)) {
            usleep(POLL_US);
        }
    }
}

/* The last line or lines, made one: control characters become spaces. */
static void append_words(struct gpul_buf *out, int fd)
{
    char words[WORDS_BYTES + 1];
    off_t size = lseek(fd, 0, SEEK_CUR);
    off_t from = size > WORDS_BYTES ? size - WORDS_BYTES : 0;
    ssize_t n = pread(fd, words, (size_t)(size - from), from);
    while (n > 0 && (unsigned char)words[n - 1] <= ' ') {
        n--;
    }
    if (n <= 0) {
        return;
    }
    for (ssize_t i = 0; i < n; i++) {
        if ((unsigned char)words[i] < ' ') {
            words[i] = ' ';
        }
    }
    words[n] = '\0';
    gpul_text_clean_line(words, WORDS_BYTES);
    gpul_buf_appendf(out, ": %s", words);
}

int reach_local_describe(struct gpul_buf *out, const struct reach_child *child)
{
    if (WIFSIGNALED(child->status)) {
        char name[GPUL_SIGNAL_TEXT_BYTES];
        gpul_buf_appendf(
            out, "ended by %s",
            gpul_format_signal(name, (uint32_t)WTERMSIG(child->status)));
    } else {
        gpul_buf_appendf(out, "ended with exit code %d",
                         WEXITSTATUS(child->status));
    }
    if (child->words_fd >= 0) {
        append_words(out, child->words_fd);
    }
    return out->is_failed ? GPUL_ELIMIT : 0;
}

/* Every other child is an orphan of the job's, but those that were children
 * of this process before gpulaunch ran in it. */
static bool is_stranger(const struct reach_local *r, pid_t pid)
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
static void kill_orphans(struct reach_local *r, bool spares,
                         struct reach_sweep *out)
{
    pid_t pids[GPUL_CHILDREN_MAX];
    char name[NAME_BYTES];
    size_t count = gpul_children_find(pids, GPUL_CHILDREN_MAX);
    out->left = 0;
    out->text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        if (child_of(r, pids[i]) != NULL || is_stranger(r, pids[i]) ||
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

bool reach_local_has_casualty(const struct reach_local *r)
{
    for (uint32_t i = 0; i < r->worker_count; i++) {
        if (r->workers[i].has_ended && r->workers[i].status != 0) {
            return true;
        }
    }
    return false;
}

/* Killing a process may hand us its children, hence the rounds. */
void reach_local_sweep(struct reach_local *r, struct reach_sweep *out)
{
    uint64_t begin_ms = gpul_clock_ms();
    uint64_t now_ms = begin_ms;
    *out = (struct reach_sweep){.left = 0};
    do {
        reach_local_reap(r);
        kill_orphans(r, now_ms < begin_ms + UNDERTAKER_MS, out);
        if (out->left == 0) {
            return;
        }
        usleep(POLL_US);
        now_ms = gpul_clock_ms();
    } while (now_ms < begin_ms + SWEEP_MS);
}

void reach_local_release(struct reach_local *r)
{
    if (r->coordinator.words_fd >= 0) {
        close(r->coordinator.words_fd);
    }
    for (uint32_t i = 0; i < r->worker_count; i++) {
        if (r->workers[i].words_fd >= 0) {
            close(r->workers[i].words_fd);
        }
    }
    free(r->strangers);
    r->strangers = NULL;
    r->stranger_count = 0;
    free(r->workers);
    r->workers = NULL;
    r->worker_count = 0;
}
