/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/logkeep.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/ownfolder.h"

#define MARK_NAME ".gpulaunch-job"

enum {
    ID_BYTES = 24, /* 20261130-221500-3f9a2c41 */
    MARK_BYTES = 64,
};

/* ---- what is ours ------------------------------------------------------- */

/* 'd': a digit, 'x': a lower-case hexadecimal one; the rest is itself. */
static bool fits(const char *name, const char *pattern)
{
    for (; *pattern != '\0'; name++, pattern++) {
        unsigned char c = (unsigned char)*name;
        bool is_fit = *pattern == 'd'   ? isdigit(c) != 0
                      : *pattern == 'x' ? isdigit(c) || (c >= 'a' && c <= 'f')
                                        : c == (unsigned char)*pattern;
        if (!is_fit) {
            return false;
        }
    }
    return *name == '\0';
}

static bool is_job_id(const char *name)
{
    return fits(name, "dddddddd-dddddd-xxxxxxxx");
}

/* "<stem><number>" and, unless NULL, one of the endings after it. */
static bool is_numbered(const char *name, const char *stem,
                        const char *const *endings)
{
    size_t n = strlen(stem);
    size_t digits =
        strncmp(name, stem, n) == 0 ? strspn(name + n, "0123456789") : 0;
    if (digits == 0) {
        return false;
    }
    for (name += n + digits; endings != NULL && *endings != NULL; endings++) {
        if (strcmp(name, *endings) == 0) {
            return true;
        }
    }
    return endings == NULL && *name == '\0';
}

static bool is_log_folder(const char *name)
{
    return is_numbered(name, "attempt-", NULL) ||
           strcmp(name, "self-test") == 0;
}

static bool is_log_file(const char *name)
{
    static const char *const of_ranks[] = {".out",  ".err",        ".log",
                                           ".nccl", ".error.json", NULL};
    static const char *const of_scouts[] = {".log", NULL};
    static const char *const of_tf_config[] = {".json", NULL};
    return is_numbered(name, "rank-", of_ranks) ||
           is_numbered(name, "scout-", of_scouts) ||
           is_numbered(name, "tf_config-rank-", of_tf_config);
}

static bool is_file(int folder, const char *name)
{
    struct stat st;
    return fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(st.st_mode) && st.st_uid == geteuid();
}

/* ---- going through a folder --------------------------------------------- */

/* Called for each entry; false ends the walk. */
typedef bool visit_fn(int folder, const char *name, void *arg);

/* True if all of it was visited. */
static bool walk(int folder, visit_fn *visit, void *arg)
{
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = copy >= 0 ? fdopendir(copy) : NULL;
    if (entries == NULL) {
        if (copy >= 0) {
            close(copy);
        }
        return false;
    }
    const struct dirent *entry;
    bool goes_on = true;
    errno = 0;
    while (goes_on && (entry = readdir(entries)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 &&
            strcmp(entry->d_name, "..") != 0) {
            goes_on = visit(folder, entry->d_name, arg);
        }
        errno = 0;
    }
    goes_on = goes_on && errno == 0;
    closedir(entries);
    return goes_on;
}

static bool is_ours_within(int folder, const char *name, void *arg)
{
    (void)arg;
    return is_log_file(name) && is_file(folder, name);
}

static bool is_ours(int job, const char *name, void *arg)
{
    if (strcmp(name, MARK_NAME) == 0) {
        return is_file(job, name);
    }
    int folder = is_log_folder(name) ? gpul_open_own_folder(job, name) : -1;
    bool is_all_ours = folder >= 0 && walk(folder, is_ours_within, arg);
    if (folder >= 0) {
        close(folder);
    }
    return is_all_ours;
}

/* Every name has been judged before; what has come since stays, and with it
 * its folder. */
static bool remove_within(int folder, const char *name, void *arg)
{
    (void)arg;
    if (is_log_file(name)) {
        unlinkat(folder, name, 0);
    }
    return true;
}

