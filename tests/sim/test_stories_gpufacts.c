/* SPDX-License-Identifier: Apache-2.0
 *
 * Stories of what the scouts find, and of what nobody may send. The notation is
 * that of test_stories_gather.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coordinator/probes.h"
#include "coordinator/text.h"
#include "tests/lib/story.h"

/* NCCL was asked for and a node cannot: 20, where and why. */
static void test_unusable(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    c.nodes[1].scout_error = "libnccl.so.2 was not found";
    story_expect(&c, 7,
                 "7 user: facts by nccl: node0: NCCL 2.28.9 (build 8f3a, "
                 "/lib/libnccl.so.2), driver for CUDA 13.0 "
                 "(/lib/libcuda.so.1); 2 x NVIDIA H200\n"
                 "7 user: facts by nccl: node1: driver for CUDA 13.0 "
                 "(/lib/libcuda.so.1); 2 x NVIDIA H200\n"
                 "7 self-test phase facts -> draining: self-test phase facts: "
                 "NCCL cannot be used on node1: libnccl.so.2 was not found\n"
                 "7 user: stopping: self-test phase facts: NCCL cannot be used "
                 "on node1: libnccl.so.2 was not found\n"
                 "7 all <- stop signal 15 grace 30000\n"
                 "14 draining -> done: exit code 20, self-test phase facts: "
                 "NCCL cannot be used on node1: libnccl.so.2 was not found\n"
                 "14 user: end 20 self_test_failed: self-test phase facts: "
                 "NCCL cannot be used on node1: libnccl.so.2 was not found\n"
                 "14 all <- finish, logs stay\n"
                 "16 done -> over: every node has left\n"
                 "16 finish 20\n");
}

/* A scout that finds no device. */
static void test_no_device(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    c.nodes[0].gpus = 0;
    c.nodes[1].gpus = 0;
    story_expect(
        &c, 7,
        "7 user: facts by nccl: node[0-1]: NCCL 2.28.9 (build 8f3a, "
        "/lib/libnccl.so.2), driver for CUDA 13.0 (/lib/libcuda.so.1)\n"
        "7 self-test phase facts -> draining: self-test phase facts: NCCL "
        "cannot be used on node[0-1]: no device is there\n"
        "7 user: stopping: self-test phase facts: NCCL cannot be used on "
        "node[0-1]: no device is there\n"
        "7 all <- stop signal 15 grace 30000\n"
        "14 draining -> done: exit code 20, self-test phase facts: NCCL cannot "
        "be used on node[0-1]: no device is there\n"
        "14 user: end 20 self_test_failed: self-test phase facts: NCCL cannot "
        "be used on node[0-1]: no device is there\n"
        "14 all <- finish, logs stay\n"
        "16 done -> over: every node has left\n"
        "16 finish 20\n");
}

