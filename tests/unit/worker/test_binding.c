/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/rng.h"
#include "worker/binding.h"
#include "worker/mask.h"

enum { CPUS = STARTSPEC_CPU_WORDS, NODES = STARTSPEC_NODE_WORDS };

/* Large, and one test runs at a time. */
static struct binding_machine machine;
static struct binding_gpu gpus[GPU_DEVICES_MAX];
static struct gpu_choice visible[64];
static uint64_t allowed[CPUS];

/* As Linux numbers it: first one thread of every core, then the others. */
static void build(uint32_t nodes, uint32_t cores, uint32_t threads)
{
    memset(&machine, 0, sizeof(machine));
    for (uint32_t core = 0; core < nodes * cores; core++) {
        for (uint32_t t = 0; t < threads; t++) {
            machine.pus[machine.pu_count++] = (struct binding_pu){
                .cpu = (uint16_t)(core + t * nodes * cores),
                .core = (uint16_t)core,
                .node = (uint16_t)(core / cores),
            };
        }
    }
    for (uint32_t n = 0; n < nodes; n++) {
        mask_add(machine.memory_nodes, NODES, n);
    }
}

static struct binding_input input(enum binding_kind kind, uint32_t ranks,
                                  const char *cpus)
{
    assert_true(mask_parse(allowed, CPUS, cpus));
    return (struct binding_input){
        .kind = kind,
        .rank_count = ranks,
        .host_node_count = 1,
        .allowed = allowed,
        .machine = &machine,
        .can_bind_memory = true,
        .gpus = gpus,
        .visible = visible,
    };
}

/* "0-1|2-3", with "@0" behind where memory is bound; then "! notice". */
static void assert_bound(const struct binding_input *in, const char *want)
{
    struct binding *b;
    struct gpul_buf out;
    gpul_buf_init(&out, 1 << 16);
    assert_int_equal(binding_create(&b, in, NULL), 0);
    for (uint32_t i = 0; i < b->rank_count; i++) {
        gpul_buf_append_text(&out, i > 0 ? "|" : "");
        struct gpul_buf nodes;
        gpul_buf_init(&nodes, 100);
        assert_int_equal(binding_text(&out, &nodes, b, i), 0);
        if (b->places[i].has_nodes) {
            gpul_buf_appendf(&out, "@%s", gpul_buf_text(&nodes));
        }
        gpul_buf_release(&nodes);
    }
    for (size_t i = 0; i < b->notice_count; i++) {
        gpul_buf_appendf(&out, " ! %s", b->notices[i]);
    }
    assert_string_equal(gpul_buf_text(&out), want);
    gpul_buf_release(&out);
    binding_destroy(b);
}

/* ---- core ---------------------------------------------------------------- */

/* Whole cores, all of them, as even as can be. */
static void test_core(void **state)
{
    (void)state;
    build(2, 4, 2); /* cores 0-3 and 4-7, second threads 8-15 */
    struct binding_input in = input(BINDING_CORE, 2, "0-15");
    assert_bound(&in, "0-3,8-11|4-7,12-15");
    in = input(BINDING_CORE, 3, "0-15");
    assert_bound(&in, "0-1,8-9|2-4,10-12|5-7,13-15");
    in = input(BINDING_CORE, 1, "0-15");
    assert_bound(&in, "0-15");
    /* Odd processors: half of the cores, one or both of their threads. */
    in = input(BINDING_CORE, 2, "1,3,5,7,9,13");
    assert_bound(&in, "1,3,9|5,7,13");
}

static void test_core_few(void **state)
{
    (void)state;
    build(1, 2, 1);
    struct binding_input in = input(BINDING_CORE, 4, "0-1");
    assert_bound(&in, "0|0|1|1 ! --bind core: 4 ranks on 2 cores of a host: "
                      "several ranks share a core");
    in = input(BINDING_CORE, 2, "1");
    assert_bound(&in, "1|1 ! --bind core: 2 ranks on 1 core of a host: "
                      "several ranks share a core");
}

/* Nodes on one host divide it, whatever the number of their ranks. */
static void test_core_nodes(void **state)
{
    (void)state;
    build(2, 4, 1);
    struct binding_input in = input(BINDING_CORE, 2, "0-7");
    in.host_node_count = 2;
    assert_bound(&in, "0-1|2-3");
    in.host_node_index = 1;
    assert_bound(&in, "4-5|6-7");
    in.rank_count = 3;
    assert_bound(&in, "4|5|6-7");
}

/* ---- numa ---------------------------------------------------------------- */

