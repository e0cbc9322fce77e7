/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/localaddr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/hostport.h"
#include "proto/sockaddr.h"

enum {
    AT_ONCE = 32,
    CONFIG_BYTES = 64 << 10, /* of ssh -G */
    ARGUMENTS_MAX = 64,
};

/* ---- in the process of one host ------------------------------------------ */

/* What `ssh -G host` prints; "" if it does not. */
static void ask_ssh(char config[CONFIG_BYTES], char *const *ssh, char *host)
{
    char *arguments[ARGUMENTS_MAX + 3];
    char flag[] = "-G";
    int ends[2], n = 0;
    size_t used = 0;
    ssize_t got;
    config[0] = '\0';
    while (ssh[n] != NULL && n < ARGUMENTS_MAX) {
        arguments[n] = ssh[n];
        n++;
    }
    arguments[n] = flag;
    arguments[n + 1] = host;
    arguments[n + 2] = NULL;
    if (pipe(ends) != 0) {
        return;
    }
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        execv(arguments[0], arguments);
        _exit(127);
    }
    close(ends[1]);
    while (used < CONFIG_BYTES - 1 &&
           (got = read(ends[0], config + used, CONFIG_BYTES - 1 - used)) > 0) {
        used += (size_t)got;
    }
    config[used] = '\0';
    close(ends[0]);
    if (pid > 0) {
        waitpid(pid, NULL, 0);
    }
}

/* The value of a line "key value" into `value`; false: there is none. */
static bool find_value(char *value, size_t n, const char *config,
                       const char *key)
{
    size_t bytes = strlen(key);
    for (const char *at = config; at != NULL && *at != '\0';
         at = strchr(at, '\n'), at = at != NULL ? at + 1 : NULL) {
        if (strncmp(at, key, bytes) == 0 && at[bytes] == ' ') {
            size_t length = strcspn(at + bytes + 1, "\n");
            if (length >= n) {
                return false;
            }
            memcpy(value, at + bytes + 1, length);
            value[length] = '\0';
            return true;
        }
    }
    return false;
}

/* An address whose scope only this machine knows is of no use there. */
static bool is_link_local(const struct sockaddr_storage *at)
{
    return at->ss_family == AF_INET6 &&
           IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)at)->sin6_addr);
}

static bool try_route(struct localaddr *out, const struct addrinfo *to)
{
    struct sockaddr_storage name;
    socklen_t n = sizeof(name);
    int fd = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool is_found = fd >= 0 && connect(fd, to->ai_addr, to->ai_addrlen) == 0 &&
                    getsockname(fd, (struct sockaddr *)&name, &n) == 0;
    if (!is_found) {
        snprintf(out->words, sizeof(out->words), "%s", strerror(errno));
    } else if (is_link_local(&name)) {
        is_found = false;
        snprintf(out->words, sizeof(out->words),
                 "the route begins at a link-local address, which means "
                 "nothing to others");
    } else {
        gpul_sockaddr_format(&name, out->address, NULL);
    }
    if (fd >= 0) {
        close(fd);
    }
    return is_found;
}

static void look_up(struct localaddr *out, const char *host)
{
    const struct addrinfo literal = {.ai_socktype = SOCK_DGRAM,
                                     .ai_flags = AI_NUMERICHOST};
    const struct addrinfo name = {.ai_socktype = SOCK_DGRAM};
    struct addrinfo *found = NULL;
    int why = getaddrinfo(host, "22", &literal, &found);
    if (why != 0) {
        why = getaddrinfo(host, "22", &name, &found);
    }
    if (why != 0) {
        snprintf(out->words, sizeof(out->words), "%s", gai_strerror(why));
        return;
    }
    out->is_known = true;
    const struct addrinfo *at = found;
    while (at != NULL && !try_route(out, at)) {
        at = at->ai_next;
    }
    freeaddrinfo(found);
}

static void find_one(struct localaddr *out, char *const *ssh, char *host)
{
    static char config[CONFIG_BYTES];
    char real[GPUL_HOST_BYTES], timeout[16];
    ask_ssh(config, ssh, host);
    out->has_timeout =
        find_value(timeout, sizeof(timeout), config, "connecttimeout") &&
        strcmp(timeout, "none") != 0;
    look_up(out,
            find_value(real, sizeof(real), config, "hostname") ? real : host);
}

/* ---- in ours ------------------------------------------------------------- */

struct lookup {
    pid_t pid;
    int fd;
    uint32_t index;
    uint64_t end_ms;
};

static int start(struct lookup *l, char *const *ssh, char *host,
                 struct gpul_error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return gpul_fail_errno(err, errno, "cannot create a pipe");
    }
    l->pid = fork();
    if (l->pid == 0) {
        struct localaddr found = {.address = ""};
        setpgid(0, 0); /* with its ssh */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        find_one(&found, ssh, host);
        ssize_t n = write(ends[1], &found, sizeof(found));
        _exit(n == (ssize_t)sizeof(found) ? 0 : 1);
    }
    int why = errno;
    close(ends[1]);
    if (l->pid < 0) {
        close(ends[0]);
        return gpul_fail_errno(err, why, "cannot start a process");
    }
    setpgid(l->pid, l->pid);
    l->fd = ends[0];
    l->end_ms = gpul_clock_ms() + LOCALADDR_MS;
    return 0;
}

/* It fits a pipe at once, so it is there as a whole or not at all. */
static void finish(struct localaddr *out, struct lookup *l, bool is_late)
{
    struct localaddr found;
    *out = (struct localaddr){.address = ""};
    if (!is_late && read(l->fd, &found, sizeof(found)) == sizeof(found)) {
        *out = found;
    } else {
        snprintf(out->words, sizeof(out->words),
                 is_late ? "looking it up took longer than %u s"
                         : "looking it up failed",
                 LOCALADDR_MS / 1000);
    }
    kill(-l->pid, SIGKILL);
    waitpid(l->pid, NULL, 0);
    close(l->fd);
    l->pid = 0;
}

/* Wait for one or more, and finish those. Returns how many. */
static uint32_t harvest(struct localaddr *out, struct lookup *running,
                        uint32_t count)
{
    struct pollfd fds[AT_ONCE];
    uint64_t next_ms = UINT64_MAX, now_ms = gpul_clock_ms();
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        fds[i] = (struct pollfd){.fd = running[i].fd, .events = POLLIN};
        next_ms = running[i].end_ms < next_ms ? running[i].end_ms : next_ms;
    }
    poll(fds, count, next_ms > now_ms ? (int)(next_ms - now_ms) : 0);
    now_ms = gpul_clock_ms();
    for (uint32_t i = 0; i < count; i++) {
        bool is_late = now_ms >= running[i].end_ms;
        if (fds[i].revents != 0 || is_late) {
            finish(&out[running[i].index], &running[i], fds[i].revents == 0);
        } else {
            running[kept++] = running[i];
        }
    }
    return count - kept;
}

int localaddr_find(struct localaddr *out, const struct nodes *nodes,
                   char *const *ssh, struct gpul_error *err)
{
    struct lookup running[AT_ONCE];
    uint32_t count = 0, next = 0;
    int rc = 0;
    while ((rc == 0 && next < nodes->count) || count > 0) {
        if (rc == 0 && next < nodes->count && count < AT_ONCE) {
            running[count].index = next;
            rc = start(&running[count], ssh, nodes->list[next].name, err);
            count += rc == 0;
            next++;
            continue;
        }
        count -= harvest(out, running, count);
    }
    return rc;
}
