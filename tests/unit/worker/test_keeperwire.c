/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/keeperwire.h"

struct pair {
    int a;
    int b;
};

static struct pair open_pair(void)
{
    int ends[2];
    assert_int_equal(
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    return (struct pair){ends[0], ends[1]};
}

static void close_pair(struct pair p)
{
    close(p.a);
    close(p.b);
}

static size_t count_open(void)
{
    size_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder) != NULL) {
        count++;
    }
    closedir(folder);
    return count;
}

static struct keeper_packet packet(void)
{
    struct keeper_packet p = {
        .type = KEEPER_START, .slot = 7, .at_ms = 1ull << 40, .pid = 12};
    snprintf(p.text, sizeof(p.text), "text");
    return p;
}

/* Packets arrive whole, in order, and one by one. */
static void test_round(void **state)
{
    (void)state;
    struct pair p = open_pair();
    struct keeper_packet sent = packet();
    struct keeper_mail mail;
    assert_int_equal(keeperwire_receive(p.b, &mail), EAGAIN);
    assert_int_equal(keeperwire_send(p.a, &sent, NULL, 0), 0);
    sent.slot = 8;
    assert_int_equal(keeperwire_send(p.a, &sent, NULL, 0), 0);
    assert_int_equal(keeperwire_receive(p.b, &mail), 0);
    assert_int_equal(mail.packet.slot, 7);
    assert_int_equal(mail.packet.at_ms, 1ull << 40);
    assert_string_equal(mail.packet.text, "text");
    assert_int_equal(mail.fd_count, 0);
    assert_int_equal(keeperwire_receive(p.b, &mail), 0);
    assert_int_equal(mail.packet.slot, 8);
    assert_int_equal(keeperwire_receive(p.b, &mail), EAGAIN);
    close_pair(p);
}

/* As many descriptors as a packet can have, each another, close-on-exec. */
static void test_descriptors(void **state)
{
    (void)state;
    struct pair p = open_pair();
    struct keeper_packet sent = packet();
    struct keeper_mail mail;
    int fds[KEEPER_FDS_MAX];
    size_t before = count_open();
    for (int i = 0; i < KEEPER_FDS_MAX; i++) {
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        assert_int_equal(write(ends[1], &i, sizeof(i)), sizeof(i));
        close(ends[1]);
        fds[i] = ends[0];
    }
    assert_int_equal(keeperwire_send(p.a, &sent, fds, KEEPER_FDS_MAX), 0);
    for (int i = 0; i < KEEPER_FDS_MAX; i++) {
        close(fds[i]);
    }
    assert_int_equal(keeperwire_receive(p.b, &mail), 0);
    assert_int_equal(mail.fd_count, KEEPER_FDS_MAX);
    for (int i = 0; i < KEEPER_FDS_MAX; i++) {
        int got = -1;
        assert_int_equal(read(mail.fds[i], &got, sizeof(got)), sizeof(got));
        assert_int_equal(got, i);
        assert_int_equal(fcntl(mail.fds[i], F_GETFD), FD_CLOEXEC);
    }
    keeperwire_close_fds(&mail);
    assert_int_equal(mail.fd_count, 0);
    assert_int_equal(count_open(), before);
    close_pair(p);
}

/* Send `n` bytes of `bytes` with `count` descriptors, as no peer of ours
 * would. */
static void send_raw(int socket, const void *bytes, size_t n, size_t count)
{
    enum { MOST = 2 * KEEPER_FDS_MAX };
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * MOST)];
    } control;
    int fds[MOST];
    struct iovec body = {(void *)(uintptr_t)bytes, n};
    struct msghdr message = {.msg_iov = &body, .msg_iovlen = 1};
    assert_true(count <= MOST);
    for (size_t i = 0; i < count; i++) {
        fds[i] = socket;
    }
    if (count > 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int) * count);
        memcpy(CMSG_DATA(head), fds, sizeof(int) * count);
    }
    assert_int_equal(sendmsg(socket, &message, 0), n);
}

/* Whatever is no packet is told, and none of its descriptors stays open; the
 * next one arrives. */
