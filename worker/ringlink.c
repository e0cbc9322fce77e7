/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ringlink.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "worker/wait.h"

/* Room for strangers in front of the neighbour; the kernel's bound of old. */
enum { BACKLOG = 128 };

static const char MAGIC[8] = {'G', 'P', 'U', 'L', 'R', 'N', 'G', '1'};

/* A connection that has yet to prove itself. */
struct caller {
    int fd;
    uint8_t hello[RINGLINK_HELLO_BYTES];
    size_t used;
};

/* The state of one ringlink_connect. */
struct joining {
    struct ringlink *link;
    struct caller callers[RINGLINK_CALLERS_MAX]; /* oldest first */
    size_t caller_count;
    uint32_t strangers;
    char last_stranger[RINGLINK_NAME_BYTES]; /* address, and what was wrong */
    int dial_fd;
    enum { DIAL_CONNECTING, DIAL_ANSWER, DIAL_DONE } dial;
    uint8_t answer[RINGLINK_HELLO_BYTES];
    size_t answer_used;
};

static uint32_t left_rank(const struct ringlink_place *place)
{
    return (place->rank + place->node_count - 1) % place->node_count;
}

static uint32_t right_rank(const struct ringlink_place *place)
{
    return (place->rank + 1) % place->node_count;
}

/* `address` may be NULL; a side without a name goes by its rank. */
static void name_neighbour(char text[RINGLINK_NAME_BYTES],
                           const struct ringlink_place *place, const char *side,
                           const char *address)
{
    bool is_left = side[0] == 'l';
    const char *name = is_left ? place->left_name : place->right_name;
    char who[RINGLINK_NAME_BYTES / 2];
    if (name != NULL && name[0] != 0) {
        snprintf(who, sizeof(who), "node %s", name);
    } else {
        snprintf(who, sizeof(who), "node rank %u",
                 is_left ? left_rank(place) : right_rank(place));
    }
    snprintf(text, RINGLINK_NAME_BYTES, "%s neighbour (%s%s%.80s)", side, who,
             address != NULL ? ", " : "", address != NULL ? address : "");
}

int ringlink_lost(const char *neighbour, const char *doing, int errno_value,
                  struct gpul_error *err)
{
    if (errno_value == ECONNRESET || errno_value == EPIPE) {
        return gpul_fail(err, GPUL_ECLOSED, "%s: closed the connection",
                         neighbour);
    }
    return gpul_fail(err, GPUL_ECLOSED, "%s: %s: %s", neighbour, doing,
                     strerror(errno_value));
}

/* ---- the proof ----------------------------------------------------------- */

static void put_u32(uint8_t *to, uint32_t value)
{
    uint32_t big = htonl(value);
    memcpy(to, &big, sizeof(big));
}

static void hello_write(uint8_t out[RINGLINK_HELLO_BYTES],
                        const struct ringlink_place *place)
{
    memcpy(out, MAGIC, sizeof(MAGIC));
    put_u32(out + 8, (uint32_t)(place->token >> 32));
    put_u32(out + 12, (uint32_t)place->token);
    put_u32(out + 16, place->generation);
    put_u32(out + 20, place->node_count);
    put_u32(out + 24, place->rank);
}

/* What is wrong with a hello that should come from `rank`, or NULL. */
static const char *hello_fault(const uint8_t hello[RINGLINK_HELLO_BYTES],
                               const struct ringlink_place *place,
                               uint32_t rank)
{
    uint8_t expected[RINGLINK_HELLO_BYTES];
    struct ringlink_place sender = *place;
    sender.rank = rank;
    hello_write(expected, &sender);
    static const struct {
        size_t end;
        const char *fault;
    } fields[] = {
        {8, "not a probe"},         {16, "another token"},
        {20, "another generation"}, {24, "another number of nodes"},
        {28, "another node rank"},
    };
    size_t start = 0;
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        size_t n = fields[i].end - start;
        if (memcmp(hello + start, expected + start, n) != 0) {
            return fields[i].fault;
        }
        start = fields[i].end;
    }
    return NULL;
}

