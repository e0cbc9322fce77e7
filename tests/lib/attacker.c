/* SPDX-License-Identifier: Apache-2.0
 *
 * attacker [--from ADDRESS] [--sources N] [--hello FILE] [--pause MS]
 *          ADDRESS PORT KIND=COUNT...
 *
 * Holds so many connections against a port, of each kind:
 *
 *     silent    says nothing
 *     trickle   begins a TLS record, one byte a second
 *     replay    says what FILE holds, a recorded ClientHello, then nothing
 *
 * One that is closed is opened again after the pause (1000 ms). They come from
 * N addresses that follow each other, ADDRESS the first. Prints "holding" when
 * every one has been tried; at the end of its standard input it prints what
 * came of it, as NAME=NUMBER words, and ends:
 *
 *     opened      connections that stood
 *     closed      of those, closed by the other end
 *     open        still standing
 *     longest_ms  the longest time one stood
 *     answered    replays that got an answer
 *
 * For IPv4 on this machine only: it is a tool of the tests.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"

enum {
    CONNS_MAX = 20000,
    HELLO_BYTES_MAX = 4096,
    TICK_MS = 20,
    TRICKLE_MS = 1000,
    EVENTS = 512,
};

enum kind { SILENT, TRICKLE, REPLAY, KINDS };

static const char *const kind_names[KINDS] = {"silent", "trickle", "replay"};

struct conn {
    enum kind kind;
    int fd; /* -1: to be opened at due_ms */
    bool is_up, is_answered;
    uint64_t up_ms, due_ms; /* of the next byte, or of the next try */
    uint32_t sent;
};

static struct conn conns[CONNS_MAX];
static uint32_t conn_count;
static struct sockaddr_in target, source;
static uint32_t source_count = 1;
static uint64_t pause_ms = 1000;
static uint8_t hello[HELLO_BYTES_MAX];
static size_t hello_bytes;
static int epoll;
static uint64_t opened, closed, longest_ms, answered;

static void die(const char *what)
{
    fprintf(stderr, "attacker: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* ---- one connection ----------------------------------------------------- */

static void shut(struct conn *c, uint64_t now_ms)
{
    if (c->is_up && now_ms - c->up_ms > longest_ms) {
        longest_ms = now_ms - c->up_ms;
    }
    closed += c->is_up;
    close(c->fd);
    c->fd = -1;
    c->due_ms = now_ms + pause_ms;
}

static void open_one(struct conn *c, uint32_t index, uint64_t now_ms)
{
    int one = 1;
    struct sockaddr_in from = source;
    struct epoll_event event = {.events = EPOLLOUT | EPOLLIN,
                                .data.u32 = index};
    *c = (struct conn){.kind = c->kind, .due_ms = now_ms + pause_ms};
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0) {
        die("a socket");
    }
    if (source.sin_addr.s_addr != 0) {
        from.sin_addr.s_addr =
            htonl(ntohl(from.sin_addr.s_addr) + index % source_count);
        setsockopt(c->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one,
                   sizeof(one));
        if (bind(c->fd, (struct sockaddr *)&from, sizeof(from)) != 0) {
            die("--from");
        }
    }
    if (connect(c->fd, (struct sockaddr *)&target, sizeof(target)) != 0 &&
        errno != EINPROGRESS) {
        shut(c, now_ms);
    } else if (epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event) != 0) {
        die("epoll");
    }
}

/* The next byte of a record that says it has 512. */
static void send_byte(struct conn *c, uint64_t now_ms)
{
    static const uint8_t header[] = {0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc};
    uint8_t byte = c->sent < sizeof(header) ? header[c->sent] : 3;
    c->due_ms = now_ms + TRICKLE_MS;
    if (send(c->fd, &byte, 1, MSG_NOSIGNAL) == 1) {
        c->sent++;
    }
}

static void stand(struct conn *c, uint32_t index, uint64_t now_ms)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = index};
    c->is_up = true;
    c->up_ms = now_ms;
    c->due_ms = UINT64_MAX;
    opened++;
    epoll_ctl(epoll, EPOLL_CTL_MOD, c->fd, &event);
    if (c->kind == TRICKLE) {
        send_byte(c, now_ms);
    } else if (c->kind == REPLAY) {
        (void)!send(c->fd, hello, hello_bytes, MSG_NOSIGNAL);
    }
}

static void handle(uint32_t index, uint32_t events, uint64_t now_ms)
{
    struct conn *c = &conns[index];
    uint8_t bytes[4096];
    int error = 0;
    socklen_t n = sizeof(error);
    if (!c->is_up) {
        getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &n);
        if (error != 0 || (events & EPOLLOUT) == 0) {
            shut(c, now_ms);
            return;
        }
        stand(c, index, now_ms);
    }
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
        ssize_t got = recv(c->fd, bytes, sizeof(bytes), 0);
        if (got > 0) {
            answered += !c->is_answered;
            c->is_answered = true;
        } else if (got == 0 || errno != EAGAIN) {
            shut(c, now_ms);
        }
    }
}

