/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/metric.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proto/text.h"

enum { BYTES_MAX = 64 << 10 };

int metric_open(int ends[2])
{
    int fd = memfd_create("gpulaunch-metric", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        return errno;
    }
    int other = -1;
    if (ftruncate(fd, BYTES_MAX) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) ==
            0) {
        other = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    }
    if (other < 0) {
        int why = errno;
        close(fd);
        return why;
    }
    ends[0] = fd;
    ends[1] = other;
    return 0;
}

/* Where the last line that is not empty begins, and how long it is. */
static const char *last_line(const char *text, size_t n, size_t *length)
{
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r')) {
        n--;
    }
    const char *newline = memrchr(text, '\n', n);
    const char *line = newline != NULL ? newline + 1 : text;
    *length = n - (size_t)(line - text);
    return line;
}

void metric_read(char text[GPUL_METRIC_BYTES_MAX + 1], int fd)
{
    char bytes[BYTES_MAX];
    ssize_t got = pread(fd, bytes, sizeof(bytes), 0);
    size_t n = got > 0 ? strnlen(bytes, (size_t)got) : 0;
    size_t length;
    const char *line = last_line(bytes, n, &length);
    length = length < GPUL_METRIC_BYTES_MAX ? length : GPUL_METRIC_BYTES_MAX;
    memcpy(text, line, length);
    text[length] = '\0';
    gpul_text_clean_line(text, GPUL_METRIC_BYTES_MAX);
}