/* A new connection's buffer has room for 28 bytes: anything but all of them
 * means that the connection is broken. */
static int hello_send(int fd, const struct ringlink_place *place)
{
    uint8_t hello[RINGLINK_HELLO_BYTES];
    hello_write(hello, place);
    ssize_t n = send(fd, hello, sizeof(hello), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n == (ssize_t)sizeof(hello)) {
        return 0;
    }
    return n < 0 ? errno : EPIPE;
}

/* ---- sockets ------------------------------------------------------------- */

/* "address:port", with brackets where they belong. */
static void write_address(char text[RINGLINK_NAME_BYTES],
                          const struct sockaddr *address, socklen_t bytes)
{
    char host[RINGLINK_NAME_BYTES / 2] = "?";
    char port[16] = "?";
    getnameinfo(address, bytes, host, sizeof(host), port, sizeof(port),
                NI_NUMERICHOST | NI_NUMERICSERV);
    bool has_colon = strchr(host, ':') != NULL;
    snprintf(text, RINGLINK_NAME_BYTES, has_colon ? "[%s]:%s" : "%s:%s", host,
             port);
}

static int parse_literal(struct addrinfo **out, const char *address,
                         uint16_t port, struct gpul_error *err)
{
    const struct addrinfo hints = {
        .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
        .ai_socktype = SOCK_STREAM,
    };
    char service[8];
    snprintf(service, sizeof(service), "%u", port);
    int failure = getaddrinfo(address, service, &hints, out);
    if (failure == EAI_MEMORY) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory for an address");
    }
    if (failure != 0) {
        return gpul_fail(err, GPUL_EINVAL, "\"%s\" is not a literal address",
                         address);
    }
    return 0;
}

static int open_socket(int family)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) {
        /* Inherited by what a listener accepts. A ring waits for small
         * pieces at every hop; Nagle's algorithm would hold them back. */
        int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    }
    return fd;
}

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
}

void ringlink_init(struct ringlink *link, const struct ringlink_place *place,
                   int watch_fd)
{
    assert(place->node_count >= 2 && place->rank < place->node_count);
    *link = (struct ringlink){
        .place = *place,
        .watch_fd = watch_fd,
        .listen_fd = -1,
        .left_fd = -1,
        .right_fd = -1,
    };
    name_neighbour(link->left_name, place, "left", NULL);
    name_neighbour(link->right_name, place, "right", NULL);
}

void ringlink_release(struct ringlink *link)
{
    close_fd(&link->listen_fd);
    close_fd(&link->left_fd);
    close_fd(&link->right_fd);
}

int ringlink_listen(struct ringlink *link, const char *address, uint16_t *port,
                    struct gpul_error *err)
{
    struct addrinfo *info;
    *port = 0;
    int status = parse_literal(&info, address, 0, err);
    if (status != 0) {
        return status;
    }
    struct sockaddr_storage bound = {0};
    socklen_t bytes = sizeof(bound);
    int fd = open_socket(info->ai_family);
    if (fd < 0 || bind(fd, info->ai_addr, info->ai_addrlen) != 0 ||
        listen(fd, BACKLOG) != 0 ||
        getsockname(fd, (struct sockaddr *)&bound, &bytes) != 0) {
        status = gpul_fail_errno(err, errno, "cannot listen on %s", address);
        close_fd(&fd);
    } else {
        link->listen_fd = fd;
        write_address(link->here, (struct sockaddr *)&bound, bytes);
        /* The port has the same place in both families. */
        *port = ntohs(((struct sockaddr_in *)&bound)->sin_port);
    }
    freeaddrinfo(info);
    return status;
}

/* ---- the right neighbour ------------------------------------------------- */

