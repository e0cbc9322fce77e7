/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/interfaces.h"

#include <dirent.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/sockaddr.h"
#include "proto/text.h"

enum {
    LINE_BYTES = 128,
    /* linux/if_arp.h */
    TYPE_INFINIBAND = 32,
    TYPE_PPP = 512,
    TYPE_TUNNEL = 768, /* IPIP; 769 IPv6 in IPv6, 776 SIT, 778 GRE */
    TYPE_LOOPBACK = 772,
    TYPE_GRE = 778,
    TYPE_NONE = 65534, /* tun, WireGuard */
};

struct reader {
    const char *root;
    const char *name;
};

/* ---- files -------------------------------------------------------------- */

/* Below the interface's folder; "": longer than any path. */
__attribute__((format(printf, 3, 4))) static void
make_path(char path[PATH_MAX], const struct reader *r, const char *format, ...)
{
    int used =
        snprintf(path, PATH_MAX, "%s/sys/class/net/%s/", r->root, r->name);
    va_list arguments;
    va_start(arguments, format);
    int n = used < PATH_MAX ? vsnprintf(path + used, (size_t)(PATH_MAX - used),
                                        format, arguments)
                            : PATH_MAX;
    va_end(arguments);
    if (n < 0 || used + n >= PATH_MAX) {
        path[0] = 0;
    }
}

static bool has_entry(const struct reader *r, const char *entry)
{
    char path[PATH_MAX];
    make_path(path, r, "%s", entry);
    return path[0] != 0 && access(path, F_OK) == 0;
}

/* The number on the first line; -1 where there is none. */
static long read_number(const struct reader *r, const char *entry)
{
    char path[PATH_MAX];
    char line[LINE_BYTES] = "";
    make_path(path, r, "%s", entry);
    FILE *f = fopen(path, "re");
    if (f == NULL || fgets(line, sizeof(line), f) == NULL) {
        line[0] = 0;
    }
    if (f != NULL) {
        fclose(f);
    }
    char *end;
    long value = strtol(line, &end, 10);
    return end != line ? value : -1;
}

/* Names of entries with this beginning, one after another: the first call has
 * *dir NULL. NULL after the last. */
static const char *next_entry(DIR **dir, const struct reader *r,
                              const char *folder, const char *prefix)
{
    char path[PATH_MAX];
    if (*dir == NULL) {
        make_path(path, r, "%s", folder);
        *dir = opendir(path);
    }
    for (struct dirent *e; *dir != NULL && (e = readdir(*dir)) != NULL;) {
        if (e->d_name[0] != '.' &&
            strncmp(e->d_name, prefix, strlen(prefix)) == 0) {
            return e->d_name;
        }
    }
    if (*dir != NULL) {
        closedir(*dir);
        *dir = NULL;
    }
    return NULL;
}

static bool has_lower(const struct reader *r)
{
    DIR *dir = NULL;
    bool is_there = next_entry(&dir, r, "", "lower_") != NULL;
    if (dir != NULL) {
        closedir(dir);
    }
    return is_there;
}

/* ---- what it is ---------------------------------------------------------- */

/* A card, a bond of cards, or anything on top of one. */
static bool is_on_card(const struct reader *r)
{
    return has_entry(r, "device") || has_entry(r, "bonding") || has_lower(r);
}

static bool has_card_port(const struct reader *r)
{
    DIR *dir = NULL;
    bool is_there = false;
    const char *port;
    while ((port = next_entry(&dir, r, "brif", "")) != NULL) {
        const struct reader below = {.root = r->root, .name = port};
        is_there = is_there || is_on_card(&below);
    }
    return is_there;
}

static bool is_tunnel(long type)
{
    return type == TYPE_PPP || type == TYPE_NONE ||
           (type >= TYPE_TUNNEL && type <= TYPE_GRE && type != TYPE_LOOPBACK);
}

static bool is_veth(const struct reader *r)
{
    return read_number(r, "iflink") != read_number(r, "ifindex") &&
           !has_lower(r);
}

static const char *kind_of(const struct reader *r, long type)
{
    static const struct {
        const char *entry;
        const char *kind;
    } entries[] = {
        {"bridge", "bridge"},     {"bonding", "bond"},
        {"tun_flags", "tun"},     {"wireless", "wireless"},
        {"phy80211", "wireless"}, {"device", "ethernet"},
    };
    if (type == TYPE_LOOPBACK) {
        return "loopback";
    }
    if (type == TYPE_INFINIBAND) {
        return "infiniband";
    }
    if (is_tunnel(type)) {
        return type == TYPE_PPP ? "ppp" : "tunnel";
    }
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        if (has_entry(r, entries[i].entry)) {
            return entries[i].kind;
        }
    }
    return has_lower(r) ? "vlan" : is_veth(r) ? "veth" : "virtual";
}

