/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/sockaddr.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "proto/limits.h"

int gpul_sockaddr_parse(struct sockaddr_storage *out, const char *literal,
                        uint16_t port, struct gpul_error *err)
{
    if (uv_ip4_addr(literal, port, (struct sockaddr_in *)out) == 0 ||
        uv_ip6_addr(literal, port, (struct sockaddr_in6 *)out) == 0) {
        return 0;
    }
    return gpul_fail(err, GPUL_EINVAL, "%s is not an address", literal);
}

/* A peer that came over IPv4 to an IPv6 listener is an IPv4 peer. */
static struct sockaddr_storage unmapped(const struct sockaddr_storage *address)
{
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
    if (address->ss_family != AF_INET6 ||
        !IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
        return *address;
    }
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = v6->sin6_port};
    memcpy(&v4.sin_addr, &v6->sin6_addr.s6_addr[12], sizeof(v4.sin_addr));
    struct sockaddr_storage out = {0};
    memcpy(&out, &v4, sizeof(v4));
    return out;
}

void gpul_sockaddr_format(const struct sockaddr_storage *address, char *text,
                          uint16_t *port)
{
    char service[8]; /* five digits */
    struct sockaddr_storage ss = unmapped(address);
    socklen_t n = ss.ss_family == AF_INET ? sizeof(struct sockaddr_in)
                                          : sizeof(struct sockaddr_in6);
    bool is_known = ss.ss_family == AF_INET || ss.ss_family == AF_INET6;
    if (!is_known ||
        getnameinfo((const struct sockaddr *)&ss, n, text,
                    GPUL_ADDRESS_BYTES_MAX + 1, service, sizeof(service),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
        text[0] = 0;
        service[0] = 0;
    }
    if (port != NULL) {
        *port = (uint16_t)strtoul(service, NULL, 10);
    }
}
