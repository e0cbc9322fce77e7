/* SPDX-License-Identifier: Apache-2.0
 *
 * Sockets without surprises: none blocks but in poll(). */
#include "tests/doubles/nccl_wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ERROR_BYTES = 1024, BACKLOG = 4096 };

/* --- The last error ----------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char last_error[ERROR_BYTES]; /* guarded by lock */

int nccl_fail(enum nccl_result code, const char *format, ...)
{
    va_list arguments;

    (void)pthread_mutex_lock(&lock);
    va_start(arguments, format);
    (void)vsnprintf(last_error, sizeof last_error, format, arguments);
    va_end(arguments);
    (void)pthread_mutex_unlock(&lock);
    return (int)code;
}

const char *nccl_last_error(void)
{
    static _Thread_local char copy[ERROR_BYTES];

    (void)pthread_mutex_lock(&lock);
    memcpy(copy, last_error, sizeof copy);
    (void)pthread_mutex_unlock(&lock);
    return copy;
}

const char *wire_text(const struct sockaddr_in *address, char out[64])
{
    char host[INET_ADDRSTRLEN];

    (void)inet_ntop(AF_INET, &address->sin_addr, host, sizeof host);
    (void)snprintf(out, 64, "%s<%d>", host, ntohs(address->sin_port));
    return out;
}

/* --- Waiting ------------------------------------------------------------ */

uint64_t wire_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int wire_wait(struct pollfd *fds, size_t count)
{
    for (;;) {
        if (poll(fds, count, -1) > 0)
            break;
        if (errno != EINTR)
            return nccl_fail(NCCL_SYSTEM_ERROR, "poll failed : %s",
                             strerror(errno));
    }
    return fds[0].revents ? NCCL_INTERNAL_ERROR : NCCL_SUCCESS;
}

int wire_sleep_until(uint64_t until_ns, int abort_fd)
{
    struct pollfd fd = {abort_fd, POLLIN, 0};

    for (uint64_t now; (now = wire_now_ns()) < until_ns;) {
        struct timespec left = {
            .tv_sec = (time_t)((until_ns - now) / 1000000000u),
            .tv_nsec = (long)((until_ns - now) % 1000000000u)};
        if (ppoll(&fd, 1, &left, NULL) > 0)
            return NCCL_INTERNAL_ERROR;
    }
    return NCCL_SUCCESS;
}

int wire_sleep_forever(int abort_fd)
{
    struct pollfd fd = {abort_fd, POLLIN, 0};

    return wire_wait(&fd, 1);
}

/* --- Interfaces --------------------------------------------------------- */

/* Does an item of a comma-separated list hold for `name`? */
static bool list_has(const char *list, const char *name, bool is_exact)
{
    while (*list) {
        size_t length = strcspn(list, ",");
        if (strncmp(name, list, length) == 0 &&
            (!is_exact || name[length] == '\0'))
            return true;
        list += length + (list[length] == ',');
    }
    return false;
}

static bool is_chosen(const char *rule, const char *name)
{
    bool is_not = rule[0] == '^';

    rule += is_not;
    bool is_exact = rule[0] == '=';
    rule += is_exact;
    return list_has(rule, name, is_exact) != is_not;
}

int wire_interface(struct sockaddr_in *address)
{
    const char *rule = getenv("NCCL_SOCKET_IFNAME");
    struct ifaddrs *interfaces = NULL;
    bool is_found = false;

    *address = (struct sockaddr_in){.sin_family = AF_INET};
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (!rule || !*rule)
        return NCCL_SUCCESS;
    if (getifaddrs(&interfaces) != 0)
        return nccl_fail(NCCL_SYSTEM_ERROR, "getifaddrs failed : %s",
                         strerror(errno));
    for (struct ifaddrs *at = interfaces; at && !is_found; at = at->ifa_next) {
        if (!at->ifa_addr || at->ifa_addr->sa_family != AF_INET ||
            !(at->ifa_flags & IFF_UP) || !is_chosen(rule, at->ifa_name))
            continue;
        memcpy(address, at->ifa_addr, sizeof *address);
        is_found = true;
    }
    freeifaddrs(interfaces);
    return is_found ? NCCL_SUCCESS
                    : nccl_fail(NCCL_INVALID_USAGE,
                                "Bootstrap : no socket interface found");
}

/* --- Connections -------------------------------------------------------- */

static int socket_make(int *fd)
{
    int on = 1;

    *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*fd < 0)
        return nccl_fail(NCCL_SYSTEM_ERROR, "Call to socket failed : %s",
                         strerror(errno));
    (void)setsockopt(*fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return NCCL_SUCCESS;
}

int wire_listen(struct sockaddr_in *address, int *fd)
{
    socklen_t length = sizeof *address;
    int status = socket_make(fd);

    if (status != NCCL_SUCCESS)
        return status;
    if (bind(*fd, (struct sockaddr *)address, length) != 0 ||
        listen(*fd, BACKLOG) != 0 ||
        getsockname(*fd, (struct sockaddr *)address, &length) != 0) {
        status = nccl_fail(NCCL_SYSTEM_ERROR, "Call to bind failed : %s",
                           strerror(errno));
        (void)close(*fd);
        *fd = -1;
    }
    return status;
}

static uint64_t variable(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    char *end = NULL;
    uint64_t value = text ? strtoull(text, &end, 10) : 0;

    return text && end != text && *end == '\0' ? value : otherwise;
}

