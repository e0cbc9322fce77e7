/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/keeperlink.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/writeall.h"

enum {
    AWAIT_MS = 5000,
    SEND_WAIT_MS = 1000,
    /* Packets of a turn: enough for the exits of a full node. */
    MAILS_MAX = 512,
};

struct keeperlink {
    uv_poll_t poll;
    int socket;
    struct keeperlink_handlers handlers;
    void *arg;
    bool is_mute; /* also once it is lost */
};

/* Wait for the socket until then; false: it is past it. */
static bool wait_for(int socket, short events, uint64_t deadline_ms)
{
    uint64_t now_ms = gpul_clock_ms();
    struct pollfd p = {.fd = socket, .events = events};
    if (now_ms >= deadline_ms) {
        return false;
    }
    poll(&p, 1, (int)(deadline_ms - now_ms));
    return true;
}

int keeperlink_await(int socket, struct keeper_mail *mail, uint32_t type,
                     struct gpul_error *err)
{
    uint64_t deadline_ms = gpul_clock_ms() + AWAIT_MS;
    int why;
    while ((why = keeperwire_receive(socket, mail)) == EAGAIN) {
        if (!wait_for(socket, POLLIN, deadline_ms)) {
            return gpul_fail(err, GPUL_ETIMEOUT,
                             "the keeper of this node said nothing within %d s",
                             AWAIT_MS / 1000);
        }
    }
    if (why == EPIPE) {
        return gpul_fail(err, GPUL_ECLOSED, "the keeper of this node is gone");
    }
    bool is_packet = why == 0 || why == EMFILE;
    if (!is_packet || (type != 0 && mail->packet.type != type)) {
        keeperwire_close_fds(mail);
        return gpul_fail(err, GPUL_EPROTO,
                         "the keeper of this node sent nonsense");
    }
    return 0;
}

/* ---- in ------------------------------------------------------------------ */

/* Tell of one packet, if there is one. What can be read without its
 * descriptors is told without them; what is no packet is dropped. */
static int take(struct keeperlink *l)
{
    struct keeper_mail mail;
    int why = keeperwire_receive(l->socket, &mail);
    if (why == 0 || why == EMFILE) {
        l->handlers.on_mail(l->arg, &mail);
        return 0;
    }
    return why == EBADMSG ? 0 : why;
}

/* A handler may mute or close the link. */
static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)events;
    struct keeperlink *l = poll->data;
    int why = status < 0 ? EPIPE : 0;
    for (int i = 0; i < MAILS_MAX && !l->is_mute && why == 0; i++) {
        why = take(l);
    }
    if (!l->is_mute) {
        l->handlers.on_turn(l->arg);
    }
    if (!l->is_mute && why != 0 && why != EAGAIN) {
        keeperlink_mute(l);
        l->handlers.on_lost(l->arg);
    }
}

int keeperlink_open(struct keeperlink **out, uv_loop_t *loop, int socket,
                    const struct keeperlink_handlers *handlers, void *arg,
                    struct gpul_error *err)
{
    struct keeperlink *l = calloc(1, sizeof(*l));
    *out = NULL;
    if (l == NULL) {
        close(socket);
        return gpul_fail(err, GPUL_ENOMEM,
                         "out of memory for the link to the keeper");
    }
    l->socket = socket;
    l->handlers = *handlers;
    l->arg = arg;
    int rc = uv_poll_init(loop, &l->poll, socket);
    if (rc != 0) {
        close(socket);
        free(l);
        return gpul_fail(err, GPUL_ESYS, "link to the keeper: %s",
                         uv_strerror(rc));
    }
    l->poll.data = l;
    uv_poll_start(&l->poll, UV_READABLE, on_readable);
    *out = l;
    return 0;
}

void keeperlink_mute(struct keeperlink *l)
{
    l->is_mute = true;
    uv_poll_stop(&l->poll);
}

static void on_closed(uv_handle_t *handle)
{
    struct keeperlink *l = handle->data;
    free(l);
}

void keeperlink_close(struct keeperlink *l)
{
    if (l != NULL) {
        keeperlink_mute(l);
        uv_close((uv_handle_t *)&l->poll, on_closed);
        close(l->socket);
    }
}

/* ---- out ----------------------------------------------------------------- */

/* Besides a full socket there is a bound on descriptors that are on their
 * way, and nothing to wait on for it. */
static bool is_passing(struct keeperlink *l, int why, uint64_t deadline_ms)
{
    if (why == ETOOMANYREFS) {
        poll(NULL, 0, 1);
        return gpul_clock_ms() < deadline_ms;
    }
    return why == EAGAIN && wait_for(l->socket, POLLOUT, deadline_ms);
}

/* With the reason in errno too, for who must know it. */
static int fail(struct gpul_error *err, int why, const char *what)
{
    int rc = gpul_fail_errno(err, why, "%s", what);
    errno = why;
    return rc;
}

int keeperlink_send(struct keeperlink *l, const struct keeper_packet *packet,
                    const int *fds, size_t fd_count, struct gpul_error *err)
{
    uint64_t deadline_ms = gpul_clock_ms() + SEND_WAIT_MS;
    int why;
    do {
        why = keeperwire_send(l->socket, packet, fds, fd_count);
    } while (why != 0 && is_passing(l, why, deadline_ms));
    if (why == EPIPE) {
        return gpul_fail(err, GPUL_ECLOSED, "the keeper of this node is gone");
    }
    return why == 0 ? 0
                    : fail(err, why, "cannot reach the keeper of this node");
}

/* A memory file with these bytes; -1: see errno. */
static int make_file(const struct gpul_buf *bytes)
{
    int fd = memfd_create("gpulaunch-start", MFD_CLOEXEC);
    int why = fd < 0 ? errno : gpul_write_all(fd, bytes->data, bytes->used);
    if (why != 0 && fd >= 0) {
        close(fd);
        errno = why;
        return -1;
    }
    return fd;
}

int keeperlink_start(struct keeperlink *l, uint32_t slot,
                     const struct gpul_buf *spec, const int *child_fds,
                     size_t child_count, const int *kept_fds, size_t kept_count,
                     bool has_input, struct gpul_error *err)
{
    int fds[KEEPER_FDS_MAX];
    assert(child_count <= KEEPER_CHILD_FDS_MAX);
    assert(kept_count <= KEEPER_KEPT_FDS_MAX);
    const struct keeper_packet packet = {
        .type = KEEPER_START,
        .slot = slot,
        .child_fds = (uint32_t)child_count,
        .kept_fds = (uint32_t)kept_count,
        .has_input = has_input,
    };
    fds[0] = make_file(spec);
    if (fds[0] < 0) {
        return fail(err, errno, "memory file for a rank's start");
    }
    memcpy(fds + 1, child_fds, child_count * sizeof(*fds));
    memcpy(fds + 1 + child_count, kept_fds, kept_count * sizeof(*fds));
    int rc =
        keeperlink_send(l, &packet, fds, 1 + child_count + kept_count, err);
    close(fds[0]);
    return rc;
}
