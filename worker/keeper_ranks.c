/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/spawn.h"
#include "worker/keeper_internal.h"
#include "worker/startspec.h"

/* A leaf is busy for a moment after its last process. */
enum { REMOVE_MS = 50 };

/* ---- a set of ranks ------------------------------------------------------ */

void keeper_close_kept(struct keeper *k)
{
    for (uint32_t slot = 0; slot < GPUL_RANKS_PER_NODE_MAX; slot++) {
        for (int i = 0; i < KEEPER_KEPT_FDS_MAX && k->kept[slot][i] > 0; i++) {
            close(k->kept[slot][i]);
            k->kept[slot][i] = 0;
        }
    }
}

/* The core does not count it any more. */
void keeper_close_input(struct keeper *k, uint32_t slot)
{
    uint32_t last = k->core.slots[slot].kept_fds;
    close(k->kept[slot][last]);
    k->kept[slot][last] = 0;
}

/* Their pipes' ends beside what else is open. Raised only where it would not
 * do, since the ranks inherit it. */
static void raise_descriptor_limit(uint32_t ranks)
{
    enum { OTHERS = 128 };
    struct rlimit limit;
    rlim_t need = (rlim_t)ranks * KEEPER_KEPT_FDS_MAX + OTHERS;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < need) {
        limit.rlim_cur = need < limit.rlim_max ? need : limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

void keeper_fork_undertaker(struct keeper *k)
{
    struct undertaker *u = &k->undertaker;
    undertaker_close(u);
    int why = undertaker_fork(u, &k->marker, &k->cgroup, k->config->forget,
                              k->config->arg);
    if (why != 0) {
        keeper_complain(k,
                        "no process to clean up after the keeper could be "
                        "started: %s",
                        strerror(why));
        return;
    }
    k->descendants.spared[SPARED_UNDERTAKER] = u->pid;
}

/* One that would not go is left, and named. */
void keeper_drop_cgroup(struct keeper *k)
{
    if (!cgroup_remove(&k->cgroup, REMOVE_MS)) {
        keeper_complain(k, "cannot remove cgroup %s: %s", k->cgroup.path,
                        strerror(errno));
        cgroup_close(&k->cgroup);
    }
}

static void make_cgroup(struct keeper *k)
{
    char name[128];
    const char *root = k->config->root != NULL ? k->config->root : "";
    snprintf(name, sizeof(name), "gpulaunch-%d-%u", getpid(),
             k->core.generation);
    keeper_drop_cgroup(k);
    cgroup_make(&k->cgroup, root, name);
    cgroup_oom_open(&k->oom, root);
}

/* The packet is BEGIN. */
void keeper_begin_ranks(struct keeper *k)
{
    keeper_close_kept(k);
    raise_descriptor_limit(k->core.rank_count);
    memset(&k->marker, 0, sizeof(k->marker));
    snprintf(k->marker.job_id, sizeof(k->marker.job_id), "%.*s",
             GPUL_JOB_ID_BYTES_MAX, k->mail.packet.text);
    k->marker.generation = k->core.generation;
    k->marker.first_rank = k->core.first_rank;
    k->marker.rank_count = k->core.rank_count;
    k->marker.since_ticks = cleanup_start_ticks(getpid());
    make_cgroup(k);
    keeper_fork_undertaker(k);
}

void keeper_finish_ranks(struct keeper *k)
{
    undertaker_release(&k->undertaker);
    cgroup_oom_close(&k->oom);
    cgroup_remove(&k->cgroup, REMOVE_MS); /* else when they have ended */
}

/* ---- starting ------------------------------------------------------------ */

/* A start specification in memory of ours: its file may change, or shrink, in
 * the hands of whoever sent it. */
struct spec_memory {
    void *bytes;
    size_t n;
};

static int read_all(void *to, size_t n, int fd, struct gpul_error *err)
{
    for (size_t used = 0; used < n;) {
        ssize_t got = pread(fd, (char *)to + used, n - used, (off_t)used);
        if (got <= 0) {
            return got < 0 ? gpul_fail_errno(err, errno, "start specification")
                           : gpul_fail(err, GPUL_EINVAL,
                                       "start specification: cut off");
        }
        used += (size_t)got;
    }
    return 0;
}

static int load(struct spec_memory *m, struct startspec *spec, int fd,
                struct gpul_error *err)
{
    struct stat st;
    m->bytes = MAP_FAILED;
    if (fstat(fd, &st) != 0) {
        return gpul_fail_errno(err, errno, "start specification");
    }
    if (st.st_size <= 0 || st.st_size > STARTSPEC_BYTES_MAX) {
        return gpul_fail(err, GPUL_EINVAL, "start specification: %lld bytes",
                         (long long)st.st_size);
    }
    m->n = (size_t)st.st_size;
    m->bytes = mmap(NULL, m->n, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m->bytes == MAP_FAILED) {
        return gpul_fail_errno(err, errno, "start specification");
    }
    int rc = read_all(m->bytes, m->n, fd, err);
    return rc != 0 ? rc : startspec_decode(spec, m->bytes, m->n, err);
}

static int check_mail(const struct keeper *k, struct gpul_error *err)
{
    const struct keeper_packet *p = &k->mail.packet;
    if (k->mail_errno != 0) {
        return gpul_fail_errno(err, k->mail_errno,
                               "the keeper cannot take its descriptors");
    }
    if (p->child_fds > KEEPER_CHILD_FDS_MAX ||
        p->kept_fds > KEEPER_KEPT_FDS_MAX ||
        (p->has_input && p->kept_fds == 0) ||
        k->mail.fd_count != 1 + p->child_fds + p->kept_fds) {
        return gpul_fail(err, GPUL_EINVAL, "a start with %zu descriptors",
                         k->mail.fd_count);
    }
    return 0;
}

static int spawn(const struct keeper *k, const struct startspec *s,
                 struct keeping_event *event, struct gpul_error *err)
{
    struct gpul_spawn_fd fds[KEEPER_CHILD_FDS_MAX];
    for (uint32_t i = 0; i < k->mail.packet.child_fds; i++) {
        fds[i] = (struct gpul_spawn_fd){k->mail.fds[1 + i], (int)i};
    }
    const struct gpul_spawn spec = {
        .path = s->path,
        .arguments = s->arguments,
        .environment = s->environment,
        .working_directory = s->working_directory,
        .fds = fds,
        .fd_count = k->mail.packet.child_fds,
        .parent_death_signal = SIGKILL,
        .cgroup_procs = k->cgroup.procs,
        .cpus = s->has_cpus ? s->cpus : NULL,
        .cpu_words = STARTSPEC_CPU_WORDS,
        .nodes = s->has_nodes ? s->nodes : NULL,
        .node_words = STARTSPEC_NODE_WORDS,
        .raises_limits = s->raises_limits,
    };
    pid_t pid;
    int rc = gpul_spawn(&pid, &event->exec_errno, &spec, err);
    event->pid = pid;
    return rc;
}

static int start(struct keeper *k, struct keeping_event *event,
                 struct gpul_error *err)
{
    struct spec_memory memory;
    struct startspec spec;
    int rc = check_mail(k, err);
    if (rc != 0) {
        event->exec_errno = k->mail_errno;
        return rc;
    }
    rc = load(&memory, &spec, k->mail.fds[0], err);
    if (rc == 0) {
        rc = spawn(k, &spec, event, err);
    }
    if (memory.bytes != MAP_FAILED) {
        munmap(memory.bytes, memory.n);
    }
    return rc;
}

/* The last ones of the packet; the others are closed with it. */
static void keep_fds(struct keeper *k, uint32_t slot)
{
    uint32_t count = k->mail.packet.kept_fds;
    k->mail.fd_count -= count;
    for (uint32_t i = 0; i < count; i++) {
        k->kept[slot][i] = k->mail.fds[k->mail.fd_count + i];
    }
}

void keeper_start_rank(struct keeper *k, uint32_t slot)
{
    struct gpul_error err = {0};
    struct keeping_event event = {.type = KEEPING_STARTED, .slot = slot};
    if (start(k, &event, &err) == 0) {
        event.kept_fds = k->mail.packet.kept_fds;
        event.has_input = k->mail.packet.has_input;
        keep_fds(k, slot);
    }
    event.text = err.text;
    keeper_step(k, &event);
}

/* ---- ending -------------------------------------------------------------- */

static uint64_t to_ms(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_usec / 1000;
}

void keeper_rank_ended(struct keeper *k, uint32_t slot, int status,
                       const struct rusage *usage)
{
    struct keeping_event event = {
        .type = KEEPING_EXITED,
        .slot = slot,
        .status = status,
        .cpu_ms = to_ms(usage->ru_utime) + to_ms(usage->ru_stime),
        .rss_bytes = (uint64_t)usage->ru_maxrss * 1024,
        .is_out_of_memory = status != 0 && cgroup_oom_take(&k->oom),
    };
    keeper_step(k, &event);
}

/* What SIGKILL ends from now on was ended by us, not for want of memory. */
void keeper_stop_ranks(struct keeper *k, int signal)
{
    if (signal == SIGKILL) {
        cgroup_oom_skip(&k->oom);
        cgroup_kill(&k->cgroup);
    }
    descendants_stop(&k->descendants, signal);
}

/* A rank that has not been waited for keeps its pid, and with it its group. */
void keeper_pass_signal(struct keeper *k, uint32_t slot, int signal)
{
    for (uint32_t i = 0; i < k->core.rank_count; i++) {
        const struct keeping_slot *s = &k->core.slots[i];
        bool is_meant = slot == KEEPER_ALL_SLOTS || slot == i;
        if (is_meant && s->state == KEEPING_ALIVE) {
            kill(-s->pid, signal);
        }
    }
}
