/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of checks, in the order of their IDs. docs/checks.md has it for
 * people; a test holds the two to each other.
 */
#include <string.h>

#include "coordinator/checks_inside.h"

#define RULE(function) .kind = CHECK_RULE, .rule = function
#define SAME(fact) .kind = CHECK_SAME, .key = fact
#define FAMILY(beginning) .kind = CHECK_FAMILY, .key = beginning
#define GIVEN .kind = CHECK_GIVEN

static const struct check table[] = {
    {"ENV-130", "environment variable", CHECK_WARN, FAMILY("env."),
     .remedy = "set it alike on all nodes, or pass it with -x NAME",
     .source = "the agent's environment"},
    {"ENV-131", "entries of CUDA_VISIBLE_DEVICES", CHECK_WARN, GIVEN,
     .remedy = "name devices that the node has, each once", .source = "NVML"},
    {"ENV-132", "configuration file of NCCL", CHECK_WARN, FAMILY("nccl.conf."),
     .remedy = "make the file the same on all nodes, or remove it",
     .source = "/etc/nccl.conf, ~/.nccl.conf"},
    {"ENV-133", "settings of NCCL that break jobs", CHECK_WARN,
     RULE(check_variables),
     .remedy = "unset them: NCCL finds the GID index by itself since 2.21, and "
               "the other two bind it to one job",
     .source = "the agent's environment"},
    {"ENV-140", "Python interpreter", CHECK_WARN, SAME("python.path"),
     .remedy = "put the same interpreter first on PATH everywhere",
     .source = "PATH"},
    {"ENV-141", "training command", CHECK_FAIL, RULE(check_command),
     .remedy = "install it on the nodes named, or start the job in a folder "
               "that all nodes share",
     .source = "PATH"},

    {"GPU-201", "device claimed twice", CHECK_FAIL, GIVEN,
     .remedy = "give each rank a device of its own", .source = "NVML"},
    {"GPU-202", "number of GPUs", CHECK_WARN, SAME("nvidia.count"),
     .is_list = true, .detail = "nvidia.bus_ids",
     .remedy = "look for what the driver says of the missing ones (dmesg, "
               "XID), then reset or exclude the node",
     .source = "/proc/driver/nvidia, NVML"},
    {"GPU-203", "model of the GPUs", CHECK_WARN, SAME("gpu.models"),
     .remedy = "expect the pace of the slowest", .source = "NVML"},
    {"GPU-204", "memory of the GPUs", CHECK_WARN, SAME("gpu.memories"),
     .remedy = "expect the least to be the limit for all", .source = "NVML"},
    {"GPU-205", "ECC of the GPUs", CHECK_WARN, SAME("gpu.ecc"),
     .remedy = "set it alike with nvidia-smi -e and reset the GPUs",
     .source = "NVML"},
    {"GPU-206", "MIG of the GPUs", CHECK_WARN, SAME("gpu.mig"),
     .remedy = "set it alike with nvidia-smi -mig", .source = "NVML"},
    {"GPU-207", "video BIOS of the GPUs", CHECK_WARN, SAME("nvidia.vbios"),
     .remedy = "have the vendor flash the same on all",
     .source = "/proc/driver/nvidia"},
    {"GPU-220", "clocks of a GPU", CHECK_WARN, GIVEN,
     .remedy = "look at its cooling and at the power supply", .source = "NVML"},
    {"GPU-221", "temperature of a GPU", CHECK_WARN, GIVEN,
     .remedy = "look at its cooling", .source = "NVML"},
    {"GPU-231", "ECC errors of a GPU", CHECK_FAIL, GIVEN,
     .remedy = "reset the GPU, or replace it: results may be wrong",
     .source = "NVML"},
    {"GPU-232", "damaged memory of a GPU", CHECK_FAIL, GIVEN,
     .remedy = "reset the GPU; have it replaced if a row could not be remapped",
     .source = "NVML"},
    {"GPU-240", "links between the GPUs of a node", CHECK_WARN, GIVEN,
     .remedy = "look at nvidia-smi nvlink -s and at the fabric manager",
     .source = "NVML"},
    {"GPU-241", "NVLinks of a GPU", CHECK_WARN, GIVEN,
     .remedy = "look at nvidia-smi nvlink -s, then reset the GPU",
     .source = "NVML"},
    {"GPU-250", "state of a GPU", CHECK_WARN, GIVEN,
     .remedy = "end the programs that use it, or give the job other GPUs",
     .source = "NVML"},
    {"GPU-252", "compute mode of a GPU", CHECK_FAIL, GIVEN,
     .remedy = "nvidia-smi -c 0", .source = "NVML"},

    {"HOST-500", "what nodes say of themselves", CHECK_WARN, .kind = CHECK_ALL,
     .remedy = "see why nothing came from there", .source = "the survey"},
    {"HOST-501", "shared memory (/dev/shm)", CHECK_FAIL, RULE(check_shm),
     .remedy = "make it larger: docker run --shm-size=1g or --ipc=host, an "
               "emptyDir with medium Memory at /dev/shm in Kubernetes, or "
               "remount it",
     .source = "statvfs(/dev/shm)"},
    {"HOST-502", "locked memory for RDMA", CHECK_FAIL, RULE(check_memlock),
     .remedy = "set it unlimited: memlock in limits.conf, LimitMEMLOCK= of "
               "the service, or docker run --ulimit memlock=-1",
     .source = "/proc/self/limits"},
    {"HOST-503", "open files", CHECK_WARN, RULE(check_nofile),
     .remedy = "raise nofile in limits.conf, LimitNOFILE= of the service, or "
               "docker run --ulimit nofile",
     .source = "/proc/self/limits"},
    {"HOST-504", "processes and threads", CHECK_WARN, RULE(check_processes),
     .remedy = "raise nproc in limits.conf, TasksMax= of the service, or "
               "docker run --pids-limit",
     .source = "/proc/self/limits, pids.max"},
    {"HOST-505", "stack", CHECK_WARN, RULE(check_stack),
     .remedy = "raise stack in limits.conf to 8 MiB or more",
     .source = "/proc/self/limits"},
    {"HOST-506", "processors for the ranks", CHECK_WARN, RULE(check_cores),
     .remedy = "ask the scheduler for more processors, or look at the cpuset "
               "and at taskset around the agent",
     .source = "sched_getaffinity"},
    {"HOST-507", "quota of processor time", CHECK_WARN, RULE(check_quota),
     .remedy = "take the limit away (cpu.max, docker --cpus, limits.cpu): it "
               "stops all threads of a rank at once",
     .source = "cpu.max, cpu.cfs_quota_us"},
    {"HOST-508", "swap", CHECK_WARN, RULE(check_swap),
     .remedy = "see what has filled the memory, then swapoff -a",
     .source = "/proc/meminfo"},
    {"HOST-510", "host memory to GPU memory", CHECK_FAIL, RULE(check_memory),
     .remedy = "checkpoints and data loaders need host memory: shard them, or "
               "use fewer GPUs a node",
     .source = "/proc/meminfo, memory.max, NVML"},
    {"HOST-511", "host memory", CHECK_WARN, .kind = CHECK_NEAR,
     .key = "memory.total",
     .remedy = "look for memory modules that are missing or switched off "
               "(dmidecode -t memory)",
     .source = "/proc/meminfo"},
    {"HOST-512", "number of processors", CHECK_WARN, SAME("cpu.online"),
     .remedy = "look at the firmware's settings and at processors that are "
               "offline",
     .source = "/sys/devices/system/cpu/online"},
    {"HOST-513", "NUMA nodes", CHECK_WARN, SAME("cpu.numa_nodes"),
     .remedy = "set NUMA nodes per socket alike in the firmware",
     .source = "/sys/devices/system/node/online"},
    {"HOST-514", "memory limit of the container", CHECK_WARN,
     SAME("memory.limit"), .remedy = "give all nodes the same limit",
     .source = "memory.max"},
    {"HOST-520", "frequency governor", CHECK_WARN, RULE(check_governor),
     .remedy = "cpupower frequency-set -g performance",
     .source = "/sys/devices/system/cpu/cpu*/cpufreq"},
    {"HOST-521", "clock source", CHECK_WARN, RULE(check_clock_source),
     .remedy = "see in dmesg why tsc was given up, and boot with "
               "tsc=reliable if the vendor says so",
     .source = "/sys/devices/system/clocksource"},
    {"HOST-522", "transparent huge pages", CHECK_WARN, SAME("os.thp"),
     .remedy = "set it alike on all nodes",
     .source = "/sys/kernel/mm/transparent_hugepage/enabled"},
    {"HOST-530", "reading a large file of the data", CHECK_WARN,
     RULE(check_sequential),
     .remedy = "stage the data on local disks, or give the ranks a faster "
               "mount",
     .source = "reads below --data-dir"},
    {"HOST-531", "reading small files of the data", CHECK_WARN,
     RULE(check_small_files),
     .remedy = "pack the samples into large files (TFRecord, WebDataset), or "
               "stage them on local disks",
     .source = "reads below --data-dir"},
    {"HOST-532", "file system of the data", CHECK_WARN, SAME("data.filesystem"),
     .only_with = "data.path",
     .remedy = "mount the same file system on all nodes",
     .source = "/proc/self/mountinfo"},

    {"NET-101", "interface of the default route", CHECK_WARN,
     SAME("net.default"),
     .remedy = "give no one name for all nodes: gpulaunch sets "
               "NCCL_SOCKET_IFNAME on each",
     .source = "/proc/net/route"},
    {"NET-102", "interfaces that NCCL_SOCKET_IFNAME matches", CHECK_WARN,
     RULE(check_ifname),
     .remedy = "write =NAME: without the = it is the beginning of a name",
     .source = "/sys/class/net"},
    {"NET-104", "interfaces in one subnet", CHECK_WARN, RULE(check_subnet),
     .remedy = "answers may leave by the other one: give each a subnet of its "
               "own, or set arp_ignore, arp_announce and rules by source",
     .source = "getifaddrs"},
    {"NET-120", "address of its own name", CHECK_WARN, RULE(check_own_name),
     .remedy = "take the name off the line of 127.0.0.1 or 127.0.1.1 in "
               "/etc/hosts, or add it to the DNS; gpulaunch itself uses "
               "addresses only",
     .source = "getaddrinfo"},
    {"NET-121", "own name and own addresses", CHECK_WARN,
     RULE(check_own_address),
     .remedy = "the name means another machine: mend /etc/hosts or the DNS",
     .source = "getaddrinfo, getifaddrs"},
    {"NET-140", "network cards", CHECK_WARN, SAME("net.cards"),
     .remedy = "the node with the least sets the pace: look at its cables, "
               "ports and drivers",
     .source = "/sys/class/net, /sys/class/infiniband"},
    {"NET-160", "MTU of", CHECK_WARN, FAMILY("net.mtu."), .skips_absent = true,
     .remedy = "set the same MTU on all nodes and on the switches between",
     .source = "/sys/class/net"},
    {"NET-161", "bonds", CHECK_WARN, SAME("net.bonds"),
     .remedy = "look for a cable or a port that left the bond",
     .source = "/sys/class/net"},

    {"PCI-511", "PCI access control (ACS)", CHECK_WARN, RULE(check_acs),
     .remedy = "switch ACS off in the firmware, or with setpci at each boot: "
               "it sends traffic between GPUs through the root",
     .source = "PCI configuration space"},
    {"PCI-512", "IOMMU", CHECK_WARN, RULE(check_iommu),
     .remedy = "boot with iommu=pt, or switch it off in the firmware: "
               "translation slows or hangs traffic between devices",
     .source = "/sys/kernel/iommu_groups"},
    {"PCI-513", "width of PCIe links", CHECK_WARN, RULE(check_pcie_links),
     .remedy = "reseat the card, or look at its riser",
     .source = "/sys/bus/pci/devices"},

    {"RDMA-601", "GPUDirect RDMA", CHECK_WARN, SAME("rdma.gpudirect"),
     .remedy = "modprobe nvidia_peermem at each boot, or use the open kernel "
               "modules with dma-buf, alike on all nodes",
     .source = "/proc/modules, /proc/driver/nvidia/version"},
    {"RDMA-602", "RDMA port of rail", CHECK_WARN, FAMILY("rdma.rail."),
     .remedy = "make link layer, rate, subnet and GIDs of a rail the same on "
               "all nodes",
     .source = "/sys/class/infiniband"},
    {"RDMA-603", "state of RDMA ports", CHECK_WARN, RULE(check_rdma_down),
     .remedy = "look at its cable, its switch port and the subnet manager",
     .source = "/sys/class/infiniband"},
    {"RDMA-604", "GPUDirect RDMA of a node", CHECK_WARN, RULE(check_gpudirect),
     .remedy = "modprobe nvidia_peermem: without it traffic goes through host "
               "memory",
     .source = "/proc/modules, /proc/driver/nvidia/version"},
    {"RDMA-605", "losses of RDMA links", CHECK_WARN, RULE(check_flaps),
     .remedy = "change the cable or the transceiver",
     .source = "counters/link_downed"},
    {"RDMA-606", "devices that NCCL_IB_HCA matches", CHECK_WARN,
     RULE(check_hca),
     .remedy = "put = before the list: without it mlx5_1 is mlx5_10, too",
     .source = "/sys/class/infiniband"},

    {"VER-301", "NCCL", CHECK_FAIL, GIVEN,
     .remedy = "install the same everywhere, or say which with LD_LIBRARY_PATH",
     .source = "the library"},
    {"VER-302", "driver for NCCL", CHECK_FAIL, GIVEN,
     .remedy = "update the driver, or use an NCCL built for an older CUDA",
     .source = "the libraries"},
    {"VER-304", "NVIDIA driver", CHECK_WARN, SAME("nvidia.driver"),
     .remedy = "install the same on every node",
     .source = "/proc/driver/nvidia/version"},
    {"VER-305", "kernel", CHECK_WARN, SAME("os.kernel"),
     .remedy = "install the same on every node, and boot it",
     .source = "uname"},
    {"VER-306", "operating system", CHECK_WARN, SAME("os.release"),
     .remedy = "install the same on every node", .source = "/etc/os-release"},
    {"VER-307", "drivers of network cards", CHECK_WARN, SAME("net.drivers"),
     .is_list = true, .remedy = "install the same on every node",
     .source = "/sys/class/net, /sys/module"},
    {"VER-308", "firmware of network cards", CHECK_WARN, SAME("net.firmware"),
     .is_list = true, .remedy = "flash the same on every node",
     .source = "/sys/class/infiniband, ethtool"},
    {"VER-309", "library", CHECK_WARN, FAMILY("lib."),
     .remedy = "install the same everywhere, or share one environment",
     .source = "LD_LIBRARY_PATH, the active Python"},
};

const struct check *checks_table(size_t *count)
{
    *count = sizeof(table) / sizeof(table[0]);
    return table;
}

const struct check *checks_find(const char *id, size_t bytes)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (strlen(table[i].id) == bytes &&
            memcmp(table[i].id, id, bytes) == 0) {
            return &table[i];
        }
    }
    return NULL;
}
