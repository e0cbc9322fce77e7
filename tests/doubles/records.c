/* SPDX-License-Identifier: Apache-2.0
 *
 * One mapped file a process. The folder's lock makes "is there enough, then
 * take it" one step. */
#include "tests/doubles/records.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct record {
    uint64_t started; /* of /proc/PID/stat: a PID can come again */
    uint64_t gone_ms; /* when somebody first saw that it is gone */
    _Atomic uint64_t bytes[SCENARIO_GPUS_MAX];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct record *mine; /* guarded by lock, as is mine_pid */
static pid_t mine_pid;

static int folder_path(char path[PATH_MAX])
{
    const char *scenario = scenario_path();

    if (!scenario)
        return -1;
    int length = snprintf(path, PATH_MAX, "%s.memory", scenario);
    return length < PATH_MAX ? 0 : -1;
}

/* The folder, locked; -1 when there is none. */
static int folder_open(bool creates)
{
    char path[PATH_MAX];

    if (folder_path(path) != 0)
        return -1;
    for (int attempt = 0; attempt < 100; attempt++) {
        struct stat by_name, by_fd;
        if (creates && mkdir(path, 0700) != 0 && errno != EEXIST)
            return -1;
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 && creates && errno == ENOENT)
            continue;
        if (fd < 0)
            return -1;
        while (flock(fd, LOCK_EX) != 0 && errno == EINTR)
            continue;
        /* Somebody may have removed it while we waited. */
        if (fstat(fd, &by_fd) == 0 && stat(path, &by_name) == 0 &&
            by_fd.st_ino == by_name.st_ino)
            return fd;
        (void)close(fd);
        if (!creates)
            return -1;
    }
    return -1;
}

