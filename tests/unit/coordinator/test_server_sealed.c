/* SPDX-License-Identifier: Apache-2.0
 *
 * The server with a secret: who gets in, and as whom.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "coordinator/server.h"
#include "proto/limits.h"
#include "server_stage.h"

enum { SECRET = 7, WRONG_SECRET = 8 };

/* A server that waits for node0, and its front end. */
static void open_job(struct stage *s, struct reader *front_end)
{
    stage_start(s, SECRET);
    reader_init(front_end, s->front_end, GPUL_PEER_DESK);
    stage_send_job(front_end, 1, 60000);
}

static void close_job(struct stage *s, struct reader *front_end, int exit_code)
{
    assert_int_equal(stage_reap(s), exit_code);
    reader_release(front_end);
}

/* Dial with the key of this node; false: it was refused. */
static bool dial_as(struct reader *r, const struct stage *s, uint8_t secret,
                    struct gpul_keyring **keyring, const char *name)
{
    *keyring = wire_keyring(secret, "job", name);
    reader_init(r, stage_dial(s), GPUL_PEER_COORDINATOR);
    return wire_seal(&r->wire, *keyring);
}

static void hang_up(struct reader *r, struct gpul_keyring *keyring)
{
    reader_release(r);
    gpul_keyring_destroy(keyring);
}

/* The end of a job, which says who was at the door: nobody ("") or `count`. */
static void expect_end(struct reader *front_end, uint32_t code, uint64_t count,
                       const char *words)
{
    Gpul__Frame *f = reader_expect(front_end, GPUL__FRAME__BODY_JOB_END);
    assert_int_equal(f->job_end->exit_code, code);
    assert_int_equal(f->job_end->stranger_count, count);
    assert_string_equal(f->job_end->strangers, words);
    gpul_message_release(f);
}

/* node0, from its key to its end with `code`. */
static void play_node(const struct stage *s, struct reader *front_end,
                      uint32_t code, uint64_t strangers, const char *words)
{
    struct reader node;
    struct gpul_keyring *keyring;
    assert_true(dial_as(&node, s, SECRET, &keyring, "node0"));
    stage_send_hello(&node, "node0");
    reader_expect_one(&node, GPUL__FRAME__BODY_ASSIGN);
    stage_send_ready(&node);
    reader_expect_one(&node, GPUL__FRAME__BODY_LAUNCH);
    stage_send_exit(&node, 0, code);
    expect_end(front_end, code, strangers, words);
    reader_expect_one(&node, GPUL__FRAME__BODY_FINISH);
    hang_up(&node, keyring);
}

/* Who has the key of one node, and says nothing with it, takes no places of
 * others. */
static void test_mute_key(void **state)
{
    (void)state;
    enum { MUTE = 300 }; /* more than there are places for one node */
    static struct reader mute[MUTE];
    static struct gpul_keyring *keyrings[MUTE];
    struct stage s;
    struct reader front_end;
    open_job(&s, &front_end);
    for (uint32_t i = 0; i < MUTE; i++) {
        assert_true(dial_as(&mute[i], &s, SECRET, &keyrings[i], "node1"));
    }
    play_node(&s, &front_end, 0, 0, "");
    for (uint32_t i = 0; i < MUTE; i++) {
        hang_up(&mute[i], keyrings[i]);
    }
    close_job(&s, &front_end, 0);
}

/* What the server was lent is wiped once it lets nodes in. */
static void test_one_copy(void **state)
{
    (void)state;
    static const struct gpul_secret wiped;
    struct stage s;
    struct reader front_end, node;
    struct gpul_keyring *keyring;
    open_job(&s, &front_end);
    assert_true(dial_as(&node, &s, SECRET, &keyring, "node0"));
    assert_memory_equal(s.lent, &wiped, sizeof(wiped));
    hang_up(&node, keyring);
    play_node(&s, &front_end, 0, 0, "");
    close_job(&s, &front_end, 0);
}

/* With its key a node has the whole way of a job. */
static void test_key(void **state)
{
    (void)state;
    struct stage s;
    struct reader front_end;
    open_job(&s, &front_end);
    play_node(&s, &front_end, 7, 0, "");
    close_job(&s, &front_end, 7);
}

static Gpul__Frame *expect_event(struct reader *front_end,
                                 Gpul__Event__Kind kind)
{
    for (;;) {
        Gpul__Frame *f = reader_expect(front_end, GPUL__FRAME__BODY_EVENT);
        if (f->event->kind == kind) {
            return f;
        }
        gpul_message_release(f);
    }
}

/* The key of one node is good for no other name, and the user hears of both;
 * the node whose name it was gets in all the same. */
static void test_other_name(void **state)
{
    (void)state;
    struct stage s;
    struct reader front_end;
    struct reader thief;
    struct gpul_keyring *keyring;
    open_job(&s, &front_end);
    assert_true(dial_as(&thief, &s, SECRET, &keyring, "node1"));
    stage_send_hello(&thief, "node0");
    Gpul__Frame *f = reader_expect(&thief, GPUL__FRAME__BODY_REFUSE);
    assert_int_equal(f->refuse->reason, GPUL__REFUSE__REASON__WRONG_NAME);
    assert_string_equal(f->refuse->text,
                        "a node from 127.0.0.1 calls itself node0 and has "
                        "shown the key of node1; a key is good for one name "
                        "only");
    gpul_message_release(f);
    assert_null(reader_next(&thief));
    hang_up(&thief, keyring);
    f = expect_event(&front_end, GPUL__EVENT__KIND__NODE_REFUSED);
    assert_non_null(strstr(f->event->text, "node0"));
    assert_non_null(strstr(f->event->text, "node1"));
    gpul_message_release(f);
    play_node(&s, &front_end, 0, 0, "");
    close_job(&s, &front_end, 0);
}

