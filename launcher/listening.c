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
    if (l->count + (l->advertised.host[0] != '\0') == GPUL_COORDINATORS_MAX) {
        return GPUL_COORDINATORS_MAX;
    }
    struct gpul_hostport *at = &l->at[l->count];
    *at = (struct gpul_hostport){.port = 0};
    snprintf(at->host, sizeof(at->host), "%s", address);
    l->fds[l->count] = -1;
    return l->count++;
}

static bool are_loopback(const struct listening *l)
{
    for (uint32_t i = 0; i < l->count; i++) {
        if (!gpul_host_is_loopback(l->at[i].host)) {
            return false;
        }
    }
    return true;
}

bool listening_is_loopback(const struct listening *l)
{
    return l->advertised.host[0] == '\0' && are_loopback(l);
}

void listening_drop_loopback(struct listening *l)
{
    uint32_t kept = 0;
    if (are_loopback(l)) {
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

/* Returns 0 or what failed. */
static int open_socket(struct listening *l, uint32_t i,
                       struct sockaddr_storage *address, socklen_t n)
{
    l->fds[i] = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (l->fds[i] < 0) {
        return errno;
    }
    if (l->port != 0) {
        /* Connections of an earlier job on it may be in TIME_WAIT. */
        int yes = 1;
        setsockopt(l->fds[i], SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    }
    return bind(l->fds[i], (struct sockaddr *)address, n) != 0 ||
                   listen(l->fds[i], BACKLOG) != 0 ||
                   getsockname(l->fds[i], (struct sockaddr *)address, &n) != 0
               ? errno
               : 0;
}

static int explain(const struct listening *l, const char *host, int why,
                   struct gpul_error *err)
{
    if (why == EADDRNOTAVAIL && l->is_chosen) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s is no address of this machine; `ip address` lists "
                         "those. If it leads here all the same, by NAT or a "
                         "forwarded port, give it by --advertise",
                         host);
    }
    return gpul_fail_errno(err, why, "cannot listen on %s%s%.0u", host,
                           l->port != 0 ? " port " : "", l->port);
}

static int open_one(struct listening *l, uint32_t i, bool *may_go,
                    struct gpul_error *err)
{
    struct sockaddr_storage address;
    const char *host = l->at[i].host;
    socklen_t n = fill(&address, host, l->port);
    if (n == 0) {
        *may_go = false;
        return gpul_fail(err, GPUL_EINVAL,
                         "\"%.80s\" is no literal address; nodes may not know "
                         "names, so give one such as 10.0.0.1",
                         host);
    }
    int why = open_socket(l, i, &address, n);
    *may_go = !l->is_chosen && (why != EADDRINUSE || l->port == 0);
    if (why != 0) {
        return explain(l, host, why, err);
    }
    l->at[i].port = port_of(&address);
    return 0;
}

/* The places behind it move up. */
static void leave_out(struct listening *l, uint32_t i, const char *why)
{
    size_t used = strlen(l->left_out);
    snprintf(l->left_out + used, sizeof(l->left_out) - used, "%s%s",
             used > 0 ? "; " : "", why);
    if (l->fds[i] >= 0) {
        close(l->fds[i]);
    }
    l->count--;
    memmove(&l->at[i], &l->at[i + 1], (l->count - i) * sizeof(l->at[0]));
    memmove(&l->fds[i], &l->fds[i + 1], (l->count - i) * sizeof(l->fds[0]));
    l->fds[l->count] = -1;
}

int listening_open(struct listening *l, struct gpul_error *err)
{
    int rc = 0;
    uint32_t i = 0;
    for (uint32_t k = 0; k < l->count; k++) {
        l->fds[k] = -1;
    }
    while (i < l->count && rc == 0) {
        struct gpul_error why = {0};
        bool may_go;
        rc = open_one(l, i, &may_go, &why);
        if (rc != 0 && may_go && l->count > 1) {
            leave_out(l, i, why.text);
            rc = 0;
        } else if (rc != 0) {
            gpul_fail(err, rc, "%s", why.text);
        } else {
            i++;
        }
    }
    if (rc != 0) {
        listening_close(l);
    }
    return rc;
}

uint32_t listening_told(const struct listening *l,
                        struct gpul_hostport out[GPUL_COORDINATORS_MAX])
{
    uint32_t count = 0;
    if (l->advertised.host[0] != '\0') {
        out[count++] = l->advertised;
    }
    for (uint32_t i = 0; i < l->count && count < GPUL_COORDINATORS_MAX; i++) {
        out[count++] = l->at[i];
    }
    return count;
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
