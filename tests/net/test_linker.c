/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes that prove their addresses to each other, all in one loop: those of
 * loopback stand for addresses of networks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/linker.h"
#include "worker/linkhello.h"

/* Own address by which a node has joined, if it is given to it. */
#define JOINED "127.0.0.99"

enum { NODES = 3, TOKEN = 4711, DEADLINE_MS = 15000 };

struct node {
    struct linker linker;
    Gpul__LinkListening *listening; /* copies, owned */
    Gpul__LinkReport *report;
};

static uv_loop_t loop;
static struct node nodes[NODES];

static void *copy_of(const ProtobufCMessage *message)
{
    size_t n = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = malloc(n + 1);
    assert_non_null(bytes);
    protobuf_c_message_pack(message, bytes);
    void *copy = protobuf_c_message_unpack(message->descriptor, NULL, n, bytes);
    assert_non_null(copy);
    free(bytes);
    return copy;
}

static void on_frame(void *arg, Gpul__Frame *frame)
{
    struct node *node = arg;
    if (frame->body_case == GPUL__FRAME__BODY_LINK_LISTENING) {
        assert_null(node->listening);
        node->listening = copy_of(&frame->link_listening->base);
    } else {
        assert_int_equal(frame->body_case, GPUL__FRAME__BODY_LINK_REPORT);
        assert_null(node->report);
        node->report = copy_of(&frame->link_report->base);
    }
}

static const struct linker_handlers handlers = {.on_frame = on_frame};

static int setup(void **state)
{
    (void)state;
    memset(nodes, 0, sizeof(nodes));
    assert_int_equal(uv_loop_init(&loop), 0);
    for (size_t i = 0; i < NODES; i++) {
        linker_init(&nodes[i].linker, &loop, &handlers, &nodes[i]);
    }
    return 0;
}

