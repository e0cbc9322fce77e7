/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/localaddr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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
#include "launcher/sshconfig.h"
#include "proto/sockaddr.h"

enum {
    AT_ONCE = 32,
    CONFIG_BYTES = 64 << 10, /* of ssh -G */
    ARGUMENTS_MAX = 64,
};

/* ---- in the process of one host ------------------------------------------ */

/* Nothing of ours but the pipe: what ssh or a program of its configuration
 * reads of the terminal's would be lost to the ranks. */
static void become_ssh(char *const *arguments, int out)
{
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null_fd >= 0 && dup2(null_fd, STDIN_FILENO) >= 0 &&
        dup2(null_fd, STDERR_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0) {
        execv(arguments[0], arguments);
    }
    _exit(127);
}

/* What `ssh -N -G host` prints; "" if it does not. Without -N it would want a
 * command where the user's configuration sends it into the background. Returns
 * 0, or why no process could be started. */
static int ask_ssh(char config[CONFIG_BYTES], char *const *ssh, char *host)
{
    char *arguments[ARGUMENTS_MAX + 4];
    char no_command[] = "-N", flag[] = "-G";
    int ends[2], n = 0;
    size_t used = 0;
    ssize_t got;
    config[0] = '\0';
    while (ssh[n] != NULL && n < ARGUMENTS_MAX) {
        arguments[n] = ssh[n];
        n++;
    }
    arguments[n++] = no_command;
    arguments[n++] = flag;
    arguments[n++] = host;
    arguments[n] = NULL;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return errno;
    }
    pid_t pid = fork();
    int why = pid < 0 ? errno : 0;
    if (pid == 0) {
        become_ssh(arguments, ends[1]);
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
    return why;
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

/* What the process of one host says; it fits a pipe at once. */
struct answer {
    struct localaddr found;
    int why; /* errno: it could not start ssh */
};
_Static_assert(sizeof(struct answer) <= PIPE_BUF, "it is written at once");

static void find_one(struct answer *out, char *const *ssh, char *host)
{
    static char config[CONFIG_BYTES];
    char real[GPUL_HOST_BYTES];
    out->why = ask_ssh(config, ssh, host);
    out->found.options = sshconfig_options(config);
    if (out->why == 0) {
        look_up(&out->found,
                sshconfig_value(real, sizeof(real), config, "hostname") ? real
                                                                        : host);
    }
}

/* ---- in ours ------------------------------------------------------------- */

struct asking {
    pid_t pid;
    int fd;
    uint32_t index;
    uint64_t end_ms;
};

static int start(struct asking *a, char *const *ssh, char *host,
                 struct gpul_error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return gpul_fail_errno(err, errno, "cannot create a pipe");
    }
    a->pid = fork();
    if (a->pid == 0) {
        struct answer answer = {.why = 0};
        setpgid(0, 0); /* with its ssh */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        find_one(&answer, ssh, host);
        ssize_t n = write(ends[1], &answer, sizeof(answer));
        _exit(n == (ssize_t)sizeof(answer) ? 0 : 1);
    }
    int why = errno;
    close(ends[1]);
    if (a->pid < 0) {
        close(ends[0]);
        return gpul_fail_start(err, why, "cannot start a process");
    }
    setpgid(a->pid, a->pid);
    a->fd = ends[0];
    a->end_ms = gpul_clock_ms() + LOCALADDR_MS;
    return 0;
}

/* Returns 0, or why it could not ask ssh. */
static int finish(struct localaddr *out, struct asking *a, bool is_late)
{
    struct answer answer = {.why = 0};
    if (is_late || read(a->fd, &answer, sizeof(answer)) != sizeof(answer)) {
        answer = (struct answer){.found.options = sshconfig_options("")};
        snprintf(answer.found.words, sizeof(answer.found.words),
                 is_late ? "looking it up took longer than %u s"
                         : "looking it up failed",
                 LOCALADDR_MS / 1000);
    }
    *out = answer.found;
    kill(-a->pid, SIGKILL);
    waitpid(a->pid, NULL, 0);
    close(a->fd);
    a->pid = 0;
    return answer.why;
}

/* Wait for one or more, and finish those; *why: one could not ask ssh. Returns
 * how many. */
static uint32_t harvest(struct localaddr *out, struct asking *running,
                        uint32_t count, int *why)
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
            int rc = finish(&out[running[i].index], &running[i],
                            fds[i].revents == 0);
            *why = rc != 0 ? rc : *why;
        } else {
            running[kept++] = running[i];
        }
    }
    return count - kept;
}

int localaddr_find(struct localaddr *out, const struct nodes *nodes,
                   char *const *ssh, struct gpul_error *err)
{
    struct asking running[AT_ONCE];
    uint32_t count = 0, next = 0;
    int rc = 0, why = 0;
    while ((rc == 0 && next < nodes->count) || count > 0) {
        if (rc == 0 && next < nodes->count && count < AT_ONCE) {
            running[count].index = next;
            rc = start(&running[count], ssh, nodes->list[next].name, err);
            count += rc == 0;
            next++;
            continue;
        }
        count -= harvest(out, running, count, &why);
        if (why != 0 && rc == 0) {
            rc = gpul_fail_start(err, why, "cannot start %s -G", ssh[0]);
        }
    }
    return rc;
}
