/* SPDX-License-Identifier: Apache-2.0
 *
 * Each rule on one node, on both sides of where it turns.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/coordinator/checks_stage.h"

enum { SAID_MAX = 3 };

struct turn {
    const char *id;
    enum check_severity severity; /* NONE: it does not apply */
    struct {
        const char *key;
        const char *value; /* NULL: the fact is not there */
    } said[SAID_MAX];
    const char *words; /* of the finding, NULL: any */
};

/* Two ranks on each node. A GiB is 1073741824 bytes. */
static const struct turn turns[] = {
    /* Two ranks with two neighbours each, one channel: 38551552 bytes; four
     * channels: 154206208. */
    {"HOST-501", CHECK_PASS, {{"shm.free", "154206208"}}, NULL},
    {"HOST-501", CHECK_WARN, {{"shm.free", "154206207"}}, "147.1 MiB free"},
    {"HOST-501", CHECK_WARN, {{"shm.free", "38551552"}}, NULL},
    {"HOST-501", CHECK_FAIL, {{"shm.free", "38551551"}}, "of 256 GiB"},
    {"HOST-501",
     CHECK_FAIL,
     {{"shm.size", "67108864"}, {"shm.free", "67108864"}},
     "more than 147.1 MiB free"},
    {"HOST-501", CHECK_PASS, {{"shm.size", "67108865"}}, NULL},

    {"HOST-502", CHECK_PASS, {{"limit.memlock.hard", "unlimited"}}, NULL},
    {"HOST-502", CHECK_FAIL, {{"limit.memlock.hard", "8388608"}}, "unlimited"},
    {"HOST-502",
     CHECK_NONE,
     {{"limit.memlock.hard", "8388608"}, {"rdma.ports", "0"}},
     NULL},

    {"HOST-503", CHECK_PASS, {{"limit.nofile.hard", "4096"}}, NULL},
    {"HOST-503", CHECK_WARN, {{"limit.nofile.hard", "4095"}}, "4096"},
    {"HOST-503", CHECK_WARN, {{"limit.nofile.hard", "1024"}}, NULL},
    {"HOST-503", CHECK_FAIL, {{"limit.nofile.hard", "1023"}}, NULL},

    /* 2 x 64 processors and 2 ranks with 128 threads. */
    {"HOST-504", CHECK_PASS, {{"pids.limit", "384"}}, NULL},
    {"HOST-504", CHECK_WARN, {{"pids.limit", "383"}}, "383 (pids of its"},
    {"HOST-504", CHECK_WARN, {{"limit.nproc.soft", "383"}}, "(ulimit -u)"},

    {"HOST-505", CHECK_PASS, {{"limit.stack.soft", "8388608"}}, NULL},
    {"HOST-505", CHECK_WARN, {{"limit.stack.soft", "8388607"}}, NULL},
    {"HOST-505", CHECK_PASS, {{"limit.stack.soft", "unlimited"}}, NULL},

    {"HOST-506", CHECK_PASS, {{"cpu.allowed", "2"}}, NULL},
    {"HOST-506",
     CHECK_WARN,
     {{"cpu.allowed", "1"}},
     "1 of 64 processors for 2 ranks"},

    {"HOST-507", CHECK_PASS, {{"cpu.quota", "64"}}, NULL},
    {"HOST-507",
     CHECK_WARN,
     {{"cpu.quota", "63.5"}},
     "time of 63.5 of 64 processors"},
    {"HOST-507", CHECK_UNKNOWN, {{"cpu.quota", "lots"}}, "is no number"},

    {"HOST-508",
     CHECK_PASS,
     {{"memory.swap_used", "99"}, {"memory.total", "10000"}},
     NULL},
    {"HOST-508",
     CHECK_WARN,
     {{"memory.swap_used", "100"}, {"memory.total", "10000"}},
     NULL},

    {"HOST-520", CHECK_PASS, {{"os.governor", "schedutil"}}, NULL},
    {"HOST-520",
     CHECK_WARN,
     {{"os.governor", "performance powersave"}},
     "powersave"},
    {"HOST-520", CHECK_NONE, {{"os.governor", "none"}}, NULL},
    {"HOST-521", CHECK_PASS, {{"os.clock_source", "kvm-clock"}}, NULL},
    {"HOST-521", CHECK_WARN, {{"os.clock_source", "hpet"}}, "hpet"},

    /* Two ranks, 205 MB/s each. */
    {"HOST-530", CHECK_PASS, {{"data.sequential", "410000000"}}, NULL},
    {"HOST-530",
     CHECK_WARN,
     {{"data.sequential", "409900000"}},
     "410.0 MB/s for 2 ranks"},
    {"HOST-530",
     CHECK_UNKNOWN,
     {{"data.sequential_is_cached", "yes"}},
     "page cache"},
    {"HOST-530", CHECK_NONE, {{"data.path", NULL}}, NULL},
    {"HOST-531", CHECK_WARN, {{"data.small_files", "1000000"}}, "1.0 MB/s"},
    {"HOST-531", CHECK_PASS, {{"data.small_files", "410000000"}}, NULL},

    {"ENV-133", CHECK_PASS, {{"env.NCCL_ALGO", "Ring"}}, NULL},
    {"ENV-133",
     CHECK_WARN,
     {{"env.NCCL_COMM_ID", "10.0.0.1:5000"}},
     "NCCL_COMM_ID=10.0.0.1:5000"},
    {"ENV-133", CHECK_UNKNOWN, {{"environment.count", NULL}}, NULL},
    {"ENV-141", CHECK_PASS, {{"command.path", "/usr/bin/true"}}, NULL},
    {"ENV-141",
     CHECK_FAIL,
     {{"command.path", "missing: Permission denied"}},
     "Permission denied"},
    {"ENV-141", CHECK_NONE, {{"command.path", NULL}}, NULL},

    {"NET-102", CHECK_NONE, {{"net.ifname_matches", "unset"}}, NULL},
    {"NET-102", CHECK_PASS, {{"net.ifname_matches", "eth0"}}, NULL},
    {"NET-102",
     CHECK_WARN,
     {{"net.ifname_matches", "bond0 bond0.5"}},
     "bond0 bond0.5"},
    {"NET-102", CHECK_FAIL, {{"net.ifname_matches", "none"}}, NULL},
    {"NET-104", CHECK_PASS, {{"net.shared_subnet", "none"}}, NULL},
    {"NET-104",
     CHECK_WARN,
     {{"net.shared_subnet", "eth0 and eth1 in 10.0.0.0/24"}},
     "eth0 and eth1"},
    {"NET-120", CHECK_PASS, {{"net.resolves", "10.0.0.1 fe80::1"}}, NULL},
    {"NET-120", CHECK_WARN, {{"net.resolves", "127.0.1.1"}}, "127.0.1.1"},
    {"NET-120", CHECK_WARN, {{"net.resolves", "10.0.0.1 ::1"}}, NULL},
    {"NET-120", CHECK_WARN, {{"net.resolves", "none"}}, NULL},
    {"NET-121", CHECK_WARN, {{"net.resolves_to_itself", "10.9.9.9"}}, NULL},

    {"PCI-511",
     CHECK_WARN,
     {{"pci.acs", "on: 0000:00:01.0"}},
     "on: 0000:00:01.0"},
    {"PCI-511",
     CHECK_NONE,
     {{"pci.acs", "on: 0000:00:01.0"}, {"os.virtual", "kvm"}},
     NULL},
    {"PCI-511", CHECK_UNKNOWN, {{"os.virtual", NULL}}, "os.virtual"},
    {"PCI-512", CHECK_PASS, {{"pci.iommu", "passthrough"}}, NULL},
    {"PCI-512", CHECK_PASS, {{"pci.iommu", "off"}}, NULL},
    {"PCI-512", CHECK_WARN, {{"pci.iommu", "translated"}}, "translated"},
    {"PCI-513", CHECK_WARN, {{"pci.narrow", "0000:1b:00.0 x8 of x16"}}, NULL},

    {"RDMA-603", CHECK_WARN, {{"rdma.down", "mlx5_1/1 DOWN"}}, "mlx5_1/1"},
    {"RDMA-603",
     CHECK_NONE,
     {{"rdma.down", "none"}, {"rdma.ports", "0"}},
     NULL},
    {"RDMA-604", CHECK_WARN, {{"rdma.gpudirect", "none"}}, NULL},
    {"RDMA-604",
     CHECK_NONE,
     {{"rdma.gpudirect", "none"}, {"nvidia.count", "0"}},
     NULL},
    /* Ten days; then a morning, which counts as a day. */
    {"RDMA-605", CHECK_PASS, {{"rdma.link_downed", "50"}}, NULL},
    {"RDMA-605", CHECK_WARN, {{"rdma.link_downed", "51"}}, "51 losses"},
    {"RDMA-605",
     CHECK_PASS,
     {{"rdma.link_downed", "5"}, {"os.uptime", "3600"}},
     NULL},
    {"RDMA-605",
     CHECK_WARN,
     {{"rdma.link_downed", "6"}, {"os.uptime", "3600"}},
     NULL},
    {"RDMA-606",
     CHECK_WARN,
     {{"rdma.hca_matches", "mlx5_1 mlx5_10"}},
     "mlx5_10"},
};

