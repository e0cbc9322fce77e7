/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/nics.h"

#include <dirent.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum {
    LINE_BYTES = 128,
    LOOPBACK = 772, /* ARPHRD_LOOPBACK */
    LAYERS_MAX = 4, /* a VLAN on a bond on a bridge, and room */
};

struct reader {
    const struct nics_request *in;
    struct nic *out;
    size_t count;
};

/* ---- files -------------------------------------------------------------- */

/* "": longer than any path. */
__attribute__((format(printf, 3, 4))) static void
make_path(char path[PATH_MAX], const struct reader *r, const char *format, ...)
{
    size_t used = (size_t)snprintf(path, PATH_MAX, "%s", r->in->root);
    va_list arguments;
    va_start(arguments, format);
    int n = used < PATH_MAX
                ? vsnprintf(path + used, PATH_MAX - used, format, arguments)
                : PATH_MAX;
    va_end(arguments);
    if (n < 0 || used + (size_t)n >= PATH_MAX) {
        path[0] = 0;
    }
}

/* The first line; "" where there is none. */
static const char *read_line(char line[LINE_BYTES], const char *path)
{
    FILE *f = fopen(path, "re");
    if (f == NULL || fgets(line, LINE_BYTES, f) == NULL) {
        line[0] = 0;
    }
    if (f != NULL) {
        fclose(f);
    }
    line[strcspn(line, "\n")] = 0;
    return line;
}

static int is_entry(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

/* In the order of their numbers. Returns how many, for release_list. */
static size_t list_folder(struct dirent ***entries, const char *path)
{
    int n = scandir(path, entries, is_entry, versionsort);
    if (n < 0) {
        *entries = NULL;
        return 0;
    }
    return (size_t)n;
}

static void release_list(struct dirent **entries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(entries[i]);
    }
    free(entries);
}

/* ---- what the user asked of NCCL ---------------------------------------- */

/* NULL where it is not set, or empty. */
static const char *setting(const struct reader *r, const char *name)
{
    size_t n = strlen(name);
    const char *const *environment = r->in->environment;
    for (size_t i = 0; environment != NULL && environment[i] != NULL; i++) {
        if (strncmp(environment[i], name, n) == 0 && environment[i][n] == '=' &&
            environment[i][n + 1] != 0) {
            return environment[i] + n + 1;
        }
    }
    return NULL;
}

static bool entry_matches(const char *entry, size_t bytes, bool is_exact,
                          const char *name, const char *port)
{
    const char *colon = memchr(entry, ':', bytes);
    size_t n = colon != NULL ? (size_t)(colon - entry) : bytes;
    if (colon != NULL && port[0] != 0 &&
        (bytes - n - 1 != strlen(port) ||
         strncmp(colon + 1, port, bytes - n - 1) != 0)) {
        return false;
    }
    return n > 0 && strncmp(name, entry, n) == 0 && (!is_exact || name[n] == 0);
}

/* "^" excludes, "=" wants whole names and not beginnings. */
static bool list_matches(const char *list, const char *name, const char *port)
{
    bool is_exclusion = list[0] == '^';
    list += is_exclusion;
    bool is_exact = list[0] == '=';
    list += is_exact;
    bool is_found = list[0] == 0;
    while (*list != 0 && !is_found) {
        size_t n = strcspn(list, ",");
        is_found = entry_matches(list, n, is_exact, name, port);
        list += n + (list[n] == ',');
    }
    return is_found != is_exclusion;
}

/* NCCL's own sockets were asked for. */
static bool avoids_rdma(const struct reader *r)
{
    const char *off = setting(r, "NCCL_IB_DISABLE");
    const char *net = setting(r, "NCCL_NET");
    return (off != NULL && strtol(off, NULL, 0) != 0) ||
           (net != NULL && strcasecmp(net, "Socket") == 0);
}

/* ---- RDMA --------------------------------------------------------------- */

static struct nic *add(struct reader *r, enum gpul_link kind)
{
    if (r->count == GPUL_NICS_MAX) {
        return NULL;
    }
    struct nic *nic = &r->out[r->count++];
    *nic = (struct nic){.kind = kind};
    return nic;
}

/* A container may show devices whose nodes in /dev it does not have. */
static bool can_open(const struct reader *r, const char *device)
{
    char path[PATH_MAX];
    struct dirent **verbs;
    bool is_there = false;
    make_path(path, r, "/sys/class/infiniband/%s/device/infiniband_verbs",
              device);
    size_t count = list_folder(&verbs, path);
    for (size_t i = 0; i < count; i++) {
        make_path(path, r, "/dev/infiniband/%s", verbs[i]->d_name);
        is_there |= access(path, F_OK) == 0;
    }
    release_list(verbs, count);
    return is_there;
}

/* A virtual function beside its physical one: they share the wire. */
static bool shares_port(const struct reader *r, const char *device)
{
    char path[PATH_MAX];
    make_path(path, r, "/sys/class/infiniband/%s/device/physfn/infiniband",
              device);
    return access(path, F_OK) == 0;
}

