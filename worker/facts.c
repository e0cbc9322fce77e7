/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/facts.h"

#include <dirent.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netdb.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/text.h"

enum { CORES_MAX = 8192, FILE_BYTES = 8192 };

/* The first bytes of a small file as text; "" if it cannot be read. */
static void read_text(char *text, size_t bytes, const char *root,
                      const char *path)
{
    char whole[PATH_MAX];
    text[0] = 0;
    if (snprintf(whole, sizeof(whole), "%s%s", root, path) >= PATH_MAX) {
        return;
    }
    int fd = open(whole, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    ssize_t n = read(fd, text, bytes - 1);
    text[n > 0 ? n : 0] = 0;
    close(fd);
}

static char *copy_line(const char *text)
{
    char *copy = strndup(text, strcspn(text, "\n"));
    if (copy != NULL) {
        gpul_text_clean_line(copy, GPUL_NAME_BYTES_MAX);
    }
    return copy;
}

static uint32_t count_cores(void)
{
    unsigned long mask[CORES_MAX / (8 * sizeof(unsigned long))] = {0};
    uint32_t cores = 0;
    if (sched_getaffinity(0, sizeof(mask), (cpu_set_t *)mask) == 0) {
        for (size_t i = 0; i < sizeof(mask) / sizeof(mask[0]); i++) {
            cores += (uint32_t)__builtin_popcountl(mask[i]);
        }
    }
    return cores > 0 ? cores : 1;
}

/* ---- memory ------------------------------------------------------------- */

static uint64_t memory_total(const char *root)
{
    char text[FILE_BYTES];
    read_text(text, sizeof(text), root, "/proc/meminfo");
    const char *line = strstr(text, "MemTotal:");
    return line != NULL ? strtoull(line + strlen("MemTotal:"), NULL, 10) * 1024
                        : 0;
}

/* memory.max holds "max" or a number of bytes; 0 stands for no limit. */
static uint64_t cgroup_limit(const char *root, const char *cgroup)
{
    char path[PATH_MAX];
    char text[64];
    if (snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.max", cgroup) >=
        PATH_MAX) {
        return 0;
    }
    read_text(text, sizeof(text), root, path);
    return strtoull(text, NULL, 10);
}

/* The tightest limit of this process's cgroup (v2) and those above it. */
static uint64_t memory_limit(const char *root)
{
    char text[FILE_BYTES];
    read_text(text, sizeof(text), root, "/proc/self/cgroup");
    char *cgroup = strstr(text, "0::/");
    if (cgroup == NULL || (cgroup != text && cgroup[-1] != '\n')) {
        return UINT64_MAX;
    }
    cgroup += strlen("0::");
    cgroup[strcspn(cgroup, "\n")] = 0;
    uint64_t tightest = UINT64_MAX;
    for (char *end; (end = strrchr(cgroup, '/')) != NULL; *end = 0) {
        uint64_t limit = end[1] != 0 ? cgroup_limit(root, cgroup) : 0;
        if (limit != 0 && limit < tightest) {
            tightest = limit;
        }
    }
    return tightest;
}

/* ---- devices ------------------------------------------------------------ */

static int add_device(struct facts *f, const char *name, size_t n)
{
    if (f->device_count == FACTS_DEVICES_MAX || n == 0) {
        return 0;
    }
    if (f->devices == NULL) {
        f->devices = calloc(FACTS_DEVICES_MAX, sizeof(*f->devices));
    }
    char *copy = f->devices != NULL ? strndup(name, n) : NULL;
    if (copy == NULL) {
        return GPUL_ENOMEM;
    }
    f->devices[f->device_count++] = copy;
    return 0;
}

/* CUDA reads its list up to the first entry that names no device: "-1". */
static int add_visible_devices(struct facts *f, const char *list)
{
    f->devices_are_restricted = true;
    int rc = 0;
    while (rc == 0 && *list != 0 && *list != '-') {
        size_t n = strcspn(list, ",");
        rc = add_device(f, list, n);
        list += n + (list[n] == ',' ? 1 : 0);
    }
    return rc;
}

static bool is_gpu_node(const char *name)
{
    static const char prefix[] = "nvidia";
    size_t n = sizeof(prefix) - 1;
    return strncmp(name, prefix, n) == 0 && name[n] != 0 &&
           strspn(name + n, "0123456789") == strlen(name + n);
}

/* Entries of a folder: all of them, or those that are GPU device nodes. */
static size_t count_entries(const char *root, const char *path, bool is_dev)
{
    char whole[PATH_MAX];
    if (snprintf(whole, sizeof(whole), "%s%s", root, path) >= PATH_MAX) {
        return 0;
    }
    DIR *dir = opendir(whole);
    size_t count = 0;
    if (dir == NULL) {
        return 0;
    }
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        count += is_dev ? is_gpu_node(e->d_name) : e->d_name[0] != '.';
    }
    closedir(dir);
    return count;
}