static int dial_start(struct joining *j, const char *address, uint16_t port,
                      struct gpul_error *err)
{
    struct ringlink *link = j->link;
    struct addrinfo *info;
    int status = parse_literal(&info, address, port, err);
    if (status != 0) {
        return status;
    }
    char text[RINGLINK_NAME_BYTES];
    write_address(text, info->ai_addr, info->ai_addrlen);
    name_neighbour(link->right_name, &link->place, "right", text);
    j->dial_fd = open_socket(info->ai_family);
    if (j->dial_fd < 0 ||
        (connect(j->dial_fd, info->ai_addr, info->ai_addrlen) != 0 &&
         errno != EINPROGRESS && errno != EINTR)) {
        status = gpul_fail_errno(err, errno, "%s: connect", link->right_name);
    }
    freeaddrinfo(info);
    return status;
}

static int dial_connected(struct joining *j, struct gpul_error *err)
{
    int failure = 0;
    socklen_t bytes = sizeof(failure);
    getsockopt(j->dial_fd, SOL_SOCKET, SO_ERROR, &failure, &bytes);
    if (failure != 0) {
        return ringlink_lost(j->link->right_name, "connect", failure, err);
    }
    failure = hello_send(j->dial_fd, &j->link->place);
    if (failure != 0) {
        return ringlink_lost(j->link->right_name, "send", failure, err);
    }
    j->dial = DIAL_ANSWER;
    return 0;
}

static int dial_read(struct joining *j, struct gpul_error *err)
{
    struct ringlink *link = j->link;
    ssize_t n = recv(j->dial_fd, j->answer + j->answer_used,
                     sizeof(j->answer) - j->answer_used, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return 0;
    }
    if (n < 0) {
        return ringlink_lost(link->right_name, "receive", errno, err);
    }
    if (n == 0) {
        return gpul_fail(err, GPUL_ECLOSED,
                         "%s: closed the connection without an answer",
                         link->right_name);
    }
    j->answer_used += (size_t)n;
    if (j->answer_used < sizeof(j->answer)) {
        return 0;
    }
    const char *fault =
        hello_fault(j->answer, &link->place, right_rank(&link->place));
    if (fault != NULL) {
        return gpul_fail(err, GPUL_EPROTO, "%s: answered as %s",
                         link->right_name, fault);
    }
    link->right_fd = j->dial_fd;
    j->dial_fd = -1;
    j->dial = DIAL_DONE;
    return 0;
}

/* ---- the left neighbour, and strangers ----------------------------------- */

static void caller_name(char text[RINGLINK_NAME_BYTES], int fd)
{
    struct sockaddr_storage peer = {0};
    socklen_t bytes = sizeof(peer);
    getpeername(fd, (struct sockaddr *)&peer, &bytes);
    write_address(text, (struct sockaddr *)&peer, bytes);
}

static void caller_remove(struct joining *j, size_t i)
{
    j->caller_count--;
    memmove(&j->callers[i], &j->callers[i + 1],
            (j->caller_count - i) * sizeof(j->callers[0]));
}

static void caller_drop(struct joining *j, size_t i, const char *fault)
{
    char address[RINGLINK_NAME_BYTES];
    caller_name(address, j->callers[i].fd);
    j->strangers++;
    snprintf(j->last_stranger, sizeof(j->last_stranger), "%.100s: %s", address,
             fault);
    close(j->callers[i].fd);
    caller_remove(j, i);
}

static void caller_accept(struct joining *j)
{
    int fd =
        accept4(j->link->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        return; /* the caller has gone again, or descriptors are short: the
                   deadline bounds how long that may last */
    }
    if (j->caller_count == RINGLINK_CALLERS_MAX) {
        caller_drop(j, 0, "said nothing");
    }
    j->callers[j->caller_count++] = (struct caller){.fd = fd};
}