/* One attempt: 0, an errno value, or -1 for an abort. */
static int connect_once(int fd, const struct sockaddr_in *address, int abort_fd)
{
    struct pollfd fds[2] = {{abort_fd, POLLIN, 0}, {fd, POLLOUT, 0}};
    int error = 0;
    socklen_t length = sizeof error;

    if (connect(fd, (const struct sockaddr *)address, sizeof *address) == 0)
        return 0;
    if (errno != EINPROGRESS && errno != EINTR)
        return errno;
    if (wire_wait(fds, 2) != NCCL_SUCCESS)
        return -1;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
        return errno;
    return error;
}

static bool is_worth_a_retry(int error)
{
    return error == ECONNREFUSED || error == ETIMEDOUT ||
           error == EHOSTUNREACH || error == EAGAIN;
}

int wire_connect(const struct sockaddr_in *address, uint64_t magic,
                 const void *hello, size_t bytes, int abort_fd, int *fd)
{
    uint64_t retries = variable("NCCL_SOCKET_RETRY_CNT", 34);
    uint64_t sleep_ms = variable("NCCL_SOCKET_RETRY_SLEEP_MSEC", 100);
    char text[64];

    for (uint64_t attempt = 1;; attempt++) {
        int status = socket_make(fd);
        if (status != NCCL_SUCCESS)
            return status;
        int error = connect_once(*fd, address, abort_fd);
        if (error == 0)
            break;
        (void)close(*fd);
        *fd = -1;
        if (error < 0)
            return NCCL_INTERNAL_ERROR;
        if (!is_worth_a_retry(error))
            return nccl_fail(NCCL_SYSTEM_ERROR,
                             "socketStartConnect: connect to %s failed : %s",
                             wire_text(address, text), strerror(error));
        if (attempt > retries)
            return nccl_fail(NCCL_REMOTE_ERROR,
                             "socketPollConnect: connect to %s returned %s, "
                             "exceeded error retry count after %llu attempts",
                             wire_text(address, text), strerror(error),
                             (unsigned long long)attempt);
        status = wire_sleep_until(wire_now_ns() + attempt * sleep_ms * 1000000u,
                                  abort_fd);
        if (status != NCCL_SUCCESS)
            return status;
    }
    int status =
        wire_exchange(*fd, &magic, sizeof magic, -1, NULL, 0, abort_fd);
    if (status == NCCL_SUCCESS)
        status = wire_exchange(*fd, hello, bytes, -1, NULL, 0, abort_fd);
    return status;
}

int wire_accept(int listen_fd, uint64_t magic, void *hello, size_t bytes,
                int abort_fd, int *fd)
{
    struct pollfd fds[2] = {{abort_fd, POLLIN, 0}, {listen_fd, POLLIN, 0}};
    int on = 1;

    for (;;) {
        uint64_t said = 0;
        int status = wire_wait(fds, 2);
        if (status != NCCL_SUCCESS)
            return status;
        *fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (*fd < 0 &&
            (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED))
            continue;
        if (*fd < 0)
            return nccl_fail(NCCL_SYSTEM_ERROR, "Call to accept failed : %s",
                             strerror(errno));
        (void)setsockopt(*fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        status = wire_exchange(-1, NULL, 0, *fd, &said, sizeof said, abort_fd);
        if (status == NCCL_SUCCESS && said == magic)
            status = wire_exchange(-1, NULL, 0, *fd, hello, bytes, abort_fd);
        if (status == NCCL_SUCCESS && said == magic)
            return NCCL_SUCCESS;
        (void)close(*fd); /* a stranger, or one that left again */
        *fd = -1;
        if (status == NCCL_INTERNAL_ERROR)
            return status;
    }
}

/* --- Data --------------------------------------------------------------- */

/* The peer's end of a connection, in NCCL's words. */
static int lost(int fd)
{
    struct sockaddr_in address = {0};
    socklen_t length = sizeof address;
    char text[64];

    (void)getpeername(fd, (struct sockaddr *)&address, &length);
    return nccl_fail(NCCL_REMOTE_ERROR,
                     "socketProgress: Connection closed by remote peer %s",
                     wire_text(&address, text));
}

int wire_send(int fd, const char **out, size_t *bytes)
{
    ssize_t moved = send(fd, *out, *bytes, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (moved < 0 && (errno == EAGAIN || errno == EINTR))
        return NCCL_SUCCESS;
    if (moved < 0)
        return lost(fd);
    *out += moved;
    *bytes -= (size_t)moved;
    return NCCL_SUCCESS;
}

int wire_receive(int fd, char **in, size_t *bytes)
{
    ssize_t moved = recv(fd, *in, *bytes, MSG_DONTWAIT);

    if (moved < 0 && (errno == EAGAIN || errno == EINTR))
        return NCCL_SUCCESS;
    if (moved <= 0)
        return lost(fd);
    *in += moved;
    *bytes -= (size_t)moved;
    return NCCL_SUCCESS;
}

int wire_exchange(int send_fd, const void *out, size_t out_bytes,
                  int receive_fd, void *in, size_t in_bytes, int abort_fd)
{
    const char *from = out;
    char *to = in;
    int status = NCCL_SUCCESS;

    while (status == NCCL_SUCCESS && out_bytes + in_bytes > 0) {
        if (out_bytes > 0)
            status = wire_send(send_fd, &from, &out_bytes);
        if (status == NCCL_SUCCESS && in_bytes > 0)
            status = wire_receive(receive_fd, &to, &in_bytes);
        if (status != NCCL_SUCCESS || out_bytes + in_bytes == 0)
            break;
        struct pollfd fds[3] = {
            {abort_fd, POLLIN, 0},
            {out_bytes > 0 ? send_fd : -1, POLLOUT, 0},
            {in_bytes > 0 ? receive_fd : -1, POLLIN, 0},
        };
        status = wire_wait(fds, 3);
    }
    return status;
}
