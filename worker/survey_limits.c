/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory and limits: "memory", "shm", "limit", and what cgroups allow,
 * "memory.limit", "pids.limit" and "cpu.quota".
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "worker/survey_themes.h"

/* ---- memory -------------------------------------------------------------- */

/* "MemTotal:  16384 kB", in bytes. False: there is no such line. */
static bool find_memory(uint64_t *out, const char *text, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = text; at != NULL && *at != 0;) {
        if (strncmp(at, name, n) == 0 && at[n] == ':') {
            *out = strtoull(at + n + 1, NULL, 10) * 1024;
            return true;
        }
        at = strchr(at, '\n');
        at = at != NULL ? at + 1 : NULL;
    }
    return false;
}

static void say_memory(struct survey *s, const char *key, const char *text,
                       const char *name)
{
    uint64_t bytes;
    if (find_memory(&bytes, text, name)) {
        survey_say_number(s, key, bytes);
    } else {
        survey_unknown(s, key, "/proc/meminfo has no %s", name);
    }
}

static void say_shared_memory(struct survey *s, const char *root)
{
    struct statvfs status;
    char path[PATH_MAX];
    survey_path(path, root, "/dev/shm");
    if (statvfs(path, &status) != 0) {
        int why = errno;
        survey_unknown(s, "shm.size", "/dev/shm: %s", strerror(why));
        survey_unknown(s, "shm.free", "/dev/shm: %s", strerror(why));
        return;
    }
    survey_say_number(s, "shm.size",
                      (uint64_t)status.f_blocks * (uint64_t)status.f_frsize);
    survey_say_number(s, "shm.free",
                      (uint64_t)status.f_bavail * (uint64_t)status.f_frsize);
}

void survey_memory(struct survey *s, const struct survey_request *r)
{
    char text[SURVEY_FILE_BYTES];
    uint64_t total, unused;
    survey_file(text, sizeof(text), r->root, "/proc/meminfo");
    say_memory(s, "memory.total", text, "MemTotal");
    say_memory(s, "memory.available", text, "MemAvailable");
    say_memory(s, "memory.swap_total", text, "SwapTotal");
    if (find_memory(&total, text, "SwapTotal") &&
        find_memory(&unused, text, "SwapFree") && unused <= total) {
        survey_say_number(s, "memory.swap_used", total - unused);
    } else {
        survey_unknown(s, "memory.swap_used", "/proc/meminfo has no SwapFree");
    }
    say_shared_memory(s, r->root);
}

/* ---- limits -------------------------------------------------------------- */

/* "Max open files   1024   1048576   files": behind the name the two. */
static void say_limit(struct survey *s, const char *key, const char *text,
                      const char *name)
{
    char soft[32], hard[32], soft_key[64], hard_key[64];
    const char *line = strstr(text, name);
    snprintf(soft_key, sizeof(soft_key), "limit.%s.soft", key);
    snprintf(hard_key, sizeof(hard_key), "limit.%s.hard", key);
    if (line == NULL ||
        sscanf(line + strlen(name), " %31s %31s", soft, hard) != 2) {
        survey_unknown(s, soft_key, "/proc/self/limits has no %s", name);
        survey_unknown(s, hard_key, "/proc/self/limits has no %s", name);
        return;
    }
    survey_say(s, soft_key, "%s", soft);
    survey_say(s, hard_key, "%s", hard);
}

void survey_limits(struct survey *s, const struct survey_request *r)
{
    char text[SURVEY_FILE_BYTES];
    survey_file(text, sizeof(text), r->root, "/proc/self/limits");
    say_limit(s, "memlock", text, "Max locked memory");
    say_limit(s, "nofile", text, "Max open files");
    say_limit(s, "nproc", text, "Max processes");
    say_limit(s, "stack", text, "Max stack size");
}

/* ---- cgroups ------------------------------------------------------------- */

/* A limit that any cgroup on the way up may set. */
struct walk {
    const char *root;
    const char *file; /* within the folder of a cgroup */
    double least;     /* of those that are set; HUGE_VAL: none */
    bool is_read;     /* some such file was there */
    /* What one file says; HUGE_VAL: no limit. False: nothing to be read. */
    bool (*read)(double *out, const char *root, const char *folder,
                 const char *file);
};

/* "max", -1, or a number; what is as large as the address space of memory is
 * no limit: cgroup v1 has no word for that. */
static bool read_number(double *out, const char *root, const char *folder,
                        const char *file)
{
    char line[SURVEY_LINE_BYTES];
    char *end;
    survey_line(line, root, "%s/%s", folder, file);
    double number = strtod(line, &end);
    bool is_max =
        strncmp(line, "max", 3) == 0 || number < 0 || number >= 0x1p60;
    *out = is_max ? __builtin_huge_val() : number;
    return line[0] != 0 && (is_max || end != line);
}

