/* SPDX-License-Identifier: Apache-2.0
 *
 * To be preloaded: in a probe it starts a helper, as a library may. The helper
 * has a session of its own, every descriptor of the probe, and no wish to end;
 * its pid is appended to the file that TESTS_HELPER_PIDS names.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HELPER_LIFE_S = 120 };

static void live(const char *path)
{
    setsid();
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd < 0 || dprintf(fd, "%d\n", getpid()) < 0) {
        _exit(1);
    }
    alarm(HELPER_LIFE_S);
    for (;;) {
        pause();
    }
}

__attribute__((constructor)) static void start_helper(int argc, char **argv)
{
    const char *path = getenv("TESTS_HELPER_PIDS");
    if (path != NULL && argc > 1 && strcmp(argv[1], "probe") == 0 &&
        fork() == 0) {
        live(path);
    }
}
