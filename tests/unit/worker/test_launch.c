/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "worker/launch.h"

static const char *const inherited[] = {"PATH=/bin", "HOME=/", NULL};

/* A job of two nodes with two ranks each, seen from one of them. */
struct stage {
    Gpul__Job job;
    Gpul__Command command;
    Gpul__Environment environment;
    Gpul__Assign assign;
    ProtobufCBinaryData arguments[2];
    Gpul__Variable variable;
    Gpul__Variable *variables[1];
    struct world world;
    struct launch_input in;
};

static ProtobufCBinaryData bytes_of(const char *text)
{
    return (ProtobufCBinaryData){.len = strlen(text),
                                 .data = (uint8_t *)(uintptr_t)text};
}

static void set_world(struct world *w)
{
    static char addresses[] = "10.0.0.[1-2]";
    uint32_t port_bases[] = {20000, 21000};
    uint32_t rank_counts[] = {2};
    Gpul__Roster page;
    gpul__roster__init(&page);
    page.page_count = 1;
    page.node_count = 2;
    page.addresses = addresses;
    page.port_bases = port_bases;
    page.n_port_bases = 2;
    page.rank_counts = rank_counts;
    page.n_rank_counts = 1;
    world_init(w);
    assert_int_equal(world_begin(w, 2, 4, NULL), 0);
    assert_int_equal(world_add(w, &page, NULL), 0);
}

static void set_job(struct stage *s)
{
    static char job_id[] = "job-1", log_dir[] = "/logs/job-1";
    gpul__job__init(&s->job);
    gpul__command__init(&s->command);
    gpul__environment__init(&s->environment);
    gpul__variable__init(&s->variable);
    s->arguments[0] = bytes_of("train");
    s->arguments[1] = bytes_of("");
    s->command.arguments = s->arguments;
    s->command.n_arguments = 2;
    s->variable.name = bytes_of("MINE");
    s->variable.value = bytes_of("a b");
    s->variables[0] = &s->variable;
    s->environment.user = s->variables;
    s->environment.n_user = 1;
    s->job.job_id = job_id;
    s->job.log_dir = log_dir;
    s->job.command = &s->command;
    s->job.environment = &s->environment;
}

static void stage_set(struct stage *s, uint32_t node_rank)
{
    set_job(s);
    set_world(&s->world);
    gpul__assign__init(&s->assign);
    s->assign.node_rank = node_rank;
    s->assign.node_count = 2;
    s->assign.first_rank = node_rank * 2;
    s->assign.rank_count = 2;
    s->assign.world_size = 4;
    s->assign.host_rank_count = 2;
    s->assign.host_node_count = 1;
    s->assign.host_count = 2;
    s->in = (struct launch_input){
        .job = &s->job,
        .assign = &s->assign,
        .world = &s->world,
        .generation = 3,
        .attempt = 3,
        .node_name = "node-b",
        .cores = 8,
        .inherited = inherited,
    };
}

static const char *magic_of(struct stage *s, struct launch **l)
{
    assert_int_equal(launch_create(l, &s->in, NULL), 0);
    return (*l)->input.nccl_magic;
}

/* The job's number goes to NCCL in the form that NCCL reads; a report of the
 * environment has it without its value. */
static void test_nccl_magic(void **state)
{
    (void)state;
    struct stage s;
    struct launch *l;
    stage_set(&s, 1);
    assert_null(magic_of(&s, &l));
    launch_destroy(l);
    s.environment.nccl_socket_magic = 0xab;
    assert_string_equal(magic_of(&s, &l), "0x00000000000000ab");
    launch_destroy(l);
    s.job.mode = GPUL__JOB__MODE__ENV;
    assert_string_equal(magic_of(&s, &l), "");
    launch_destroy(l);
    world_release(&s.world);
}