/* cpu.max: "max 100000", "250000 100000": of each period so much. */
static bool read_share(double *out, const char *root, const char *folder,
                       const char *file)
{
    char line[SURVEY_LINE_BYTES];
    double quota, period;
    survey_line(line, root, "%s/%s", folder, file);
    *out = __builtin_huge_val();
    if (sscanf(line, "%lf %lf", &quota, &period) == 2 && period > 0) {
        *out = quota / period;
        return true;
    }
    return strncmp(line, "max", 3) == 0;
}

/* The same in two files, of version 1. */
static bool read_quota(double *out, const char *root, const char *folder,
                       const char *file)
{
    double period;
    if (!read_number(out, root, folder, file)) {
        return false;
    }
    if (read_number(&period, root, folder, "cpu.cfs_period_us") && period > 0) {
        *out /= period;
    }
    return true;
}

static void look(struct walk *w, const char *folder)
{
    double limit;
    if (w->read(&limit, w->root, folder, w->file)) {
        w->is_read = true;
        w->least = limit < w->least ? limit : w->least;
    }
}

/* From `cgroup` up to `mount`, both included. In a namespace of its own the
 * path may be the host's, and only the mount's root is there. */
static void climb(struct walk *w, const char *mount, const char *cgroup)
{
    char folder[PATH_MAX];
    size_t top = strlen(mount);
    if ((size_t)snprintf(folder, sizeof(folder), "%s%s", mount, cgroup) >=
        sizeof(folder)) {
        return;
    }
    while (strlen(folder) > top) {
        look(w, folder);
        char *slash = strrchr(folder, '/');
        *slash = 0;
    }
    look(w, mount);
}

/* The path of this process in the hierarchy of a controller ("": version 2),
 * or NULL: "4:memory:/a/b", "0::/a/b". `text` is changed. */
static const char *find_cgroup(char *text, const char *controller)
{
    char *path = NULL;
    for (char *line = text; line != NULL && *line != 0;) {
        char *end = strchr(line, '\n');
        char *names = strchr(line, ':');
        char *at = names != NULL ? strchr(names + 1, ':') : NULL;
        if (end != NULL) {
            *end = 0;
        }
        if (at != NULL && (end == NULL || at < end)) {
            *at = 0;
            char *save = NULL;
            bool is_it = names[1] == 0 && controller[0] == 0;
            for (char *one = strtok_r(names + 1, ",", &save); one != NULL;
                 one = strtok_r(NULL, ",", &save)) {
                is_it = is_it || strcmp(one, controller) == 0;
            }
            path = is_it ? at + 1 : path;
        }
        line = end != NULL ? end + 1 : NULL;
    }
    return path;
}

/* Both versions may be mounted; a controller is in one of them. */
static void
walk_both(struct walk *w, const char *controller, const char *old_file,
          bool (*read_old)(double *, const char *, const char *, const char *))
{
    char text[SURVEY_FILE_BYTES];
    char mount[64];
    survey_file(text, sizeof(text), w->root, "/proc/self/cgroup");
    const char *cgroup = find_cgroup(text, "");
    if (cgroup != NULL) {
        climb(w, "/sys/fs/cgroup", cgroup);
        climb(w, "/sys/fs/cgroup/unified", cgroup);
    }
    survey_file(text, sizeof(text), w->root, "/proc/self/cgroup");
    cgroup = find_cgroup(text, controller);
    if (cgroup != NULL) {
        w->file = old_file;
        w->read = read_old;
        snprintf(mount, sizeof(mount), "/sys/fs/cgroup/%s", controller);
        climb(w, mount, cgroup);
    }
}

static void say_walk(struct survey *s, const char *key, const struct walk *w,
                     int digits)
{
    if (!survey_exists(w->root, "/proc/self/cgroup")) {
        survey_unknown(s, key, "/proc/self/cgroup cannot be read");
    } else if (!w->is_read || w->least == __builtin_huge_val()) {
        survey_say(s, key, "none");
    } else {
        survey_say(s, key, "%.*g", digits, w->least);
    }
}

void survey_cgroups(struct survey *s, const struct survey_request *r)
{
    const struct walk none = {.root = r->root, .least = __builtin_huge_val()};
    struct walk memory = none, pids = none, cpu = none;
    memory.file = "memory.max";
    memory.read = read_number;
    walk_both(&memory, "memory", "memory.limit_in_bytes", read_number);
    say_walk(s, "memory.limit", &memory, 17);
    pids.file = "pids.max";
    pids.read = read_number;
    walk_both(&pids, "pids", "pids.max", read_number);
    say_walk(s, "pids.limit", &pids, 17);
    cpu.file = "cpu.max";
    cpu.read = read_share;
    walk_both(&cpu, "cpu", "cpu.cfs_quota_us", read_quota);
    say_walk(s, "cpu.quota", &cpu, 4);
}
