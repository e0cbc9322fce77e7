/* SPDX-License-Identifier: Apache-2.0
 *
 * Progress without a terminal: standard error is a pipe, time is the test's.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "launcher/progress.h"

enum { TEXT_BYTES = 4096, LONG_MS = 31000 };

struct fixture {
    uv_loop_t loop;
    struct console *console;
    struct progress progress;
    struct plan plan;
    uint64_t now_ms;
    int err[2];
    char text[TEXT_BYTES];
};

static void on_credit(void *arg, uint32_t node_rank, uint64_t bytes)
{
    (void)arg;
    (void)node_rank;
    (void)bytes;
}

static void on_progress(void *arg)
{
    (void)arg;
}

static void set_up(struct fixture *f)
{
    static const struct console_handlers handlers = {on_credit, on_progress};
    memset(f, 0, sizeof(*f));
    f->plan.node_count = 3;
    assert_int_equal(nodes_parse_list(&f->plan.nodes, NODES_LOCAL,
                                      "local-[0-2]", "--local", NULL),
                     0);
    assert_int_equal(uv_loop_init(&f->loop), 0);
    assert_int_equal(pipe2(f->err, O_CLOEXEC), 0);
    assert_int_equal(fcntl(f->err[0], F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(console_create(&f->console, &f->loop, f->err[1], f->err[1],
                                    &handlers, f, NULL),
                     0);
    assert_int_equal(progress_init(&f->progress, f->console, &f->plan, 0), 0);
}

static void tear_down(struct fixture *f)
{
    progress_release(&f->progress);
    nodes_release(&f->plan.nodes);
    console_close(f->console);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    console_destroy(f->console);
    close(f->err[0]);
    close(f->err[1]);
}

/* What has been said since the last call. */
static const char *said(struct fixture *f)
{
    ssize_t n = read(f->err[0], f->text, sizeof(f->text) - 1);
    f->text[n > 0 ? n : 0] = '\0';
    return f->text;
}

static const char *pass(struct fixture *f)
{
    f->now_ms += LONG_MS;
    progress_tick(&f->progress, f->now_ms);
    return said(f);
}

static const char *tell(struct fixture *f, Gpul__Event__Kind kind,
                        const char *text)
{
    char copy[64], name[] = "local-0";
    Gpul__Event event = GPUL__EVENT__INIT;
    strcpy(copy, text);
    event.kind = kind;
    event.text = copy;
    event.node_name = name;
    event.have = 1;
    event.need = 3;
    progress_event(&f->progress, &event, f->now_ms);
    return said(f);
}

/* A reminder says a wait once, and again only when it is another. */
static void test_reminders(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    assert_string_equal(pass(&f), "gpulaunch: [31 s] 0/3 nodes joined, missing "
                                  "local-[0-2]\n");
    assert_string_equal(pass(&f), "");
    tell(&f, GPUL__EVENT__KIND__NODE_JOINED, "");
    assert_string_equal(pass(&f), "gpulaunch: [1 min 33 s] 1/3 nodes joined, "
                                  "missing local-[1-2]\n");
    assert_string_equal(pass(&f), "");
    tear_down(&f);
}

/* The coordinator's word of a wait counts, whichever comes first. */
static void test_waiting(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    tell(&f, GPUL__EVENT__KIND__NODE_JOINED, "");
    assert_string_equal(tell(&f, GPUL__EVENT__KIND__WAITING, "local-[1-2]"),
                        "gpulaunch: waiting: 1/3 nodes have joined; missing: "
                        "local-[1-2]\n");
    assert_string_equal(pass(&f), "");
    tear_down(&f);

    set_up(&f);
    tell(&f, GPUL__EVENT__KIND__NODE_JOINED, "");
    assert_string_not_equal(pass(&f), "");
    assert_string_equal(tell(&f, GPUL__EVENT__KIND__WAITING, "local-[1-2]"),
                        "");
    tear_down(&f);
}

/* Where a reminder names nobody, the coordinator's word is another. */
static void test_self_test(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    tell(&f, GPUL__EVENT__KIND__SELF_TEST_STARTED, "");
    assert_string_equal(pass(&f),
                        "gpulaunch: [31 s] 3 nodes: self-test (all-reduce)\n");
    assert_string_equal(tell(&f, GPUL__EVENT__KIND__WAITING, "local-1"),
                        "gpulaunch: waiting: 1/3 nodes are through the "
                        "self-test; missing: local-1\n");
    assert_string_equal(pass(&f), "");
    tear_down(&f);
}

/* The figures of a self-test that was too slow, and no line of its own. */
static void test_slow(void **state)
{
    (void)state;
    struct fixture f;
    char host[] = "host-tcp";
    set_up(&f);
    Gpul__SelfTestRow row = GPUL__SELF_TEST_ROW__INIT;
    Gpul__SelfTestRow *rows[] = {&row};
    Gpul__Event event = GPUL__EVENT__INIT;
    event.kind = GPUL__EVENT__KIND__SELF_TEST_SLOW;
    event.backend = host;
    event.rows = rows;
    event.n_rows = 1;
    progress_event(&f.progress, &event, f.now_ms);
    const char *text = said(&f);
    assert_non_null(strstr(text, "FAILED, below --min-busbw\n#     size"));
    assert_null(strstr(text, "gpulaunch: "));
    tear_down(&f);
}

/* Nodes that join by themselves have no names here, but a number. */
static void test_open(void **state)
{
    (void)state;
    struct fixture f;
    char host[] = "host-tcp";
    set_up(&f);
    progress_release(&f.progress);
    nodes_release(&f.plan.nodes);
    f.plan.is_open = true;
    assert_int_equal(progress_init(&f.progress, f.console, &f.plan, 0), 0);
    Gpul__SelfTestRow row = GPUL__SELF_TEST_ROW__INIT;
    Gpul__SelfTestRow *rows[] = {&row};
    Gpul__Event event = GPUL__EVENT__INIT;
    event.kind = GPUL__EVENT__KIND__SELF_TEST_PASSED;
    event.backend = host;
    event.rows = rows;
    event.n_rows = 1;
    progress_event(&f.progress, &event, f.now_ms);
    assert_non_null(strstr(said(&f), "over TCP, 3 nodes, slowest rank\n"));
    tear_down(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reminders), cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_self_test), cmocka_unit_test(test_slow),
        cmocka_unit_test(test_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
