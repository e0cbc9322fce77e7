/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/trialsocket.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/sockaddr.h"

enum {
    BACKLOG = 64,
    /* So little waits in the kernel to be sent: what is measured is the link
     * then, and the end of a flow comes soon behind the word to stop. */
    UNSENT_BYTES = 256 << 10,
    NS_PER_S = 1000000000,
};

static int open_socket(int family)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) {
        int on = 1;
        unsigned unsent = UNSENT_BYTES;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
    }
    return fd;
}

static int bind_to(int fd, const struct sockaddr_storage *at)
{
    return bind(fd, (const struct sockaddr *)at,
                at->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                          : sizeof(struct sockaddr_in));
}

/* Keeps errno. Returns -1. */
static int give_up(int fd)
{
    int why = errno;
    if (fd >= 0) {
        close(fd);
    }
    errno = why;
    return -1;
}

int trialsocket_listen(const char *address, uint16_t *port,
                       struct gpul_error *err)
{
    struct sockaddr_storage at;
    struct sockaddr_storage bound = {0};
    socklen_t bytes = sizeof(bound);
    char text[GPUL_ADDRESS_BYTES_MAX + 1];
    int rc = gpul_sockaddr_parse(&at, address, 0, err);
    if (rc != 0) {
        return rc;
    }
    int fd = open_socket(at.ss_family);
    if (fd < 0 || bind_to(fd, &at) != 0 || listen(fd, BACKLOG) != 0 ||
        getsockname(fd, (struct sockaddr *)&bound, &bytes) != 0) {
        give_up(fd);
        return gpul_fail_errno(err, errno, "cannot listen on %s", address);
    }
    gpul_sockaddr_format(&bound, text, port);
    return fd;
}

/* From the address of this rail, or another one would be measured. */
int trialsocket_dial(const char *from, const char *to, uint16_t port)
{
    struct sockaddr_storage source;
    struct sockaddr_storage target;
    if (gpul_sockaddr_parse(&source, from, 0, NULL) != 0 ||
        gpul_sockaddr_parse(&target, to, port, NULL) != 0) {
        errno = EINVAL;
        return -1;
    }
    int fd = open_socket(target.ss_family);
    if (fd < 0 || bind_to(fd, &source) != 0 ||
        (connect(fd, (struct sockaddr *)&target,
                 target.ss_family == AF_INET6
                     ? sizeof(struct sockaddr_in6)
                     : sizeof(struct sockaddr_in)) != 0 &&
         errno != EINPROGRESS && errno != EINTR)) {
        return give_up(fd);
    }
    return fd;
}

void trialsocket_segments(int fd, Gpul__TrialWay *way)
{
    struct tcp_info info = {0};
    socklen_t bytes = sizeof(info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0) {
        way->segments = info.tcpi_data_segs_out;
        way->retransmits = info.tcpi_total_retrans < way->segments
                               ? info.tcpi_total_retrans
                               : way->segments;
    }
}

/* The second number of a thread's schedstat is its wait, in ns:
 * Documentation/scheduler/sched-stats.rst of Linux. */
bool trialsocket_busy(uint64_t *busy_ns)
{
    char text[128];
    unsigned long long ran;
    unsigned long long waited;
    struct timespec cpu;
    int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    if (sscanf(text, "%llu %llu", &ran, &waited) != 2 ||
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu) != 0) {
        return false;
    }
    *busy_ns = waited + (uint64_t)cpu.tv_sec * NS_PER_S + (uint64_t)cpu.tv_nsec;
    return true;
}
