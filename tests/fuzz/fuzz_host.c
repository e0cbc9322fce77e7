/* SPDX-License-Identifier: Apache-2.0
 *
 * A machine whose /proc and /sys say anything: what is read of it is within
 * its bounds and can be sent.
 *
 * Input: any number of: 1 byte (which file), 1 byte (how long), its text.
 */
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/makeparents.h"
#include "proto/limits.h"
#include "proto/text.h"
#include "tests/lib/fuzz.h"
#include "worker/cgroup.h"
#include "worker/facts.h"
#include "worker/gpuplaces.h"
#include "worker/nics.h"

enum { TEXT_BYTES = 64, PATH_BYTES = 256 };

static const char *const files[] = {
    "/proc/meminfo",
    "/proc/self/cgroup",
    "/proc/sys/kernel/random/boot_id",
    "/proc/driver/nvidia/gpus/0000:19:00.0/information",
    "/sys/fs/cgroup/cgroup.controllers",
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory.events",
    "/sys/fs/cgroup/a/memory.events",
    "/sys/fs/cgroup/memory/memory.oom_control",
    "/sys/class/kfd/kfd/topology/nodes/0/gpu_id",
    "/sys/class/net/eth0/speed",
    "/sys/class/net/eth0/operstate",
    "/sys/class/net/eth0/type",
    "/sys/class/infiniband/mlx5_0/ports/1/rate",
    "/sys/class/infiniband/mlx5_0/ports/1/state",
    "/sys/class/infiniband/mlx5_0/ports/1/link_layer",
    "/sys/class/infiniband/mlx5_0/device/infiniband_verbs/uverbs0",
    "/dev/infiniband/uverbs0",
    "/sys/bus/pci/devices/0000:19:00.0/local_cpulist",
    "/sys/bus/pci/devices/0000:19:00.0/numa_node",
    "/sys/devices/system/node/online",
    "/dev/nvidiactl",
    "/dev/nvidia0",
};
enum { FILES = sizeof(files) / sizeof(files[0]) };

static char root[TEXT_BYTES];
static bool is_there[FILES];

static const char *place(size_t i)
{
    static char path[PATH_BYTES];
    snprintf(path, sizeof(path), "%s%s", root, files[i]);
    return path;
}

static void clean_up(void)
{
    char command[TEXT_BYTES + 16];
    snprintf(command, sizeof(command), "rm -rf '%s'", root);
    (void)!system(command);
}

static void make_root(void)
{
    snprintf(root, sizeof(root), "/dev/shm/gpul-fuzz-host-XXXXXX");
    if (mkdtemp(root) == NULL) {
        snprintf(root, sizeof(root), "/tmp/gpul-fuzz-host-XXXXXX");
        FUZZ_CHECK(mkdtemp(root) != NULL);
    }
    atexit(clean_up);
    for (size_t i = 0; i < FILES; i++) {
        FUZZ_CHECK(gpul_make_parents(place(i), NULL) == 0);
    }
}

static void put(size_t i, const uint8_t *bytes, size_t n)
{
    int fd = open(place(i), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
    FUZZ_CHECK(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
    close(fd);
    is_there[i] = true;
}

static void check_facts(void)
{
    struct facts f;
    struct facts_visible visible = {.cuda = "0,GPU-1", .rocr = "1"};
    for (int k = 0; k < 2; k++) {
        FUZZ_CHECK(facts_read(&f, root, k == 0 ? NULL : &visible, NULL) == 0);
        FUZZ_CHECK(strlen(f.message.boot_id) <= GPUL_BOOT_ID_BYTES_MAX);
        FUZZ_CHECK(gpul_text_is_valid(f.message.boot_id, GPUL_TEXT_LINE));
        FUZZ_CHECK(f.device_count <= FACTS_DEVICES_MAX);
        facts_release(&f);
    }
}

static void check_nics(void)
{
    static const char *const interfaces[] = {"eth0", "lo"};
    static const char *const environment[] = {"NCCL_IB_HCA=^=mlx5_1:1", NULL};
    static struct nic nics[GPUL_NICS_MAX];
    const struct nics_request request = {
        .root = root,
        .interfaces = interfaces,
        .interface_count = 2,
        .interface = "eth0",
        .environment = environment,
    };
    size_t count = nics_read(nics, &request);
    FUZZ_CHECK(count <= GPUL_NICS_MAX);
    for (size_t i = 0; i < count; i++) {
        FUZZ_CHECK(memchr(nics[i].name, 0, sizeof(nics[i].name)) != NULL);
        FUZZ_CHECK(isfinite(nics[i].gbits) && nics[i].gbits >= 0);
    }
}

static void check_places(void)
{
    static struct gpuplaces places;
    gpuplaces_read(&places, root);
    FUZZ_CHECK(places.count <= GPU_DEVICES_MAX);
}

static void check_cgroup(void)
{
    struct cgroup_oom oom;
    cgroup_oom_open(&oom, root);
    FUZZ_CHECK(!cgroup_oom_take(&oom)); /* all that there are are counted */
    cgroup_oom_close(&oom);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (root[0] == 0) {
        make_root();
    }
    while (n >= 2) {
        size_t which = data[0] % FILES;
        size_t bytes = data[1] < n - 2 ? data[1] : n - 2;
        put(which, data + 2, bytes);
        data += 2 + bytes;
        n -= 2 + bytes;
    }
    check_facts();
    check_nics();
    check_places();
    check_cgroup();
    for (size_t i = 0; i < FILES; i++) {
        if (is_there[i]) {
            unlink(place(i));
            is_there[i] = false;
        }
    }
    return 0;
}
