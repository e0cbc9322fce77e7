/* SPDX-License-Identifier: Apache-2.0
 *
 * RDMA devices and their ports: "rdma".
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/survey_themes.h"

enum {
    GIDS_MAX = 256,
    /* Kernels from here on hand memory of devices to RDMA cards (dma-buf). */
    DMABUF_MAJOR = 5,
    DMABUF_MINOR = 12,
};

struct rdma {
    struct survey *s;
    const struct survey_request *r;
    uint32_t ports;
    uint64_t downs; /* link_downed of all */
    bool has_no_count;
    struct survey_list not_up;
};

#define PORT "/sys/class/infiniband/%s/ports/%s/"

/* ---- a port -------------------------------------------------------------- */

/* "4: ACTIVE" */
static const char *behind_colon(const char *line)
{
    const char *colon = strstr(line, ": ");
    return colon != NULL ? colon + 2 : line;
}

static bool is_zero_gid(const char *gid)
{
    return gid[0] == 0 || strspn(gid, "0:") == strlen(gid);
}

/* Which entries of the table are RoCE v2; an address in them is the node's
 * own and is not compared. */
static void find_gids(struct survey_list *out, const struct rdma *d,
                      const char *device, const char *port)
{
    for (unsigned i = 0; i < GIDS_MAX; i++) {
        char line[SURVEY_LINE_BYTES];
        survey_line(line, d->r->root, PORT "gids/%u", device, port, i);
        if (line[0] == 0) {
            break;
        }
        bool is_used = !is_zero_gid(line);
        survey_line(line, d->r->root, PORT "gid_attrs/types/%u", device, port,
                    i);
        if (is_used && strstr(line, "RoCE v2") != NULL) {
            survey_list_add(out, "%u", i);
        }
    }
}

/* The first half of the first GID is the subnet of InfiniBand. */
static void say_rail(const struct rdma *d, const char *device, const char *port)
{
    char key[32], layer[SURVEY_LINE_BYTES], rate[SURVEY_LINE_BYTES];
    char gid[SURVEY_LINE_BYTES];
    snprintf(key, sizeof(key), "rdma.rail.%u", d->ports);
    survey_line(layer, d->r->root, PORT "link_layer", device, port);
    survey_line(rate, d->r->root, PORT "rate", device, port);
    if (layer[0] == 0 || rate[0] == 0) {
        survey_unknown(d->s, key, "%s/%s tells no link layer, or no rate",
                       device, port);
    } else if (strcmp(layer, "InfiniBand") == 0) {
        survey_line(gid, d->r->root, PORT "gids/0", device, port);
        survey_say(d->s, key, "%s, %s, subnet %.19s", layer, rate, gid);
    } else {
        struct survey_list gids = {""};
        find_gids(&gids, d, device, port);
        survey_say(d->s, key, "%s, %s, RoCE v2 at %s", layer, rate,
                   survey_list_text(&gids));
    }
}

/* A port that somebody has switched off is not missed. */
static void look_at_port(struct rdma *d, const char *device, const char *port)
{
    char state[SURVEY_LINE_BYTES], physical[SURVEY_LINE_BYTES];
    char count[SURVEY_LINE_BYTES];
    survey_line(state, d->r->root, PORT "state", device, port);
    survey_line(physical, d->r->root, PORT "phys_state", device, port);
    survey_line(count, d->r->root, PORT "counters/link_downed", device, port);
    say_rail(d, device, port);
    if (strcmp(behind_colon(state), "ACTIVE") != 0 &&
        strcmp(behind_colon(physical), "Disabled") != 0) {
        survey_list_add(&d->not_up, "%s/%s:%s", device, port,
                        state[0] != 0 ? behind_colon(state) : "unknown");
    }
    d->has_no_count = d->has_no_count || count[0] == 0;
    d->downs += strtoull(count, NULL, 10);
    d->ports++;
}

static void look_at_device(struct rdma *d, const char *device)
{
    struct survey_names ports;
    survey_folder(&ports, d->r->root, "/sys/class/infiniband/%s/ports", device);
    for (size_t i = 0; i < ports.count; i++) {
        look_at_port(d, device, ports.names[i]);
    }
    survey_names_release(&ports);
}

