/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/probe_channel.h"

#include <errno.h>
#include <sys/socket.h>

#include "common/buf.h"
#include "common/clock.h"
#include "proto/limits.h"
#include "worker/wait.h"

void probe_channel_init(struct probe_channel *c, int fd)
{
    *c = (struct probe_channel){.fd = fd};
    gpul_deframer_init(&c->in, GPUL_PEER_AGENT);
}

void probe_channel_release(struct probe_channel *c)
{
    gpul_deframer_release(&c->in);
}

static int wait_agent(struct probe_channel *c, short events,
                      uint64_t deadline_ms, struct gpul_error *err)
{
    struct pollfd fd = {.fd = c->fd, .events = events};
    return wait_any(&fd, 1, deadline_ms, err);
}

/* Returns 1 when something came, 0 when there is nothing to read. */
static int read_some(struct probe_channel *c, struct gpul_error *err)
{
    uint8_t bytes[4096];
    ssize_t n = recv(c->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return 0;
    }
    if (n < 0) {
        return gpul_fail_errno(err, errno, "receive");
    }
    if (n == 0) {
        return gpul_fail(err, GPUL_ECLOSED, "the agent has gone");
    }
    int status = gpul_deframer_feed(&c->in, bytes, (size_t)n, err);
    return status == 0 ? 1 : status;
}

int probe_channel_take(struct probe_channel *c, Gpul__Frame **out,
                       uint64_t allowed, struct gpul_error *err)
{
    const uint8_t *body;
    size_t n;
    *out = NULL;
    c->in.allowed = allowed;
    for (;;) {
        int status = gpul_deframer_next(&c->in, &body, &n, err);
        if (status == 1) {
            status = gpul_message_decode(out, body, n, GPUL_PEER_AGENT, err);
            return status == 0 ? 1 : status;
        }
        if (status == 0) {
            status = read_some(c, err);
        }
        if (status <= 0) {
            return status;
        }
    }
}

int probe_channel_read(struct probe_channel *c, Gpul__Frame **out,
                       uint64_t allowed, uint64_t deadline_ms,
                       struct gpul_error *err)
{
    for (;;) {
        int status = probe_channel_take(c, out, allowed, err);
        if (status == 0) {
            status = wait_agent(c, POLLIN, deadline_ms, err);
            if (status == 0) {
                continue;
            }
        }
        return status == 1 ? 0 : status;
    }
}

static int write_all(struct probe_channel *c, const uint8_t *bytes, size_t n,
                     struct gpul_error *err)
{
    uint64_t deadline_ms = gpul_clock_ms() + PROBE_CHANNEL_DEADLINE_MS;
    for (size_t done = 0; done < n;) {
        int status = wait_agent(c, POLLOUT, deadline_ms, err);
        if (status != 0) {
            return status;
        }
        ssize_t sent =
            send(c->fd, bytes + done, n - done, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno == EPIPE) {
            return gpul_fail(err, GPUL_ECLOSED, "the agent has gone");
        }
        if (sent < 0 && errno != EAGAIN && errno != EINTR) {
            return gpul_fail_errno(err, errno, "send");
        }
        done += sent < 0 ? 0 : (size_t)sent;
    }
    return 0;
}

int probe_channel_write(struct probe_channel *c, Gpul__Frame *frame,
                        struct gpul_error *err)
{
    struct gpul_buf out;
    gpul_buf_init(&out, GPUL_PROBE_FACTS_BYTES_MAX + GPUL_FRAME_PREFIX_BYTES);
    frame->epoch = c->epoch;
    frame->generation = c->generation;
    int status = gpul_message_encode(&out, frame, err);
    if (status == 0) {
        status = write_all(c, out.data, out.used, err);
    }
    gpul_buf_release(&out);
    return status;
}
