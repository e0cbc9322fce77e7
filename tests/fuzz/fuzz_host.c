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
#include "worker/survey_themes.h"

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
    "/etc/os-release",
    "/proc/cmdline",
    "/proc/cpuinfo",
    "/proc/driver/nvidia/version",
    "/proc/modules",
    "/proc/net/ipv6_route",
    "/proc/net/route",
    "/proc/self/limits",
    "/proc/self/status",
    "/proc/sys/kernel/osrelease",
    "/proc/uptime",
    "/sys/bus/pci/devices/0000:19:00.0/class",
    "/sys/bus/pci/devices/0000:19:00.0/config",
    "/sys/bus/pci/devices/0000:19:00.0/current_link_width",
    "/sys/bus/pci/devices/0000:19:00.0/iommu_group/type",
    "/sys/bus/pci/devices/0000:19:00.0/max_link_width",
    "/sys/class/infiniband/mlx5_0/fw_ver",
    "/sys/class/infiniband/mlx5_0/ports/1/counters/link_downed",
    "/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/0",
    "/sys/class/infiniband/mlx5_0/ports/1/gids/0",
    "/sys/class/infiniband/mlx5_0/ports/1/phys_state",
    "/sys/class/net/bond0/bonding/slaves",
    "/sys/class/net/eth0/device/vendor",
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "/sys/devices/system/cpu/online",
    "/sys/fs/cgroup/cpu.max",
    "/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us",
    "/sys/fs/cgroup/pids.max",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/etc/nccl.conf",
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

static void check_survey(void)
{
    static void (*const themes[])(struct survey *,
                                  const struct survey_request *) = {
        survey_os,      survey_cpu,         survey_memory, survey_limits,
        survey_cgroups, survey_pci,         survey_nvidia, survey_rdma,
        survey_net,     survey_environment,
    };
    static const char *const environment[] = {"NCCL_IB_HCA=mlx5",
                                              "NCCL_SOCKET_IFNAME=e,lo", NULL};
    const struct survey_request request = {
        .root = root, .environment = environment, .salt = "job"};
    struct survey s = {0};
    for (size_t i = 0; i < sizeof(themes) / sizeof(themes[0]); i++) {
        themes[i](&s, &request);
    }
    FUZZ_CHECK(!s.is_short && s.message.n_facts <= GPUL_FACTS_MAX);
    FUZZ_CHECK(gpul__survey__get_packed_size(&s.message) <=
               GPUL_SURVEY_BYTES_MAX);
    for (size_t i = 0; i < s.message.n_facts; i++) {
        const Gpul__Fact *f = s.message.facts[i];
        FUZZ_CHECK(gpul_text_is_valid(f->key, GPUL_TEXT_NAME));
        FUZZ_CHECK(gpul_text_is_valid(f->value, GPUL_TEXT_LINE));
        FUZZ_CHECK(gpul_text_is_valid(f->unknown, GPUL_TEXT_LINE));
        FUZZ_CHECK((f->value[0] == 0) != (f->unknown[0] == 0));
        FUZZ_CHECK(strlen(f->value) <= GPUL_FACT_VALUE_BYTES_MAX);
        FUZZ_CHECK(strlen(f->unknown) <= GPUL_FACT_UNKNOWN_BYTES_MAX);
    }
    survey_release(&s);
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
    check_survey();
    for (size_t i = 0; i < FILES; i++) {
        if (is_there[i]) {
            unlink(place(i));
            is_there[i] = false;
        }
    }
    return 0;
}