/* ---- GPUDirect ----------------------------------------------------------- */

static bool has_module(const char *modules, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = modules; at != NULL; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, name, n) == 0 && at[n] == ' ') {
            return true;
        }
    }
    return false;
}

/* NVIDIA's open modules export their memory as dma-buf. */
static bool has_dmabuf(const char *root)
{
    char line[SURVEY_LINE_BYTES];
    unsigned major = 0, minor = 0;
    survey_line(line, root, "/proc/sys/kernel/osrelease");
    sscanf(line, "%u.%u", &major, &minor);
    survey_line(line, root, "/proc/driver/nvidia/version");
    return (major > DMABUF_MAJOR ||
            (major == DMABUF_MAJOR && minor >= DMABUF_MINOR)) &&
           strstr(line, "Open Kernel Module") != NULL;
}

static bool has_gpu(const char *root)
{
    struct survey_names gpus;
    survey_folder(&gpus, root, "/proc/driver/nvidia/gpus");
    bool is_there = gpus.count > 0;
    survey_names_release(&gpus);
    return is_there;
}

static void say_gpudirect(struct survey *s, const char *root, uint32_t ports)
{
    enum { MODULES_BYTES = 64 << 10 };
    char text[MODULES_BYTES];
    if (ports == 0 || !has_gpu(root)) {
        survey_say(s, "rdma.gpudirect", "not used");
        return;
    }
    int why = survey_file(text, sizeof(text), root, "/proc/modules");
    if (has_module(text, "nvidia_peermem")) {
        survey_say(s, "rdma.gpudirect", "nvidia_peermem");
    } else if (has_module(text, "nv_peer_mem")) {
        survey_say(s, "rdma.gpudirect", "nv_peer_mem");
    } else if (has_dmabuf(root)) {
        survey_say(s, "rdma.gpudirect", "dma-buf");
    } else if (why != 0) {
        survey_unknown(s, "rdma.gpudirect", "/proc/modules: %s", strerror(why));
    } else {
        survey_say(s, "rdma.gpudirect", "none");
    }
}

/* ---- NCCL_IB_HCA --------------------------------------------------------- */

/* Names without "=" are beginnings of names: an entry that matches more than
 * the device that is called so is told with all that it matches. */
static void say_hca(struct survey *s, const struct survey_request *r,
                    const struct survey_names *devices)
{
    char value[SURVEY_LINE_BYTES];
    const char *setting = survey_variable(r, "NCCL_IB_HCA");
    char *save = NULL;
    if (setting == NULL || setting[0] == '^' || setting[0] == '=') {
        survey_say(s, "rdma.hca_matches",
                   setting == NULL ? "unset" : "as written");
        return;
    }
    snprintf(value, sizeof(value), "%s", setting);
    for (char *one = strtok_r(value, ",", &save); one != NULL;
         one = strtok_r(NULL, ",", &save)) {
        struct survey_list matches = {""};
        bool is_name = false;
        size_t n = strcspn(one, ":");
        for (size_t i = 0; i < devices->count; i++) {
            if (strncmp(devices->names[i], one, n) == 0) {
                survey_list_add(&matches, "%s", devices->names[i]);
                is_name = is_name || devices->names[i][n] == 0;
            }
        }
        if (is_name && strchr(matches.text, ' ') != NULL) {
            survey_say(s, "rdma.hca_matches", "%s", matches.text);
            return;
        }
    }
    survey_say(s, "rdma.hca_matches", "as written");
}

void survey_rdma(struct survey *s, const struct survey_request *r)
{
    struct rdma d = {.s = s, .r = r};
    struct survey_names devices;
    survey_folder(&devices, r->root, "/sys/class/infiniband");
    for (size_t i = 0; i < devices.count; i++) {
        look_at_device(&d, devices.names[i]);
    }
    survey_say_number(s, "rdma.ports", d.ports);
    survey_say(s, "rdma.down", "%s", survey_list_text(&d.not_up));
    if (d.has_no_count) {
        survey_unknown(s, "rdma.link_downed", "a port has no such counter");
    } else {
        survey_say_number(s, "rdma.link_downed", d.downs);
    }
    say_gpudirect(s, r->root, d.ports);
    say_hca(s, r, &devices);
    survey_names_release(&devices);
}
