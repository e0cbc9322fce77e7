/* SPDX-License-Identifier: Apache-2.0
 *
 * Interfaces, cards and names: "net". Of this machine: only the files of /proc
 * and /sys are below the root.
 */
#include <errno.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/interfaces.h"
#include "worker/survey_themes.h"
#include "worker/survey_wires.h"

enum { ADDRESSES_MAX = 128, MTUS_MAX = 32, SPEEDS_MAX = 16 };

#define CARD "/sys/class/net/%s/"

/* ---- cards --------------------------------------------------------------- */

/* Cards of one rate; 0: unknown, -1: no link. */
struct speed {
    long mbits;
    unsigned count;
};

struct cards {
    struct speed speeds[SPEEDS_MAX];
    size_t speed_count;
    struct survey_list drivers;
    struct survey_list firmware;
    int socket; /* for ethtool; -1: none */
};

static void count_speed(struct cards *c, long mbits)
{
    for (size_t i = 0; i < c->speed_count; i++) {
        if (c->speeds[i].mbits == mbits) {
            c->speeds[i].count++;
            return;
        }
    }
    if (c->speed_count < SPEEDS_MAX) {
        c->speeds[c->speed_count++] = (struct speed){mbits, 1};
    }
}

static int compare_speeds(const void *a, const void *b)
{
    long x = ((const struct speed *)a)->mbits;
    long y = ((const struct speed *)b)->mbits;
    return (x < y) - (x > y);
}

/* The kernel's own number where a driver has none. */
static void add_driver(struct cards *c, const char *root, const char *card)
{
    char driver[SURVEY_LINE_BYTES], version[SURVEY_LINE_BYTES];
    survey_link(driver, root, CARD "device/driver", card);
    if (driver[0] == 0) {
        return;
    }
    survey_line(version, root, "/sys/module/%s/version", driver);
    survey_list_add(&c->drivers, "%s%s%s", driver, version[0] != 0 ? "/" : "",
                    version);
}

/* Blanks would make several words of one. */
static void join_words(char *text)
{
    for (; *text != 0; text++) {
        *text = *text == ' ' ? '_' : *text;
    }
}

/* ethtool -i; files do not tell it. */
static void add_firmware(struct cards *c, const char *card)
{
    struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
    struct ifreq request = {.ifr_data = (char *)&info};
    snprintf(request.ifr_name, sizeof(request.ifr_name), "%.15s", card);
    if (c->socket >= 0 && ioctl(c->socket, SIOCETHTOOL, &request) == 0 &&
        info.fw_version[0] != 0) {
        join_words(info.fw_version);
        survey_list_add(&c->firmware, "%.31s/%.31s", info.driver,
                        info.fw_version);
    }
}

static void look_at_card(struct cards *c, const char *root, const char *card)
{
    char line[SURVEY_LINE_BYTES];
    survey_line(line, root, CARD "operstate", card);
    bool is_down = strcmp(line, "down") == 0;
    survey_line(line, root, CARD "speed", card);
    long mbits = strtol(line, NULL, 10);
    count_speed(c, is_down ? -1 : mbits > 0 && mbits < INT32_MAX ? mbits : 0);
    add_driver(c, root, card);
    add_firmware(c, card);
}

/* Firmware of RDMA cards that have no interface of Ethernet. */
static void look_at_rdma(struct cards *c, const char *root,
                         const struct survey_names *devices)
{
    for (size_t i = 0; i < devices->count; i++) {
        char board[SURVEY_LINE_BYTES], version[SURVEY_LINE_BYTES];
        const char *device = devices->names[i];
        survey_line(version, root, "/sys/class/infiniband/%s/fw_ver", device);
        survey_line(board, root, "/sys/class/infiniband/%s/board_id", device);
        join_words(board);
        join_words(version);
        if (version[0] != 0) {
            survey_list_add(&c->firmware, "%s/%s",
                            board[0] != 0 ? board : "rdma", version);
        }
    }
}

