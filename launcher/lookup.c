/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/lookup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/units.h"
#include "proto/sockaddr.h"

enum {
    TRY_MS = 10000, /* two rounds of a resolver's usual 5 s */
    PAUSE_FIRST_MS = 100,
    PAUSE_LAST_MS = 5000,
    WORDS_BYTES = 160,
    DURATION_BYTES = 32,
};

/* What the process of one try says; it fits a pipe at once. */
struct answer {
    char literals[GPUL_COORDINATORS_MAX][GPUL_ADDRESS_BYTES_MAX + 1];
    uint32_t count;
    char words[WORDS_BYTES]; /* if there is none */
};
_Static_assert(sizeof(struct answer) <= PIPE_BUF, "it is written at once");

/* ---- in the process of one try ------------------------------------------- */

static bool has_literal(const struct answer *a, const char *literal)
{
    for (uint32_t i = 0; i < a->count; i++) {
        if (strcmp(a->literals[i], literal) == 0) {
            return true;
        }
    }
    return false;
}

static void look_up(struct answer *a, const char *host)
{
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int why = getaddrinfo(host, NULL, &wanted, &found);
    if (why != 0) {
        snprintf(a->words, sizeof(a->words), "%s", gai_strerror(why));
        return;
    }
    for (const struct addrinfo *at = found;
         at != NULL && a->count < GPUL_COORDINATORS_MAX; at = at->ai_next) {
        struct sockaddr_storage address = {0};
        char literal[GPUL_ADDRESS_BYTES_MAX + 1];
        memcpy(&address, at->ai_addr, at->ai_addrlen);
        gpul_sockaddr_format(&address, literal, NULL);
        if (literal[0] != '\0' && !has_literal(a, literal)) {
            memcpy(a->literals[a->count++], literal, sizeof(literal));
        }
    }
    freeaddrinfo(found);
    snprintf(a->words, sizeof(a->words), "it has no address");
}

static pid_t start_try(int *fd, const char *host, struct gpul_error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return gpul_fail_errno(err, errno, "cannot create a pipe");
    }
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        struct answer answer = {.count = 0};
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(1);
        }
        look_up(&answer, host);
        ssize_t n = write(ends[1], &answer, sizeof(answer));
        _exit(n == (ssize_t)sizeof(answer) ? 0 : 1);
    }
    int why = errno;
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return gpul_fail_start(err, why, "cannot start a process");
    }
    *fd = ends[0];
    return pid;
}

/* ---- in ours ------------------------------------------------------------- */

static void wait_readable(int fd, uint64_t end_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    uint64_t now_ms = gpul_clock_ms();
    while (now_ms < end_ms && poll(&p, 1, (int)(end_ms - now_ms)) < 0 &&
           errno == EINTR) {
        now_ms = gpul_clock_ms();
    }
}

/* One try. Errors: GPUL_ESYS. */
static int try_once(struct answer *a, const char *host, uint64_t end_ms,
                    struct gpul_error *err)
{
    int fd = -1;
    uint64_t bound_ms = gpul_clock_ms() + TRY_MS;
    pid_t pid = start_try(&fd, host, err);
    if (pid < 0) {
        return pid;
    }
    wait_readable(fd, bound_ms < end_ms ? bound_ms : end_ms);
    kill(pid, SIGKILL); /* done, or too late */
    *a = (struct answer){.words = "the name server does not answer"};
    struct answer got;
    if (read(fd, &got, sizeof(got)) == (ssize_t)sizeof(got)) {
        *a = got;
    }
    close(fd);
    waitpid(pid, NULL, 0);
    return 0;
}

struct delay {
    uint64_t half_ms; /* 0: it has been told */
    uint64_t end_ms;
    lookup_delay_fn tell;
    void *arg;
};

/* Between two tries, with the half time in it. */
static void pause_until(struct delay *d, uint64_t until_ms, const char *why)
{
    uint64_t now_ms;
    while ((now_ms = gpul_clock_ms()) < until_ms) {
        if (d->half_ms != 0 && now_ms >= d->half_ms) {
            d->half_ms = 0;
            if (d->tell != NULL) {
                d->tell(d->arg, why, d->end_ms - now_ms);
            }
        }
        uint64_t next_ms =
            d->half_ms != 0 && d->half_ms < until_ms ? d->half_ms : until_ms;
        poll(NULL, 0, next_ms > now_ms ? (int)(next_ms - now_ms) : 0);
    }
}

static bool is_literal(const char *host)
{
    struct sockaddr_storage address;
    return gpul_sockaddr_parse(&address, host, 0, NULL) == 0;
}

static void take(struct lookup *out, const struct answer *a, uint16_t port)
{
    out->count = a->count;
    for (uint32_t i = 0; i < a->count; i++) {
        out->at[i] = (struct gpul_hostport){.port = port};
        snprintf(out->at[i].host, sizeof(out->at[i].host), "%s",
                 a->literals[i]);
    }
}

int lookup_wait(struct lookup *out, const struct gpul_hostport *where,
                uint64_t end_ms, lookup_delay_fn on_delay, void *arg,
                struct gpul_error *err)
{
    uint64_t begin_ms = gpul_clock_ms(), pause_ms = PAUSE_FIRST_MS;
    struct delay delay = {begin_ms + (end_ms - begin_ms) / 2, end_ms, on_delay,
                          arg};
    struct answer answer = {.count = 0};
    *out = (struct lookup){.count = 1, .at = {*where}};
    if (is_literal(where->host)) {
        return 0;
    }
    do {
        int rc = try_once(&answer, where->host, end_ms, err);
        if (rc != 0) {
            return rc;
        }
        if (answer.count > 0) {
            take(out, &answer, where->port);
            return 0;
        }
        uint64_t next_ms = gpul_clock_ms() + pause_ms;
        pause_until(&delay, next_ms < end_ms ? next_ms : end_ms, answer.words);
        pause_ms = pause_ms < PAUSE_LAST_MS / 2 ? 2 * pause_ms : PAUSE_LAST_MS;
    } while (gpul_clock_ms() < end_ms);
    char waited[DURATION_BYTES];
    gpul_format_duration(waited, (end_ms - begin_ms + 500) / 1000 * 1000);
    return gpul_fail(err, GPUL_ETIMEOUT,
                     "the name %.100s was not found within %s: %s", where->host,
                     waited, answer.words);
}
