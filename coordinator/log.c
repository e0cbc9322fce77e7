/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/log.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES = 4096 }; /* twice the longest of the gate */

/* Is it a memory file that cannot grow? Any other file is left as it is. */
static bool is_bounded(void)
{
    int seals = fcntl(STDERR_FILENO, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_GROW) != 0;
}

static bool put(const char *line, size_t n)
{
    return write(STDERR_FILENO, line, n) == (ssize_t)n;
}

void log_line(const char *text)
{
    char line[LINE_BYTES];
    /* What is too long is cut; the newline always has room. */
    snprintf(line, sizeof(line) - 1, "gpulaunch-coordinator: %s", text);
    size_t n = strlen(line);
    line[n++] = '\n';
    if (!put(line, n) && is_bounded() &&
        lseek(STDERR_FILENO, 0, SEEK_SET) == 0) {
        (void)put(line, n);
    }
}
