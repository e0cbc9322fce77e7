/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/keeperlink.h"

/* The test is the keeper. */
struct stage {
    uv_loop_t loop;
    struct keeperlink *link;
    int keeper;
    int agent;           /* the link's own */
    uint32_t said;       /* packets of the agent, in test_many */
    uint32_t slots[600]; /* of the mail that came, in order */
    size_t count;
    unsigned turns;
    unsigned lost;
    bool closes_at_once;
};

static void on_mail(void *arg, struct keeper_mail *mail)
{
    struct stage *s = arg;
    assert_true(s->count < 600);
    s->slots[s->count++] = mail->packet.slot;
    keeperwire_close_fds(mail);
    if (s->closes_at_once) {
        keeperlink_close(s->link);
        s->link = NULL;
    }
}

static void on_turn(void *arg)
{
    struct stage *s = arg;
    s->turns++;
}

static void on_lost(void *arg)
{
    struct stage *s = arg;
    s->lost++;
}

static void stage_open(struct stage *s)
{
    static const struct keeperlink_handlers handlers = {on_mail, on_turn,
                                                        on_lost};
    int pair[2];
    *s = (struct stage){.keeper = -1};
    assert_int_equal(
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(uv_loop_init(&s->loop), 0);
    s->keeper = pair[0];
    s->agent = pair[1];
    assert_int_equal(
        keeperlink_open(&s->link, &s->loop, pair[1], &handlers, s, NULL), 0);
}

static void stage_close(struct stage *s)
{
    keeperlink_close(s->link);
    close(s->keeper);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->loop), 0);
}

static void keeper_says(struct stage *s, uint32_t slot)
{
    const struct keeper_packet packet = {.type = KEEPER_EXIT, .slot = slot};
    assert_int_equal(keeperwire_send(s->keeper, &packet, NULL, 0), 0);
}

/* Mail comes in order, and one turn tells that all of it is there. */
static void test_mail(void **state)
{
    (void)state;
    struct stage s;
    stage_open(&s);
    for (uint32_t i = 0; i < 5; i++) {
        keeper_says(&s, i);
    }
    uv_run(&s.loop, UV_RUN_NOWAIT);
    assert_int_equal(s.count, 5);
    assert_int_equal(s.slots[4], 4);
    assert_int_equal(s.turns, 1);
    assert_int_equal(s.lost, 0);
    stage_close(&s);
}