/* The driver lists its GPUs in /proc; a container may show the device nodes
 * of only some of them, and then those count. No control node, no driver:
 * the folder of devices need not be read. */
static size_t count_nvidia(const char *root)
{
    char control[PATH_MAX];
    snprintf(control, sizeof(control), "%s/dev/nvidiactl", root);
    bool has_nodes = access(control, F_OK) == 0;
    size_t count = has_nodes ? count_entries(root, "/dev", true) : 0;
    return count > 0 ? count
                     : count_entries(root, "/proc/driver/nvidia/gpus", false);
}

/* Entries of a folder that begin with `prefix` and whose file `name` holds
 * the line `wanted`; where that is NULL, any number but 0. */
static size_t count_marked(const char *root, const char *path,
                           const char *prefix, const char *name,
                           const char *wanted)
{
    char whole[PATH_MAX];
    size_t count = 0;
    DIR *dir = NULL;
    if (snprintf(whole, sizeof(whole), "%s%s", root, path) < PATH_MAX) {
        dir = opendir(whole);
    }
    if (dir == NULL) {
        return 0;
    }
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        char file[PATH_MAX];
        char text[32];
        if (e->d_name[0] == '.' ||
            strncmp(e->d_name, prefix, strlen(prefix)) != 0 ||
            snprintf(file, sizeof(file), "%s/%s/%s", path, e->d_name, name) >=
                PATH_MAX) {
            continue;
        }
        read_text(text, sizeof(text), root, file);
        text[strcspn(text, "\n")] = 0;
        count += wanted != NULL ? strcmp(text, wanted) == 0
                                : strtoull(text, NULL, 10) != 0;
    }
    closedir(dir);
    return count;
}

/* AMD's compute driver lists CPUs too, with the id 0, and with an id that
 * cannot be read those GPUs that a container has not. Without that driver
 * there are still the nodes for rendering. */
static size_t count_amd(const char *root)
{
    size_t count = count_marked(root, "/sys/class/kfd/kfd/topology/nodes", "",
                                "gpu_id", NULL);
    return count > 0 ? count
                     : count_marked(root, "/sys/class/drm", "renderD",
                                    "device/vendor", "0x1002");
}

static size_t count_list(const char *list)
{
    size_t count = 0;
    while (*list != 0 && *list != '-') {
        size_t n = strcspn(list, ",");
        count += n > 0;
        list += n + (list[n] == ',' ? 1 : 0);
    }
    return count;
}

static int number_devices(struct facts *f, size_t count)
{
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        char name[24];
        int n = snprintf(name, sizeof(name), "%zu", i);
        rc = add_device(f, name, (size_t)n);
    }
    return rc;
}

static int find_devices(struct facts *f, const char *root,
                        const struct facts_visible *visible)
{
    size_t count = count_nvidia(root);
    if (count == 0) {
        count = count_amd(root);
        f->devices_are_amd = count > 0;
    }
    const char *list = visible->cuda;
    if (f->devices_are_amd) {
        list = visible->hip != NULL ? visible->hip : list;
        size_t left = visible->rocr != NULL ? count_list(visible->rocr) : count;
        count = left < count ? left : count;
    }
    return list != NULL ? add_visible_devices(f, list)
                        : number_devices(f, count);
}

/* ---- interfaces --------------------------------------------------------- */

/* A number that namespaces of one host do not share. */
static uint64_t network_namespace(const char *root)
{
    char path[PATH_MAX];
    struct stat status;
    snprintf(path, sizeof(path), "%s/proc/self/ns/net", root);
    return stat(path, &status) == 0 ? (uint64_t)status.st_ino : 0;
}