/* A driver older than what NCCL was built for. */
static void test_old_driver(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    c.nodes[1].driver_version = 12040;
    c.nodes[0].nccl_version = "2.28.9+cuda13.0";
    c.nodes[1].nccl_version = "2.28.9+cuda13.0";
    story_expect(&c, 7,
                 "7 user: facts by nccl: node0: NCCL 2.28.9+cuda13.0 (build "
                 "8f3a, /lib/libnccl.so.2), driver for CUDA 13.0 "
                 "(/lib/libcuda.so.1); 2 x NVIDIA H200\n"
                 "7 user: facts by nccl: node1: NCCL 2.28.9+cuda13.0 (build "
                 "8f3a, /lib/libnccl.so.2), driver for CUDA 12.4 "
                 "(/lib/libcuda.so.1); 2 x NVIDIA H200\n"
                 "7 self-test phase facts -> draining: self-test phase facts: "
                 "NCCL cannot be used on node1: VER-302 NCCL 2.28.9+cuda13.0 "
                 "needs a driver for CUDA 13 and this one is for CUDA 12.4; "
                 "update the driver, or use an NCCL built for an older CUDA\n"
                 "7 user: stopping: self-test phase facts: NCCL cannot be used "
                 "on node1: VER-302 NCCL 2.28.9+cuda13.0 needs a driver for "
                 "CUDA 13 and this one is for CUDA 12.4; update the driver, or "
                 "use an NCCL built for an older CUDA\n"
                 "7 all <- stop signal 15 grace 30000\n"
                 "14 draining -> done: exit code 20, self-test phase facts: "
                 "NCCL cannot be used on node1: VER-302 NCCL 2.28.9+cuda13.0 "
                 "needs a driver for CUDA 13 and this one is for CUDA 12.4; "
                 "update the driver, or use an NCCL built for an older CUDA\n"
                 "14 user: end 20 self_test_failed: self-test phase facts: "
                 "NCCL cannot be used on node1: VER-302 NCCL 2.28.9+cuda13.0 "
                 "needs a driver for CUDA 13 and this one is for CUDA 12.4; "
                 "update the driver, or use an NCCL built for an older CUDA\n"
                 "14 all <- finish, logs stay\n"
                 "16 done -> over: every node has left\n"
                 "16 finish 20\n");
}

/* The minority is named first. */
static void test_versions(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 3, 2);
    c.nodes[2].nccl_version = "2.27.3";
    story_expect(
        &c, 7,
        "7 user: facts by nccl: node[0-1]: NCCL 2.28.9 (build 8f3a, "
        "/lib/libnccl.so.2), driver for CUDA 13.0 (/lib/libcuda.so.1); 2 x "
        "NVIDIA H200\n"
        "7 user: facts by nccl: node2: NCCL 2.27.3 (build 8f3a, "
        "/lib/libnccl.so.2), driver for CUDA 13.0 (/lib/libcuda.so.1); 2 x "
        "NVIDIA H200\n"
        "7 self-test phase facts -> draining: self-test phase facts: VER-301 "
        "the versions of NCCL differ: node2 has 2.27.3, node[0-1] have 2.28.9; "
        "install the same on every node, or name it with --nccl-lib\n"
        "7 user: stopping: self-test phase facts: VER-301 the versions of NCCL "
        "differ: node2 has 2.27.3, node[0-1] have 2.28.9; install the same on "
        "every node, or name it with --nccl-lib\n"
        "7 all <- stop signal 15 grace 30000\n"
        "14 draining -> done: exit code 20, self-test phase facts: VER-301 the "
        "versions of NCCL differ: node2 has 2.27.3, node[0-1] have 2.28.9; "
        "install the same on every node, or name it with --nccl-lib\n"
        "14 user: end 20 self_test_failed: self-test phase facts: VER-301 the "
        "versions of NCCL differ: node2 has 2.27.3, node[0-1] have 2.28.9; "
        "install the same on every node, or name it with --nccl-lib\n"
        "14 all <- finish, logs stay\n"
        "16 done -> over: every node has left\n"
        "16 finish 20\n");
}

/* A device that two nodes claim. */
static void test_twin(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    c.nodes[1].has_twin = true;
    story_expect(&c, 7,
                 "7 user: facts by nccl: node[0-1]: NCCL 2.28.9 (build 8f3a, "
                 "/lib/libnccl.so.2), driver for CUDA 13.0 "
                 "(/lib/libcuda.so.1); 2 x NVIDIA H200\n"
                 "7 self-test phase facts -> draining: self-test phase facts: "
                 "GPU-201 rank 0 (node node0, its device 0) and rank 2 (node "
                 "node1, its device 0) have the same device GPU-0-0; give each "
                 "a device of its own, with CUDA_VISIBLE_DEVICES for example\n"
                 "7 user: stopping: self-test phase facts: GPU-201 rank 0 "
                 "(node node0, its device 0) and rank 2 (node node1, its "
                 "device 0) have the same device GPU-0-0; give each a device "
                 "of its own, with CUDA_VISIBLE_DEVICES for example\n"
                 "7 all <- stop signal 15 grace 30000\n"
                 "14 draining -> done: exit code 20, self-test phase facts: "
                 "GPU-201 rank 0 (node node0, its device 0) and rank 2 (node "
                 "node1, its device 0) have the same device GPU-0-0; give each "
                 "a device of its own, with CUDA_VISIBLE_DEVICES for example\n"
                 "14 user: end 20 self_test_failed: self-test phase facts: "
                 "GPU-201 rank 0 (node node0, its device 0) and rank 2 (node "
                 "node1, its device 0) have the same device GPU-0-0; give each "
                 "a device of its own, with CUDA_VISIBLE_DEVICES for example\n"
                 "14 all <- finish, logs stay\n"
                 "16 done -> over: every node has left\n"
                 "16 finish 20\n");
}