/* RoCE cards have both; so has what lies on top of one. */
static bool is_rdma(const struct reader *r, long type)
{
    DIR *dir = NULL;
    bool is_there =
        type == TYPE_INFINIBAND || has_entry(r, "device/infiniband");
    const char *lower;
    while ((lower = next_entry(&dir, r, "", "lower_")) != NULL) {
        const struct reader below = {.root = r->root,
                                     .name = lower + strlen("lower_")};
        is_there = is_there || has_entry(&below, "device/infiniband");
    }
    return is_there;
}

/* Virtual interfaces make their rates up. */
static uint32_t rate_of(const struct reader *r)
{
    long mbits = is_on_card(r) ? read_number(r, "speed") : 0;
    return mbits > 0 && mbits < INT_MAX ? (uint32_t)mbits : 0;
}

/* ---- which may do -------------------------------------------------------- */

static bool is_link_local(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, address, sizeof(in));
        return ntohl(in.sin_addr.s_addr) >> 16 == 0xa9fe; /* 169.254 */
    }
    struct sockaddr_in6 in6;
    memcpy(&in6, address, sizeof(in6));
    return IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr);
}

/* "": it may do. */
static const char *reason_against(const struct reader *r, unsigned flags,
                                  long type)
{
    if ((flags & IFF_LOOPBACK) != 0 || type == TYPE_LOOPBACK) {
        return "loopback";
    }
    if ((flags & IFF_UP) == 0) {
        return "down";
    }
    if (has_entry(r, "bridge") && !has_card_port(r)) {
        return "a bridge without a port to the network";
    }
    if (has_entry(r, "brport") && !is_on_card(r)) {
        return "a port of a bridge, the host's end of a container";
    }
    return (flags & IFF_RUNNING) == 0 ? "no carrier" : "";
}

static bool describe(struct gpul_interface *out, const char *root,
                     const struct ifaddrs *from)
{
    struct sockaddr_storage address = {0};
    const struct reader r = {.root = root, .name = from->ifa_name};
    int family = from->ifa_addr == NULL ? 0 : from->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) {
        return false;
    }
    memcpy(&address, from->ifa_addr,
           family == AF_INET ? sizeof(struct sockaddr_in)
                             : sizeof(struct sockaddr_in6));
    long type = read_number(&r, "type");
    *out = (struct gpul_interface){
        .kind = kind_of(&r, type),
        .mbits = rate_of(&r),
        .is_rdma = is_rdma(&r, type),
        .is_tunnel = is_tunnel(type),
        .is_link_local = is_link_local(from->ifa_addr),
    };
    snprintf(out->name, sizeof(out->name), "%s", from->ifa_name);
    gpul_text_clean_line(out->name, GPUL_INTERFACE_BYTES_MAX);
    gpul_sockaddr_format(&address, out->address, NULL);
    const char *why = reason_against(&r, from->ifa_flags, type);
    snprintf(out->rejection, sizeof(out->rejection), "%s",
             why[0] == 0 && out->is_link_local ? "a link-local address" : why);
    return out->address[0] != 0;
}

/* Every interface has one. They are worth a word where there is nothing else.
 */
static size_t drop_link_local(struct gpul_interface *all, size_t count)
{
    bool has_other = false;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        has_other = has_other || (!all[i].is_link_local &&
                                  strcmp(all[i].rejection, "loopback") != 0);
    }
    for (size_t i = 0; i < count; i++) {
        if (!has_other || !all[i].is_link_local) {
            all[kept++] = all[i];
        }
    }
    return kept;
}

size_t
gpul_interfaces_read(struct gpul_interface out[GPUL_INTERFACES_FOUND_MAX],
                     const char *root, const struct ifaddrs *all)
{
    struct ifaddrs *own = NULL;
    size_t count = 0;
    size_t counts[2] = {0, 0}; /* candidates, others */
    if (all == NULL && getifaddrs(&own) == 0) {
        all = own;
    }
    for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next) {
        struct gpul_interface one;
        if (!describe(&one, root, i)) {
            continue;
        }
        size_t *of_its_kind = &counts[one.rejection[0] != 0];
        if (*of_its_kind < GPUL_INTERFACES_FOUND_MAX / 2) {
            ++*of_its_kind;
            out[count++] = one;
        }
    }
    if (own != NULL) {
        freeifaddrs(own);
    }
    return drop_link_local(out, count);
}