static Gpul__Interface *make_interface(const struct ifaddrs *from)
{
    char address[NI_MAXHOST];
    socklen_t bytes = from->ifa_addr->sa_family == AF_INET
                          ? sizeof(struct sockaddr_in)
                          : sizeof(struct sockaddr_in6);
    if (getnameinfo(from->ifa_addr, bytes, address, sizeof(address), NULL, 0,
                    NI_NUMERICHOST) != 0 ||
        strlen(address) > GPUL_ADDRESS_BYTES_MAX) {
        return NULL;
    }
    Gpul__Interface *made = malloc(sizeof(*made));
    if (made == NULL) {
        return NULL;
    }
    gpul__interface__init(made);
    made->name = copy_line(from->ifa_name);
    made->address = strdup(address);
    made->is_loopback = (from->ifa_flags & IFF_LOOPBACK) != 0;
    if (made->name == NULL || made->address == NULL) {
        gpul__interface__free_unpacked(made, NULL);
        return NULL;
    }
    return made;
}

static bool is_usable(const struct ifaddrs *i)
{
    return i->ifa_addr != NULL && (i->ifa_flags & IFF_UP) != 0 &&
           (i->ifa_addr->sa_family == AF_INET ||
            i->ifa_addr->sa_family == AF_INET6);
}

static void find_interfaces(Gpul__Facts *message)
{
    struct ifaddrs *all = NULL;
    message->interfaces =
        calloc(GPUL_INTERFACES_MAX, sizeof(Gpul__Interface *));
    if (message->interfaces == NULL || getifaddrs(&all) != 0) {
        return;
    }
    for (struct ifaddrs *i = all; i != NULL; i = i->ifa_next) {
        if (message->n_interfaces == GPUL_INTERFACES_MAX) {
            break;
        }
        Gpul__Interface *made = is_usable(i) ? make_interface(i) : NULL;
        if (made != NULL) {
            message->interfaces[message->n_interfaces++] = made;
        }
    }
    freeifaddrs(all);
}

static void release_interfaces(Gpul__Facts *message)
{
    for (size_t i = 0; i < message->n_interfaces; i++) {
        gpul__interface__free_unpacked(message->interfaces[i], NULL);
    }
    free(message->interfaces);
    message->interfaces = NULL;
    message->n_interfaces = 0;
}

void facts_renew_interfaces(struct facts *f)
{
    release_interfaces(&f->message);
    find_interfaces(&f->message);
}

const char *facts_interface_of(const struct facts *f, const char *address)
{
    for (size_t i = 0; i < f->message.n_interfaces; i++) {
        if (strcmp(f->message.interfaces[i]->address, address) == 0) {
            return f->message.interfaces[i]->name;
        }
    }
    return NULL;
}

/* ---- all of them -------------------------------------------------------- */

int facts_read(struct facts *f, const char *root,
               const struct facts_visible *visible, struct gpul_error *err)
{
    static const struct facts_visible all = {0};
    *f = (struct facts){0};
    gpul__facts__init(&f->message);
    struct utsname name;
    uname(&name); /* cannot fail: the buffer is ours */
    char boot_id[64];
    read_text(boot_id, sizeof(boot_id), root,
              "/proc/sys/kernel/random/boot_id");
    f->message.hostname = copy_line(name.nodename);
    f->message.kernel = copy_line(name.release);
    f->message.boot_id = copy_line(boot_id);
    f->message.cores = count_cores();
    uint64_t limit = memory_limit(root);
    uint64_t total = memory_total(root);
    f->message.memory_bytes = total < limit ? total : limit;
    f->message.network_namespace = network_namespace(root);
    find_interfaces(&f->message);
    int rc = find_devices(f, root, visible != NULL ? visible : &all);
    f->message.gpus = (uint32_t)f->device_count;
    if (rc != 0 || f->message.hostname == NULL || f->message.kernel == NULL ||
        f->message.boot_id == NULL) {
        facts_release(f);
        return gpul_fail(err, GPUL_ENOMEM,
                         "out of memory for the facts of this node");
    }
    return 0;
}

int facts_read_here(struct facts *f, struct gpul_error *err)
{
    const struct facts_visible visible = {
        .cuda = getenv("CUDA_VISIBLE_DEVICES"),
        .hip = getenv("HIP_VISIBLE_DEVICES"),
        .rocr = getenv("ROCR_VISIBLE_DEVICES"),
    };
    return facts_read(f, "", &visible, err);
}

static void release_message(Gpul__Facts *message)
{
    release_interfaces(message);
    free(message->hostname);
    free(message->kernel);
    free(message->boot_id);
}

void facts_release(struct facts *f)
{
    release_message(&f->message);
    for (size_t i = 0; i < f->device_count; i++) {
        free(f->devices[i]);
    }
    free(f->devices);
    *f = (struct facts){0};
}
