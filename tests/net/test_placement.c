/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks bound on a machine that is made of files: two sockets, hwloc as it is
 * installed, GPUs spread unevenly.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/fakehost.h"
#include "worker/gpuplaces.h"
#include "worker/mask.h"
#include "worker/placement.h"
#include "worker/topology.h"

static char root[FAKEHOST_ROOT_BYTES];

/* Cores 0-3 and 4-7, second threads 8-15; GPUs 0 to 2 on the first socket, 3
 * on the second, and nobody knows where 4 is. */
static int make(void **state)
{
    (void)state;
    fakehost_make(root);
    fakehost_put_processors(root, 2, 4);
    fakehost_put_gpu(root, "0000:0f:00.0", 1, "GPU-bb01", "0-3,8-11\n", 0);
    fakehost_put_gpu(root, "0000:07:00.0", 0, "GPU-aa00", "0-3,8-11\n", 0);
    fakehost_put_gpu(root, "0000:47:00.0", 2, "GPU-cc02", "0-3,8-11\n", 0);
    fakehost_put_gpu(root, "0000:b7:00.0", 4, "GPU-dd03", "4-7,12-15\n", 1);
    fakehost_put_gpu(root, "0001:00:00.0", 7, "GPU-ee04", "0-15\n", -1);
    return 0;
}

static int unmake(void **state)
{
    (void)state;
    fakehost_remove(root);
    return 0;
}

/* ---- a launch ------------------------------------------------------------ */

struct stage {
    Gpul__Job job;
    Gpul__Command command;
    Gpul__Environment environment;
    Gpul__Assign assign;
    ProtobufCBinaryData argument;
    char *devices[8];
    struct world world;
    struct launch *launch;
};

static void set_world(struct world *w, uint32_t ranks)
{
    static char addresses[] = "127.0.0.1";
    uint32_t port_base = 20000;
    Gpul__Roster page;
    gpul__roster__init(&page);
    page.page_count = 1;
    page.node_count = 1;
    page.addresses = addresses;
    page.port_bases = &port_base;
    page.n_port_bases = 1;
    page.rank_counts = &ranks;
    page.n_rank_counts = 1;
    world_init(w);
    assert_int_equal(world_begin(w, 1, ranks, NULL), 0);
    assert_int_equal(world_add(w, &page, NULL), 0);
}

/* A node of so many ranks that sees `devices` GPUs; `inherited` is a variable
 * or NULL. */
static void stage_set(struct stage *s, uint32_t ranks, size_t devices,
                      const char *inherited)
{
    static char job_id[] = "job-1";
    static char none[] = "";
    static char digits[] = "0\0001\0002\0003\0004";
    const char *strings[] = {"PATH=/bin", inherited, NULL};
    struct gpul_error err;
    gpul__job__init(&s->job);
    gpul__command__init(&s->command);
    gpul__environment__init(&s->environment);
    gpul__assign__init(&s->assign);
    static uint8_t train = 't';
    s->argument = (ProtobufCBinaryData){.len = 1, .data = &train};
    s->command.arguments = &s->argument;
    s->command.n_arguments = 1;
    s->job.job_id = job_id;
    s->job.log_dir = none;
    s->job.command = &s->command;
    s->job.environment = &s->environment;
    s->assign.node_count = 1;
    s->assign.rank_count = ranks;
    s->assign.world_size = ranks;
    s->assign.host_rank_count = ranks;
    s->assign.host_node_count = 1;
    s->assign.host_count = 1;
    set_world(&s->world, ranks);
    for (size_t i = 0; i < devices; i++) {
        s->devices[i] = digits + 2 * i;
    }
    const struct launch_input in = {
        .job = &s->job,
        .assign = &s->assign,
        .world = &s->world,
        .node_name = "n",
        .cores = 16,
        .devices = s->devices,
        .device_count = devices,
        .devices_are_restricted = inherited != NULL,
        .inherited = strings,
    };
    assert_int_equal(launch_create(&s->launch, &in, &err), 0);
}

static void stage_release(struct stage *s)
{
    launch_destroy(s->launch);
    world_release(&s->world);
}

