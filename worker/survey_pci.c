/* SPDX-License-Identifier: Apache-2.0
 *
 * What stands between GPUs and network cards: "pci". The bridges that count
 * are those above one of them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/survey_themes.h"

enum {
    /* Base classes, of the class file's three bytes. */
    CLASS_NETWORK = 0x02,
    CLASS_DISPLAY = 0x03,
    CLASS_ACCELERATOR = 0x12,

    /* The configuration space: capabilities of PCI Express begin behind what
     * conventional PCI has, each with its number and where the next one is. */
    CONFIG_BYTES = 4096,
    EXTENDED_AT = 0x100,
    CAPABILITY_ACS = 0x0d,
    ACS_CONTROL_AT = 6,
    /* Source validation, redirection of requests and of completions, upstream
     * forwarding: with any, traffic between devices below goes up first. */
    ACS_REDIRECTS = 0x1d,
};

struct pci {
    struct survey *s;
    const struct survey_request *r;
    struct survey_names devices;
    struct survey_list narrow;
    struct survey_list bridges; /* above a GPU or a card, each once */
    struct survey_list groups;  /* types of their IOMMU groups */
};

#define DEVICE "/sys/bus/pci/devices/%s/"

static unsigned long read_hex(const struct pci *p, const char *device,
                              const char *file)
{
    char line[SURVEY_LINE_BYTES];
    survey_line(line, p->r->root, DEVICE "%s", device, file);
    return strtoul(line, NULL, 16);
}

/* Is it a GPU for computing, of NVIDIA or AMD? */
static bool is_gpu(const struct pci *p, const char *device)
{
    unsigned long class = read_hex(p, device, "class") >> 16;
    unsigned long vendor = read_hex(p, device, "vendor");
    return (class == CLASS_DISPLAY || class == CLASS_ACCELERATOR) &&
           (vendor == 0x10de || vendor == 0x1002);
}

static bool is_card(const struct pci *p, const char *device)
{
    return read_hex(p, device, "class") >> 16 == CLASS_NETWORK;
}

/* ---- width --------------------------------------------------------------- */

static long read_width(const struct pci *p, const char *device,
                       const char *file)
{
    char line[SURVEY_LINE_BYTES];
    survey_line(line, p->r->root, DEVICE "%s", device, file);
    return strtol(line, NULL, 10);
}

/* The slot may have fewer lanes than the card: both must have them. */
static void look_at_width(struct pci *p, const char *device, const char *above)
{
    long now = read_width(p, device, "current_link_width");
    long own = read_width(p, device, "max_link_width");
    long slot = above[0] != 0 ? read_width(p, above, "max_link_width") : 0;
    long both = slot > 0 && slot < own ? slot : own;
    if (now > 0 && now < both) {
        survey_list_add(&p->narrow, "%s:x%ld-of-x%ld", device, now, both);
    }
}

/* ---- bridges ------------------------------------------------------------- */

/* "0000:1b:00.0" */
static bool is_address(const char *name)
{
    unsigned domain, bus, device, function;
    char rest;
    return sscanf(name, "%x:%x:%x.%x%c", &domain, &bus, &device, &function,
                  &rest) == 4;
}

/* The folders of a device's real path are the bridges above it. `above` gets
 * the nearest. */
static void look_above(struct pci *p, char above[SURVEY_LINE_BYTES],
                       const char *device)
{
    char path[PATH_MAX];
    char real[PATH_MAX];
    above[0] = 0;
    survey_path(path, p->r->root, "/sys/bus/pci/devices/%s", device);
    if (realpath(path, real) == NULL) {
        return;
    }
    char *save = NULL;
    for (char *part = strtok_r(real, "/", &save); part != NULL;
         part = strtok_r(NULL, "/", &save)) {
        if (is_address(part) && strcmp(part, device) != 0) {
            survey_list_add(&p->bridges, "%s", part);
            snprintf(above, SURVEY_LINE_BYTES, "%s", part);
        }
    }
}

