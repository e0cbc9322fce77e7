/* SPDX-License-Identifier: Apache-2.0
 *
 * Stories of nodes that know their network cards: ceilings, and what is said
 * of nodes that differ. The notation is that of test_stories_gather.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/lib/story.h"

/* Nodes on hosts of their own, with two devices and two cards each. */
static void init_nodes(struct cluster *c, uint32_t count)
{
    static const char *const boots[] = {"boot0", "boot1", "boot2"};
    static const char *const addresses[] = {"10.0.0.1", "10.0.0.2", "10.0.0.3"};
    story_init_gpus(c, count, 2);
    for (uint32_t i = 0; i < count; i++) {
        c->nodes[i].boot_id = boots[i];
        c->nodes[i].address = addresses[i];
        c->nodes[i].link_gbps = 450;
        c->nodes[i].nics = 2;
        c->nodes[i].nic_gbits = 400;
    }
}

/* Two cards of 50 GB/s under two ranks on two nodes: 100 * 2 * 3 / (1 * 4). */
static void test_ceilings(void **state)
{
    (void)state;
    struct cluster c;
    init_nodes(&c, 2);
    story_expect_part(
        &c, 66, 67,
        "66 user: test passed 4/4 by nccl\n"
        "66 user:   1048576 B: 1000003 ns, algbw 1.049 busbw 1.573 GB/s\n"
        "66 user:     collective 1, slowest rank 3\n"
        "66 user:     ceiling 150.000 by RDMA, wire 0.524 GB/s\n"
        "66 user:   1048576 B: 500003 ns, algbw 2.097 busbw 2.097 GB/s\n"
        "66 user:     collective 1 within each node, slowest rank 3\n"
        "66 user:     ceiling 450.000 by NVLink, wire 0.000 GB/s\n"
        "66 self-test phase end -> running: the self-test passed\n"
        "66 all <- launch attempt 1\n"
        "66 user: launched 2/2\n");
}

/* One host with both nodes: what lies between them is not the cards. */
static void test_one_host(void **state)
{
    (void)state;
    struct cluster c;
    init_nodes(&c, 2);
    c.nodes[1].boot_id = c.nodes[0].boot_id;
    story_expect_part(
        &c, 51, 52,
        "51 user: test passed 4/4 by nccl\n"
        "51 user:   1048576 B: 1000003 ns, algbw 1.049 busbw 1.573 GB/s\n"
        "51 user:     collective 1, slowest rank 3\n"
        "51 user:   1048576 B: 500003 ns, algbw 2.097 busbw 2.097 GB/s\n"
        "51 user:     collective 1 within each node, slowest rank 3\n"
        "51 user:     ceiling 450.000 by NVLink, wire 0.000 GB/s\n"
        "51 self-test phase end -> running: the self-test passed\n"
        "51 all <- launch attempt 1\n"
        "51 user: launched 2/2\n");
}

/* A node with fewer cards, one with another model, one whose user names a
 * device that is not there: said, and the job goes on. */
static void test_unlike(void **state)
{
    (void)state;
    struct cluster c;
    init_nodes(&c, 3);
    c.nodes[0].refused = "9";
    c.nodes[1].nics = 1;
    c.nodes[2].model = "NVIDIA H100";
    c.nodes[2].link_gbps = 400;
    story_expect_part(
        &c, 22, 23,
        "22 user: facts by nccl: node0: NCCL 2.28.9 (build 8f3a, "
        "/lib/libnccl.so.2), driver for CUDA 13.0 (/lib/libcuda.so.1); 2 x "
        "NVIDIA H200; network: 2 x RDMA 400 Gbit/s\n"
        "22 user: facts by nccl: node1: NCCL 2.28.9 (build 8f3a, "
        "/lib/libnccl.so.2), driver for CUDA 13.0 (/lib/libcuda.so.1); 2 x "
        "NVIDIA H200; network: 1 x RDMA 400 Gbit/s\n"
        "22 user: facts by nccl: node2: NCCL 2.28.9 (build 8f3a, "
        "/lib/libnccl.so.2), driver for CUDA 13.0 (/lib/libcuda.so.1); 2 x "
        "NVIDIA H100; network: 2 x RDMA 400 Gbit/s\n"
        "22 user: notice: GPU-203 the models of the devices differ: node2 has "
        "NVIDIA H100, node[0-1] have NVIDIA H200; all go at the pace of the "
        "slowest\n"
        "22 user: notice: GPU-240 the links between the devices of a node "
        "differ: node2 has NVLink of 400.0 GB/s, node[0-1] have NVLink of "
        "450.0 GB/s; look at nvidia-smi nvlink -s and at the fabric manager\n"
        "22 user: notice: NET-140 the network cards differ: node1 has 1 x RDMA "
        "400 Gbit/s, node[0,2] have 2 x RDMA 400 Gbit/s; the node with the "
        "least sets the pace: look at its cables, ports and drivers\n"
        "22 user: notice: ENV-131 CUDA_VISIBLE_DEVICES of node0: \"9\" names "
        "no "
        "device there, or one that it has named before; what stands behind it "
        "is not used either\n"
        "22 self-test phase facts -> self-test phase cuda: every node can use "
        "NCCL\n"
        "22 user: testing by nccl: NCCL over 6 devices of 3 nodes\n"
        "22 node0 <- probe_begin ranks 0+2 of 6, 2 a node, ids 1\n"
        "22 node1 <- probe_begin ranks 2+2 of 6, 2 a node, ids 1\n"
        "22 node2 <- probe_begin ranks 4+2 of 6, 2 a node, ids 1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ceilings),
        cmocka_unit_test(test_one_host),
        cmocka_unit_test(test_unlike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
