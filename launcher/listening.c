/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/listening.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 4096 };

uint32_t listening_add(struct listening *l, const char *address)
{
    for (uint32_t i = 0; i < l->count; i++) {
        if (strcmp(l->at[i].host, address) == 0) {
            return i;
        }
    }
    if (l->count == GPUL_COORDINATORS_MAX) {
        return GPUL_COORDINATORS_MAX;
    }
    struct gpul_hostport *at = &l->at[l->count];
    *at = (struct gpul_hostport){.port = 0};
    snprintf(at->host, sizeof(at->host), "%s", address);
    l->fds[l->count] = -1;
    return l->count++;
}

bool listening_is_loopback(const struct listening *l)
{
    for (uint32_t i = 0; i < l->count; i++) {
        if (!gpul_host_is_loopback(l->at[i].host)) {
            return false;
        }
    }
    return true;
}

void listening_drop_loopback(struct listening *l)
{
    uint32_t kept = 0;
    if (listening_is_loopback(l)) {
        return;
    }
    for (uint32_t i = 0; i < l->count; i++) {
        if (!gpul_host_is_loopback(l->at[i].host)) {
            l->at[kept++] = l->at[i];
        }
    }
    l->count = kept;
}

static socklen_t fill(struct sockaddr_storage *out, const char *host,
                      uint16_t port)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)out;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
    memset(out, 0, sizeof(*out));
    if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        return sizeof(*v4);
    }
    if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        return sizeof(*v6);
    }
    return 0;
}

static uint16_t port_of(const struct sockaddr_storage *at)
{
    return ntohs(at->ss_family == AF_INET
                     ? ((const struct sockaddr_in *)at)->sin_port
                     : ((const struct sockaddr_in6 *)at)->sin6_port);
}

static int open_one(struct listening *l, uint32_t i, struct gpul_error *err)
{
    struct sockaddr_storage address;
    const char *host = l->at[i].host;
    socklen_t n = fill(&address, host, l->port);
    if (n == 0) {
        return gpul_fail(err, GPUL_EINVAL,
                         "\"%.80s\" is no literal address; nodes may not know "
                         "names, so give one such as 10.0.0.1",
                         host);
    }
    l->fds[i] = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (l->fds[i] < 0) {
        return gpul_fail_errno(err, errno, "cannot create a socket");
    }
    if (l->port != 0) {
        /* Connections of an earlier job on it may be in TIME_WAIT. */
        int yes = 1;
        setsockopt(l->fds[i], SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    }
    if (bind(l->fds[i], (struct sockaddr *)&address, n) != 0 ||
        listen(l->fds[i], BACKLOG) != 0 ||
        getsockname(l->fds[i], (struct sockaddr *)&address, &n) != 0) {
        return errno == EADDRNOTAVAIL
                   ? gpul_fail(err, GPUL_EINVAL,
                               "%s is no address of this machine; `ip address` "
                               "lists those",
                               host)
                   : gpul_fail_errno(err, errno, "cannot listen on %s%s%.0u",
                                     host, l->port != 0 ? " port " : "",
                                     l->port);
    }
    l->at[i].port = port_of(&address);
    return 0;
}

int listening_open(struct listening *l, struct gpul_error *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < l->count; i++) {
        l->fds[i] = -1;
    }
    for (uint32_t i = 0; i < l->count && rc == 0; i++) {
        rc = open_one(l, i, err);
    }
    if (rc != 0) {
        listening_close(l);
    }
    return rc;
}

void listening_close(struct listening *l)
{
    for (uint32_t i = 0; i < l->count; i++) {
        if (l->fds[i] >= 0) {
            close(l->fds[i]);
        }
        l->fds[i] = -1;
    }
}