/* "0-3|4-7@1 ! notice" */
static void assert_places(const struct stage *s, enum binding_kind kind,
                          const char *cpus, const char *want)
{
    uint64_t allowed[STARTSPEC_CPU_WORDS];
    assert_true(mask_parse(allowed, STARTSPEC_CPU_WORDS, cpus));
    const struct placement_input in = {
        .kind = kind,
        .launch = s->launch,
        .root = root,
        .program = GPUL_TEST_WORKER,
        .allowed = allowed,
    };
    struct binding *b;
    struct gpul_error err;
    struct gpul_buf out;
    gpul_buf_init(&out, 1 << 16);
    assert_int_equal(placement_make(&b, &in, &err), 0);
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

/* ---- tests --------------------------------------------------------------- */

/* Each rank's processors are those near its GPU, or of these the ones that the
 * node may use. */
static void test_gpu(void **state)
{
    (void)state;
    struct stage s;
    stage_set(&s, 4, 5, "CUDA_VISIBLE_DEVICES=0,1,2,3");
    assert_places(&s, BINDING_GPU, "0-15",
                  "0-3,8-11|0-3,8-11|0-3,8-11|4-7,12-15");
    assert_places(&s, BINDING_GPU, "1,3,5,7,9,11,13,15",
                  "1,3,9,11|1,3,9,11|1,3,9,11|5,7,13,15");
    stage_release(&s);
    stage_set(&s, 5, 5, NULL);
    assert_places(&s, BINDING_GPU, "0-15",
                  "0-3,8-11|0-3,8-11|0-3,8-11|4-7,12-15|0-15 ! --bind gpu: "
                  "the kernel does not know the NUMA node of GPU 0001:00:00.0; "
                  "ranks that are not bound for that reason: 1");
    stage_release(&s);
}

/* By UUID, in an order of the scheduler's; and one device for each rank. */
static void test_visible(void **state)
{
    (void)state;
    struct stage s;
    stage_set(&s, 2, 2, "CUDA_VISIBLE_DEVICES=GPU-dd,GPU-aa00");
    assert_places(&s, BINDING_GPU, "0-15", "4-7,12-15|0-3,8-11");
    stage_release(&s);
    stage_set(&s, 1, 0, "CUDA_VISIBLE_DEVICES=");
    assert_places(&s, BINDING_GPU, "0-15",
                  "0-15 ! --bind gpu: ranks that see no GPU whose place could "
                  "be found, and are not bound for that reason: 1");
    stage_release(&s);
}

/* A container with the device nodes of two GPUs has these two. */
static void test_container(void **state)
{
    (void)state;
    struct stage s;
    fakehost_put(root, "/dev/nvidiactl", "");
    fakehost_put(root, "/dev/nvidia2", "");
    fakehost_put(root, "/dev/nvidia4", "");
    stage_set(&s, 2, 2, NULL);
    assert_places(&s, BINDING_GPU, "0-15", "0-3,8-11|4-7,12-15");
    stage_release(&s);
}

static void test_hwloc(void **state)
{
    (void)state;
    struct stage s;
    stage_set(&s, 4, 0, NULL);
    assert_places(&s, BINDING_NUMA, "0-15",
                  "0-3,8-11@0|0-3,8-11@0|4-7,12-15@1|4-7,12-15@1");
    assert_places(&s, BINDING_CORE, "0-15",
                  "0-1,8-9|2-3,10-11|4-5,12-13|6-7,"
                  "14-15");
    assert_places(&s, BINDING_CORE, "1,3,5,7,9,11,13,15", "1,9|3,11|5,13|7,15");
    stage_release(&s);
}

/* What does not answer as it should leaves the ranks unbound. */
static void test_no_hwloc(void **state)
{
    (void)state;
    struct binding_machine *m = calloc(1, sizeof(*m));
    struct gpul_error err;
    assert_non_null(m);
    assert_int_equal(topology_read(m, "/nonexistent", "", &err), GPUL_ESYS);
    assert_non_null(strstr(err.text, "/nonexistent"));
    assert_int_equal(topology_read(m, "/bin/false", "", &err), GPUL_ESYS);
    assert_string_equal(err.text, "hwloc ended without a word");
    assert_int_equal(topology_read(m, "/bin/echo", "of a kind", &err),
                     GPUL_ESYS);
    assert_string_equal(err.text, "topology of a kind?");
    free(m);
}

/* This machine, whatever it is. */
static void test_here(void **state)
{
    (void)state;
    struct binding_machine *m = calloc(1, sizeof(*m));
    struct gpul_error err;
    assert_non_null(m);
    assert_int_equal(topology_read(m, GPUL_TEST_WORKER, "", &err), 0);
    assert_true(m->pu_count > 0);
    assert_false(mask_is_empty(m->memory_nodes, STARTSPEC_NODE_WORDS));
    for (uint32_t i = 1; i < m->pu_count; i++) {
        assert_in_range(m->pus[i].core - m->pus[i - 1].core, 0, 1);
    }
    free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_gpu, make, unmake),
        cmocka_unit_test_setup_teardown(test_visible, make, unmake),
        cmocka_unit_test_setup_teardown(test_container, make, unmake),
        cmocka_unit_test_setup_teardown(test_hwloc, make, unmake),
        cmocka_unit_test(test_no_hwloc),
        cmocka_unit_test(test_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