/* "8 RDMA devices, 2 x 25 Gbit/s, 1 x no link" */
static void say_cards(struct survey *s, struct cards *c, size_t rdma)
{
    char text[512];
    int n = 0;
    text[0] = 0;
    if (rdma > 0) {
        n = snprintf(text, sizeof(text), "%zu RDMA device%s", rdma,
                     rdma == 1 ? "" : "s");
    }
    qsort(c->speeds, c->speed_count, sizeof(c->speeds[0]), compare_speeds);
    for (size_t i = 0; i < c->speed_count; i++) {
        const struct speed *speed = &c->speeds[i];
        const char *comma = n > 0 ? ", " : "";
        size_t room = sizeof(text) - (size_t)n;
        if (speed->mbits > 0) {
            n += snprintf(text + n, room, "%s%u x %g Gbit/s", comma,
                          speed->count, (double)speed->mbits / 1e3);
        } else {
            n += snprintf(text + n, room, "%s%u x %s", comma, speed->count,
                          speed->mbits < 0 ? "no link" : "unknown rate");
        }
    }
    survey_say(s, "net.cards", "%s", n > 0 ? text : "none");
}

static void survey_cards(struct survey *s, const char *root)
{
    struct cards *c = calloc(1, sizeof(*c));
    struct survey_names names, rdma;
    if (c == NULL) {
        return;
    }
    /* Names below another root are not those of this machine. */
    c->socket =
        root[0] == 0 ? socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
    survey_folder(&names, root, "/sys/class/net");
    survey_folder(&rdma, root, "/sys/class/infiniband");
    for (size_t i = 0; i < names.count; i++) {
        if (survey_exists(root, CARD "device", names.names[i])) {
            look_at_card(c, root, names.names[i]);
        }
    }
    look_at_rdma(c, root, &rdma);
    say_cards(s, c, rdma.count);
    survey_say(s, "net.drivers", "%s", survey_list_text(&c->drivers));
    survey_say(s, "net.firmware", "%s", survey_list_text(&c->firmware));
    survey_names_release(&names);
    survey_names_release(&rdma);
    if (c->socket >= 0) {
        close(c->socket);
    }
    free(c);
}

/* "bond0:eth0+eth1" */
static void say_bonds(struct survey *s, const char *root)
{
    struct survey_list bonds = {""};
    struct survey_names names;
    survey_folder(&names, root, "/sys/class/net");
    for (size_t i = 0; i < names.count; i++) {
        char line[SURVEY_LINE_BYTES];
        survey_line(line, root, CARD "bonding/slaves", names.names[i]);
        for (char *at = line; *at != 0; at++) {
            *at = *at == ' ' ? '+' : *at;
        }
        if (survey_exists(root, CARD "bonding", names.names[i])) {
            survey_list_add(&bonds, "%s:%s", names.names[i],
                            line[0] != 0 ? line : "none");
        }
    }
    survey_say(s, "net.bonds", "%s", survey_list_text(&bonds));
    survey_names_release(&names);
}

/* ---- routes -------------------------------------------------------------- */

/* proc(5), /proc/net/route: interface, destination, gateway, flags, counts,
 * metric and mask. The default route of the least metric. */
static bool find_route(char best[64], const char *text)
{
    unsigned long least = ULONG_MAX;
    for (const char *at = strchr(text, '\n'); at != NULL;
         at = strchr(at + 1, '\n')) {
        char name[64];
        unsigned long destination, mask, metric;
        if (sscanf(at, " %63s %lx %*x %*x %*d %*d %lu %lx", name, &destination,
                   &metric, &mask) == 4 &&
            destination == 0 && mask == 0 && metric < least) {
            least = metric;
            snprintf(best, 64, "%s", name);
        }
    }
    return least != ULONG_MAX;
}

/* /proc/net/ipv6_route: destination and its prefix, source and its prefix,
 * gateway, metric, counts, flags, interface; that of loopback rejects. */
static bool find_route6(char best[64], const char *text)
{
    unsigned long least = ULONG_MAX;
    for (const char *at = text; at != NULL && *at != 0;) {
        char name[64];
        unsigned long prefix, metric;
        if (sscanf(at, "%*32s %lx %*32s %*x %*32s %lx %*x %*x %*x %63s",
                   &prefix, &metric, name) == 3 &&
            prefix == 0 &&
            strncmp(at, "00000000000000000000000000000000", 32) == 0 &&
            strcmp(name, "lo") != 0 && metric < least) {
            least = metric;
            snprintf(best, 64, "%s", name);
        }
        at = strchr(at, '\n');
        at = at != NULL ? at + 1 : NULL;
    }
    return least != ULONG_MAX;
}