/* The last words of a keeper are heard before its end, which is told once. */
static void test_lost(void **state)
{
    (void)state;
    struct stage s;
    stage_open(&s);
    keeper_says(&s, 7);
    close(s.keeper);
    s.keeper = -1;
    for (int i = 0; i < 3; i++) {
        uv_run(&s.loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(s.count, 1);
    assert_int_equal(s.lost, 1);
    const struct keeper_packet packet = {.type = KEEPER_STOP};
    struct gpul_error err = {0};
    assert_int_equal(keeperlink_send(s.link, &packet, NULL, 0, &err),
                     GPUL_ECLOSED);
    assert_string_equal(err.text, "the keeper of this node is gone");
    stage_close(&s);
}

/* A link may be closed by what it says. */
static void test_close_within(void **state)
{
    (void)state;
    struct stage s;
    stage_open(&s);
    s.closes_at_once = true;
    keeper_says(&s, 1);
    keeper_says(&s, 2);
    uv_run(&s.loop, UV_RUN_DEFAULT);
    assert_int_equal(s.count, 1);
    assert_int_equal(s.turns, 0);
    stage_close(&s);
}

/* Nonsense is no reason to lose the ranks. */
static void test_nonsense(void **state)
{
    (void)state;
    struct stage s;
    stage_open(&s);
    assert_int_equal(send(s.keeper, "x", 1, 0), 1);
    keeper_says(&s, 3);
    uv_run(&s.loop, UV_RUN_NOWAIT);
    assert_int_equal(s.count, 1);
    assert_int_equal(s.slots[0], 3);
    stage_close(&s);
}

/* A start: the specification as a file, what is the child's, what is kept. */
static void test_start(void **state)
{
    (void)state;
    struct stage s;
    struct gpul_buf spec;
    struct keeper_mail mail;
    struct stat st;
    char bytes[8] = "";
    const int child[] = {0, 1, 2}, kept[] = {1, 2};
    stage_open(&s);
    gpul_buf_init(&spec, 100);
    gpul_buf_append(&spec, "spec", 4);
    assert_int_equal(
        keeperlink_start(s.link, 9, &spec, child, 3, kept, 2, true, NULL), 0);
    assert_int_equal(keeperwire_receive(s.keeper, &mail), 0);
    assert_int_equal(mail.packet.type, KEEPER_START);
    assert_int_equal(mail.packet.slot, 9);
    assert_int_equal(mail.packet.child_fds, 3);
    assert_int_equal(mail.packet.kept_fds, 2);
    assert_true(mail.packet.has_input);
    assert_int_equal(mail.fd_count, 6);
    assert_int_equal(fstat(mail.fds[0], &st), 0);
    assert_int_equal(st.st_size, 4);
    assert_int_equal(pread(mail.fds[0], bytes, 8, 0), 4);
    assert_string_equal(bytes, "spec");
    keeperwire_close_fds(&mail);
    gpul_buf_release(&spec);
    stage_close(&s);
}

static void *read_all(void *arg)
{
    struct stage *s = arg;
    struct keeper_mail mail;
    unsigned count = 0;
    while (count < s->said) {
        if (keeperwire_receive(s->keeper, &mail) == 0) {
            assert_int_equal(mail.packet.slot, count);
            keeperwire_close_fds(&mail);
            count++;
        }
    }
    return NULL;
}

/* A full socket: the agent waits for the keeper, and no start is lost. */
static void test_many(void **state)
{
    (void)state;
    struct stage s;
    struct gpul_buf spec;
    pthread_t thread;
    const int fds[] = {0, 1, 2};
    uint32_t filled = 0;
    stage_open(&s);
    gpul_buf_init(&spec, 100);
    struct keeper_packet packet = {.type = KEEPER_PASS};
    while (keeperwire_send(s.agent, &packet, NULL, 0) == 0) {
        packet.slot = ++filled;
    }
    s.said = filled + 500;
    assert_int_equal(pthread_create(&thread, NULL, read_all, &s), 0);
    for (uint32_t i = filled; i < s.said; i++) {
        assert_int_equal(
            keeperlink_start(s.link, i, &spec, fds, 3, fds, 2, false, NULL), 0);
    }
    pthread_join(thread, NULL);
    gpul_buf_release(&spec);
    stage_close(&s);
}

/* The first word, before there is a loop. */
static void test_await(void **state)
{
    (void)state;
    int pair[2];
    struct keeper_mail mail;
    struct gpul_error err = {0};
    const struct keeper_packet first = {.type = KEEPER_STATE, .agent = 4};
    const struct keeper_packet second = {.type = KEEPER_GONE};
    assert_int_equal(
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    keeperwire_send(pair[0], &first, NULL, 0);
    keeperwire_send(pair[0], &second, NULL, 0);
    keeperwire_send(pair[0], &second, NULL, 0);
    assert_int_equal(keeperlink_await(pair[1], &mail, KEEPER_STATE, NULL), 0);
    assert_int_equal(mail.packet.agent, 4);
    assert_int_equal(keeperlink_await(pair[1], &mail, 0, NULL), 0);
    assert_int_equal(mail.packet.type, KEEPER_GONE);
    assert_int_equal(keeperlink_await(pair[1], &mail, KEEPER_STATE, NULL),
                     GPUL_EPROTO);
    close(pair[0]);
    assert_int_equal(keeperlink_await(pair[1], &mail, 0, &err), GPUL_ECLOSED);
    close(pair[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mail),         cmocka_unit_test(test_lost),
        cmocka_unit_test(test_close_within), cmocka_unit_test(test_nonsense),
        cmocka_unit_test(test_start),        cmocka_unit_test(test_many),
        cmocka_unit_test(test_await),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
