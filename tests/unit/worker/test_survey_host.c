/* SPDX-License-Identifier: Apache-2.0
 *
 * System, processors, memory and limits of a machine of folders.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/worker/survey_stage.h"

/* ---- the system ---------------------------------------------------------- */

static void test_os(void **state)
{
    (void)state;
    stage_put("/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
    stage_put(
        "/etc/os-release",
        "NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 12\"\nID=debian\n");
    stage_put("/proc/sys/kernel/random/boot_id", "f00d\n");
    stage_put("/proc/uptime", "86400.55 1.0\n");
    stage_put("/proc/cpuinfo",
              "processor : 0\nflags\t\t: fpu vme hypervisor\n");
    stage_put("/sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
    stage_put("/sys/devices/system/clocksource/clocksource0/"
              "current_clocksource",
              "tsc\n");
    stage_put("/sys/kernel/mm/transparent_hugepage/enabled",
              "always [madvise] never\n");
    stage_put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
              "performance\n");
    stage_put("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor",
              "powersave\n");
    stage_put("/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor",
              "performance\n");
    stage_look(survey_os);
    stage_expect("os.kernel", "6.1.0-18-amd64");
    stage_expect("os.release", "Debian GNU/Linux 12");
    stage_expect("os.boot_id", "f00d");
    stage_expect("os.uptime", "86401");
    stage_expect("os.virtual", "Amazon EC2");
    stage_expect("os.clock_source", "tsc");
    stage_expect("os.thp", "madvise");
    stage_expect("os.governor", "performance powersave");
    stage_expect("os.container", "none");
}

/* A folder without anything: each fact says why it is missing. */
static void test_nothing(void **state)
{
    (void)state;
    stage_look(survey_os);
    stage_expect_unknown("os.kernel", "No such file");
    stage_expect_unknown("os.release", "/etc/os-release: No such file");
    stage_expect_unknown("os.uptime", "/proc/uptime");
    stage_expect_unknown("os.virtual", "/proc/cpuinfo");
    stage_expect_unknown("os.thp", "cannot be read");
    stage_expect_unknown("os.governor", "no processor");
    stage_look(survey_cpu);
    stage_expect_unknown("cpu.online", "No such file");
    stage_expect_unknown("cpu.allowed", "No such file");
    stage_look(survey_memory);
    stage_expect_unknown("memory.total", "/proc/meminfo has no MemTotal");
    stage_expect_unknown("shm.size", "/dev/shm: No such file");
    stage_look(survey_limits);
    stage_expect_unknown("limit.memlock.hard", "Max locked memory");
    stage_look(survey_cgroups);
    stage_expect_unknown("memory.limit", "/proc/self/cgroup");
}

static void test_bare_metal(void **state)
{
    (void)state;
    stage_put("/proc/cpuinfo", "processor : 0\nflags\t\t: fpu vme\n");
    stage_look(survey_os);
    stage_expect("os.virtual", "none");
    /* ARM has no such flag. */
    stage_put("/proc/cpuinfo", "processor : 0\nFeatures\t: fp asimd\n");
    stage_look(survey_os);
    stage_expect_unknown("os.virtual", "neither");
    stage_put("/sys/class/dmi/id/sys_vendor", "NVIDIA\n");
    stage_look(survey_os);
    stage_expect("os.virtual", "none");
    stage_put("/sys/class/dmi/id/sys_vendor", "QEMU\n");
    stage_look(survey_os);
    stage_expect("os.virtual", "QEMU");
}

static void test_containers(void **state)
{
    (void)state;
    stage_put("/.dockerenv", "");
    stage_look(survey_os);
    stage_expect("os.container", "docker");
    stage_put("/run/.containerenv", "");
    stage_look(survey_os);
    stage_expect("os.container", "podman");
    stage_put("/run/systemd/container", "systemd-nspawn\n");
    stage_look(survey_os);
    stage_expect("os.container", "systemd-nspawn");
    stage_put("/proc/self/cgroup", "0::/kubepods/besteffort/pod1\n");
    stage_look(survey_os);
    stage_expect("os.container", "kubernetes");
}

static void test_processors(void **state)
{
    (void)state;
    stage_put("/sys/devices/system/cpu/online", "0-62,64-127\n");
    stage_put("/sys/devices/system/node/online", "0-1\n");
    stage_put("/proc/self/status",
              "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7,16\n"
              "Mems_allowed:\t1\n");
    stage_look(survey_cpu);
    stage_expect("cpu.online", "127");
    stage_expect("cpu.numa_nodes", "2");
    stage_expect("cpu.allowed", "9");
    stage_expect("cpu.list", "0-7,16");
    stage_put("/sys/devices/system/cpu/online", "many\n");
    stage_look(survey_cpu);
    stage_expect_unknown("cpu.online", "Invalid argument");
}

/* ---- memory and limits --------------------------------------------------- */

static void test_memory(void **state)
{
    (void)state;
    stage_put("/proc/meminfo", "MemTotal:       16384 kB\n"
                               "MemFree:        1 kB\n"
                               "MemAvailable:   8192 kB\n"
                               "SwapCached:     7 kB\n"
                               "SwapTotal:      2048 kB\n"
                               "SwapFree:       1024 kB\n");
    stage_put("/dev/shm/x", "");
    stage_look(survey_memory);
    stage_expect("memory.total", "16777216");
    stage_expect("memory.available", "8388608");
    stage_expect("memory.swap_total", "2097152");
    stage_expect("memory.swap_used", "1048576");
    assert_true(strtoull(stage_value("shm.size"), NULL, 10) >=
                strtoull(stage_value("shm.free"), NULL, 10));
}

static void test_limits(void **state)
{
    (void)state;
    stage_put("/proc/self/limits",
              "Limit                     Soft Limit           Hard Limit      "
              "     Units     \n"
              "Max stack size            8388608              unlimited       "
              "     bytes     \n"
              "Max processes             96365                96365           "
              "     processes \n"
              "Max open files            1024                 1048576         "
              "     files     \n"
              "Max locked memory         65536                8388608         "
              "     bytes     \n");
    stage_look(survey_limits);
    stage_expect("limit.stack.soft", "8388608");
    stage_expect("limit.stack.hard", "unlimited");
    stage_expect("limit.nproc.soft", "96365");
    stage_expect("limit.nofile.soft", "1024");
    stage_expect("limit.nofile.hard", "1048576");
    stage_expect("limit.memlock.hard", "8388608");
}

/* ---- cgroups ------------------------------------------------------------- */

#define GROUP "/sys/fs/cgroup"

static void test_version_2(void **state)
{
    (void)state;
    stage_put("/proc/self/cgroup", "0::/a/b\n");
    stage_put(GROUP "/a/b/memory.max", "max\n");
    stage_put(GROUP "/a/memory.max", "1000000\n");
    stage_put(GROUP "/a/b/pids.max", "500\n");
    stage_put(GROUP "/a/pids.max", "600\n");
    stage_put(GROUP "/a/b/cpu.max", "max 100000\n");
    stage_put(GROUP "/a/cpu.max", "350000 100000\n");
    stage_look(survey_cgroups);
    stage_expect("memory.limit", "1000000");
    stage_expect("pids.limit", "500");
    stage_expect("cpu.quota", "3.5");
}

static void test_no_limit(void **state)
{
    (void)state;
    stage_put("/proc/self/cgroup", "0::/a\n");
    stage_look(survey_cgroups);
    stage_expect("memory.limit", "none");
    stage_put(GROUP "/a/memory.max", "max\n");
    stage_put(GROUP "/a/cpu.max", "max 100000\n");
    stage_look(survey_cgroups);
    stage_expect("memory.limit", "none");
    stage_expect("pids.limit", "none");
    stage_expect("cpu.quota", "none");
}

/* In a container with a namespace of its own the limit is at the root. */
static void test_at_the_root(void **state)
{
    (void)state;
    stage_put("/proc/self/cgroup", "0::/\n");
    stage_put(GROUP "/memory.max", "2000000\n");
    stage_look(survey_cgroups);
    stage_expect("memory.limit", "2000000");
    /* Without one, the host's path leads nowhere. */
    stage_put("/proc/self/cgroup", "0::/docker/0123\n");
    stage_look(survey_cgroups);
    stage_expect("memory.limit", "2000000");
}

static void test_version_1(void **state)
{
    (void)state;
    stage_put("/proc/self/cgroup", "9:name=systemd:/x\n"
                                   "8:pids:/p\n"
                                   "4:memory:/m/n\n"
                                   "2:cpu,cpuacct:/c\n"
                                   "0::/\n");
    stage_put(GROUP "/memory/m/n/memory.limit_in_bytes",
              "9223372036854771712\n");
    stage_put(GROUP "/memory/m/memory.limit_in_bytes", "3000000\n");
    stage_put(GROUP "/pids/p/pids.max", "max\n");
    stage_put(GROUP "/cpu/c/cpu.cfs_quota_us", "50000\n");
    stage_put(GROUP "/cpu/c/cpu.cfs_period_us", "100000\n");
    stage_look(survey_cgroups);
    stage_expect("memory.limit", "3000000");
    stage_expect("pids.limit", "none");
    stage_expect("cpu.quota", "0.5");
    stage_put(GROUP "/cpu/c/cpu.cfs_quota_us", "-1\n");
    stage_look(survey_cgroups);
    stage_expect("cpu.quota", "none");
}

#define TEST(function)                                                         \
    cmocka_unit_test_setup_teardown(function, stage_set, stage_clear)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_os),          TEST(test_nothing),    TEST(test_bare_metal),
        TEST(test_containers),  TEST(test_processors), TEST(test_memory),
        TEST(test_limits),      TEST(test_version_2),  TEST(test_no_limit),
        TEST(test_at_the_root), TEST(test_version_1),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
