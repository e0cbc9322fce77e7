/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/unique_id.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

/* Behind the address stands an int at most, then only zeros. */
struct handle {
    uint64_t magic;
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address;
    int32_t rank_count;
};

static bool has_only_zeros_behind(const struct nccl_unique_id *id)
{
    for (size_t i = sizeof(struct handle); i < sizeof(id->internal); i++) {
        if (id->internal[i] != 0) {
            return false;
        }
    }
    return true;
}

static bool is_loopback(const struct handle *h)
{
    if (h->address.any.sa_family == AF_INET) {
        return ntohl(h->address.v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    return IN6_IS_ADDR_LOOPBACK(&h->address.v6.sin6_addr);
}

bool unique_id_place(struct unique_id_place *out,
                     const struct nccl_unique_id *id)
{
    *out = (struct unique_id_place){0};
    struct handle h;
    memcpy(&h, id->internal, sizeof(h));
    const void *bytes = NULL;
    in_port_t port = 0; /* at the same place in both */
    if (h.address.any.sa_family == AF_INET) {
        bytes = &h.address.v4.sin_addr;
        port = h.address.v4.sin_port;
    } else if (h.address.any.sa_family == AF_INET6) {
        bytes = &h.address.v6.sin6_addr;
        port = h.address.v6.sin6_port;
    }
    if (bytes == NULL || port == 0 || h.magic == 0 ||
        !has_only_zeros_behind(id) ||
        inet_ntop(h.address.any.sa_family, bytes, out->address,
                  sizeof(out->address)) == NULL) {
        return false;
    }
    out->port = ntohs(port);
    out->is_loopback = is_loopback(&h);
    return true;
}
