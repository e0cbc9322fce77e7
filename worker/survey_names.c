/* SPDX-License-Identifier: Apache-2.0
 *
 * What the node's own name means here: "net" again, apart, since a name
 * service may take longer than anybody waits.
 */
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/sockaddr.h"
#include "worker/survey_themes.h"

static bool is_same(const struct sockaddr *a, const struct sockaddr *b)
{
    if (a == NULL || b == NULL || a->sa_family != b->sa_family) {
        return false;
    }
    if (a->sa_family == AF_INET) {
        return ((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr ==
               ((const struct sockaddr_in *)(const void *)b)->sin_addr.s_addr;
    }
    return a->sa_family == AF_INET6 &&
           memcmp(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr,
                  &((const struct sockaddr_in6 *)(const void *)b)->sin6_addr,
                  sizeof(struct in6_addr)) == 0;
}

/* Anything in 127/8 is this machine. */
static bool is_loopback(const struct sockaddr *a)
{
    const struct sockaddr_in *in = (const void *)a;
    return a->sa_family == AF_INET && ntohl(in->sin_addr.s_addr) >> 24 == 127;
}

static bool is_own(const struct sockaddr *a, const struct ifaddrs *all)
{
    for (; all != NULL; all = all->ifa_next) {
        if (is_same(a, all->ifa_addr)) {
            return true;
        }
    }
    return is_loopback(a);
}

static void say_addresses(struct survey *s, const struct addrinfo *found,
                          const struct ifaddrs *own)
{
    struct survey_list all = {""}, strange = {""};
    for (const struct addrinfo *a = found; a != NULL; a = a->ai_next) {
        struct sockaddr_storage address = {0};
        char text[GPUL_ADDRESS_BYTES_MAX + 1];
        memcpy(&address, a->ai_addr, a->ai_addrlen);
        gpul_sockaddr_format(&address, text, NULL);
        survey_list_add(&all, "%s", text);
        if (!is_own(a->ai_addr, own)) {
            survey_list_add(&strange, "%s", text);
        }
    }
    survey_say(s, "net.resolves", "%s", survey_list_text(&all));
    survey_say(s, "net.resolves_to_itself", "%s",
               strange.text[0] != 0 ? strange.text : "yes");
}

void survey_names(struct survey *s, const struct survey_request *r)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    struct ifaddrs *own = NULL;
    char name[256] = "";
    (void)r;
    gethostname(name, sizeof(name) - 1);
    survey_say(s, "net.hostname", "%s", name);
    int rc = getaddrinfo(name, NULL, &hints, &found);
    if (rc == EAI_NONAME || rc == EAI_NODATA) {
        survey_say(s, "net.resolves", "none");
        survey_say(s, "net.resolves_to_itself", "none");
        return;
    }
    if (rc == 0 && getifaddrs(&own) != 0) {
        rc = EAI_SYSTEM;
    }
    if (rc != 0) {
        const char *why = rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc);
        survey_unknown(s, "net.resolves", "%s: %s", name, why);
        survey_unknown(s, "net.resolves_to_itself", "%s: %s", name, why);
    } else {
        say_addresses(s, found, own);
    }
    if (found != NULL) {
        freeaddrinfo(found);
    }
    if (own != NULL) {
        freeifaddrs(own);
    }
}
