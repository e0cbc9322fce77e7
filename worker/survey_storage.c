/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast the data set can be read here: "data".
 *
 * Happy path: find files below the folder, ask the page cache to forget them,
 * read the largest by several threads, then many small ones, each for a few
 * seconds. Nothing is written.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "worker/survey_themes.h"

enum {
    DEPTH_MAX = 6,
    ENTRIES_MAX = 20000,
    LOOK_MS = 3000,

    READERS = 4, /* at once: one alone waits for the network most of the time */
    BLOCK_BYTES = 4 << 20,
    LARGE_BYTES_MIN = 64 << 20, /* below, it is over before it has begun */
    READ_MS = 4000,

    SMALL_FILES_MAX = 2000,
    SMALL_FILES_MIN = 16,
    SMALL_BYTES_MAX = 1 << 20,

    ALIGNMENT = 4096, /* of O_DIRECT */
    SAMPLES = 64, /* files or pages of which it is asked if they are cached */
};
#define LARGE_BYTES_MAX (UINT64_C(2) << 30)

/* ---- finding files ------------------------------------------------------- */

struct finds {
    char large[PATH_MAX]; /* the largest, "": none */
    uint64_t large_bytes;
    char *small[SMALL_FILES_MAX];
    size_t small_count;
    size_t entries;
    uint64_t end_ms;
};

static void take_file(struct finds *f, const char *path, uint64_t bytes)
{
    if (bytes > f->large_bytes) {
        f->large_bytes = bytes;
        snprintf(f->large, sizeof(f->large), "%s", path);
    }
    if (bytes > 0 && bytes <= SMALL_BYTES_MAX &&
        f->small_count < SMALL_FILES_MAX) {
        char *copy = strdup(path);
        if (copy != NULL) {
            f->small[f->small_count++] = copy;
        }
    }
}

/* Links are not followed: a loop, or half of the machine. */
static void search(struct finds *f, const char *folder, int depth)
{
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
        char path[PATH_MAX];
        struct stat status;
        if (++f->entries > ENTRIES_MAX || gpul_clock_ms() > f->end_ms) {
            break;
        }
        if (e->d_name[0] == '.' ||
            (size_t)snprintf(path, sizeof(path), "%s/%s", folder, e->d_name) >=
                sizeof(path) ||
            lstat(path, &status) != 0) {
            continue;
        }
        if (S_ISREG(status.st_mode)) {
            take_file(f, path, (uint64_t)status.st_size);
        } else if (S_ISDIR(status.st_mode) && depth < DEPTH_MAX) {
            search(f, path, depth + 1);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
}

/* ---- the page cache ------------------------------------------------------ */

/* Are some pages of the file in memory, though they were to be forgotten?
 * Where it cannot be asked they may be. */
static bool is_cached(int fd, uint64_t bytes)
{
    long page = sysconf(_SC_PAGESIZE);
    uint64_t pages = bytes / (uint64_t)page;
    uint64_t step = pages > SAMPLES ? pages / SAMPLES : 1;
    size_t asked = 0, cached = 0;
    for (uint64_t i = 0; i < pages; i += step) {
        unsigned char is_there = 1;
        void *map = mmap(NULL, (size_t)page, PROT_READ, MAP_SHARED, fd,
                         (off_t)(i * (uint64_t)page));
        if (map != MAP_FAILED) {
            mincore(map, (size_t)page, &is_there);
            munmap(map, (size_t)page);
        }
        cached += is_there & 1u;
        asked++;
    }
    return cached * 10 > asked;
}

static int open_forgotten(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0) {
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    }
    return fd;
}

/* ---- several readers ----------------------------------------------------- */

struct reading {
    int fd;             /* of the large file */
    char *const *small; /* or these; NULL: the large one */
    uint64_t count;     /* blocks, or files */
    uint64_t end_ns;
    atomic_uint_fast64_t next;
    atomic_uint_fast64_t bytes;
    atomic_int why; /* errno of a read that failed */
};

static ssize_t read_block(struct reading *r, void *block, uint64_t index)
{
    return pread(r->fd, block, BLOCK_BYTES, (off_t)(index * BLOCK_BYTES));
}

static ssize_t read_small(const struct reading *r, void *block, uint64_t index)
{
    int fd = open(r->small[index], O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return -1;
    }
    ssize_t n = read(fd, block, SMALL_BYTES_MAX);
    int why = errno;
    close(fd);
    errno = why;
    return n;
}

static void *read_some(void *arg)
{
    struct reading *r = arg;
    void *block = NULL;
    if (posix_memalign(&block, ALIGNMENT, BLOCK_BYTES) != 0) {
        atomic_store(&r->why, ENOMEM);
        return NULL;
    }
    while (gpul_clock_ns() < r->end_ns && atomic_load(&r->why) == 0) {
        uint64_t index = atomic_fetch_add(&r->next, 1);
        if (index >= r->count) {
            break;
        }
        ssize_t n = r->small != NULL ? read_small(r, block, index)
                                     : read_block(r, block, index);
        if (n < 0) {
            atomic_store(&r->why, errno);
        } else {
            atomic_fetch_add(&r->bytes, (uint64_t)n);
        }
    }
    free(block);
    return NULL;
}