static int end(void **state)
{
    (void)state;
    stage_end();
    return 0;
}

static void test_turns(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(turns) / sizeof(turns[0]); i++) {
        const struct turn *t = &turns[i];
        stage_begin(1);
        for (size_t k = 0; k < SAID_MAX && t->said[k].key != NULL; k++) {
            if (t->said[k].value != NULL) {
                stage_say(0, t->said[k].key, t->said[k].value);
            } else {
                stage_forget(0, t->said[k].key);
            }
        }
        stage_judge();
        if (t->severity == CHECK_NONE) {
            stage_expect_none(t->id);
        } else if (t->severity == CHECK_PASS) {
            stage_expect_pass(t->id);
        } else {
            stage_expect(t->id, t->severity, "n0",
                         t->words != NULL ? t->words : "");
        }
    }
}

/* One rank needs no shared memory, but a container's default is small. */
static void test_one_rank(void **state)
{
    (void)state;
    stage_begin(1);
    stage_need.node_ranks = 1;
    stage_say(0, "shm.free", "1048576");
    stage_judge();
    stage_expect_pass("HOST-501");
    stage_say(0, "shm.size", "67108864");
    stage_judge();
    stage_expect("HOST-501", CHECK_WARN, "n0", "1 MiB free of 64 MiB");
}

