/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/rankstate.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    STAT_BYTES = 1024,
    /* Of a process below its rank; deeper ones belong to none. */
    DEPTH_MAX = 64,
    FIRST_CAPACITY = 256,
};

/* ---- /proc --------------------------------------------------------------- */

/* The command may hold anything, ")" too. */
bool rankstate_parse(struct rankstate_process *out, const char *text)
{
    const char *close = strrchr(text, ')');
    int pid, parent;
    uint64_t user, system;
    *out = (struct rankstate_process){.pid = 0};
    if (close == NULL || sscanf(text, "%d (", &pid) != 1 ||
        sscanf(close,
               ") %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64
               " %" SCNu64 " %*d %*d %*d %*d %" SCNu32 " %*d %" SCNu64,
               &out->state, &parent, &user, &system, &out->threads,
               &out->start_ticks) != 6) {
        return false;
    }
    out->pid = pid;
    out->parent = parent;
    out->cpu_ticks = user + system;
    return true;
}

/* A file of /proc/PID as text; false: it cannot be read. */
static bool read_file(pid_t pid, const char *file, char *text, size_t bytes)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, bytes - 1) : -1;
    if (fd >= 0) {
        close(fd);
    }
    text[n > 0 ? n : 0] = 0;
    return n > 0;
}

static int compare_processes(const void *a, const void *b)
{
    const struct rankstate_process *x = a, *y = b;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

static bool add(struct rankstate_look *look, size_t *capacity,
                const struct rankstate_process *process)
{
    if (look->count == *capacity) {
        size_t grown = *capacity > 0 ? *capacity * 2 : FIRST_CAPACITY;
        struct rankstate_process *list =
            realloc(look->list, grown * sizeof(*list));
        if (list == NULL) {
            return false;
        }
        look->list = list;
        *capacity = grown;
    }
    look->list[look->count++] = *process;
    return true;
}

int rankstate_look_take(struct rankstate_look *look, struct gpul_error *err)
{
    char text[STAT_BYTES];
    struct rankstate_process process;
    size_t capacity = 0;
    bool has_room = true;
    *look = (struct rankstate_look){.list = NULL};
    DIR *folder = opendir("/proc");
    if (folder == NULL) {
        return gpul_fail_errno(err, errno, "/proc");
    }
    const struct dirent *entry;
    while (has_room && (entry = readdir(folder)) != NULL) {
        if (isdigit((unsigned char)entry->d_name[0]) != 0 &&
            read_file((pid_t)strtol(entry->d_name, NULL, 10), "stat", text,
                      sizeof(text)) &&
            rankstate_parse(&process, text)) {
            has_room = add(look, &capacity, &process);
        }
    }
    closedir(folder);
    if (!has_room) {
        rankstate_look_release(look);
        return gpul_fail(err, GPUL_ENOMEM,
                         "out of memory for a list of processes");
    }
    if (look->count > 0) {
        qsort(look->list, look->count, sizeof(*look->list), compare_processes);
    }
    return 0;
}

void rankstate_look_release(struct rankstate_look *look)
{
    free(look->list);
    *look = (struct rankstate_look){.list = NULL};
}

/* ---- whose they are ------------------------------------------------------ */

static const struct rankstate_process *find(const struct rankstate_look *look,
                                            pid_t pid)
{
    const struct rankstate_process key = {.pid = pid};
    return look->count == 0 ? NULL
                            : bsearch(&key, look->list, look->count,
                                      sizeof(*look->list), compare_processes);
}

bool rankstate_descends(const struct rankstate_look *look, pid_t pid,
                        pid_t from)
{
    const struct rankstate_process *process = find(look, pid);
    for (int depth = 0; depth < DEPTH_MAX && process != NULL; depth++) {
        if (process->pid == from) {
            return true;
        }
        process = find(look, process->parent);
    }
    return false;
}

/* The first process of a rank, by its number. */
struct owner {
    pid_t pid;
    size_t rank;
};

static int compare_owners(const void *a, const void *b)
{
    const struct owner *x = a, *y = b;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

static const struct owner *owner_of(const struct owner *owners, size_t count,
                                    const struct rankstate_look *look,
                                    const struct rankstate_process *process)
{
    for (int depth = 0; depth < DEPTH_MAX && process != NULL; depth++) {
        const struct owner key = {.pid = process->pid};
        const struct owner *owner =
            bsearch(&key, owners, count, sizeof(*owners), compare_owners);
        if (owner != NULL || process->parent <= 0) {
            return owner;
        }
        process = find(look, process->parent);
    }
    return NULL;
}

/* ---- what they do -------------------------------------------------------- */

/* The calls in which training is found to wait. */
static const char *call_name(long number)
{
    static const struct {
        long number;
        const char *name;
    } names[] = {
        {SYS_read, "read()"},
        {SYS_write, "write()"},
        {SYS_readv, "readv()"},
        {SYS_pread64, "pread()"},
        {SYS_futex, "futex()"},
        {SYS_ppoll, "ppoll()"},
        {SYS_pselect6, "pselect()"},
        {SYS_epoll_pwait, "epoll_pwait()"},
        {SYS_recvfrom, "recvfrom()"},
        {SYS_recvmsg, "recvmsg()"},
        {SYS_sendto, "sendto()"},
        {SYS_sendmsg, "sendmsg()"},
        {SYS_connect, "connect()"},
        {SYS_accept, "accept()"},
        {SYS_accept4, "accept4()"},
        {SYS_wait4, "wait4()"},
        {SYS_waitid, "waitid()"},
        {SYS_nanosleep, "nanosleep()"},
        {SYS_clock_nanosleep, "clock_nanosleep()"},
        {SYS_ioctl, "ioctl()"},
        {SYS_fsync, "fsync()"},
        {SYS_openat, "openat()"},
#ifdef SYS_poll /* what newer architectures lack */
        {SYS_poll, "poll()"},
        {SYS_select, "select()"},
        {SYS_epoll_wait, "epoll_wait()"},
#endif
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].number == number) {
            return names[i].name;
        }
    }
    return NULL;
}

