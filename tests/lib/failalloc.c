/* SPDX-License-Identifier: Apache-2.0
 *
 * To be preloaded into the programs: one allocation fails, in one process of
 * the name that FAILALLOC_NAME gives (as in /proc/PID/comm): the one that
 * brings it to FAILALLOC_AT since it has that name. FAILALLOC_MARK is a file
 * that must not be there: who makes it is the one. So whoever finds it
 * afterwards knows that the allocation was reached.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))

PUBLIC void *malloc(size_t n);
PUBLIC void *calloc(size_t count, size_t n);
PUBLIC void *realloc(void *p, size_t n);

static void *next(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);
    if (function == NULL) {
        abort();
    }
    return function;
}

/* Before main there may be no environment yet. */
static const char *setting(const char *name)
{
    return environ != NULL ? getenv(name) : NULL;
}

static bool is_meant(void)
{
    char comm[16] = "";
    const char *name = setting("FAILALLOC_NAME");
    return name != NULL && prctl(PR_GET_NAME, comm) == 0 &&
           strcmp(comm, name) == 0;
}

/* A fork begins anew, as it gets another name. */
static bool fails_now(void)
{
    static pid_t counted;
    static unsigned long left;
    const char *at = setting("FAILALLOC_AT");
    const char *mark = setting("FAILALLOC_MARK");
    if (at == NULL || mark == NULL || !is_meant()) {
        return false;
    }
    if (counted != getpid()) {
        counted = getpid();
        left = strtoul(at, NULL, 10);
    }
    if (left == 0 || --left > 0) {
        return false;
    }
    int fd = open(mark, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        return false;
    }
    close(fd);
    errno = ENOMEM;
    return true;
}

void *malloc(size_t n)
{
    static void *(*real)(size_t);
    if (real == NULL) {
        real = (void *(*)(size_t))next("malloc");
    }
    return fails_now() ? NULL : real(n);
}

void *calloc(size_t count, size_t n)
{
    static void *(*real)(size_t, size_t);
    if (real == NULL) {
        real = (void *(*)(size_t, size_t))next("calloc");
    }
    return fails_now() ? NULL : real(count, n);
}

void *realloc(void *p, size_t n)
{
    static void *(*real)(void *, size_t);
    if (real == NULL) {
        real = (void *(*)(void *, size_t))next("realloc");
    }
    return fails_now() ? NULL : real(p, n);
}