/* A wrong secret: closed, and the user hears it once, with the name. */
static void test_wrong_secret(void **state)
{
    (void)state;
    struct stage s;
    struct reader front_end;
    open_job(&s, &front_end);
    for (int i = 0; i < 3; i++) {
        struct reader node;
        struct gpul_keyring *keyring;
        assert_false(dial_as(&node, &s, WRONG_SECRET, &keyring, "node0"));
        assert_string_equal(node.wire.why.text,
                            "the coordinator refused this node's key: is its "
                            "--secret-file the job's own?");
        hang_up(&node, keyring);
    }
    Gpul__Frame *f = expect_event(&front_end, GPUL__EVENT__KIND__NOTICE);
    assert_string_equal(f->event->text,
                        "a node that calls itself node0 of this job showed a "
                        "wrong secret: is its --secret-file the job's own?");
    gpul_message_release(f);
    /* The next event is that the right one has come. */
    struct reader node;
    struct gpul_keyring *keyring;
    assert_true(dial_as(&node, &s, SECRET, &keyring, "node0"));
    stage_send_hello(&node, "node0");
    f = reader_expect(&front_end, GPUL__FRAME__BODY_EVENT);
    assert_int_equal(f->event->kind, GPUL__EVENT__KIND__NODE_JOINED);
    gpul_message_release(f);
    reader_expect_one(&node, GPUL__FRAME__BODY_ASSIGN);
    stage_send_ready(&node);
    reader_expect_one(&node, GPUL__FRAME__BODY_LAUNCH);
    stage_send_exit(&node, 0, 0);
    expect_end(&front_end, 0, 3, "a wrong secret (3); the last from 127.0.0.1");
    hang_up(&node, keyring);
    close_job(&s, &front_end, 0);
}

static void expect_closed(int fd)
{
    struct wire w;
    uint8_t byte;
    wire_init(&w, fd);
    assert_int_equal(wire_read(&w, &byte, 1), 0);
    wire_release(&w);
}

/* What is not TLS gets no answer. */
static void test_strangers(void **state)
{
    (void)state;
    static const char *const words[] = {"GET / HTTP/1.1\r\n\r\n",
                                        "SSH-2.0-OpenSSH_9.2\r\n",
                                        "\x00\x00\x00\x10plain frames"};
    struct stage s;
    struct reader front_end;
    open_job(&s, &front_end);
    for (size_t i = 0; i < 3; i++) {
        int fd = stage_dial(&s);
        size_t n = i < 2 ? strlen(words[i]) : 16;
        assert_int_equal(send(fd, words[i], n, MSG_NOSIGNAL), (ssize_t)n);
        expect_closed(fd);
    }
    play_node(&s, &front_end, 0, 3,
              "HTTP (1), an ssh banner (1), neither TLS nor anything known "
              "(1); the last from "
              "127.0.0.1");
    close_job(&s, &front_end, 0);
}

/* More silent connections than the job has numbers for connections: a node
 * comes in past them, and each is closed in its time. */
static void test_silent_crowd(void **state)
{
    (void)state;
    enum { SILENT = 400 };
    int fds[SILENT];
    struct stage s;
    struct reader front_end;
    open_job(&s, &front_end);
    for (int i = 0; i < SILENT; i++) {
        fds[i] = stage_dial(&s);
    }
    struct reader node;
    struct gpul_keyring *keyring;
    assert_true(dial_as(&node, &s, SECRET, &keyring, "node0"));
    stage_send_hello(&node, "node0");
    reader_expect_one(&node, GPUL__FRAME__BODY_ASSIGN);
    for (int i = 0; i < SILENT; i++) {
        expect_closed(fds[i]);
    }
    stage_send_ready(&node);
    reader_expect_one(&node, GPUL__FRAME__BODY_LAUNCH);
    stage_send_exit(&node, 0, 0);
    reader_expect_end(&front_end, 0);
    hang_up(&node, keyring);
    close_job(&s, &front_end, 0);
}

/* The end of the job does not wait for those who stand at the door. */
static void test_end_with_strangers(void **state)
{
    (void)state;
    struct stage s;
    struct reader front_end;
    open_job(&s, &front_end);
    int silent = stage_dial(&s);
    play_node(&s, &front_end, 0, 0, "");
    close_job(&s, &front_end, 0);
    expect_closed(silent);
}

/* Without a secret only on loopback. */
static void test_insecure(void **state)
{
    (void)state;
    struct sockaddr_in any = {.sin_family = AF_INET};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int pair[2];
    int exit_code;
    struct gpul_error err;
    assert_int_equal(bind(listener, (struct sockaddr *)&any, sizeof(any)), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair),
                     0);
    struct server_config config = {.operator_fd = pair[1],
                                   .listen_fds = {listener},
                                   .listen_count = 1,
                                   .epoch = 1};
    assert_int_equal(server_run(&exit_code, &config, &err), GPUL_EINVAL);
    assert_string_equal(err.text,
                        "--insecure is for a listener on loopback, and this "
                        "one is on 0.0.0.0, where whoever reaches it could run "
                        "commands as you; leave --insecure out");
    close(pair[0]);
    close(pair[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_key),
        cmocka_unit_test(test_other_name),
        cmocka_unit_test(test_mute_key),
        cmocka_unit_test(test_one_copy),
        cmocka_unit_test(test_wrong_secret),
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_silent_crowd),
        cmocka_unit_test(test_end_with_strangers),
        cmocka_unit_test(test_insecure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