/* When a process started, in clock ticks; 0 when it is gone or a zombie. */
static uint64_t start_time(uint64_t pid)
{
    char path[64], text[1024];
    unsigned long long started = 0;

    (void)snprintf(path, sizeof path, "/proc/%llu/stat",
                   (unsigned long long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t length = read(fd, text, sizeof text - 1);
    (void)close(fd);
    if (length <= 0)
        return 0;
    text[length] = '\0';
    const char *state = strrchr(text, ')'); /* the name may hold anything */
    if (!state || state[1] != ' ' || strchr("ZX", state[2]))
        return 0;
    const char *field = state + 2;
    for (int i = 3; field && i < 22; i++) { /* proc(5): field 22 */
        field = strchr(field, ' ');
        field = field ? field + 1 : NULL;
    }
    if (!field || sscanf(field, "%llu", &started) != 1)
        return 0;
    return started;
}

static uint64_t now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static struct record *record_map(int folder, const char *name, int flags)
{
    int fd = openat(folder, name, flags | O_RDWR | O_CLOEXEC, 0600);
    struct stat status;
    void *map = MAP_FAILED;

    if (fd < 0)
        return NULL;
    if ((!(flags & O_CREAT) || ftruncate(fd, sizeof(struct record)) == 0) &&
        fstat(fd, &status) == 0 &&
        status.st_size == (off_t)sizeof(struct record))
        map = mmap(NULL, sizeof(struct record), PROT_READ | PROT_WRITE,
                   MAP_SHARED, fd, 0);
    (void)close(fd);
    return map == MAP_FAILED ? NULL : map;
}

static void record_name(char name[NAME_MAX + 1], pid_t pid)
{
    (void)snprintf(name, NAME_MAX + 1, "%s.%lld", scenario_get()->node,
                   (long long)pid);
}

/* What memory of a process that is gone still counts. */
static uint64_t lingering(struct record *record, unsigned gpu, uint64_t now)
{
    uint64_t lingers_ms = scenario_get()->gpus[gpu].lingers_ms;

    if (record->gone_ms == 0)
        record->gone_ms = now;
    if (now - record->gone_ms >= lingers_ms)
        return 0;
    return atomic_load(&record->bytes[gpu]);
}

/* Has the memory of a process that is gone been counted long enough? */
static bool is_over(const struct record *record, uint64_t now)
{
    const struct scenario *scenario = scenario_get();

    for (uint64_t i = 0; i < scenario->gpu_count; i++)
        if (atomic_load(&record->bytes[i]) > 0 &&
            now - record->gone_ms < scenario->gpus[i].lingers_ms)
            return false;
    return true;
}

/* One file of the folder: its use of a device, and its removal. */
static uint64_t record_use(int folder, const char *name, unsigned gpu,
                           struct record_use *use)
{
    const char *dot = strrchr(name, '.');
    size_t length = strlen(scenario_get()->node);
    uint64_t now = now_ms();

    *use = (struct record_use){0};
    if (!dot || (size_t)(dot - name) != length ||
        strncmp(name, scenario_get()->node, length) != 0)
        return 0;
    use->pid = strtoull(dot + 1, NULL, 10);
    struct record *record = record_map(folder, name, 0);
    if (!record)
        return 0;
    uint64_t started = start_time(use->pid);
    use->is_gone = started == 0 || started != record->started;
    use->bytes = use->is_gone ? lingering(record, gpu, now)
                              : atomic_load(&record->bytes[gpu]);
    bool ends = use->is_gone && is_over(record, now);
    (void)munmap(record, sizeof *record);
    if (ends)
        (void)unlinkat(folder, name, 0);
    return use->bytes;
}

/* The folder is locked. */
static unsigned uses_read(int folder, unsigned gpu, struct record_use *uses,
                          unsigned most, uint64_t *total)
{
    struct record_use use;
    unsigned count = 0;
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = copy < 0 ? NULL : fdopendir(copy);

    *total = 0;
    if (!stream)
        return 0;
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        if (record_use(folder, entry->d_name, gpu, &use) == 0)
            continue;
        if (count < most)
            uses[count] = use;
        count++;
        *total += use.bytes;
    }
    (void)closedir(stream);
    return count;
}

/* Our own file; the lock is held, the folder too. */
static struct record *record_own(int folder)
{
    char name[NAME_MAX + 1];

    if (mine && mine_pid == getpid())
        return mine;
    record_name(name, getpid());
    mine = record_map(folder, name, O_CREAT | O_TRUNC);
    mine_pid = getpid();
    if (mine)
        mine->started = start_time((uint64_t)getpid());
    return mine;
}

int records_take(unsigned gpu, int64_t bytes)
{
    const struct scenario *scenario = scenario_get();
    uint64_t total = 0;
    int status = -1;

    (void)pthread_mutex_lock(&lock);
    int folder = folder_open(true);
    struct record *record = folder < 0 ? NULL : record_own(folder);
    if (record) {
        uint64_t own = atomic_load(&record->bytes[gpu]);
        if (bytes > 0)
            (void)uses_read(folder, gpu, NULL, 0, &total);
        total += scenario->gpus[gpu].used_bytes;
        if (bytes <= 0 ||
            total + (uint64_t)bytes <= scenario->gpus[gpu].memory_bytes) {
            atomic_store(&record->bytes[gpu], own + (uint64_t)bytes);
            status = 0;
        }
    }
    if (folder >= 0)
        (void)close(folder);
    (void)pthread_mutex_unlock(&lock);
    return status;
}

static unsigned uses(unsigned gpu, struct record_use *list, unsigned most,
                     uint64_t *total)
{
    char path[PATH_MAX];
    unsigned count = 0;

    *total = 0;
    (void)pthread_mutex_lock(&lock);
    int folder = folder_open(false);
    if (folder >= 0) {
        count = uses_read(folder, gpu, list, most, total);
        if (folder_path(path) == 0)
            (void)rmdir(path); /* only when it is empty */
        (void)close(folder);
    }
    (void)pthread_mutex_unlock(&lock);
    return count;
}

unsigned records_uses(unsigned gpu, struct record_use *list, unsigned most)
{
    uint64_t total;

    return uses(gpu, list, most, &total);
}

uint64_t records_used(unsigned gpu)
{
    uint64_t total;

    (void)uses(gpu, NULL, 0, &total);
    return total + scenario_get()->gpus[gpu].used_bytes;
}

/* Does anything of this process outlive it? */
static bool lingers(void)
{
    const struct scenario *scenario = scenario_get();

    for (uint64_t i = 0; i < scenario->gpu_count; i++)
        if (scenario->gpus[i].lingers_ms > 0)
            return true;
    return false;
}

void records_leave(void)
{
    char name[NAME_MAX + 1], path[PATH_MAX];

    (void)pthread_mutex_lock(&lock);
    if (mine && mine_pid == getpid() && !lingers()) {
        int folder = folder_open(false);
        record_name(name, getpid());
        if (folder >= 0) {
            (void)unlinkat(folder, name, 0);
            if (folder_path(path) == 0)
                (void)rmdir(path);
            (void)close(folder);
        }
    }
    (void)pthread_mutex_unlock(&lock);
}