/* ---- all of them -------------------------------------------------------- */

/* What is due; returns whether every connection has been tried. */
static bool tick(uint64_t now_ms)
{
    bool is_tried = true;
    for (uint32_t i = 0; i < conn_count; i++) {
        struct conn *c = &conns[i];
        if (c->fd < 0 && c->due_ms <= now_ms) {
            open_one(c, i, now_ms);
        } else if (c->is_up && c->fd >= 0 && c->due_ms <= now_ms) {
            send_byte(c, now_ms);
        }
        is_tried &= c->is_up || c->fd < 0;
    }
    return is_tried;
}

static void attack(void)
{
    struct epoll_event events[EVENTS];
    bool is_holding = false;
    for (;;) {
        uint64_t now_ms = gpul_clock_ms();
        struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
        char byte;
        if (poll(&input, 1, 0) == 1 && read(STDIN_FILENO, &byte, 1) <= 0) {
            return;
        }
        if (tick(now_ms) && !is_holding) {
            is_holding = true;
            puts("holding");
            fflush(stdout);
        }
        int n = epoll_wait(epoll, events, EVENTS, TICK_MS);
        now_ms = gpul_clock_ms();
        for (int i = 0; i < n; i++) {
            handle(events[i].data.u32, events[i].events, now_ms);
        }
    }
}

static void report(void)
{
    uint64_t now_ms = gpul_clock_ms(), standing = 0;
    for (uint32_t i = 0; i < conn_count; i++) {
        struct conn *c = &conns[i];
        if (c->fd >= 0 && c->is_up) {
            standing++;
            longest_ms =
                now_ms - c->up_ms > longest_ms ? now_ms - c->up_ms : longest_ms;
        }
    }
    printf("opened=%" PRIu64 " closed=%" PRIu64 " open=%" PRIu64
           " longest_ms=%" PRIu64 " answered=%" PRIu64 "\n",
           opened, closed, standing, longest_ms, answered);
}

/* ---- what it is told ---------------------------------------------------- */

static void usage(void)
{
    fputs("usage: attacker [--from ADDRESS] [--sources N] [--hello FILE] "
          "[--pause MS] ADDRESS PORT KIND=COUNT...\n",
          stderr);
    exit(2);
}

static void read_hello(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, hello, sizeof(hello)) : -1;
    if (n <= 0) {
        die(path);
    }
    hello_bytes = (size_t)n;
    close(fd);
}

static void parse_address(struct sockaddr_in *out, const char *text)
{
    out->sin_family = AF_INET;
    if (inet_pton(AF_INET, text, &out->sin_addr) != 1) {
        usage();
    }
}

static int parse_options(int argc, char **argv)
{
    int at = 1;
    for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
        const char *value = argv[at + 1];
        if (strcmp(argv[at], "--from") == 0) {
            parse_address(&source, value);
        } else if (strcmp(argv[at], "--sources") == 0) {
            source_count = (uint32_t)strtoul(value, NULL, 10);
        } else if (strcmp(argv[at], "--hello") == 0) {
            read_hello(value);
        } else if (strcmp(argv[at], "--pause") == 0) {
            pause_ms = strtoull(value, NULL, 10);
        } else {
            usage();
        }
    }
    return at;
}

static void add(const char *word)
{
    const char *equals = strchr(word, '=');
    uint32_t count =
        equals != NULL ? (uint32_t)strtoul(equals + 1, NULL, 10) : 0;
    for (int kind = 0; kind < KINDS; kind++) {
        size_t n = strlen(kind_names[kind]);
        if (equals == word + n && strncmp(word, kind_names[kind], n) == 0 &&
            count <= CONNS_MAX - conn_count) {
            for (; count > 0; count--) {
                conns[conn_count++] =
                    (struct conn){.kind = (enum kind)kind, .fd = -1};
            }
            return;
        }
    }
    usage();
}

int main(int argc, char **argv)
{
    struct rlimit limit;
    int at = parse_options(argc, argv);
    if (argc - at < 3 || source_count == 0) {
        usage();
    }
    parse_address(&target, argv[at]);
    target.sin_port = htons((uint16_t)strtoul(argv[at + 1], NULL, 10));
    for (at += 2; at < argc; at++) {
        add(argv[at]);
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    epoll = epoll_create1(EPOLL_CLOEXEC);
    attack();
    report();
    return 0;
}