static void test_numa(void **state)
{
    (void)state;
    build(2, 4, 2);
    struct binding_input in = input(BINDING_NUMA, 4, "0-15");
    assert_bound(&in, "0-3,8-11@0|0-3,8-11@0|4-7,12-15@1|4-7,12-15@1");
    /* Fewer ranks than NUMA nodes: none is left idle. */
    in = input(BINDING_NUMA, 1, "0-15");
    assert_bound(&in, "0-15@0-1");
    /* Never two NUMA nodes for a rank that can do with one. */
    in = input(BINDING_NUMA, 3, "0-15");
    assert_bound(&in, "0-3,8-11@0|4-7,12-15@1|4-7,12-15@1");
    /* By what is allowed of each. */
    in = input(BINDING_NUMA, 4, "3,4-7");
    assert_bound(&in, "3@0|4-7@1|4-7@1|4-7@1");
    in = input(BINDING_NUMA, 2, "0-15");
    in.host_node_count = 2;
    in.host_node_index = 1;
    assert_bound(&in, "4-7,12-15@1|4-7,12-15@1");
}

static void test_numa_memory(void **state)
{
    (void)state;
    build(2, 2, 1);
    struct binding_input in = input(BINDING_NUMA, 2, "0-3");
    in.can_bind_memory = false;
    assert_bound(&in, "0-1|2-3 ! --bind numa: processors are bound, memory is "
                      "not: this system lets no process choose its memory's "
                      "NUMA node (in a container, it takes CAP_SYS_NICE)");
    /* A NUMA node without memory, and a machine with one. */
    in.can_bind_memory = true;
    memset(machine.memory_nodes, 0, sizeof(machine.memory_nodes));
    mask_add(machine.memory_nodes, NODES, 0);
    assert_bound(&in, "0-1|2-3");
    mask_add(machine.memory_nodes, NODES, 5);
    assert_bound(&in, "0-1@0|2-3");
}

/* ---- what hwloc cannot tell ------------------------------------------------
 */

static void test_no_machine(void **state)
{
    (void)state;
    build(1, 2, 1);
    struct binding_input in = input(BINDING_CORE, 2, "4-6");
    assert_bound(&in, "4-6|4-6 ! --bind core: no rank is bound: hwloc shows "
                      "none of the processors that this node may use");
    in.machine = NULL;
    in.no_machine = "it is not there";
    in.kind = BINDING_NUMA;
    assert_bound(&in, "4-6|4-6 ! --bind numa: no rank is bound: it is not "
                      "there");
}

/* ---- gpu ----------------------------------------------------------------- */

static void place_gpu(size_t i, const char *cpus, bool has_node)
{
    snprintf(gpus[i].bus_id, sizeof(gpus[i].bus_id), "0000:%02zx:00.0", i);
    gpus[i].has_node = has_node;
    assert_true(mask_parse(gpus[i].cpus, CPUS, cpus));
}

/* Each rank sees the first `n` GPUs. */
static void show(size_t ranks, size_t n)
{
    memset(visible, 0, sizeof(visible));
    for (size_t r = 0; r < ranks; r++) {
        for (size_t i = 0; i < n; i++) {
            visible[r].picks[visible[r].count++] = i;
        }
    }
}

static void test_gpu(void **state)
{
    (void)state;
    place_gpu(0, "0-3", true);
    place_gpu(1, "0-3", true);
    place_gpu(2, "0-3", true);
    place_gpu(3, "4-7", true);
    show(8, 4);
    struct binding_input in = input(BINDING_GPU, 4, "0-7");
    assert_bound(&in, "0-3|0-3|0-3|4-7");
    in = input(BINDING_GPU, 4, "1,3,5,7");
    assert_bound(&in, "1,3|1,3|1,3|5,7");
    in = input(BINDING_GPU, 8, "0-7");
    assert_bound(&in, "0-3|0-3|0-3|4-7|0-3|0-3|0-3|4-7");
    /* Fewer ranks than GPUs: by LOCAL_RANK, or its share. */
    in = input(BINDING_GPU, 2, "0-7");
    assert_bound(&in, "0-3|0-7");
    in = input(BINDING_GPU, 1, "0-7");
    assert_bound(&in, "0-7");
    /* One GPU each, in another order. */
    for (size_t i = 0; i < 2; i++) {
        visible[i] = (struct gpu_choice){.picks = {3 - i}, .count = 1};
    }
    in = input(BINDING_GPU, 2, "0-7");
    assert_bound(&in, "4-7|0-3");
}

static void test_gpu_odd(void **state)
{
    (void)state;
    place_gpu(0, "0-3", true);
    place_gpu(1, "0-7", false);
    show(4, 2);
    struct binding_input in = input(BINDING_GPU, 2, "1-6");
    assert_bound(&in, "1-3|1-6 ! --bind gpu: the kernel does not know the NUMA "
                      "node of GPU 0000:01:00.0; ranks that are not bound for "
                      "that reason: 1");
    in.has_one_node = true;
    assert_bound(&in, "1-3|1-6");
    in = input(BINDING_GPU, 4, "4-7");
    in.has_one_node = true;
    assert_bound(&in, "4-7|4-7|4-7|4-7 ! --bind gpu: no processor near GPU "
                      "0000:00:00.0 is among those that this node may use; "
                      "ranks that are not bound for that reason: 2");
    show(4, 0);
    assert_bound(&in, "4-7|4-7|4-7|4-7 ! --bind gpu: ranks that see no GPU "
                      "whose place could be found, and are not bound for that "
                      "reason: 4");
}