static void read_wait_channel(struct rankstate *out, pid_t pid)
{
    char text[STAT_BYTES];
    bool is_known =
        read_file(pid, "wchan", text, sizeof(text)) && strcmp(text, "0") != 0;
    if (is_known) {
        snprintf(out->wait_channel, sizeof(out->wait_channel), "%.*s",
                 GPUL_WAIT_CHANNEL_BYTES_MAX, text);
        return;
    }
    if (read_file(pid, "syscall", text, sizeof(text)) &&
        isdigit((unsigned char)text[0]) != 0) {
        long number = strtol(text, NULL, 10);
        const char *name = call_name(number);
        if (name != NULL) {
            snprintf(out->wait_channel, sizeof(out->wait_channel), "%s", name);
        } else {
            snprintf(out->wait_channel, sizeof(out->wait_channel),
                     "system call %ld", number);
        }
    }
}

static uint64_t used_ticks(const struct rankstate_process *process,
                           const struct rankstate_look *before)
{
    const struct rankstate_process *old = find(before, process->pid);
    bool is_same = old != NULL && old->start_ticks == process->start_ticks &&
                   old->cpu_ticks <= process->cpu_ticks;
    return process->cpu_ticks - (is_same ? old->cpu_ticks : 0);
}

/* The process of a rank that tells most, so far. */
struct favourite {
    const struct rankstate_process *process;
    uint64_t used_ticks;
    uint64_t all_ticks; /* used by all of the rank */
};

/* The busiest; of those that do nothing, the one that did most before; of
 * those that never did, the last: a shell only waits for it. */
static void consider(struct favourite *f,
                     const struct rankstate_process *process, uint64_t used)
{
    f->all_ticks += used;
    if (f->process == NULL || used > f->used_ticks ||
        (used == f->used_ticks &&
         process->cpu_ticks >= f->process->cpu_ticks)) {
        f->process = process;
        f->used_ticks = used;
    }
}

static void fill(struct rankstate *out, const struct favourite *f)
{
    enum { MS_PER_SECOND = 1000 };
    long hertz = sysconf(_SC_CLK_TCK);
    if (f->process == NULL) {
        return;
    }
    out->state = f->process->state;
    out->threads = f->process->threads;
    out->cpu_ms = f->all_ticks * MS_PER_SECOND / (uint64_t)hertz;
    read_wait_channel(out, f->process->pid);
}

static size_t list_owners(struct owner *owners, const pid_t *pids, size_t count)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (pids[i] > 0) {
            owners[used++] = (struct owner){pids[i], i};
        }
    }
    if (used > 0) {
        qsort(owners, used, sizeof(*owners), compare_owners);
    }
    return used;
}

int rankstate_read(struct rankstate *out, const pid_t *pids, size_t count,
                   const struct rankstate_look *before,
                   const struct rankstate_look *now, struct gpul_error *err)
{
    struct owner *owners = calloc(count, sizeof(*owners));
    struct favourite *favourites = calloc(count, sizeof(*favourites));
    memset(out, 0, count * sizeof(*out));
    if (owners == NULL || favourites == NULL) {
        free(owners);
        free(favourites);
        return gpul_fail(err, GPUL_ENOMEM,
                         "out of memory for states of %zu ranks", count);
    }
    size_t used = list_owners(owners, pids, count);
    for (size_t i = 0; used > 0 && i < now->count; i++) {
        const struct rankstate_process *process = &now->list[i];
        const struct owner *owner = owner_of(owners, used, now, process);
        if (owner != NULL) {
            consider(&favourites[owner->rank], process,
                     used_ticks(process, before));
        }
    }
    for (size_t i = 0; i < count; i++) {
        fill(&out[i], &favourites[i]);
    }
    free(owners);
    free(favourites);
    return 0;
}
