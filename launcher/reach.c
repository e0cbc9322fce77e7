/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/reach.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/children.h"
#include "common/signals.h"
#include "launcher/programs.h"
#include "launcher/reach_internal.h"
#include "proto/keypipe.h"
#include "proto/text.h"

enum {
    WORDS_BYTES_MAX = 1 << 20, /* of all of a child's words */
    NUMBER_BYTES = 12,
    FDS_MAX = 6 + GPUL_COORDINATORS_MAX,
    POLL_US = 1000,
};

/* ---- finding ------------------------------------------------------------- */

static int find_programs(struct reach *r, struct gpul_error *err)
{
    int rc = programs_find(r->coordinator_path, "gpulaunch-coordinator", err);
    return rc != 0 ? rc
                   : programs_find(r->worker_path, "gpulaunch-worker", err);
}

int reach_prepare(struct reach *r, const struct plan *plan,
                  struct listening *listening, struct gpul_error *err)
{
    r->way = plan->is_local                           ? &reach_local
             : plan->is_open                          ? &reach_join
             : plan->sruntask.count > 0               ? &reach_srun
             : plan->allocation.source == NODES_SLURM ? &reach_slurm
                                                      : &reach_ssh;
    int rc = find_programs(r, err);
    return rc != 0 ? rc : r->way->prepare(r, plan, listening, err);
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

int reach_spawn(struct reach *r, struct reach_child *child,
                const struct reach_program *program, struct gpul_spawn_fd *fds,
                size_t fd_count, int parent_death_signal,
                struct gpul_error *err)
{
    if (child->words_fd >= 0) {
        close(child->words_fd);
    }
    child->words_fd = open_words(err);
    if (child->words_fd < 0) {
        return GPUL_ESYS;
    }
    child->words_from = 0;
    fds[2] = (struct gpul_spawn_fd){child->words_fd, 2};
    struct gpul_spawn spec = {
        .path = program->path,
        .arguments = program->arguments,
        .environment =
            program->environment != NULL ? program->environment : environ,
        .fds = fds,
        .fd_count = fd_count,
        .parent_death_signal = parent_death_signal,
    };
    int exec_errno = 0;
    int rc = gpul_spawn(&child->pid, &exec_errno, &spec, err);
    if (rc != 0) {
        return gpul_wrap(err, rc, "cannot start %s", program->path);
    }
    child->has_ended = false;
    r->alive++;
    return 0;
}

/* Its descriptors are counted up: 3 the operator's, 4 a listener, 5 the secret,
 * from 6 on the other listeners. */
static size_t fill_fds(struct gpul_spawn_fd *fds, const struct reach_job *job,
                       int null_fd, int secret_fd)
{
    const struct listening *l = job->listening;
    size_t n = 0;
    fds[n++] = (struct gpul_spawn_fd){null_fd, 0};
    fds[n++] = (struct gpul_spawn_fd){null_fd, 1};
    fds[n++] = (struct gpul_spawn_fd){-1, 2};
    fds[n++] = (struct gpul_spawn_fd){job->operator_fd, 3};
    fds[n++] = (struct gpul_spawn_fd){l->fds[0], 4};
    if (secret_fd >= 0 || l->count > 1) {
        fds[n++] = (struct gpul_spawn_fd){secret_fd >= 0 ? secret_fd : null_fd,
                                          GPUL_KEYPIPE_OF_COORDINATOR};
    }
    for (uint32_t i = 1; i < l->count; i++) {
        fds[n] = (struct gpul_spawn_fd){l->fds[i], (int)n};
        n++;
    }
    return n;
}

static int start_coordinator(struct reach *r, const struct reach_job *job,
                             int null_fd, struct gpul_error *err)
{
    char name[] = "gpulaunch-coordinator", insecure[] = "--insecure";
    char listeners[] = "--listeners", count[NUMBER_BYTES];
    char *arguments[] = {name, listeners, count,
                         job->secret == NULL ? insecure : NULL, NULL};
    struct gpul_spawn_fd fds[FDS_MAX];
    int secret_fd = -1;
    int rc = job->secret == NULL
                 ? 0
                 : gpul_keypipe_put_secret(&secret_fd, job->secret, err);
    if (rc != 0) {
        return rc;
    }
    snprintf(count, sizeof(count), "%u", job->listening->count);
    size_t n = fill_fds(fds, job, null_fd, secret_fd);
    const struct reach_program program = {.path = r->coordinator_path,
                                          .arguments = arguments};
    rc = reach_spawn(r, &r->coordinator, &program, fds, n, 0, err);
    if (secret_fd >= 0) {
        close(secret_fd);
    }
    return rc;
}

int reach_open_key(int *fd, const struct reach_job *job, const char *node_name,
                   struct gpul_error *err)
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

static int make_workers(struct reach *r, uint32_t count, struct gpul_error *err)
{
    r->coordinator.words_fd = -1;
    r->workers = calloc(count, sizeof(*r->workers));
    if (r->workers == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    r->worker_count = count;
    for (uint32_t i = 0; i < count; i++) {
        r->workers[i].words_fd = -1;
    }
    return 0;
}

int reach_start(struct reach *r, const struct reach_job *job,
                struct gpul_error *err)
{
    int rc = make_workers(r, job->plan->node_count, err);
    if (rc != 0) {
        return rc;
    }
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null_fd < 0) {
        return gpul_fail_errno(err, errno, "cannot open /dev/null");
    }
    if (r->way->is_node_child) {
        /* Orphans of a dead worker come to us, so that none gets away. */
        gpul_children_adopt();
        r->adopts = true;
        rc = reach_note_strangers(r, err);
    }
    if (rc == 0) {
        /* The longest start-up comes first. */
        rc = start_coordinator(r, job, null_fd, err);
    }
    if (rc == 0) {
        rc = r->way->start(r, job, err);
    }
    close(null_fd);
    if (rc != 0) {
        reach_kill_all(r);
    }
    return rc;
}

/* ---- ending -------------------------------------------------------------- */

struct reach_child *reach_child_of(struct reach *r, pid_t pid)
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

static void note_end(struct reach *r, struct reach_child *child, int status)
{
    child->pid = 0;
    child->has_ended = true;
    child->status = status;
    r->alive--;
    if (child != &r->coordinator && r->way->ended != NULL) {
        child->has_ended = !r->way->ended(r, (uint32_t)(child - r->workers));
    }
}

bool reach_reap(struct reach *r)
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
        struct reach_child *child = reach_child_of(r, pid);
        if (child == NULL) {
            reach_forget_stranger(r, pid);
            continue;
        }
        note_end(r, child, status);
        any = true;
    }
}

