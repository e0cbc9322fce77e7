/* SPDX-License-Identifier: Apache-2.0 */
#include "common/hostport.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

#include "common/units.h"

/* Find host and port in the text; both are borrowed. */
static const char *split(const char **host, size_t *host_bytes,
                         const char **port, const char *text)
{
    const char *colon = strrchr(text, ':');
    if (text[0] == '[') {
        const char *close = strchr(text, ']');
        if (close == NULL) {
            return "the closing bracket is missing";
        }
        if (close[1] != ':') {
            return "the port is missing";
        }
        *host = text + 1;
        *host_bytes = (size_t)(close - text - 1);
        *port = close + 2;
        return NULL;
    }
    if (colon == NULL) {
        return "the port is missing";
    }
    if (strchr(text, ':') != colon) {
        return "an IPv6 address goes in brackets, as in [::1]:29500";
    }
    *host = text;
    *host_bytes = (size_t)(colon - text);
    *port = colon + 1;
    return NULL;
}

/* Letters, digits and what names and literals (with their scope) have. */
static bool is_host(const char *host, size_t n)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789.-_:%";
    return n > 0 && n < GPUL_HOST_BYTES && strspn(host, allowed) >= n;
}

int gpul_hostport_parse(struct gpul_hostport *out, const char *text,
                        struct gpul_error *err)
{
    const char *host = "";
    const char *port = "";
    size_t host_bytes = 0;
    uint32_t number;
    *out = (struct gpul_hostport){0};
    const char *fault = split(&host, &host_bytes, &port, text);
    if (fault == NULL && !is_host(host, host_bytes)) {
        fault = "the host is no name and no address";
    }
    if (fault == NULL && gpul_parse_count(&number, port, 1, 65535, NULL) != 0) {
        fault = "the port must be a number from 1 to 65535";
    }
    if (fault != NULL) {
        return gpul_fail(err, GPUL_EINVAL, "\"%s\" is not HOST:PORT: %s", text,
                         fault);
    }
    memcpy(out->host, host, host_bytes);
    out->port = (uint16_t)number;
    return 0;
}

int gpul_hostport_append(struct gpul_buf *out, const char *host, uint16_t port)
{
    bool has_colon = strchr(host, ':') != NULL;
    return gpul_buf_appendf(out, "%s%s%s:%u", has_colon ? "[" : "", host,
                            has_colon ? "]" : "", (unsigned int)port);
}

bool gpul_host_is_loopback(const char *host)
{
    char literal[INET6_ADDRSTRLEN];
    size_t n = strcspn(host, "%"); /* a scope does not matter */
    struct in_addr v4;
    struct in6_addr v6;
    if (strcasecmp(host, "localhost") == 0) {
        return true;
    }
    if (n >= sizeof(literal)) {
        return false;
    }
    memcpy(literal, host, n);
    literal[n] = 0;
    if (inet_pton(AF_INET, literal, &v4) == 1) {
        return ntohl(v4.s_addr) >> 24 == 127;
    }
    if (inet_pton(AF_INET6, literal, &v6) != 1) {
        return false;
    }
    return IN6_IS_ADDR_LOOPBACK(&v6) ||
           (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
}