static bool remove_folder(int job, const char *name, void *arg)
{
    int folder = is_log_folder(name) ? gpul_open_own_folder(job, name) : -1;
    if (folder >= 0) {
        walk(folder, remove_within, arg);
        close(folder);
        unlinkat(job, name, AT_REMOVEDIR);
    }
    return true;
}

/* ---- jobs --------------------------------------------------------------- */

static void print_mark(char text[MARK_BYTES], const char *job_id)
{
    snprintf(text, MARK_BYTES, "gpulaunch job %.32s\n", job_id);
}

/* The folder of a job below `root`, as its nodes have made it. */
static int open_job(const char *root, const char *job_id)
{
    int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int job = fd >= 0 ? gpul_open_own_folder(fd, job_id) : -1;
    int why = errno;
    if (fd >= 0) {
        close(fd);
    }
    errno = why;
    return job;
}

static int write_mark(int job, const char *text)
{
    int fd = openat(job, MARK_NAME,
                    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return errno;
    }
    ssize_t n = write(fd, text, strlen(text));
    int why = n == (ssize_t)strlen(text) ? 0 : n < 0 ? errno : ENOSPC;
    close(fd);
    if (why != 0) {
        unlinkat(job, MARK_NAME, 0);
    }
    return why;
}

int logkeep_mark(const char *root, const char *job_id, struct gpul_error *err)
{
    char text[MARK_BYTES];
    print_mark(text, job_id);
    int job = open_job(root, job_id);
    int why = job < 0 ? errno : write_mark(job, text);
    if (job >= 0) {
        close(job);
    }
    return why == 0
               ? 0
               : gpul_fail_errno(err, why, "%s/%s/" MARK_NAME, root, job_id);
}

/* Has the job of that name marked it? */
static bool is_marked(int job, const char *job_id)
{
    char expected[MARK_BYTES], found[MARK_BYTES + 1];
    print_mark(expected, job_id);
    int fd = is_file(job, MARK_NAME)
                 ? openat(job, MARK_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
                 : -1;
    ssize_t n = fd >= 0 ? read(fd, found, sizeof(found)) : -1;
    if (fd >= 0) {
        close(fd);
    }
    return n == (ssize_t)strlen(expected) &&
           memcmp(found, expected, (size_t)n) == 0;
}

struct jobs {
    char (*ids)[ID_BYTES + 1];
    size_t count;
    size_t capacity;
};

static bool collect(int root, const char *name, void *arg)
{
    struct jobs *jobs = arg;
    int job = is_job_id(name) ? gpul_open_own_folder(root, name) : -1;
    if (job < 0) {
        return true;
    }
    bool is_removable = is_marked(job, name) && walk(job, is_ours, NULL);
    close(job);
    if (!is_removable) {
        return true;
    }
    if (jobs->count == jobs->capacity) {
        size_t capacity = jobs->capacity == 0 ? 64 : 2 * jobs->capacity;
        void *grown = realloc(jobs->ids, capacity * sizeof(*jobs->ids));
        if (grown == NULL) {
            return false;
        }
        jobs->ids = grown;
        jobs->capacity = capacity;
    }
    memcpy(jobs->ids[jobs->count++], name, ID_BYTES + 1);
    return true;
}

static int newest_first(const void *a, const void *b)
{
    return strcmp(b, a); /* they begin with the time */
}

/* The mark goes last: a removal that is cut short is taken up again. */
static void remove_job(int root, const char *job_id)
{
    int job = gpul_open_own_folder(root, job_id);
    if (job < 0) {
        return;
    }
    walk(job, remove_folder, NULL);
    unlinkat(job, MARK_NAME, 0);
    close(job);
    unlinkat(root, job_id, AT_REMOVEDIR);
}

void logkeep_prune(const char *root, size_t kept)
{
    struct jobs jobs = {0};
    int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    /* All or nothing: of a part nobody knows which are the newest. */
    if (walk(fd, collect, &jobs) && jobs.count > kept) {
        qsort(jobs.ids, jobs.count, sizeof(*jobs.ids), newest_first);
        for (size_t i = kept; i < jobs.count; i++) {
            remove_job(fd, jobs.ids[i]);
        }
    }
    free(jobs.ids);
    close(fd);
}