/* What differs or is not as it should be, and ends nothing, is said once. */
static void test_notices(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 3, 2);
    c.nodes[2].gpus = 1;
    c.nodes[2].driver_version = 13010;
    c.nodes[0].finding = "PCIe runs at 8 of 16 lanes";
    c.nodes[1].finding = "power is capped";
    c.nodes[2].finding = "power is capped";
    c.nodes[1].setting = "NCCL_DEBUG=WARN";
    story_expect_part(
        &c, 7, 20,
        "7 user: facts by nccl: node[0-1]: NCCL 2.28.9 (build 8f3a, "
        "/lib/libnccl.so.2), driver for CUDA 13.0 (/lib/libcuda.so.1); 2 x "
        "NVIDIA H200\n"
        "7 user: facts by nccl: node2: NCCL 2.28.9 (build 8f3a, "
        "/lib/libnccl.so.2), driver for CUDA 13.1 (/lib/libcuda.so.1); 1 x "
        "NVIDIA H200\n"
        "7 user: settings by nccl: node1: NCCL_DEBUG=WARN\n"
        "7 user: notice: GPU-202 the numbers of devices differ: node2 has 1, "
        "node[0-1] have 2\n"
        "7 user: notice: the drivers are for different versions of CUDA: node2 "
        "has 13.1, node[0-1] have 13.0\n"
        "7 user: notice: ENV-130 the settings of NCCL differ: node1 has "
        "NCCL_DEBUG=WARN, node[0,2] have none\n"
        "7 user: notice: device GPU-0-0 of node node0: PCIe runs at 8 of 16 "
        "lanes\n"
        "7 user: notice: 2 devices of node[1-2]: power is capped\n"
        "7 self-test phase facts -> self-test phase cuda: every node can use "
        "NCCL\n"
        "7 user: testing by nccl: NCCL over 5 devices of 3 nodes\n"
        "7 node0 <- probe_begin ranks 0+2 of 5, 0 a node, ids 1\n"
        "7 node1 <- probe_begin ranks 2+2 of 5, 0 a node, ids 1\n"
        "7 node2 <- probe_begin ranks 4+1 of 5, 0 a node, ids 1\n"
        "19 self-test phase cuda -> self-test phase uid: every device has a "
        "context\n"
        "19 self-test phase uid -> self-test phase init: every root has made "
        "its ID\n"
        "19 all <- probe_ids 0-0\n");
}

/* A scout that does not answer. */
static void test_silent_facts(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    c.nodes[1].never_facts = true;
    story_expect(&c, 7,
                 "10004 self-test phase facts: still waiting for node1, which "
                 "has said nothing for 10 s\n"
                 "10004 user: waiting 1/2: node1, which has said nothing for "
                 "10 s\n"
                 "20004 self-test phase facts -> draining: self-test phase "
                 "facts: 1 of 2 nodes after 20 s; missing: node1, which has "
                 "said nothing for 20 s\n"
                 "20004 user: stopping: self-test phase facts: 1 of 2 nodes "
                 "after 20 s; missing: node1, which has said nothing for 20 s\n"
                 "20004 all <- stop signal 15 grace 30000\n"
                 "20011 draining -> done: exit code 40, self-test phase facts: "
                 "1 of 2 nodes after 20 s; missing: node1, which has said "
                 "nothing for 20 s\n"
                 "20011 user: end 40 deadline: self-test phase facts: 1 of 2 "
                 "nodes after 20 s; missing: node1, which has said nothing for "
                 "20 s\n"
                 "20011 all <- finish, logs stay\n"
                 "20013 done -> over: every node has left\n"
                 "20013 finish 40\n");
}

