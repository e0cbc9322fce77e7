/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "launcher/status.h"

static int init(struct status *s, const char *names)
{
    struct nodes nodes = {0};
    assert_int_equal(
        nodes_parse_list(&nodes, NODES_LOCAL, names, "--local", NULL), 0);
    int rc = status_init(s, &nodes, nodes.count);
    nodes_release(&nodes);
    return rc;
}

static char names[4][16] = {"local-0", "local-1", "local-2", "other"};
static char host[] = "box";
static const struct status gathering = {.phase = STATUS_GATHERING};

static Gpul__Event event(Gpul__Event__Kind kind, char *node, char *text)
{
    Gpul__Event e = GPUL__EVENT__INIT;
    e.kind = kind;
    if (node != NULL) {
        e.node_name = node;
    }
    e.hostname = host;
    if (text != NULL) {
        e.text = text;
    }
    e.have = 2;
    e.need = 4;
    return e;
}

static void check_sentence(const struct status *s, const Gpul__Event *e,
                           const char *expected)
{
    struct gpul_buf out;
    gpul_buf_init(&out, 4096);
    assert_int_equal(status_sentence(&out, e, s), 0);
    assert_string_equal(gpul_buf_text(&out), expected);
    gpul_buf_release(&out);
}

static void update(struct status *s, Gpul__Event__Kind kind, char *node)
{
    Gpul__Event e = event(kind, node, NULL);
    status_update(s, &e);
}

static void check_live(const struct status *s, size_t width,
                       const char *expected)
{
    struct gpul_buf out;
    gpul_buf_init(&out, 4096);
    assert_int_equal(status_live(&out, s, 1200, width), 0);
    assert_string_equal(gpul_buf_text(&out), expected);
    gpul_buf_release(&out);
}

/* The live line tells who is missing, then what is going on, then nothing. */
static void test_live(void **state)
{
    (void)state;
    struct status s;
    assert_int_equal(init(&s, "local-[0-2]"), 0);
    check_live(&s, 80, "[1.2 s] 0/3 nodes joined, missing local-[0-2]");
    update(&s, GPUL__EVENT__KIND__NODE_JOINED, names[1]);
    update(&s, GPUL__EVENT__KIND__NODE_JOINED, names[1]);
    update(&s, GPUL__EVENT__KIND__NODE_JOINED, names[3]);
    assert_true(status_has_joined(&s, 1));
    assert_false(status_has_joined(&s, 0));
    assert_false(status_has_joined(&s, 4)); /* none of the list */
    check_live(&s, 80, "[1.2 s] 1/3 nodes joined, missing local-[0,2]");
    check_live(&s, 40, "[1.2 s] 1/3 nodes joined, missing loc...");
    update(&s, GPUL__EVENT__KIND__NODE_LEFT, names[1]);
    check_live(&s, 80, "[1.2 s] 0/3 nodes joined, missing local-[0-2]");
    update(&s, GPUL__EVENT__KIND__NODE_BACK, names[1]);
    assert_true(status_has_joined(&s, 1));
    update(&s, GPUL__EVENT__KIND__NODE_AWAY, names[1]);
    assert_false(status_has_joined(&s, 1));
    for (size_t i = 0; i < 3; i++) {
        update(&s, GPUL__EVENT__KIND__NODE_JOINED, names[i]);
    }
    check_live(&s, 80, "[1.2 s] 3/3 nodes joined");
    update(&s, GPUL__EVENT__KIND__ASSIGNED, NULL);
    check_live(&s, 80, "[1.2 s] 3 nodes: assigning ranks");
    update(&s, GPUL__EVENT__KIND__SELF_TEST_STARTED, NULL);
    check_live(&s, 80, "[1.2 s] 3 nodes: self-test (all-reduce)");
    update(&s, GPUL__EVENT__KIND__SELF_TEST_PASSED, NULL);
    update(&s, GPUL__EVENT__KIND__LAUNCHED, NULL);
    check_live(&s, 80, "");
    update(&s, GPUL__EVENT__KIND__NOTICE, NULL);
    check_live(&s, 80, "");
    update(&s, GPUL__EVENT__KIND__STOPPING, NULL);
    check_live(&s, 80, "[1.2 s] stopping the ranks");
    status_release(&s);
}