static void say_default(struct survey *s, const char *root)
{
    char text[SURVEY_FILE_BYTES];
    char name[64] = "none";
    int why = survey_file(text, sizeof(text), root, "/proc/net/route");
    if (why == 0 && !find_route(name, text)) {
        survey_file(text, sizeof(text), root, "/proc/net/ipv6_route");
        find_route6(name, text);
    }
    if (why != 0) {
        survey_unknown(s, "net.default", "/proc/net/route: %s", strerror(why));
    } else {
        survey_say(s, "net.default", "%s", name);
    }
}

/* ---- interfaces with addresses ------------------------------------------- */

static void say_mtu(struct survey *s, const char *root, const char *interface)
{
    char key[SURVEY_LINE_BYTES], line[SURVEY_LINE_BYTES];
    snprintf(key, sizeof(key), "net.mtu.%.16s", interface);
    if (!survey_has(s, key)) {
        survey_line(line, root, CARD "mtu", interface);
        survey_say(s, key, "%s", line);
    }
}

/* Only what the network could be dialled on counts. */
static void say_interfaces(struct survey *s, const struct survey_request *r,
                           const struct ifaddrs *all)
{
    struct gpul_interface *found =
        calloc(GPUL_INTERFACES_FOUND_MAX, sizeof(*found));
    const char *names[GPUL_INTERFACES_FOUND_MAX];
    struct survey_list matches;
    size_t kept = 0;
    if (found == NULL) {
        return;
    }
    size_t count = gpul_interfaces_read(found, r->root, all);
    for (size_t i = 0; i < count; i++) {
        names[i] = found[i].name;
        if (found[i].rejection[0] == 0 && kept < MTUS_MAX) {
            say_mtu(s, r->root, found[i].name);
            kept++;
        }
    }
    survey_match_interfaces(&matches, survey_variable(r, "NCCL_SOCKET_IFNAME"),
                            names, count);
    survey_say(s, "net.ifname_matches", "%s", matches.text);
    free(found);
}

/* Loopback and link-local networks are on many interfaces. */
static bool take_address(struct survey_address *out, const struct ifaddrs *i)
{
    if (i->ifa_addr == NULL || i->ifa_netmask == NULL ||
        (i->ifa_flags & IFF_UP) == 0 || (i->ifa_flags & IFF_LOOPBACK) != 0) {
        return false;
    }
    *out = (struct survey_address){.interface = i->ifa_name};
    if (i->ifa_addr->sa_family == AF_INET) {
        const struct sockaddr_in *a = (const void *)i->ifa_addr;
        const struct sockaddr_in *mask = (const void *)i->ifa_netmask;
        out->bits = 32;
        memcpy(out->bytes, &a->sin_addr, 4);
        out->prefix = survey_prefix((const void *)&mask->sin_addr, 32);
        return out->bytes[0] != 169 || out->bytes[1] != 254;
    }
    if (i->ifa_addr->sa_family == AF_INET6) {
        const struct sockaddr_in6 *a = (const void *)i->ifa_addr;
        const struct sockaddr_in6 *mask = (const void *)i->ifa_netmask;
        out->bits = 128;
        memcpy(out->bytes, &a->sin6_addr, 16);
        out->prefix = survey_prefix((const void *)&mask->sin6_addr, 128);
        return !IN6_IS_ADDR_LINKLOCAL(&a->sin6_addr);
    }
    return false;
}

static void say_shared_subnet(struct survey *s, const struct ifaddrs *all)
{
    struct survey_address addresses[ADDRESSES_MAX];
    char text[SURVEY_SHARED_BYTES];
    size_t count = 0;
    for (const struct ifaddrs *i = all; i != NULL && count < ADDRESSES_MAX;
         i = i->ifa_next) {
        count += take_address(&addresses[count], i);
    }
    survey_shared_subnet(text, addresses, count);
    survey_say(s, "net.shared_subnet", "%s", text);
}

void survey_net(struct survey *s, const struct survey_request *r)
{
    struct ifaddrs *all = NULL;
    say_default(s, r->root);
    survey_cards(s, r->root);
    say_bonds(s, r->root);
    if (getifaddrs(&all) != 0) {
        int why = errno;
        survey_unknown(s, "net.shared_subnet", "%s", strerror(why));
        survey_unknown(s, "net.ifname_matches", "%s", strerror(why));
        return;
    }
    say_interfaces(s, r, all);
    say_shared_subnet(s, all);
    freeifaddrs(all);
}