/* One that hangs has said where; of several the one is named that holds up the
 * others most surely. */
static void test_hung_facts(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 3, 2);
    c.nodes[1].never_facts = true;
    c.nodes[1].scout_state = GPUL__PROBE_PHASE__STATE__STATE_INSIDE;
    story_expect_part(
        &c, 10004, 20004,
        "10004 self-test phase facts: still waiting for node1, inside "
        "cuInit for 10 s\n"
        "10004 user: waiting 2/3: node1, inside cuInit for 10 s\n"
        "20004 self-test phase facts -> draining: self-test phase "
        "facts: 2 of 3 nodes after 20 s; missing: node1, inside "
        "cuInit for 20 s\n"
        "20004 user: stopping: self-test phase facts: 2 of 3 nodes after 20 "
        "s; missing: node1, inside cuInit for 20 s\n"
        "20004 all <- stop signal 15 grace 30000\n");
    story_init_gpus(&c, 3, 2);
    c.nodes[1].never_facts = true;
    c.nodes[1].scout_state = GPUL__PROBE_PHASE__STATE__STATE_INSIDE;
    c.nodes[2].never_facts = true;
    c.nodes[2].scout_state = GPUL__PROBE_PHASE__STATE__STATE_STOPPED;
    story_expect_part(
        &c, 10004, 20004,
        "10004 self-test phase facts: still waiting for node[1-2]; node "
        "node2, whose process is stopped\n"
        "10004 user: waiting 1/3: node[1-2]; node node2, whose "
        "process is stopped\n"
        "20004 self-test phase facts -> draining: self-test phase "
        "facts: 1 of 3 nodes after 20 s; missing: node[1-2]; node "
        "node2, whose process is stopped\n"
        "20004 user: stopping: self-test phase facts: 1 of 3 nodes after 20 "
        "s; missing: node[1-2]; node node2, whose process is stopped\n"
        "20004 all <- stop signal 15 grace 30000\n");
}

/* The same when the node that did answer told of doubles: that is enough. */
static void test_silent_on_doubles(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    c.nodes[0].is_double = true;
    c.nodes[1].never_facts = true;
    story_expect_part(&c, 20011, 20012,
                      "20011 draining -> done: exit code 40, self-test phase "
                      "facts: 1 of 2 nodes after 20 s; missing: node1, "
                      "which has said nothing for 20 s\n"
                      "20011 user: end 40 deadline on doubles: self-test phase "
                      "facts: 1 of 2 nodes after 20 s; missing: node1, "
                      "which has said nothing for 20 s\n"
                      "20011 all <- finish, logs stay\n");
}

/* And when none did, nobody knows. */
static void test_silence(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    c.nodes[0].never_facts = true;
    c.nodes[1].never_facts = true;
    story_expect_part(
        &c, 20011, 20012,
        "20011 draining -> done: exit code 40, self-test phase "
        "facts: 0 of 2 nodes after 20 s; missing: node[0-1]; node "
        "node0, which has said nothing for 20 s\n"
        "20011 user: end 40 deadline perhaps on doubles: "
        "self-test phase facts: 0 of 2 nodes after 20 s; "
        "missing: node[0-1]; node "
        "node0, which has said nothing for 20 s\n"
        "20011 all <- finish, logs stay\n");
}