/* Each event has its sentence, and is either for all or for -v. */
static void test_sentences(void **state)
{
    (void)state;
    static char missing[] = "local-[2-3]";
    static char why[] = "because";
    static const struct {
        Gpul__Event__Kind kind;
        char *text;
        const char *expected;
        int is_detail;
    } cases[] = {
        {GPUL__EVENT__KIND__NODE_JOINED, NULL, "local-0 joined (host box), 2/4",
         1},
        {GPUL__EVENT__KIND__NODE_LEFT, why, "local-0 left: because", 0},
        {GPUL__EVENT__KIND__NODE_AWAY, why, "local-0 is away: because", 0},
        {GPUL__EVENT__KIND__NODE_BACK, why, "local-0 is back: because", 0},
        {GPUL__EVENT__KIND__NODE_REFUSED, why, "refused: because", 0},
        {GPUL__EVENT__KIND__WAITING, missing,
         "waiting: 2/4 nodes have joined; missing: local-[2-3]", 0},
        {GPUL__EVENT__KIND__SELF_TEST_STARTED, NULL, "self-test started", 1},
        {GPUL__EVENT__KIND__SELF_TEST_STARTED, why,
         "self-test started: because", 1},
        {GPUL__EVENT__KIND__SELF_TEST_FACTS, why, "libraries: because", 0},
        {GPUL__EVENT__KIND__SELF_TEST_SETTINGS, why,
         "settings of the user: because", 0},
        {GPUL__EVENT__KIND__SELF_TEST_PASSED, NULL, "self-test passed", 0},
        {GPUL__EVENT__KIND__SELF_TEST_SLOW, NULL, "", 0},
        {GPUL__EVENT__KIND__SELF_TEST_SKIPPED, why,
         "self-test skipped: because", 1},
        {GPUL__EVENT__KIND__LAUNCHED, NULL, "ranks started", 1},
        {GPUL__EVENT__KIND__RANK_EXITED, NULL,
         "local-0: 2/4 ranks of the job have ended", 1},
        {GPUL__EVENT__KIND__STOPPING, why, "stopping: because", 0},
        {GPUL__EVENT__KIND__RETRYING, why, "starting once more: because", 0},
        {GPUL__EVENT__KIND__NOTICE, why, "note: because", 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        Gpul__Event e = event(cases[i].kind, names[0], cases[i].text);
        check_sentence(&gathering, &e, cases[i].expected);
        assert_int_equal(status_is_detail(&e), cases[i].is_detail);
    }
}

/* What is waited for depends on how far the job is. */
static void test_waiting(void **state)
{
    (void)state;
    static char missing[] = "local-3";
    static const struct {
        enum status_phase phase;
        const char *part; /* of the self-test on GPUs */
        const char *expected;
    } cases[] = {
        {STATUS_ASSIGNING, "",
         "waiting: 2/4 nodes are ready; missing: local-3"},
        {STATUS_ASSIGNING, "facts",
         "waiting: 2/4 are through phase facts of the self-test; missing: "
         "local-3"},
        {STATUS_TESTING, "",
         "waiting: 2/4 nodes are through the self-test; missing: local-3"},
        {STATUS_TESTING, "init",
         "waiting: 2/4 are through phase init of the self-test; missing: "
         "local-3"},
        {STATUS_RUNNING, "",
         "waiting: 2/4 nodes have passed all output on; missing: local-3"},
        {STATUS_STOPPING, "",
         "waiting: 2/4 nodes have stopped; missing: local-3"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        Gpul__Event e = event(GPUL__EVENT__KIND__WAITING, NULL, missing);
        struct status s = {.phase = cases[i].phase};
        e.phase = (char *)(uintptr_t)cases[i].part;
        check_sentence(&s, &e, cases[i].expected);
    }
}

/* Members are listed with their ranks, one a line. */
static void test_members(void **state)
{
    (void)state;
    static char address[] = "127.0.0.1";
    Gpul__Member one = GPUL__MEMBER__INIT;
    Gpul__Member two = GPUL__MEMBER__INIT;
    one.node_name = names[0];
    two.node_name = names[1];
    one.hostname = two.hostname = host;
    one.address = two.address = address;
    one.rank_count = 4;
    two.node_rank = 1;
    two.first_rank = 4;
    two.rank_count = 1;
    Gpul__Member *members[] = {&one, &two};
    Gpul__Event e = event(GPUL__EVENT__KIND__ASSIGNED, NULL, NULL);
    e.members = members;
    e.n_members = 2;
    check_sentence(&gathering, &e,
                   "local-0 (host box, 127.0.0.1): node rank 0, ranks 0-3\n"
                   "local-1 (host box, 127.0.0.1): node rank 1, rank 4");
    assert_true(status_is_detail(&e));
}

/* What the self-test ran on is said, and why where nobody asked for it; no
 * figure of a double passes as one. */
static void test_backends(void **state)
{
    (void)state;
    static char host_tcp[] = "host-tcp", nccl[] = "nccl", twin[] = "double";
    static const struct {
        char *backend;
        bool has_gpus;
        bool is_simulated;
        const char *expected;
    } cases[] = {
        {host_tcp, false, false,
         "self-test passed on host memory over TCP (no node has a GPU)"},
        {host_tcp, true, false, "self-test passed on host memory over TCP"},
        {nccl, true, false, "self-test passed over NCCL"},
        {twin, true, true,
         "SIMULATED self-test passed on test doubles; its figures mean "
         "nothing"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct status s = {.phase = STATUS_TESTING,
                           .has_gpus = cases[i].has_gpus};
        Gpul__Event e = event(GPUL__EVENT__KIND__SELF_TEST_PASSED, NULL, NULL);
        e.backend = cases[i].backend;
        e.is_simulated = cases[i].is_simulated;
        check_sentence(&s, &e, cases[i].expected);
    }
}

/* On GPUs the live line says so; a node's GPUs are noted as it is assigned. */
static void test_on_gpus(void **state)
{
    (void)state;
    static char nccl[] = "nccl";
    struct status s;
    assert_int_equal(init(&s, "local-0"), 0);
    Gpul__Member member = GPUL__MEMBER__INIT;
    Gpul__Member *members[] = {&member};
    Gpul__Event e = event(GPUL__EVENT__KIND__ASSIGNED, NULL, NULL);
    e.members = members;
    e.n_members = 1;
    status_update(&s, &e);
    assert_false(s.has_gpus);
    member.gpus = 2;
    status_update(&s, &e);
    assert_true(s.has_gpus);
    e = event(GPUL__EVENT__KIND__SELF_TEST_STARTED, NULL, NULL);
    e.backend = nccl;
    status_update(&s, &e);
    check_live(&s, 80, "[1.2 s] 1 node: self-test on GPUs");
    status_release(&s);
}

/* While the ranks run there is no live line, but if they hang. */
static void test_hang(void **state)
{
    (void)state;
    static char text[] = "training hangs: no step for 10 s";
    struct status s;
    assert_int_equal(init(&s, "local-0"), 0);
    s.phase = STATUS_RUNNING;
    check_live(&s, 80, "");
    Gpul__Event e = event(GPUL__EVENT__KIND__STALL, NULL, text);
    e.have = 3;
    e.need = 4;
    status_update(&s, &e);
    assert_false(status_is_detail(&e));
    check_sentence(&s, &e, "training hangs: no step for 10 s");
    check_live(&s, 80, "[1.2 s] training hangs: 3 ranks");
    e.have = 0;
    status_update(&s, &e);
    assert_true(status_is_calm(&s));
    check_live(&s, 80, "");
    status_release(&s);
}

/* By what nodes are reached: a detail. That they are not, is none. */
static void test_links(void **state)
{
    (void)state;
    char address[] = "10.0.0.5";
    char interface[] = "eth0";
    char rejected[] = "docker0 172.17.0.1 (bridge): no port";
    char *list[] = {rejected};
    Gpul__Member one = GPUL__MEMBER__INIT;
    Gpul__Member two = GPUL__MEMBER__INIT;
    Gpul__Member *members[] = {&one, &two};
    one.node_name = names[0];
    one.hostname = host;
    one.address = address;
    one.interface = interface;
    two.node_name = names[1];
    two.hostname = host;
    two.rejected = list;
    two.n_rejected = 1;
    Gpul__Event e = event(GPUL__EVENT__KIND__LINKS, NULL, NULL);
    e.members = members;
    e.n_members = 2;
    check_sentence(&gathering, &e,
                   "local-0 (host box): 10.0.0.5 on eth0\n"
                   "local-1 (host box): no address\n"
                   "    not docker0 172.17.0.1 (bridge): no port");
    assert_true(status_is_detail(&e));
    e.kind = GPUL__EVENT__KIND__LINKS_FAILED;
    assert_false(status_is_detail(&e));
}

/* Nodes whose names nobody knows are counted. */
static void test_open(void **state)
{
    (void)state;
    static const struct nodes nobody;
    static char name[] = "n7";
    struct status s;
    struct gpul_buf out;
    gpul_buf_init(&out, 1000);
    assert_int_equal(status_init(&s, &nobody, 3), 0);
    Gpul__Event event = GPUL__EVENT__INIT;
    event.kind = GPUL__EVENT__KIND__NODE_JOINED;
    event.node_name = name;
    event.have = 1;
    event.need = 3;
    status_update(&s, &event);
    assert_true(status_has_joined(&s, 2));
    assert_int_equal(status_words(&out, &s), 0);
    assert_non_null(strstr(gpul_buf_text(&out), "1/3"));
    assert_non_null(strstr(gpul_buf_text(&out), "2 more"));
    /* Later, too, they are as many as were waited for. */
    gpul_buf_release(&out);
    gpul_buf_init(&out, 1000);
    event.kind = GPUL__EVENT__KIND__ASSIGNED;
    status_update(&s, &event);
    status_words(&out, &s);
    gpul_buf_append_text(&out, "\n");
    event.kind = GPUL__EVENT__KIND__SELF_TEST_STARTED;
    status_update(&s, &event);
    status_words(&out, &s);
    assert_string_equal(gpul_buf_text(&out), "3 nodes: assigning ranks\n"
                                             "3 nodes: self-test (all-reduce)");
    gpul_buf_release(&out);
    status_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),      cmocka_unit_test(test_live),
        cmocka_unit_test(test_sentences), cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_members),   cmocka_unit_test(test_backends),
        cmocka_unit_test(test_on_gpus),   cmocka_unit_test(test_hang),
        cmocka_unit_test(test_links),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