/* Read what caller i says; it may leave the list. */
static void caller_read(struct joining *j, size_t i)
{
    struct ringlink *link = j->link;
    struct caller *caller = &j->callers[i];
    ssize_t n = recv(caller->fd, caller->hello + caller->used,
                     sizeof(caller->hello) - caller->used, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (n <= 0) {
        caller_drop(j, i, "hung up");
        return;
    }
    caller->used += (size_t)n;
    if (caller->used < sizeof(caller->hello)) {
        return;
    }
    const char *fault =
        hello_fault(caller->hello, &link->place, left_rank(&link->place));
    if (fault == NULL && hello_send(caller->fd, &link->place) != 0) {
        fault = "hung up";
    }
    if (fault != NULL) {
        caller_drop(j, i, fault);
        return;
    }
    char address[RINGLINK_NAME_BYTES];
    caller_name(address, caller->fd);
    name_neighbour(link->left_name, &link->place, "left", address);
    link->left_fd = caller->fd;
    caller_remove(j, i);
    close_fd(&link->listen_fd);
}

/* ---- both at once -------------------------------------------------------- */

static int joining_timeout(const struct joining *j, struct gpul_error *err)
{
    const struct ringlink *link = j->link;
    if (j->dial != DIAL_DONE) {
        return gpul_fail(err, GPUL_ETIMEOUT,
                         "%s: %s before the deadline; is TCP to it allowed?",
                         link->right_name,
                         j->dial == DIAL_CONNECTING ? "no connection"
                                                    : "no answer");
    }
    if (j->strangers == 0) {
        return gpul_fail(err, GPUL_ETIMEOUT,
                         "%s: did not dial %s before the deadline; is TCP "
                         "from it allowed?",
                         link->left_name, link->here);
    }
    return gpul_fail(err, GPUL_ETIMEOUT,
                     "%s: did not dial %s before the deadline; turned away "
                     "%u, the last was %s",
                     link->left_name, link->here, j->strangers,
                     j->last_stranger);
}

/* Wait once, and serve whoever is ready. */
static int joining_turn(struct joining *j, uint64_t deadline_ms,
                        struct gpul_error *err)
{
    struct ringlink *link = j->link;
    struct pollfd fds[3 + RINGLINK_CALLERS_MAX] = {
        {.fd = link->watch_fd, .events = POLLIN},
        {.fd = link->listen_fd, .events = POLLIN},
        {.fd = j->dial_fd,
         .events = j->dial == DIAL_CONNECTING ? POLLOUT : POLLIN},
    };
    size_t callers = j->caller_count;
    for (size_t i = 0; i < callers; i++) {
        fds[3 + i] = (struct pollfd){.fd = j->callers[i].fd, .events = POLLIN};
    }
    int status = wait_watched(fds, 3 + callers, deadline_ms, err);
    if (status == GPUL_ETIMEOUT) {
        return joining_timeout(j, err);
    }
    if (status == 0 && fds[2].revents != 0) {
        status = j->dial == DIAL_CONNECTING ? dial_connected(j, err)
                                            : dial_read(j, err);
    }
    /* From the last to the first: a caller that leaves moves only those
     * behind it, which have been served. */
    for (size_t i = callers; status == 0 && i > 0 && link->left_fd < 0; i--) {
        if (fds[2 + i].revents != 0) {
            caller_read(j, i - 1);
        }
    }
    if (status == 0 && fds[1].revents != 0 && link->left_fd < 0) {
        caller_accept(j);
    }
    return status;
}

int ringlink_connect(struct ringlink *link, const char *address, uint16_t port,
                     uint64_t deadline_ms, struct gpul_error *err)
{
    assert(link->listen_fd >= 0);
    struct joining j = {.link = link, .dial_fd = -1, .dial = DIAL_CONNECTING};
    int status = dial_start(&j, address, port, err);
    while (status == 0 && (j.dial != DIAL_DONE || link->left_fd < 0)) {
        status = joining_turn(&j, deadline_ms, err);
    }
    for (size_t i = 0; i < j.caller_count; i++) {
        close(j.callers[i].fd);
    }
    close_fd(&j.dial_fd);
    return status;
}