/* A node that speaks for a rank of another is lost. */
static void test_liar(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    c.nodes[1].probes[0] =
        (struct fake_probe){.fault = FAKE_LIES, .at = PROBES_INIT};
    story_expect(
        &c, 29,
        "31 lost node1: it spoke for a self-test rank of another node\n"
        "31 user: left node1 1/2: it spoke for a self-test rank of another "
        "node\n"
        "31 self-test phase init -> draining: node node1 (host) was lost in "
        "self-test phase init: it spoke for a self-test rank of another node\n"
        "31 user: stopping: node node1 (host) was lost in self-test phase "
        "init: it spoke for a self-test rank of another node\n"
        "31 all <- stop signal 15 grace 30000\n"
        "38 draining -> done: exit code 41, node node1 (host) was lost in "
        "self-test phase init: it spoke for a self-test rank of another node\n"
        "38 user: end 41 node_lost: node node1 (host) was lost in self-test "
        "phase init: it spoke for a self-test rank of another node\n"
        "38 all <- finish, logs stay\n"
        "40 done -> over: every node has left\n"
        "40 finish 41\n");
}

/* An ID is given once. */
static void test_id_twice(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 2, 2);
    c.nodes[0].probes[0] =
        (struct fake_probe){.fault = FAKE_REPEATS, .at = PROBES_CUDA};
    story_expect(
        &c, 8,
        "19 self-test phase cuda -> draining: self-test phase uid: UID-911 "
        "rank 0 (node node0) gave unique ID 0 twice; an ID serves one "
        "communicator once\n"
        "19 user: stopping: self-test phase uid: UID-911 rank 0 (node node0) "
        "gave unique ID 0 twice; an ID serves one communicator once\n"
        "19 all <- stop signal 15 grace 30000\n"
        "26 draining -> done: exit code 20, self-test phase uid: UID-911 rank "
        "0 (node node0) gave unique ID 0 twice; an ID serves one communicator "
        "once\n"
        "26 user: end 20 self_test_failed: self-test phase uid: UID-911 rank 0 "
        "(node node0) gave unique ID 0 twice; an ID serves one communicator "
        "once\n"
        "26 all <- finish, logs stay\n"
        "28 done -> over: every node has left\n"
        "28 finish 20\n");
}

/* Two roots with the same ID. */
static void test_reused_id(void **state)
{
    (void)state;
    struct cluster c;
    story_init_gpus(&c, 75, 4);
    for (size_t i = 0; i < 38; i++) {
        c.nodes[i].reuses_id = true;
    }
    story_expect(&c, 18,
                 "19 self-test phase cuda -> draining: self-test phase uid: "
                 "UID-911 rank 100 (node node25) gave unique ID 1 with the "
                 "bytes of another root's; an ID serves one communicator once\n"
                 "19 user: stopping: self-test phase uid: UID-911 rank 100 "
                 "(node node25) gave unique ID 1 with the bytes of another "
                 "root's; an ID serves one communicator once\n"
                 "19 all <- stop signal 15 grace 30000\n"
                 "26 draining -> done: exit code 20, self-test phase uid: "
                 "UID-911 rank 100 (node node25) gave unique ID 1 with the "
                 "bytes of another root's; an ID serves one communicator once\n"
                 "26 user: end 20 self_test_failed: self-test phase uid: "
                 "UID-911 rank 100 (node node25) gave unique ID 1 with the "
                 "bytes of another root's; an ID serves one communicator once\n"
                 "26 all <- finish, logs stay\n"
                 "28 done -> over: every node has left\n"
                 "28 finish 20\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unusable),
        cmocka_unit_test(test_no_device),
        cmocka_unit_test(test_old_driver),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_twin),
        cmocka_unit_test(test_notices),
        cmocka_unit_test(test_silent_facts),
        cmocka_unit_test(test_hung_facts),
        cmocka_unit_test(test_silent_on_doubles),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_liar),
        cmocka_unit_test(test_id_twice),
        cmocka_unit_test(test_reused_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
