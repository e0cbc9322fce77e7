/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/keeperwire.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Room for the descriptors of one packet, aligned as the kernel wants it. */
union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int) * KEEPER_FDS_MAX)];
};

/* A peer that has died shows itself in several ways. */
static int plain_errno(int number)
{
    bool is_gone =
        number == ECONNRESET || number == ENOTCONN || number == ECONNREFUSED;
    return is_gone ? EPIPE : number == EWOULDBLOCK ? EAGAIN : number;
}

int keeperwire_send(int socket, const struct keeper_packet *packet,
                    const int *fds, size_t fd_count)
{
    assert(fd_count <= KEEPER_FDS_MAX);
    /* Received into a struct, so never written through. */
    struct iovec body = {(void *)(uintptr_t)packet, sizeof(*packet)};
    struct msghdr message = {.msg_iov = &body, .msg_iovlen = 1};
    union control control;
    if (fd_count > 0) {
        size_t bytes = sizeof(int) * fd_count;
        memset(&control, 0, sizeof(control));
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(bytes);
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(bytes);
        memcpy(CMSG_DATA(head), fds, bytes);
    }
    ssize_t n;
    do {
        n = sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    return n < 0 ? plain_errno(errno) : 0;
}

/* All descriptors of all control messages; what the kernel could not deliver
 * it has closed and told by MSG_CTRUNC. */
static void take_fds(struct keeper_mail *mail, struct msghdr *message)
{
    for (struct cmsghdr *head = CMSG_FIRSTHDR(message); head != NULL;
         head = CMSG_NXTHDR(message, head)) {
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(head) + i * sizeof(int), sizeof(fd));
            if (mail->fd_count < KEEPER_FDS_MAX) {
                mail->fds[mail->fd_count++] = fd;
            } else {
                close(fd);
            }
        }
    }
}

static bool is_known(uint32_t type)
{
    return (type >= KEEPER_STATE && type <= KEEPER_LAST_TO_AGENT) ||
           (type >= KEEPER_BEGIN && type <= KEEPER_LAST_TO_KEEPER);
}

/* Read as a byte: a bool that is neither may not even be looked at. */
static bool is_bool(const bool *b)
{
    unsigned char byte;
    memcpy(&byte, b, 1);
    return byte <= 1;
}

static bool is_packet(const struct keeper_packet *p)
{
    return is_known(p->type) && is_bool(&p->is_out_of_memory) &&
           is_bool(&p->has_input) &&
           memchr(p->text, 0, sizeof(p->text)) != NULL;
}

/* 0, or why this is no packet. */
static int judge(const struct keeper_mail *mail, ssize_t n, int flags)
{
    if ((flags & MSG_TRUNC) != 0 || n != (ssize_t)sizeof(mail->packet) ||
        !is_packet(&mail->packet)) {
        return EBADMSG;
    }
    if ((flags & MSG_CTRUNC) != 0) {
        /* A full table of descriptors, or more than fit a packet. */
        return mail->fd_count < KEEPER_FDS_MAX ? EMFILE : EBADMSG;
    }
    return 0;
}

int keeperwire_receive(int socket, struct keeper_mail *mail)
{
    struct iovec body = {&mail->packet, sizeof(mail->packet)};
    union control control;
    struct msghdr message = {
        .msg_iov = &body,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof(control.bytes),
    };
    mail->fd_count = 0;
    ssize_t n;
    /* A peer that ended with unread packets is told once, by ECONNRESET,
     * before what it had sent; that comes with the next call. */
    do {
        n = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (n < 0 && (errno == EINTR || errno == ECONNRESET));
    if (n < 0) {
        return plain_errno(errno);
    }
    take_fds(mail, &message);
    int why = n == 0 ? EPIPE : judge(mail, n, message.msg_flags);
    if (why != 0) {
        keeperwire_close_fds(mail);
    }
    return why;
}

void keeperwire_close_fds(struct keeper_mail *mail)
{
    for (size_t i = 0; i < mail->fd_count; i++) {
        close(mail->fds[i]);
    }
    mail->fd_count = 0;
}
