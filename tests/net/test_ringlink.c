/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "tests/lib/ringlab.h"
#include "worker/ringlink.h"

/* Deadlines that a test waits for: long enough for all that must happen
 * before them on a busy machine. */
enum { SHORT_MS = 1000 };

/* ---- strangers by hand --------------------------------------------------- */

static int dial(uint16_t port)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr = {htonl(INADDR_LOOPBACK)},
    };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

/* The port that `fd` has at its own end. */
static uint16_t own_port(int fd)
{
    struct sockaddr_in own;
    socklen_t bytes = sizeof(own);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &bytes), 0);
    return ntohs(own.sin_port);
}

static int listen_somewhere(uint16_t *port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET,
        .sin_addr = {htonl(INADDR_LOOPBACK)},
    };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd, 8), 0);
    *port = own_port(fd);
    return fd;
}

/* The proof as the header documents it, for node rank `rank` of two. */
static void write_hello(uint8_t hello[RINGLINK_HELLO_BYTES], uint8_t rank)
{
    static const uint8_t model[RINGLINK_HELLO_BYTES] = {
        'G',  'P',  'U',  'L',  'R',  'N',  'G',  '1',  /* magic */
        0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, /* token */
        0,    0,    0,    3,    0,    0,    0,    2,    /* generation, nodes */
        0,    0,    0,    0};                           /* node rank */
    memcpy(hello, model, RINGLINK_HELLO_BYTES);
    hello[RINGLINK_HELLO_BYTES - 1] = rank;
}

static void assert_closed(int fd)
{
    uint8_t byte;
    ssize_t n = recv(fd, &byte, 1, 0);
    assert_true(n <= 0); /* end of file or reset: not one byte came */
    close(fd);
}

/* ---- tests --------------------------------------------------------------- */

/* Rings of 2 to 33 places connect, and each end names the other. */
static void test_connects(void **state)
{
    (void)state;
    static const uint32_t ranks[] = {2, 3, 8, 33};
    for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
        struct ringlab lab;
        ringlab_init(&lab, ranks[i]);
        ringlab_run(&lab, ringlab_connect, NULL);
        ringlab_assert_ok(&lab);
        struct ringlink *last = &lab.places[ranks[i] - 1].link;
        char expected[RINGLINK_NAME_BYTES];
        snprintf(expected, sizeof(expected),
                 "right neighbour (node rank 0, 127.0.0.1:%u)",
                 lab.places[0].port);
        assert_string_equal(last->right_name, expected);
        snprintf(expected, sizeof(expected),
                 "left neighbour (node rank %u, 127.0.0.1:%u)", ranks[i] - 1,
                 own_port(last->right_fd));
        assert_string_equal(lab.places[0].link.left_name, expected);
        assert_int_equal(lab.places[0].link.listen_fd, -1);
        ringlab_release(&lab);
    }
}

/* Strangers that say nothing, too little, too much or the wrong thing get no
 * byte and do not keep the neighbours out; more of them than there are
 * places for, too. */
