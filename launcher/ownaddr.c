/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/ownaddr.h"

#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/sockaddr.h"

static size_t size_of(const struct sockaddr *address)
{
    return address->sa_family == AF_INET ? sizeof(struct sockaddr_in)
                                         : sizeof(struct sockaddr_in6);
}

/* An address that others can use, as text; false: it is none. */
static bool format(char text[GPUL_ADDRESS_BYTES_MAX + 1],
                   const struct sockaddr *address)
{
    struct sockaddr_storage copy = {0};
    if (address == NULL ||
        (address->sa_family != AF_INET && address->sa_family != AF_INET6)) {
        return false;
    }
    memcpy(&copy, address, size_of(address));
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)&copy;
        if (ntohl(v4->sin_addr.s_addr) >> 16 == 0xa9fe) {
            return false; /* 169.254/16, RFC 3927 */
        }
    } else {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&copy;
        if (IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)) {
            return false;
        }
    }
    gpul_sockaddr_format(&copy, text, NULL);
    return text[0] != '\0' && !gpul_host_is_loopback(text);
}

/* Where the route to the far end begins; connecting a datagram socket sends
 * nothing. The literals are of documentation, RFC 5737 and RFC 3849: nobody
 * has a nearer route to them. */
static void add_default(struct listening *l, const char *far)
{
    struct sockaddr_storage to, from;
    socklen_t n = sizeof(from);
    char text[GPUL_ADDRESS_BYTES_MAX + 1];
    if (gpul_sockaddr_parse(&to, far, 9, NULL) != 0) {
        return;
    }
    int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 &&
        connect(fd, (struct sockaddr *)&to,
                (socklen_t)size_of((struct sockaddr *)&to)) == 0 &&
        getsockname(fd, (struct sockaddr *)&from, &n) == 0 &&
        format(text, (struct sockaddr *)&from)) {
        listening_add(l, text);
    }
    if (fd >= 0) {
        close(fd);
    }
}

static bool is_bridge(const char *interface)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "/sys/class/net/%s/bridge", interface);
    return access(path, F_OK) == 0;
}

int ownaddr_find(struct listening *l, const char *chosen,
                 struct gpul_error *err)
{
    struct ifaddrs *all;
    if (chosen != NULL) {
        listening_add(l, chosen);
        return 0;
    }
    if (getifaddrs(&all) != 0) {
        return gpul_fail_errno(err, errno, "cannot list network interfaces");
    }
    add_default(l, "192.0.2.1");
    add_default(l, "2001:db8::1");
    for (const struct ifaddrs *at = all; at != NULL; at = at->ifa_next) {
        char text[GPUL_ADDRESS_BYTES_MAX + 1];
        bool is_up = (at->ifa_flags & IFF_UP) != 0 &&
                     (at->ifa_flags & IFF_RUNNING) != 0 &&
                     (at->ifa_flags & IFF_LOOPBACK) == 0;
        if (is_up && format(text, at->ifa_addr) && !is_bridge(at->ifa_name)) {
            listening_add(l, text);
        }
    }
    freeifaddrs(all);
    return l->count > 0
               ? 0
               : gpul_fail(err, GPUL_ENOTFOUND,
                           "no interface of this machine is up that others "
                           "could reach; name one of its addresses by "
                           "--address");
}
