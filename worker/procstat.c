/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/procstat.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* PROC_PID_INIT_INO of the kernel's include/linux/proc_ns.h. */
#define FIRST_PID_NAMESPACE 0xEFFFFFFCu

/* Fields of stat(5) that follow the name: the state is the 3rd. */
enum {
    FIELD_STATE = 3,
    FIELD_PARENT = 4,
    FIELD_GROUP = 5,
    FIELD_START = 22,
    FIELD_START_CODE = 26,
};

ssize_t procstat_file(pid_t pid, const char *file, char *text, size_t bytes)
{
    char path[64];
    text[0] = 0;
    snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    ssize_t n = read(fd, text, bytes - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    return n;
}

/* "pid (name) state ...": the name may hold anything, ")" too. */
static bool parse(struct procstat *out, const char *text)
{
    const char *open = strchr(text, '(');
    const char *close = strrchr(text, ')');
    if (open == NULL || close == NULL || close < open || close[1] != ' ') {
        return false;
    }
    snprintf(out->name, sizeof(out->name), "%.*s", (int)(close - open - 1),
             open + 1);
    const char *at = close + 2;
    out->state = *at;
    for (int field = FIELD_STATE; field < FIELD_START_CODE; field++) {
        at = strchr(at, ' ');
        if (at == NULL) {
            return false;
        }
        at++;
        if (field + 1 == FIELD_PARENT) {
            out->parent = (pid_t)strtol(at, NULL, 10);
        } else if (field + 1 == FIELD_GROUP) {
            out->group = (pid_t)strtol(at, NULL, 10);
        } else if (field + 1 == FIELD_START) {
            out->start_ticks = strtoull(at, NULL, 10);
        }
    }
    out->has_code = strtoull(at, NULL, 10) != 0;
    return true;
}

bool procstat_read_quick(struct procstat *out, pid_t pid)
{
    char text[1024];
    memset(out, 0, sizeof(*out));
    return procstat_file(pid, "stat", text, sizeof(text)) > 0 &&
           parse(out, text);
}

bool procstat_read(struct procstat *out, pid_t pid)
{
    if (!procstat_read_quick(out, pid)) {
        return false;
    }
    procstat_file(pid, "wchan", out->wait_channel, sizeof(out->wait_channel));
    if (strcmp(out->wait_channel, "0") == 0) {
        out->wait_channel[0] = 0;
    }
    return true;
}

bool procstat_is_first_namespace(void)
{
    struct stat st;
    return stat("/proc/self/ns/pid", &st) == 0 &&
           st.st_ino == FIRST_PID_NAMESPACE;
}