/* The command, the folder and the environment come out as they went in. */
static void test_contents(void **state)
{
    (void)state;
    struct stage s;
    struct launch *l;
    struct env env;
    stage_set(&s, 1);
    s.command.working_directory = bytes_of("/work");
    assert_int_equal(launch_create(&l, &s.in, NULL), 0);
    assert_string_equal(l->arguments[0], "train");
    assert_string_equal(l->arguments[1], "");
    assert_null(l->arguments[2]);
    assert_string_equal(l->working_directory, "/work");
    assert_string_equal(l->log_folder, "/logs/job-1/attempt-3");
    assert_int_equal(env_build(&env, l->plan, 1, NULL), 0);
    assert_string_equal(launch_variable(env.strings, "RANK"), "3");
    assert_string_equal(launch_variable(env.strings, "MINE"), "a b");
    assert_string_equal(launch_variable(env.strings, "MASTER_ADDR"),
                        "10.0.0.1");
    assert_string_equal(launch_variable(env.strings, "MIN"), "");
    env_release(&env);
    launch_destroy(l);
    world_release(&s.world);
}

/* No folders asked for: none made up. */
static void test_defaults(void **state)
{
    (void)state;
    static char none[] = "";
    struct stage s;
    struct launch *l;
    stage_set(&s, 0);
    s.job.log_dir = none;
    s.job.environment = NULL;
    assert_int_equal(launch_create(&l, &s.in, NULL), 0);
    assert_null(l->working_directory);
    assert_null(l->log_folder);
    launch_destroy(l);
    world_release(&s.world);
}

/* A rank's ports are its own and, on node rank 0, the shared ones; they are
 * those that the environment names. */
static void test_ports(void **state)
{
    (void)state;
    struct stage s;
    struct launch *l;
    struct env env;
    uint16_t ports[LAUNCH_PORTS_MAX];
    stage_set(&s, 0);
    assert_int_equal(launch_create(&l, &s.in, NULL), 0);
    assert_int_equal(launch_ports(l, 1, ports), 4);
    assert_int_equal(ports[0], 20001);
    assert_int_equal(ports[1], 20002);
    assert_int_equal(ports[3], 20004);
    assert_int_equal(env_build(&env, l->plan, 1, NULL), 0);
    assert_string_equal(launch_variable(env.strings, "MASTER_PORT"), "20002");
    assert_string_equal(
        launch_variable(env.strings, "HOROVOD_GLOO_RENDEZVOUS_PORT"), "20004");
    assert_int_equal(launch_horovod_port(l), 20004);
    env_release(&env);
    launch_destroy(l);
    world_release(&s.world);

    stage_set(&s, 1);
    assert_int_equal(launch_create(&l, &s.in, NULL), 0);
    assert_int_equal(launch_ports(l, 1, ports), 1);
    assert_int_equal(ports[0], 21001);
    assert_int_equal(launch_horovod_port(l), 20004);
    launch_destroy(l);
    world_release(&s.world);
}

/* What makes no launch says why. */
static void test_faults(void **state)
{
    (void)state;
    static char ps[] = "ps", bad[] = "boss";
    struct stage s;
    struct launch *l;
    struct gpul_error err;
    Gpul__Role role;
    Gpul__Role *roles[] = {&role};
    gpul__role__init(&role);
    role.count = 4;

    stage_set(&s, 0);
    s.command.n_arguments = 0;
    assert_int_equal(launch_create(&l, &s.in, &err), GPUL_EINVAL);
    assert_null(l);
    assert_string_equal(err.text, "the job has no command");
    s.command.n_arguments = 2;

    s.job.roles = roles;
    s.job.n_roles = 1;
    role.name = bad;
    assert_int_equal(launch_create(&l, &s.in, &err), GPUL_EINVAL);
    assert_non_null(strstr(err.text, "boss"));
    role.name = ps;
    assert_int_equal(launch_create(&l, &s.in, &err), GPUL_EINVAL);
    assert_non_null(strstr(err.text, "worker"));
    assert_null(l);
    world_release(&s.world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nccl_magic), cmocka_unit_test(test_contents),
        cmocka_unit_test(test_defaults),   cmocka_unit_test(test_ports),
        cmocka_unit_test(test_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