static void test_bad(void **state)
{
    (void)state;
    struct pair p = open_pair();
    size_t before = count_open();
    struct keeper_packet good = packet();
    struct keeper_packet bad[5];
    char larger[sizeof(good) + 1] = {0};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        bad[i] = good;
    }
    bad[0].type = 0;
    bad[1].type = KEEPER_LAST_TO_AGENT + 1;
    bad[2].type = KEEPER_LAST_TO_KEEPER + 1;
    memset(bad[3].text, 'x', sizeof(bad[3].text));
    memset(&bad[4].is_out_of_memory, 2, 1);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        send_raw(p.a, &bad[i], sizeof(bad[i]), 2);
    }
    memcpy(larger, &good, sizeof(good));
    send_raw(p.a, larger, sizeof(larger), 2);
    send_raw(p.a, &good, sizeof(good) - 1, 2);
    send_raw(p.a, "x", 1, 0);
    send_raw(p.a, &good, sizeof(good), KEEPER_FDS_MAX + 3);
    assert_int_equal(keeperwire_send(p.a, &good, NULL, 0), 0);
    struct keeper_mail mail;
    for (int i = 0; i < 9; i++) {
        assert_int_equal(keeperwire_receive(p.b, &mail), EBADMSG);
        assert_int_equal(mail.fd_count, 0);
    }
    assert_int_equal(keeperwire_receive(p.b, &mail), 0);
    assert_int_equal(mail.packet.slot, 7);
    assert_int_equal(count_open(), before);
    close_pair(p);
}

/* No room for the descriptors: the packet says whose start it was. */
static void test_full_table(void **state)
{
    (void)state;
    struct pair p = open_pair();
    struct keeper_packet sent = packet();
    struct keeper_mail mail;
    struct rlimit before;
    int fds[3] = {p.a, p.a, p.a};
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    size_t open_before = count_open();
    int next = dup(0);
    close(next);
    struct rlimit low = {(rlim_t)next + 2, before.rlim_max};
    assert_int_equal(keeperwire_send(p.a, &sent, fds, 3), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    int rc = keeperwire_receive(p.b, &mail);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(rc, EMFILE);
    assert_int_equal(mail.packet.slot, 7);
    assert_int_equal(count_open(), open_before);
    close_pair(p);
}

/* A peer that does not read makes nobody wait; one that is gone is told in
 * both directions, after what it said. */
static void test_ends(void **state)
{
    (void)state;
    struct pair p = open_pair();
    struct keeper_packet sent = packet();
    struct keeper_mail mail;
    int rc;
    do {
        rc = keeperwire_send(p.a, &sent, NULL, 0);
    } while (rc == 0);
    assert_int_equal(rc, EAGAIN);
    close(p.b);
    assert_int_equal(keeperwire_send(p.a, &sent, NULL, 0), EPIPE);
    close(p.a);
    p = open_pair();
    assert_int_equal(keeperwire_send(p.a, &sent, NULL, 0), 0);
    close(p.a);
    assert_int_equal(keeperwire_receive(p.b, &mail), 0);
    assert_int_equal(keeperwire_receive(p.b, &mail), EPIPE);
    close(p.b);
}

/* A peer that ends without having read what it was sent is heard all the
 * same. */
static void test_last_words(void **state)
{
    (void)state;
    struct pair p = open_pair();
    struct keeper_packet sent = packet();
    struct keeper_mail mail;
    assert_int_equal(keeperwire_send(p.b, &sent, NULL, 0), 0);
    assert_int_equal(keeperwire_send(p.a, &sent, NULL, 0), 0);
    assert_int_equal(keeperwire_send(p.a, &sent, NULL, 0), 0);
    close(p.a);
    assert_int_equal(keeperwire_send(p.b, &sent, NULL, 0), EPIPE);
    assert_int_equal(keeperwire_receive(p.b, &mail), 0);
    assert_int_equal(keeperwire_receive(p.b, &mail), 0);
    assert_int_equal(keeperwire_receive(p.b, &mail), EPIPE);
    close(p.b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round), cmocka_unit_test(test_descriptors),
        cmocka_unit_test(test_bad),   cmocka_unit_test(test_full_table),
        cmocka_unit_test(test_ends),  cmocka_unit_test(test_last_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