/* ---- any machine -----------------------------------------------------------
 */

static uint32_t below(struct gpul_rng *rng, uint32_t n)
{
    return (uint32_t)gpul_rng_below(rng, n);
}

static void build_random(struct gpul_rng *rng)
{
    build(1 + below(rng, 4), 1 + below(rng, 12), 1 + below(rng, 2));
    uint32_t first_cpu = below(rng, 100);
    memset(allowed, 0, sizeof(allowed));
    uint32_t share = 1 + below(rng, 4);
    for (uint32_t i = 0; i < machine.pu_count; i++) {
        machine.pus[i].cpu = (uint16_t)(machine.pus[i].cpu + first_cpu);
        if (below(rng, 4) < share) {
            mask_add(allowed, CPUS, machine.pus[i].cpu);
        }
    }
    mask_add(allowed, CPUS, machine.pus[below(rng, machine.pu_count)].cpu);
    size_t gpu_count = below(rng, 9);
    for (size_t i = 0; i < gpu_count; i++) {
        place_gpu(i, "", below(rng, 4) > 0);
        for (uint32_t p = 0; p < machine.pu_count; p++) {
            if (below(rng, 2) > 0) {
                mask_add(gpus[i].cpus, CPUS, machine.pus[p].cpu);
            }
        }
    }
    show(64, gpu_count);
}

static size_t allowed_cores(void)
{
    size_t cores = 0;
    for (uint32_t i = 0, last = UINT32_MAX; i < machine.pu_count; i++) {
        if (mask_has(allowed, CPUS, machine.pus[i].cpu) &&
            machine.pus[i].core != last) {
            last = machine.pus[i].core;
            cores++;
        }
    }
    return cores;
}

static void assert_within(const struct binding *b)
{
    for (uint32_t i = 0; i < b->rank_count; i++) {
        uint64_t rest[CPUS];
        assert_false(mask_is_empty(b->places[i].cpus, CPUS));
        memcpy(rest, b->places[i].cpus, sizeof(rest));
        mask_meet(rest, allowed, CPUS);
        assert_memory_equal(rest, b->places[i].cpus, sizeof(rest));
    }
}

/* All ranks of a host: nobody's processor is another's, none is left. */
static void assert_divided(struct binding *const *nodes, size_t count)
{
    uint64_t all[CPUS] = {0};
    size_t sum = 0;
    for (size_t n = 0; n < count; n++) {
        for (uint32_t i = 0; i < nodes[n]->rank_count; i++) {
            sum += mask_count(nodes[n]->places[i].cpus, CPUS);
            mask_join(all, nodes[n]->places[i].cpus, CPUS);
        }
    }
    assert_int_equal(sum, mask_count(all, CPUS));
    assert_memory_equal(all, allowed, sizeof(all));
}

static void test_random(void **state)
{
    (void)state;
    struct gpul_rng rng;
    gpul_rng_init(&rng, 4);
    for (int round = 0; round < 4000; round++) {
        struct binding *nodes[3];
        uint32_t node_count = 1 + below(&rng, 3);
        bool fits = true;
        build_random(&rng);
        struct binding_input in = {
            .kind = (enum binding_kind)(1 + below(&rng, 3)),
            .host_node_count = node_count,
            .allowed = allowed,
            .machine = &machine,
            .can_bind_memory = below(&rng, 2) > 0,
            .gpus = gpus,
            .visible = visible,
        };
        for (uint32_t n = 0; n < node_count; n++) {
            in.host_node_index = n;
            in.rank_count = 1 + below(&rng, 8);
            fits &= in.rank_count * node_count <= allowed_cores();
            assert_int_equal(binding_create(&nodes[n], &in, NULL), 0);
            assert_within(nodes[n]);
        }
        if (in.kind == BINDING_CORE && fits) {
            assert_divided(nodes, node_count);
        }
        for (uint32_t n = 0; n < node_count; n++) {
            binding_destroy(nodes[n]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_core),        cmocka_unit_test(test_core_few),
        cmocka_unit_test(test_core_nodes),  cmocka_unit_test(test_numa),
        cmocka_unit_test(test_numa_memory), cmocka_unit_test(test_no_machine),
        cmocka_unit_test(test_gpu),         cmocka_unit_test(test_gpu_odd),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
