/* SPDX-License-Identifier: Apache-2.0
 *
 * Source of the formats: NVIDIA's driver README ("The /proc File System
 * Interface") and Linux's Documentation/ABI/testing/sysfs-bus-pci.
 */
#include "worker/gpuplaces.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "worker/mask.h"

#define GPUS "/proc/driver/nvidia/gpus"

/* What sysfs writes into one file is at most a page. */
enum { FILE_BYTES = 4096 + 1 };

/* A small file as text; false, and "", if it cannot be read. */
__attribute__((format(printf, 2, 3))) static bool
read_text(char text[FILE_BYTES], const char *format, ...)
{
    char path[PATH_MAX];
    va_list list;
    text[0] = 0;
    va_start(list, format);
    int n = vsnprintf(path, sizeof(path), format, list);
    va_end(list);
    int fd = n < PATH_MAX ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) {
        return false;
    }
    ssize_t bytes = read(fd, text, FILE_BYTES - 1);
    text[bytes > 0 ? bytes : 0] = 0;
    close(fd);
    return bytes > 0;
}

/* The value behind "Name:" and white space, up to the end of its line. */
static void copy_value(char *out, size_t bytes, const char *text,
                       const char *name)
{
    const char *at = strstr(text, name);
    out[0] = 0;
    if (at != NULL) {
        at += strlen(name);
        at += strspn(at, " \t");
        snprintf(out, bytes, "%.*s", (int)strcspn(at, "\n"), at);
    }
}

/* A container that shows some device nodes has the GPUs of these. */
static bool has_node(const char *root, const char *minor)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/dev/nvidiactl", root);
    if (minor[0] == 0 || access(path, F_OK) != 0) {
        return true;
    }
    snprintf(path, sizeof(path), "%s/dev/nvidia%s", root, minor);
    return access(path, F_OK) == 0;
}

static void read_place(struct binding_gpu *gpu, const char *root)
{
    char text[FILE_BYTES];
    bool has_list = read_text(text, "%s/sys/bus/pci/devices/%s/local_cpulist",
                              root, gpu->bus_id) &&
                    mask_parse(gpu->cpus, STARTSPEC_CPU_WORDS, text);
    gpu->has_node = has_list &&
                    read_text(text, "%s/sys/bus/pci/devices/%s/numa_node", root,
                              gpu->bus_id) &&
                    text[0] != '-';
}

static void add_gpu(struct gpuplaces *p, const char *root, const char *bus_id)
{
    char text[FILE_BYTES];
    char minor[16];
    if (p->count == GPU_DEVICES_MAX) {
        return;
    }
    struct gpu_device *d = &p->devices[p->count];
    struct binding_gpu *gpu = &p->gpus[p->count];
    read_text(text, "%s" GPUS "/%s/information", root, bus_id);
    copy_value(minor, sizeof(minor), text, "Device Minor:");
    if (!has_node(root, minor)) {
        return;
    }
    copy_value(d->uuid, sizeof(d->uuid), text, "GPU UUID:");
    d->index = (uint32_t)p->count++;
    snprintf(d->bus_id, sizeof(d->bus_id), "%.31s", bus_id);
    snprintf(gpu->bus_id, sizeof(gpu->bus_id), "%.31s", bus_id);
    read_place(gpu, root);
}

static bool has_one_node(const char *root)
{
    char text[FILE_BYTES];
    uint64_t nodes[STARTSPEC_NODE_WORDS];
    return !read_text(text, "%s/sys/devices/system/node/online", root) ||
           !mask_parse(nodes, STARTSPEC_NODE_WORDS, text) ||
           mask_count(nodes, STARTSPEC_NODE_WORDS) < 2;
}

static int is_shown(const struct dirent *e)
{
    return e->d_name[0] != '.' && strlen(e->d_name) < GPU_BUS_ID_BYTES;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

void gpuplaces_read(struct gpuplaces *out, const char *root)
{
    char path[PATH_MAX];
    struct dirent **list = NULL;
    *out = (struct gpuplaces){.has_one_node = has_one_node(root)};
    snprintf(path, sizeof(path), "%s" GPUS, root);
    int n = scandir(path, &list, is_shown, by_name);
    for (int i = 0; i < n; i++) {
        add_gpu(out, root, list[i]->d_name);
        free(list[i]);
    }
    free(list);
}