static void test_strangers(void **state)
{
    (void)state;
    enum { SILENT = RINGLINK_CALLERS_MAX + 4, FORGED = 6 };
    static const size_t forged_at[FORGED] = {0, 8, 15, 19, 23, 27};
    struct ringlab lab;
    int silent[SILENT];
    int forged[FORGED];
    uint8_t hello[RINGLINK_HELLO_BYTES];
    ringlab_init(&lab, 2);
    uint16_t port = lab.places[0].port;
    for (size_t i = 0; i < FORGED; i++) {
        forged[i] = dial(port);
        write_hello(hello, 1);
        hello[forged_at[i]] ^= 0x40;
        assert_int_equal(send(forged[i], hello, sizeof(hello), 0), 28);
    }
    for (size_t i = 0; i < SILENT; i++) {
        silent[i] = dial(port);
        send(silent[i], hello, i % 3, 0);
    }
    static const char request[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    int browser = dial(port);
    send(browser, request, sizeof(request) - 1, 0);
    close(dial(port));
    ringlab_run(&lab, ringlab_connect, NULL);
    ringlab_assert_ok(&lab);
    for (size_t i = 0; i < FORGED; i++) {
        assert_closed(forged[i]);
    }
    for (size_t i = 0; i < SILENT; i++) {
        assert_closed(silent[i]);
    }
    assert_closed(browser);
    ringlab_release(&lab);
}

/* A neighbour that proves itself byte by byte is let in, and answered with
 * the proof of the other side. */
static void test_proof_in_pieces(void **state)
{
    (void)state;
    struct ringlab lab;
    uint8_t hello[RINGLINK_HELLO_BYTES];
    uint8_t answer[RINGLINK_HELLO_BYTES];
    ringlab_init(&lab, 2);
    uint16_t port;
    int listener = listen_somewhere(&port);
    int left = dial(lab.places[0].port);
    write_hello(hello, 1);
    for (size_t i = 0; i < sizeof(hello); i++) {
        assert_int_equal(send(left, hello + i, 1, 0), 1);
    }
    struct ringlab_place *place = &lab.places[0];
    place->status = ringlink_connect(&place->link, "127.0.0.1", port,
                                     gpul_clock_ms() + SHORT_MS, &place->err);
    assert_int_equal(place->status, GPUL_ETIMEOUT); /* no right neighbour */
    assert_int_equal(recv(left, answer, sizeof(answer), MSG_WAITALL), 28);
    write_hello(hello, 0);
    assert_memory_equal(answer, hello, sizeof(hello));
    close(left);
    close(listener);
    ringlab_release(&lab);
}

static void connect_all_but_last(struct ringlab_place *place)
{
    if (place->rank != place->lab->n - 1) {
        ringlab_connect(place);
    }
}

/* Three places of which node rank 2 listens and does no more. */
static void run_without_last(struct ringlab *lab)
{
    uint64_t deadline_ms = gpul_clock_ms() + SHORT_MS;
    lab->places[0].deadline_ms = deadline_ms;
    lab->places[1].deadline_ms = deadline_ms;
    ringlab_run(lab, connect_all_but_last, NULL);
    assert_int_equal(lab->places[0].status, GPUL_ETIMEOUT);
    assert_int_equal(lab->places[1].status, GPUL_ETIMEOUT);
}

/* A neighbour that never comes: at the deadline its right neighbour says
 * where it should have dialled, its left one where it should have answered. */
static void test_neighbour_never_comes(void **state)
{
    (void)state;
    struct ringlab lab;
    char expected[256];
    ringlab_init(&lab, 3);
    run_without_last(&lab);
    snprintf(expected, sizeof(expected),
             "left neighbour (node rank 2): did not dial 127.0.0.1:%u before "
             "the deadline; is TCP from it allowed?",
             lab.places[0].port);
    assert_string_equal(lab.places[0].err.text, expected);
    snprintf(expected, sizeof(expected),
             "right neighbour (node rank 2, 127.0.0.1:%u): no answer before "
             "the deadline; is TCP to it allowed?",
             lab.places[2].port);
    assert_string_equal(lab.places[1].err.text, expected);
    ringlab_release(&lab);
}

/* When a stranger came in its place, the text says who and why it was
 * turned away. */
static void test_stranger_instead_of_neighbour(void **state)
{
    (void)state;
    struct ringlab lab;
    char expected[256];
    uint8_t hello[RINGLINK_HELLO_BYTES];
    ringlab_init(&lab, 3);
    int stranger = dial(lab.places[0].port);
    write_hello(hello, 2);
    hello[15] ^= 1;
    send(stranger, hello, sizeof(hello), 0);
    run_without_last(&lab);
    snprintf(expected, sizeof(expected),
             "left neighbour (node rank 2): did not dial 127.0.0.1:%u before "
             "the deadline; turned away 1, the last was 127.0.0.1:%u: "
             "another token",
             lab.places[0].port, own_port(stranger));
    assert_string_equal(lab.places[0].err.text, expected);
    assert_closed(stranger);
    ringlab_release(&lab);
}

/* Nobody listens where the right neighbour should be. */
static void test_right_refuses(void **state)
{
    (void)state;
    struct ringlab lab;
    uint16_t port;
    close(listen_somewhere(&port));
    ringlab_init(&lab, 2);
    struct ringlab_place *place = &lab.places[0];
    int status = ringlink_connect(&place->link, "127.0.0.1", port,
                                  place->deadline_ms, &place->err);
    assert_int_equal(status, GPUL_ECLOSED);
    char expected[256];
    snprintf(expected, sizeof(expected),
             "right neighbour (node rank 1, 127.0.0.1:%u): connect: "
             "Connection refused",
             port);
    assert_string_equal(place->err.text, expected);
    ringlab_release(&lab);
}

/* One connection is answered with a proof that has a flipped byte (-1: with
 * nothing) in a process of its own. */
static pid_t answer_wrongly(int listener, int flipped)
{
    uint8_t hello[RINGLINK_HELLO_BYTES];
    pid_t pid = fork();
    if (pid == 0) {
        int fd = accept(listener, NULL, NULL);
        recv(fd, hello, sizeof(hello), MSG_WAITALL);
        write_hello(hello, 1);
        if (flipped >= 0) {
            hello[flipped] ^= 0x20;
            send(fd, hello, sizeof(hello), 0);
        }
        _exit(0);
    }
    return pid;
}

/* What listens there is something else: each wrong answer is named. */
static void test_right_is_something_else(void **state)
{
    (void)state;
    static const struct {
        int flipped;
        const char *text;
    } cases[] = {
        {-1, "closed the connection without an answer"},
        {0, "answered as not a probe"},
        {12, "answered as another token"},
        {19, "answered as another generation"},
        {23, "answered as another number of nodes"},
        {27, "answered as another node rank"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ringlab lab;
        uint16_t port;
        int listener = listen_somewhere(&port);
        ringlab_init(&lab, 2);
        struct ringlab_place *place = &lab.places[0];
        pid_t pid = answer_wrongly(listener, cases[i].flipped);
        int status = ringlink_connect(&place->link, "127.0.0.1", port,
                                      place->deadline_ms, &place->err);
        assert_int_equal(status,
                         cases[i].flipped < 0 ? GPUL_ECLOSED : GPUL_EPROTO);
        char expected[256];
        snprintf(expected, sizeof(expected),
                 "right neighbour (node rank 1, 127.0.0.1:%u): %s", port,
                 cases[i].text);
        assert_string_equal(place->err.text, expected);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        close(listener);
        ringlab_release(&lab);
    }
}

/* The agent closes its end: the wait is over at once. */
static void test_agent_goes(void **state)
{
    (void)state;
    int agent[2];
    struct ringlab lab;
    uint16_t port;
    int listener = listen_somewhere(&port);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, agent), 0);
    ringlab_init(&lab, 2);
    struct ringlab_place *place = &lab.places[0];
    place->link.watch_fd = agent[0];
    close(agent[1]);
    int status = ringlink_connect(&place->link, "127.0.0.1", port,
                                  place->deadline_ms, &place->err);
    assert_int_equal(status, GPUL_ECLOSED);
    assert_string_equal(place->err.text, "the agent has gone");
    close(agent[0]);
    close(listener);
    ringlab_release(&lab);
}

/* Only literals, and only what this machine has. */
static void test_bad_addresses(void **state)
{
    (void)state;
    const struct ringlink_place at = {.node_count = 2};
    struct ringlink link;
    struct gpul_error err;
    uint16_t port;
    ringlink_init(&link, &at, -1);
    assert_int_equal(ringlink_listen(&link, "localhost", &port, &err),
                     GPUL_EINVAL);
    assert_string_equal(err.text, "\"localhost\" is not a literal address");
    assert_int_equal(ringlink_listen(&link, "192.0.2.1", &port, &err),
                     GPUL_ESYS);
    assert_string_equal(err.text, "cannot listen on 192.0.2.1: Cannot assign "
                                  "requested address");
    assert_int_equal(link.listen_fd, -1);
    ringlink_release(&link);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_connects),
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_proof_in_pieces),
        cmocka_unit_test(test_neighbour_never_comes),
        cmocka_unit_test(test_stranger_instead_of_neighbour),
        cmocka_unit_test(test_right_refuses),
        cmocka_unit_test(test_right_is_something_else),
        cmocka_unit_test(test_agent_goes),
        cmocka_unit_test(test_bad_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