/* 16,384 ranks: four descriptors for each, and 1024. */
static void test_files_of_many(void **state)
{
    (void)state;
    stage_begin(1);
    stage_need.job_ranks = 16384;
    stage_say(0, "limit.nofile.hard", "66560");
    stage_judge();
    stage_expect_pass("HOST-503");
    stage_say(0, "limit.nofile.hard", "66559");
    stage_judge();
    stage_expect("HOST-503", CHECK_WARN, "n0", "66560");
}

static void expect_ratio(const char *total, const char *limit,
                         enum check_severity severity, const char *words)
{
    stage_begin(1);
    stage_say(0, "memory.total", total);
    stage_say(0, "memory.limit", limit);
    stage_judge();
    if (severity == CHECK_PASS) {
        stage_expect_pass("HOST-510");
    } else {
        stage_expect("HOST-510", severity, "n0", words);
    }
}

/* Two GPUs of 80 GiB: 1.5 times are 257698037760 bytes, and 3 % less will do.
 * In a container its limit counts. */
static void test_ratio(void **state)
{
    (void)state;
    expect_ratio("257698037760", "none", CHECK_PASS, NULL);
    expect_ratio("250192269670", "none", CHECK_PASS, NULL);
    expect_ratio("250192269660", "none", CHECK_WARN,
                 "233.0 GiB for 160 GiB of its GPUs, 1.46 times");
    expect_ratio("171798691840", "none", CHECK_WARN, "1.00 times");
    expect_ratio("166794846448", "none", CHECK_WARN, "");
    expect_ratio("166794846446", "none", CHECK_FAIL, "0.97 times");
    expect_ratio("549755813888", "166794846446", CHECK_FAIL, "0.97 times");
    stage_need.memory_ratio = 0.5;
    stage_judge();
    stage_expect_pass("HOST-510");
    stage_unknown(0, "memory.total", "permission denied");
    stage_judge();
    stage_expect("HOST-510", CHECK_UNKNOWN, "n0", "permission denied");
    stage_say(0, "gpu.memory", "none");
    stage_judge();
    stage_expect_none("HOST-510");
}

/* 3 % around the median of three. */
static void test_memory_alike(void **state)
{
    (void)state;
    stage_begin(3);
    stage_say(STAGE_ALL, "memory.total", "100000000000");
    stage_say(2, "memory.total", "97000000000");
    stage_judge();
    stage_expect_pass("HOST-511");
    stage_say(2, "memory.total", "96999999999");
    stage_judge();
    stage_expect("HOST-511", CHECK_WARN, "n2", "about 93.1 GiB, the median");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_turns, end),
        cmocka_unit_test_teardown(test_one_rank, end),
        cmocka_unit_test_teardown(test_files_of_many, end),
        cmocka_unit_test_teardown(test_ratio, end),
        cmocka_unit_test_teardown(test_memory_alike, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