void reach_signal_worker(struct reach *r, uint32_t index, int number)
{
    if (r->way->signal != NULL) {
        r->way->signal(r, index, number);
    } else if (r->workers[index].pid > 0) {
        kill(r->workers[index].pid, number);
    }
}

void reach_signal_workers(struct reach *r, int number)
{
    for (uint32_t i = 0; i < r->worker_count; i++) {
        reach_signal_worker(r, i, number);
    }
}

void reach_signal_coordinator(const struct reach *r, int number)
{
    if (r->coordinator.pid > 0) {
        kill(r->coordinator.pid, number);
    }
}

void reach_kill_all(struct reach *r)
{
    if (r->workers == NULL) {
        return; /* nothing has been started */
    }
    reach_signal_workers(r, SIGKILL);
    reach_signal_coordinator(r, SIGKILL);
    while (r->alive > 0) {
        if (!reach_reap(r)) {
            usleep(POLL_US);
        }
    }
}

bool reach_has_workers(const struct reach *r)
{
    return r->alive - (r->coordinator.pid > 0 ? 1u : 0u) + r->waiting > 0;
}

/* ---- words --------------------------------------------------------------- */

/* The rest of a line whose beginning was cut off says little. Returns how many
 * bytes are left; all where there is no other line. */
static ssize_t drop_part(char *words, ssize_t n)
{
    const char *end = n > 0 ? memchr(words, '\n', (size_t)n) : NULL;
    if (end != NULL) {
        n -= end + 1 - words;
        memmove(words, end + 1, (size_t)n);
    }
    return n;
}

/* Without carriage returns and spaces at the ends of lines; other control
 * characters become spaces. Returns the bytes that are left. */
static size_t tidy(char *lines, size_t n)
{
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        bool is_end = lines[i] == '\n';
        while (is_end && used > 0 && lines[used - 1] == ' ') {
            used--;
        }
        lines[used++] =
            (unsigned char)lines[i] < ' ' && !is_end ? ' ' : lines[i];
    }
    while (used > 0 && (unsigned char)lines[used - 1] <= ' ') {
        used--;
    }
    return used;
}

void reach_lines(char *lines, size_t bytes, const struct reach_child *child)
{
    lines[0] = '\0';
    if (child->words_fd < 0) {
        return;
    }
    off_t room = (off_t)bytes - 1, from = child->words_from;
    off_t size = lseek(child->words_fd, 0, SEEK_CUR);
    bool is_cut = size - from > room;
    from = is_cut ? size - room : from;
    ssize_t n = pread(child->words_fd, lines, (size_t)(size - from), from);
    n = is_cut ? drop_part(lines, n) : n;
    lines[tidy(lines, n > 0 ? (size_t)n : 0)] = '\0';
    gpul_text_clean(lines, bytes - 1);
}

void reach_words(char words[REACH_WORDS_BYTES + 1],
                 const struct reach_child *child)
{
    reach_lines(words, REACH_WORDS_BYTES + 1, child);
    for (char *at = words; (at = strchr(at, '\n')) != NULL;) {
        *at = ' ';
    }
}

void reach_forget_words(struct reach_child *child)
{
    if (child->words_fd >= 0) {
        child->words_from = lseek(child->words_fd, 0, SEEK_CUR);
    }
}

void reach_describe(struct gpul_buf *out, const struct reach_child *child)
{
    char words[REACH_WORDS_BYTES + 1];
    if (WIFSIGNALED(child->status)) {
        char name[GPUL_SIGNAL_TEXT_BYTES];
        gpul_buf_appendf(
            out, "ended by %s",
            gpul_format_signal(name, (uint32_t)WTERMSIG(child->status)));
    } else {
        gpul_buf_appendf(out, "ended with exit code %d",
                         WEXITSTATUS(child->status));
    }
    reach_words(words, child);
    if (words[0] != '\0') {
        gpul_buf_appendf(out, ": %s", words);
    }
}

Gpul__NodeGone__Why reach_describe_worker(struct reach *r, struct gpul_buf *out,
                                          uint32_t index)
{
    if (r->way->describe != NULL) {
        return r->way->describe(r, out, index);
    }
    gpul_buf_append_text(out, "gpulaunch-worker ");
    reach_describe(out, &r->workers[index]);
    return GPUL__NODE_GONE__WHY__ENDED;
}

void reach_describe_coordinator(const struct reach *r, struct gpul_buf *out)
{
    reach_describe(out, &r->coordinator);
}

/* ---- closing ------------------------------------------------------------- */

void reach_close(struct reach *r)
{
    if (r->way != NULL && r->way->close != NULL) {
        r->way->close(r);
    }
}

void reach_release(struct reach *r)
{
    if (r->way != NULL && r->way->release != NULL) {
        r->way->release(r);
    }
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