/* state is "4: ACTIVE", rate "400 Gb/sec (4X NDR)". */
static void add_port(struct reader *r, const char *device, const char *port)
{
    static const char format[] = "/sys/class/infiniband/%s/ports/%s/%s";
    char path[PATH_MAX];
    char line[LINE_BYTES];
    const char *wanted = setting(r, "NCCL_IB_HCA");
    struct nic *nic = NULL;
    if (wanted == NULL || list_matches(wanted, device, port)) {
        nic = add(r, GPUL_RDMA);
    }
    if (nic == NULL) {
        return;
    }
    bool is_first = strcmp(port, "1") == 0;
    snprintf(nic->name, sizeof(nic->name), "%.63s%s%.3s", device,
             is_first ? "" : ":", is_first ? "" : port);
    make_path(path, r, format, device, port, "state");
    nic->is_down = strncmp(read_line(line, path), "4:", 2) != 0;
    make_path(path, r, format, device, port, "rate");
    double gbits = strtod(read_line(line, path), NULL);
    bool is_rate = strstr(line, " Gb/sec") != NULL && gbits > 0;
    nic->gbits = is_rate && !nic->is_down ? gbits : 0;
}

static void add_rdma(struct reader *r)
{
    char path[PATH_MAX];
    struct dirent **devices;
    make_path(path, r, "/sys/class/infiniband");
    size_t count = list_folder(&devices, path);
    for (size_t i = 0; i < count; i++) {
        const char *device = devices[i]->d_name;
        if (!can_open(r, device) || shares_port(r, device)) {
            continue;
        }
        struct dirent **ports;
        make_path(path, r, "/sys/class/infiniband/%s/ports", device);
        size_t port_count = list_folder(&ports, path);
        for (size_t k = 0; k < port_count; k++) {
            add_port(r, device, ports[k]->d_name);
        }
        release_list(ports, port_count);
    }
    release_list(devices, count);
}

/* ---- TCP ---------------------------------------------------------------- */

static bool has_entry(const struct reader *r, const char *interface,
                      const char *entry)
{
    char path[PATH_MAX];
    make_path(path, r, "/sys/class/net/%s/%s", interface, entry);
    return path[0] != 0 && access(path, F_OK) == 0;
}

/* In megabits a second; 0 where the card says -1, or nothing. */
static double read_gbits(const struct reader *r, const char *interface)
{
    char path[PATH_MAX];
    char line[LINE_BYTES];
    make_path(path, r, "/sys/class/net/%s/speed", interface);
    long megabits = strtol(read_line(line, path), NULL, 10);
    return megabits > 0 && megabits < INT_MAX ? (double)megabits / 1e3 : 0;
}

/* The card below a virtual interface: its only lower one that is a card.
 * `name` is changed to it. False: none, or several. */
static bool descend(const struct reader *r, char name[NAME_MAX + 1])
{
    static const char prefix[] = "lower_";
    char path[PATH_MAX];
    char below[NAME_MAX + 1] = "";
    struct dirent **entries;
    bool is_bridge = has_entry(r, name, "bridge");
    size_t found = 0;
    make_path(path, r, "/sys/class/net/%s", name);
    size_t count = list_folder(&entries, path);
    for (size_t i = 0; i < count; i++) {
        const char *entry = entries[i]->d_name;
        const char *lower = entry + strlen(prefix);
        /* Ports of a bridge that lead to containers carry nothing out. */
        if (strncmp(entry, prefix, strlen(prefix)) == 0 &&
            (!is_bridge || has_entry(r, lower, "device") ||
             has_entry(r, lower, "bonding"))) {
            snprintf(below, sizeof(below), "%s", lower);
            found++;
        }
    }
    release_list(entries, count);
    memcpy(name, below, sizeof(below));
    return found == 1;
}

/* A bond tells the rate of its cards by the way in which it uses them. */
static bool is_card(const struct reader *r, const char *name)
{
    return has_entry(r, name, "device") || has_entry(r, name, "bonding");
}

static bool is_loopback(const struct reader *r, const char *interface)
{
    char path[PATH_MAX];
    char line[LINE_BYTES];
    make_path(path, r, "/sys/class/net/%s/type", interface);
    return strtol(read_line(line, path), NULL, 10) == LOOPBACK;
}

static void add_interface(struct reader *r, const char *interface)
{
    char card[NAME_MAX + 1];
    if (is_loopback(r, interface)) {
        return;
    }
    snprintf(card, sizeof(card), "%s", interface);
    bool is_real = is_card(r, card);
    for (int i = 0; i < LAYERS_MAX && !is_real; i++) {
        if (!descend(r, card)) {
            break;
        }
        is_real = is_card(r, card);
    }
    const char *name = is_real ? card : interface;
    for (size_t i = 0; i < r->count; i++) {
        if (strcmp(r->out[i].name, name) == 0) {
            return;
        }
    }
    struct nic *nic = add(r, GPUL_TCP);
    if (nic != NULL) {
        snprintf(nic->name, sizeof(nic->name), "%.67s", name);
        nic->gbits = is_real ? read_gbits(r, card) : 0;
    }
}

static void add_tcp(struct reader *r)
{
    const char *wanted = setting(r, "NCCL_SOCKET_IFNAME");
    if (wanted == NULL) {
        if (r->in->interface != NULL) {
            add_interface(r, r->in->interface);
        }
        return;
    }
    for (size_t i = 0; i < r->in->interface_count; i++) {
        if (list_matches(wanted, r->in->interfaces[i], "")) {
            add_interface(r, r->in->interfaces[i]);
        }
    }
}

size_t nics_read(struct nic out[GPUL_NICS_MAX],
                 const struct nics_request *request)
{
    struct reader r = {request, out, 0};
    if (!avoids_rdma(&r)) {
        add_rdma(&r);
    }
    for (size_t i = 0; i < r.count; i++) {
        if (!out[i].is_down) {
            return r.count;
        }
    }
    add_tcp(&r);
    return r.count;
}
