/* SPDX-License-Identifier: Apache-2.0
 *
 * A keeper hears any packets from its agent, as whole as the wire lets them
 * through, while ranks and agents end in any order: it never fails, tells only
 * what can be sent, and leaves no descriptor behind.
 *
 * Input: any number of: 1 byte (what happens; its upper bits are a slot or a
 * number of descriptors), and for a packet the bytes of one.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/fuzz.h"
#include "worker/keeperwire.h"
#include "worker/keeping.h"

enum { STEPS_MAX = 64, TELL_MAX = 64 };

/* Large, and for the most part never touched. */
static struct keeping k;
static uint64_t now_ms;
static unsigned orders;
static int pair[2];

static void do_actions(const struct keeping_actions *actions);

static void step(struct keeping_event event)
{
    struct keeping_actions actions;
    event.now_ms = now_ms;
    keeping_step(&k, &event, &actions);
    do_actions(&actions);
}

/* What has an answer gets one at once; every third start fails. */
static void do_one(const struct keeping_action *a)
{
    bool fails = ++orders % 3 == 0;
    struct keeping_event event = {.slot = a->slot};
    if (a->type == KEEPING_DO_LIST) {
        keeping_add_unclean(&k, "4711 python");
    } else if (a->type == KEEPING_DO_FORK_AGENT) {
        event.type = KEEPING_AGENT_STARTED;
        event.pid = fails ? 0 : 500;
        step(event);
    } else if (a->type == KEEPING_DO_START) {
        event.type = KEEPING_STARTED;
        event.pid = fails ? 0 : (int32_t)(1000 + a->slot);
        event.exec_errno = fails ? ENOENT : 0;
        event.text = "no such program";
        step(event);
    }
}

static void do_actions(const struct keeping_actions *actions)
{
    FUZZ_CHECK(actions->count <= KEEPING_ACTIONS_MAX);
    for (size_t i = 0; i < actions->count; i++) {
        const struct keeping_action *a = &actions->items[i];
        FUZZ_CHECK(a->type >= KEEPING_DO_FORK_AGENT &&
                   a->type <= KEEPING_DO_CLOSE);
        FUZZ_CHECK(a->slot < GPUL_RANKS_PER_NODE_MAX ||
                   a->slot == KEEPER_ALL_SLOTS);
        do_one(a);
    }
}

/* What it says next passes the wire. */
static void tell(void)
{
    struct keeper_packet packet;
    struct keeper_mail mail;
    for (int i = 0; i < TELL_MAX && keeping_next_packet(&k, &packet); i++) {
        FUZZ_CHECK(keeperwire_send(pair[0], &packet, NULL, 0) == 0);
        FUZZ_CHECK(keeperwire_receive(pair[1], &mail) == 0);
        FUZZ_CHECK(mail.packet.type <= KEEPER_LAST_TO_AGENT);
        keeping_packet_sent(&k);
    }
}

/* Bytes of anybody, with so many descriptors; does the wire take them? */
static bool receive(struct keeper_mail *mail, const uint8_t *bytes, size_t n,
                    size_t fd_count)
{
    char control[CMSG_SPACE(sizeof(int) * 32)] = {0};
    struct iovec body = {(void *)(uintptr_t)bytes, n};
    struct msghdr message = {.msg_iov = &body, .msg_iovlen = 1};
    if (fd_count > 0) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
        for (size_t i = 0; i < fd_count; i++) {
            memcpy(CMSG_DATA(head) + i * sizeof(int), &pair[0], sizeof(int));
        }
    }
    FUZZ_CHECK(sendmsg(pair[1], &message, MSG_DONTWAIT) == (ssize_t)n);
    int rc = keeperwire_receive(pair[0], mail);
    FUZZ_CHECK(rc == 0 || rc == EBADMSG || rc == EPIPE || rc == EMFILE);
    return rc == 0;
}

static size_t take_packet(const uint8_t *data, size_t n, unsigned fd_count)
{
    struct keeper_mail mail;
    size_t bytes =
        n < sizeof(struct keeper_packet) ? n : sizeof(struct keeper_packet);
    if (bytes > 0 && receive(&mail, data, bytes, fd_count)) {
        FUZZ_CHECK(memchr(mail.packet.text, 0, KEEPER_TEXT_BYTES) != NULL);
        FUZZ_CHECK(mail.fd_count <= KEEPER_FDS_MAX);
        if (mail.packet.type >= KEEPER_BEGIN) {
            step((struct keeping_event){.type = KEEPING_PACKET,
                                        .packet = &mail.packet});
        }
        keeperwire_close_fds(&mail);
    }
    return bytes;
}

static void happen(unsigned what, unsigned number)
{
    static const enum keeping_event_type types[8] = {
        KEEPING_TICK,   KEEPING_AGENT_ENDED,     KEEPING_EXITED,
        KEEPING_EXITED, KEEPING_NONE_LEFT,       KEEPING_SIGNAL,
        KEEPING_TICK,   KEEPING_UNDERTAKER_ENDED};
    struct keeping_event event = {.type = types[what], .slot = number};
    now_ms += 400 * number;
    event.signal = event.type == KEEPING_SIGNAL ? 15 : 0;
    bool is_possible = true;
    if (event.type == KEEPING_EXITED) {
        is_possible =
            number < k.rank_count && k.slots[number].state == KEEPING_ALIVE;
    } else if (event.type == KEEPING_AGENT_ENDED) {
        is_possible = k.agent_pid != 0;
    } else if (event.type == KEEPING_UNDERTAKER_ENDED) {
        is_possible = k.undertakers > 0;
    }
    if (is_possible) {
        step(event);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    memset(&k, 0, sizeof(k));
    now_ms = 1000;
    orders = 0;
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) ==
               0);
    int first_free = dup(pair[0]);
    close(first_free);
    keeping_init(&k, 7);
    step((struct keeping_event){.type = KEEPING_TICK});
    for (int i = 0; i < STEPS_MAX && n > 0; i++) {
        unsigned what = data[0] & 15, number = data[0] >> 4;
        data++;
        n--;
        if (what < 8) {
            size_t used = take_packet(data, n, number);
            data += used;
            n -= used;
        } else {
            happen(what - 8, number);
        }
        tell();
    }
    int last_free = dup(pair[0]);
    close(last_free);
    FUZZ_CHECK(last_free == first_free);
    close(pair[0]);
    close(pair[1]);
    return 0;
}
