/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/ownaddr.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/interfaces.h"
#include "proto/sockaddr.h"

/* Of use to others, though maybe on a bridge for virtual machines only. */
static bool is_reachable(const struct gpul_interface *all, size_t count,
                         const char *address)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(all[i].address, address) == 0) {
            return !all[i].is_link_local && !gpul_host_is_loopback(address);
        }
    }
    return false;
}

/* Where the route to the far end begins; connecting a datagram socket sends
 * nothing. The literals are of documentation, RFC 5737 and RFC 3849: nobody
 * has a nearer route to them. */
static void add_default(struct listening *l, const char *far,
                        const struct gpul_interface *all, size_t count)
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
                to.ss_family == AF_INET ? sizeof(struct sockaddr_in)
                                        : sizeof(struct sockaddr_in6)) == 0 &&
        getsockname(fd, (struct sockaddr *)&from, &n) == 0) {
        gpul_sockaddr_format(&from, text, NULL);
        if (is_reachable(all, count, text)) {
            listening_add(l, text);
        }
    }
    if (fd >= 0) {
        close(fd);
    }
}

int ownaddr_find(struct listening *l, const char *chosen,
                 struct gpul_error *err)
{
    if (chosen != NULL) {
        l->is_chosen = true;
        listening_add(l, chosen);
        return 0;
    }
    struct gpul_interface *all =
        calloc(GPUL_INTERFACES_FOUND_MAX, sizeof(*all));
    if (all == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    size_t count = gpul_interfaces_read(all, "", NULL);
    add_default(l, "192.0.2.1", all, count);
    add_default(l, "2001:db8::1", all, count);
    for (size_t i = 0; i < count; i++) {
        if (all[i].rejection[0] == '\0') {
            listening_add(l, all[i].address);
        }
    }
    free(all);
    return l->count > 0
               ? 0
               : gpul_fail(err, GPUL_ENOTFOUND,
                           "no interface of this machine is up that others "
                           "could reach; name one of its addresses by "
                           "--address");
}