/* Bytes a second; 0 with r->why: they could not be read. */
static double time_readers(struct reading *r)
{
    pthread_t threads[READERS];
    size_t count = 0;
    uint64_t begin_ns = gpul_clock_ns();
    r->end_ns = begin_ns + (uint64_t)READ_MS * 1000000;
    while (count < READERS - 1 &&
           pthread_create(&threads[count], NULL, read_some, r) == 0) {
        count++;
    }
    read_some(r);
    for (size_t i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
    double seconds = (double)(gpul_clock_ns() - begin_ns) / 1e9;
    return atomic_load(&r->why) == 0 && seconds > 0
               ? (double)atomic_load(&r->bytes) / seconds
               : 0;
}

/* ---- the large file ------------------------------------------------------ */

static void say_sequential(struct survey *s, const struct finds *f)
{
    if (f->large_bytes < LARGE_BYTES_MIN) {
        survey_say(s, "data.sequential", "none"); /* small files are enough */
        return;
    }
    uint64_t bytes =
        f->large_bytes < LARGE_BYTES_MAX ? f->large_bytes : LARGE_BYTES_MAX;
    struct reading r = {.fd = open_forgotten(f->large),
                        .count = bytes / BLOCK_BYTES};
    bool is_in_cache = r.fd >= 0 && is_cached(r.fd, bytes);
    /* Past the cache, if the file system can do that. */
    int direct = open(f->large, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_DIRECT);
    if (direct >= 0) {
        close(r.fd);
        r.fd = direct;
        is_in_cache = false;
    }
    double rate = r.fd >= 0 ? time_readers(&r) : 0;
    int why = r.fd >= 0 ? atomic_load(&r.why) : errno;
    if (rate > 0) {
        survey_say(s, "data.sequential_is_cached", is_in_cache ? "yes" : "no");
        survey_say(s, "data.sequential", "%.0f", rate);
    } else {
        survey_unknown(s, "data.sequential", "%s: %s", f->large, strerror(why));
    }
    if (r.fd >= 0) {
        close(r.fd);
    }
}

/* ---- small files --------------------------------------------------------- */

static bool forget_small(const struct finds *f)
{
    size_t cached = 0, asked = 0;
    for (size_t i = 0; i < f->small_count; i++) {
        struct stat status;
        int fd = open_forgotten(f->small[i]);
        if (fd >= 0 && i % (f->small_count / SAMPLES + 1) == 0 &&
            fstat(fd, &status) == 0) {
            long page = sysconf(_SC_PAGESIZE);
            uint64_t bytes = (uint64_t)status.st_size;
            cached +=
                is_cached(fd, bytes > (uint64_t)page ? bytes : (uint64_t)page);
            asked++;
        }
        if (fd >= 0) {
            close(fd);
        }
    }
    return cached * 10 > asked;
}

static void say_small_files(struct survey *s, const struct finds *f)
{
    if (f->small_count < SMALL_FILES_MIN) {
        survey_say(s, "data.small_files", "none");
        return;
    }
    bool is_in_cache = forget_small(f);
    struct reading r = {.fd = -1, .small = f->small, .count = f->small_count};
    double rate = time_readers(&r);
    if (rate > 0) {
        survey_say(s, "data.small_files_are_cached",
                   is_in_cache ? "yes" : "no");
        survey_say(s, "data.small_files", "%.0f", rate);
    } else {
        survey_unknown(s, "data.small_files", "%s",
                       strerror(atomic_load(&r.why)));
    }
}

/* ---- the file system ----------------------------------------------------- */

/* proc(5), mountinfo: the mount point is the fifth word; behind " - " come the
 * type and the source. The longest mount point that the path begins with. */
static void say_file_system(struct survey *s, const char *root,
                            const char *path)
{
    enum { MOUNTS_BYTES = 256 << 10 };
    char *text = malloc(MOUNTS_BYTES);
    char best[512] = "";
    size_t longest = 0;
    if (text == NULL) {
        return;
    }
    survey_file(text, MOUNTS_BYTES, root, "/proc/self/mountinfo");
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        char point[PATH_MAX], type[64], source[128];
        char *rest = strstr(line, " - ");
        if (rest == NULL ||
            sscanf(line, "%*s %*s %*s %*s %4095s", point) != 1 ||
            sscanf(rest, " - %63s %127s", type, source) != 2) {
            continue;
        }
        size_t n = strcmp(point, "/") == 0 ? 0 : strlen(point);
        bool is_above = strncmp(path, point, n) == 0 &&
                        (path[n] == '/' || path[n] == 0 || n == 0);
        if (is_above && (n >= longest || best[0] == 0)) {
            /* The name of a local disk is the node's own affair. */
            bool is_remote = strchr(source, ':') != NULL || source[0] == '/';
            is_remote = is_remote && strncmp(source, "/dev/", 5) != 0;
            longest = n;
            snprintf(best, sizeof(best), "%s%s%s at %.64s", type,
                     is_remote ? " " : "", is_remote ? source : "", point);
        }
    }
    survey_say(s, "data.filesystem", "%s", best);
    free(text);
}

void survey_storage(struct survey *s, const struct survey_request *r)
{
    char real[PATH_MAX];
    if (r->data_dir == NULL) {
        return;
    }
    survey_say(s, "data.path", "%s", r->data_dir);
    if (realpath(r->data_dir, real) == NULL) {
        int why = errno;
        survey_unknown(s, "data.sequential", "%s: %s", r->data_dir,
                       strerror(why));
        survey_unknown(s, "data.small_files", "%s: %s", r->data_dir,
                       strerror(why));
        return;
    }
    say_file_system(s, r->root, real);
    struct finds *f = calloc(1, sizeof(*f));
    if (f == NULL) {
        return;
    }
    f->end_ms = gpul_clock_ms() + LOOK_MS;
    search(f, real, 0);
    if (f->large[0] == 0) {
        survey_unknown(s, "data.sequential", "no file is below %s", real);
        survey_unknown(s, "data.small_files", "no file is below %s", real);
    } else {
        say_sequential(s, f);
        say_small_files(s, f);
    }
    for (size_t i = 0; i < f->small_count; i++) {
        free(f->small[i]);
    }
    free(f);
}