/* Nothing may be left open. */
static int teardown(void **state)
{
    (void)state;
    for (size_t i = 0; i < NODES; i++) {
        linker_close(&nodes[i].linker);
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    for (size_t i = 0; i < NODES; i++) {
        if (nodes[i].listening != NULL) {
            gpul__link_listening__free_unpacked(nodes[i].listening, NULL);
        }
        if (nodes[i].report != NULL) {
            gpul__link_report__free_unpacked(nodes[i].report, NULL);
        }
    }
    return 0;
}

/* On these addresses, separated by blanks. */
static void open_node(uint32_t rank, uint32_t node_count, const char *list)
{
    static struct gpul_interface found[GPUL_INTERFACES_FOUND_MAX];
    size_t n = 0;
    char text[128];
    char *rest;
    snprintf(text, sizeof(text), "%s", list);
    for (char *one = strtok_r(text, " ", &rest); one != NULL;
         one = strtok_r(NULL, " ", &rest)) {
        found[n] = (struct gpul_interface){.kind = "ethernet"};
        snprintf(found[n].name, sizeof(found[n].name), "net%zu", n);
        snprintf(found[n].address, sizeof(found[n].address), "%.64s", one);
        n++;
    }
    const struct linker_request request = {
        .token = TOKEN,
        .self = rank,
        .node_count = node_count,
        .wanted = "",
        .joined = JOINED,
        .found = found,
        .found_count = n,
    };
    assert_int_equal(linker_open(&nodes[rank].linker, &request, NULL), 0);
    assert_non_null(nodes[rank].listening);
}

static uint16_t port_of(uint32_t rank, size_t i)
{
    return (uint16_t)nodes[rank].listening->interfaces[i]->port;
}

/* Tell all nodes, one endpoint each. */
static void tell(uint32_t node_count, const char *addresses,
                 const uint16_t *list, uint32_t deadline_ms)
{
    uint32_t one = 1;
    uint32_t ports[NODES];
    Gpul__LinkPeers page = GPUL__LINK_PEERS__INIT;
    for (uint32_t i = 0; i < node_count; i++) {
        ports[i] = list[i];
    }
    page.page_count = 1;
    page.node_count = node_count;
    page.counts = &one;
    page.n_counts = 1;
    page.addresses = (char *)(uintptr_t)addresses;
    page.ports = ports;
    page.n_ports = node_count;
    page.deadline_ms = deadline_ms;
    for (uint32_t i = 0; i < node_count; i++) {
        if (nodes[i].linker.is_open) {
            assert_int_equal(linker_add(&nodes[i].linker, &page, NULL), 0);
        }
    }
}

static const Gpul__LinkReport *await(uint32_t rank)
{
    while (nodes[rank].report == NULL) {
        uv_run(&loop, UV_RUN_ONCE);
    }
    return nodes[rank].report;
}

static void expect_failure(uint32_t rank, uint32_t of,
                           Gpul__LinkFailure__Kind kind, uint32_t answered_by)
{
    const Gpul__LinkReport *report = await(rank);
    for (size_t i = 0; i < report->n_failures; i++) {
        if (report->failures[i]->node_rank == of) {
            assert_int_equal(report->failures[i]->kind, kind);
            assert_int_equal(report->failures[i]->answered_by, answered_by);
            return;
        }
    }
    fail_msg("node %u has reached node %u", rank, of);
}

/* The last of ten addresses is a candidate, since the node has joined by it. */
static void test_joined(void **state)
{
    (void)state;
    bool is_there = false;
    open_node(0, NODES,
              "127.0.0.1 127.0.0.2 127.0.0.3 127.0.0.4 127.0.0.5 127.0.0.6 "
              "127.0.0.7 127.0.0.8 127.0.0.10 " JOINED);
    for (size_t i = 0; i < GPUL_LINKS_MAX; i++) {
        const Gpul__LinkInterface *one = nodes[0].listening->interfaces[i];
        is_there = is_there || (strcmp(one->address, JOINED) == 0 &&
                                one->port != 0 && one->rejection[0] == '\0');
    }
    assert_true(is_there);
}

/* Everybody reaches everybody; the kernel says from where. */
static void test_all(void **state)
{
    (void)state;
    open_node(0, NODES, "127.0.0.1");
    open_node(1, NODES, "127.0.0.2 127.0.0.1");
    open_node(2, NODES, "127.0.0.3");
    const uint16_t ports[] = {port_of(0, 0), port_of(1, 0), port_of(2, 0)};
    tell(NODES, "127.0.0.1,127.0.0.2,127.0.0.3", ports, DEADLINE_MS);
    for (uint32_t i = 0; i < NODES; i++) {
        const Gpul__LinkReport *report = await(i);
        assert_int_equal(report->failure_count, 0);
        assert_int_equal(report->missed.len, 0);
    }
    /* Connections to 127.0.0.0/8 come from the address they go to, or from
     * 127.0.0.1. */
    assert_int_equal(nodes[0].report->n_reached_from, 1);
    assert_int_equal(nodes[1].report->n_reached_from, 2);
    assert_true(nodes[0].report->reached_from[0] > 0);
}

/* A network that is the same everywhere: whoever answers is told apart. */
static void test_other_machine(void **state)
{
    (void)state;
    open_node(0, NODES, "127.0.0.1");
    open_node(1, NODES, "127.0.0.2");
    open_node(2, NODES, "127.0.0.3");
    const uint16_t ports[] = {port_of(0, 0), port_of(0, 0), port_of(1, 0)};
    tell(NODES, "127.0.0.1,127.0.0.1,127.0.0.2", ports, DEADLINE_MS);
    expect_failure(0, 1, GPUL__LINK_FAILURE__KIND__OTHER_MACHINE, 1);
    expect_failure(0, 2, GPUL__LINK_FAILURE__KIND__OTHER_MACHINE, 2);
    expect_failure(2, 1, GPUL__LINK_FAILURE__KIND__OTHER_MACHINE, 1);
    assert_int_equal(await(2)->failure_count, 1);
}

static int listen_anywhere(uint16_t *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t n = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
    *port = ntohs(at.sin_port);
    return fd;
}

/* Nobody listens; somebody does and never answers, to the deadline. */
static void test_silence(void **state)
{
    (void)state;
    uint16_t silent;
    uint16_t closed;
    int fd = listen_anywhere(&silent);
    int other = listen_anywhere(&closed);
    close(other);
    open_node(0, NODES, "127.0.0.1");
    const uint16_t ports[] = {port_of(0, 0), closed, silent};
    tell(NODES, "127.0.0.1,127.0.0.1,127.0.0.1", ports, 300);
    expect_failure(0, 1, GPUL__LINK_FAILURE__KIND__REFUSED, 0);
    expect_failure(0, 2, GPUL__LINK_FAILURE__KIND__TIMED_OUT, 0);
    close(fd);
}

static int accept_one(int fd)
{
    while (true) {
        int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (peer >= 0) {
            return peer;
        }
        uv_run(&loop, UV_RUN_NOWAIT);
    }
}

/* Something else listens there: it hangs up, or speaks another language. */
static void test_strange_listener(void **state)
{
    (void)state;
    static const char http[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
    uint16_t port;
    int fd = listen_anywhere(&port);
    open_node(0, 2, "127.0.0.1");
    const uint16_t ports[] = {port_of(0, 0), port};
    tell(2, "127.0.0.1,127.0.0.1", ports, DEADLINE_MS);
    close(accept_one(fd)); /* it dials once more */
    int peer = accept_one(fd);
    assert_int_equal(write(peer, http, sizeof(http)), sizeof(http));
    expect_failure(0, 1, GPUL__LINK_FAILURE__KIND__OTHER_MACHINE, 0);
    close(peer);
    close(fd);
}

static int dial_node(uint32_t rank)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(port_of(rank, 0))};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

/* Bytes until the end, or 24. */
static ssize_t read_answer(int fd, uint8_t *out)
{
    size_t have = 0;
    while (have < LINKHELLO_BYTES) {
        ssize_t n = recv(fd, out + have, LINKHELLO_BYTES - have, MSG_DONTWAIT);
        if (n == 0) {
            return (ssize_t)have;
        }
        have += n > 0 ? (size_t)n : 0;
        uv_run(&loop, UV_RUN_NOWAIT);
    }
    return (ssize_t)have;
}

/* Whoever does not know the token learns nothing; who does, the rank. */
static void test_strange_diallers(void **state)
{
    (void)state;
    uint8_t bytes[LINKHELLO_BYTES];
    struct linkhello hello = {.token = TOKEN + 1, .from = 7, .to = 1};
    open_node(1, NODES, "127.0.0.1");
    int fd = dial_node(1);
    linkhello_write(bytes, &hello);
    assert_int_equal(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
    assert_int_equal(read_answer(fd, bytes), 0);
    close(fd);
    fd = dial_node(1);
    hello.token = TOKEN;
    linkhello_write(bytes, &hello);
    assert_int_equal(write(fd, bytes, 5), 5); /* in two pieces */
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(write(fd, bytes + 5, sizeof(bytes) - 5),
                     sizeof(bytes) - 5);
    assert_int_equal(read_answer(fd, bytes), LINKHELLO_BYTES);
    assert_true(linkhello_read(&hello, bytes));
    assert_int_equal(hello.from, 1);
    assert_int_equal(hello.to, 7);
    assert_int_equal(write(fd, "x", 1), 1); /* too much */
    assert_int_equal(read_answer(fd, bytes), 0);
    close(fd);
}

/* So many at a time, and not one more. */
static void test_flood(void **state)
{
    (void)state;
    static int fds[LINKER_ANSWERS_MAX + 1];
    uint8_t bytes[LINKHELLO_BYTES];
    open_node(0, 2, "127.0.0.1");
    for (size_t i = 0; i < LINKER_ANSWERS_MAX; i++) {
        fds[i] = dial_node(0);
    }
    while (nodes[0].linker.answers < LINKER_ANSWERS_MAX) {
        uv_run(&loop, UV_RUN_NOWAIT);
    }
    fds[LINKER_ANSWERS_MAX] = dial_node(0);
    assert_int_equal(read_answer(fds[LINKER_ANSWERS_MAX], bytes), 0);
    assert_int_equal(nodes[0].linker.answers, LINKER_ANSWERS_MAX);
    for (size_t i = 0; i <= LINKER_ANSWERS_MAX; i++) {
        close(fds[i]);
    }
    while (nodes[0].linker.answers > 0) {
        uv_run(&loop, UV_RUN_NOWAIT);
    }
}

/* An address that is not this machine's is no candidate after all. */
static void test_cannot_listen(void **state)
{
    (void)state;
    open_node(0, 2, "203.0.113.7 127.0.0.1");
    const Gpul__LinkListening *m = nodes[0].listening;
    assert_int_equal(m->n_interfaces, 2);
    assert_string_equal(m->interfaces[0]->address, "127.0.0.1");
    assert_int_not_equal(m->interfaces[0]->port, 0);
    assert_string_equal(m->interfaces[1]->address, "203.0.113.7");
    assert_non_null(strstr(m->interfaces[1]->rejection, "cannot listen there"));
    assert_string_equal(m->error, "");
    open_node(1, 2, "203.0.113.7");
    assert_non_null(strstr(nodes[1].listening->error, "203.0.113.7"));
}

/* Closed in the middle of it, and opened again. */
static void test_close(void **state)
{
    (void)state;
    uint16_t silent;
    int fd = listen_anywhere(&silent);
    open_node(0, 2, "127.0.0.1");
    const uint16_t ports[] = {port_of(0, 0), silent};
    tell(2, "127.0.0.1,127.0.0.1", ports, DEADLINE_MS);
    uv_run(&loop, UV_RUN_NOWAIT);
    linker_close(&nodes[0].linker);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_null(nodes[0].report);
    gpul__link_listening__free_unpacked(nodes[0].listening, NULL);
    nodes[0].listening = NULL;
    open_node(0, 2, "127.0.0.1");
    linker_close(&nodes[0].linker);
    linker_close(&nodes[0].linker);
    close(fd);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_joined),
        TEST(test_all),
        TEST(test_other_machine),
        TEST(test_silence),
        TEST(test_strange_listener),
        TEST(test_strange_diallers),
        TEST(test_flood),
        TEST(test_cannot_listen),
        TEST(test_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