static uint32_t read_word(const unsigned char *config, size_t at)
{
    return (uint32_t)config[at] | (uint32_t)config[at + 1] << 8 |
           (uint32_t)config[at + 2] << 16 | (uint32_t)config[at + 3] << 24;
}

/* Does it redirect? The list of capabilities may be a ring in bad hardware. */
static bool redirects(const unsigned char *config, size_t bytes)
{
    size_t at = EXTENDED_AT;
    for (int hops = 0; hops < 64 && at >= EXTENDED_AT; hops++) {
        if (at + ACS_CONTROL_AT + 4 > bytes) {
            return false;
        }
        uint32_t header = read_word(config, at);
        if ((header & 0xffff) == CAPABILITY_ACS) {
            return (config[at + ACS_CONTROL_AT] & ACS_REDIRECTS) != 0;
        }
        at = header >> 20;
    }
    return false;
}

/* Returns the bytes that could be read, 0: none. */
static size_t read_config(const struct pci *p, unsigned char *config,
                          const char *device)
{
    char path[PATH_MAX];
    survey_path(path, p->r->root, DEVICE "config", device);
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        return 0;
    }
    size_t n = fread(config, 1, CONFIG_BYTES, f);
    fclose(f);
    return n;
}

static void say_acs(struct pci *p)
{
    unsigned char config[CONFIG_BYTES];
    struct survey_list on = {""};
    bool is_hidden = false;
    char *save = NULL;
    for (char *bridge = strtok_r(p->bridges.text, " ", &save); bridge != NULL;
         bridge = strtok_r(NULL, " ", &save)) {
        size_t n = read_config(p, config, bridge);
        /* Others than root see the first 64 bytes; a bridge of conventional
         * PCI has 256. */
        is_hidden = is_hidden || n < EXTENDED_AT;
        if (n > EXTENDED_AT && redirects(config, n)) {
            survey_list_add(&on, "%s", bridge);
        }
    }
    if (on.text[0] != 0) {
        survey_say(p->s, "pci.acs", "on: %s", on.text);
    } else if (is_hidden) {
        survey_unknown(p->s, "pci.acs",
                       "only root may read the configuration space");
    } else {
        survey_say(p->s, "pci.acs", "off");
    }
}

/* ---- IOMMU --------------------------------------------------------------- */

static bool is_passed_through(const struct pci *p)
{
    char text[SURVEY_FILE_BYTES];
    survey_file(text, sizeof(text), p->r->root, "/proc/cmdline");
    return strstr(text, "iommu=pt") != NULL ||
           strstr(text, "iommu.passthrough=1") != NULL;
}

/* Kernels before 5.11 do not tell the type of a group. */
static void say_iommu(struct pci *p)
{
    struct survey_names groups;
    survey_folder(&groups, p->r->root, "/sys/kernel/iommu_groups");
    if (groups.count == 0) {
        survey_say(p->s, "pci.iommu", "off");
    } else if (strstr(p->groups.text, "DMA") != NULL) {
        survey_say(p->s, "pci.iommu", "translated");
    } else if (p->groups.text[0] != 0 || is_passed_through(p)) {
        survey_say(p->s, "pci.iommu", "passthrough");
    } else {
        survey_unknown(p->s, "pci.iommu",
                       "the types of its groups are not told");
    }
    survey_names_release(&groups);
}

void survey_pci(struct survey *s, const struct survey_request *r)
{
    struct pci p = {.s = s, .r = r};
    survey_folder(&p.devices, r->root, "/sys/bus/pci/devices");
    for (size_t i = 0; i < p.devices.count; i++) {
        const char *device = p.devices.names[i];
        char line[SURVEY_LINE_BYTES];
        char above[SURVEY_LINE_BYTES];
        if (!is_gpu(&p, device) && !is_card(&p, device)) {
            continue;
        }
        look_above(&p, above, device);
        look_at_width(&p, device, above);
        survey_list_add(
            &p.groups, "%s",
            survey_line(line, r->root, DEVICE "iommu_group/type", device));
    }
    survey_say(s, "pci.narrow", "%s", survey_list_text(&p.narrow));
    say_acs(&p);
    say_iommu(&p);
    survey_names_release(&p.devices);
}
