/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "wire.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

void wire_init(struct wire *w, int fd)
{
    *w = (struct wire){.fd = fd};
}

void wire_release(struct wire *w)
{
    gpul_channel_destroy(w->channel);
    close(w->fd);
    *w = (struct wire){.fd = -1};
}

static bool write_all(int fd, const uint8_t *bytes, size_t n)
{
    while (n > 0) {
        ssize_t put = send(fd, bytes, n, MSG_NOSIGNAL);
        if (put <= 0) {
            return false;
        }
        bytes += put;
        n -= (size_t)put;
    }
    return true;
}

static bool flush(struct wire *w)
{
    size_t n;
    const uint8_t *bytes = gpul_channel_output(w->channel, &n);
    bool is_written = write_all(w->fd, bytes, n);
    gpul_channel_clear_output(w->channel);
    return is_written;
}

static size_t read_some(int fd, uint8_t *room, size_t n)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&ready, 1, WIRE_WAIT_MS), 1);
    ssize_t got = recv(fd, room, n, 0);
    return got > 0 ? (size_t)got : 0;
}

/* The first byte of a frame may come with the end of the handshake. */
bool wire_seal(struct wire *w, const struct gpul_keyring *keyring)
{
    assert_int_equal(gpul_channel_create(&w->channel, keyring, NULL), 0);
    bool goes_on = flush(w);
    while (goes_on && !gpul_channel_is_open(w->channel)) {
        size_t n = read_some(w->fd, w->raw, sizeof(w->raw));
        gpul_channel_put(w->channel, w->raw, n);
        int rc = gpul_channel_get(w->channel, &w->early, 1, &w->why);
        w->has_early = rc > 0;
        goes_on = flush(w) && rc >= 0 && n > 0;
    }
    return goes_on;
}

bool wire_write(struct wire *w, const uint8_t *bytes, size_t n)
{
    if (w->channel == NULL) {
        return write_all(w->fd, bytes, n);
    }
    return gpul_channel_send(w->channel, bytes, n, &w->why) == 0 && flush(w);
}

size_t wire_read(struct wire *w, uint8_t *room, size_t n)
{
    if (w->channel == NULL) {
        return read_some(w->fd, room, n);
    }
    if (w->has_early) {
        w->has_early = false;
        room[0] = w->early;
        return 1;
    }
    for (;;) {
        int rc = gpul_channel_get(w->channel, room, n, &w->why);
        flush(w);
        if (rc != 0) {
            return rc > 0 ? (size_t)rc : 0;
        }
        size_t got = read_some(w->fd, w->raw, sizeof(w->raw));
        if (got == 0) {
            return 0;
        }
        gpul_channel_put(w->channel, w->raw, got);
    }
}

struct gpul_keyring *wire_keyring(uint8_t fill, const char *job_id,
                                  const char *node_name)
{
    struct gpul_secret secret = {{fill}};
    struct gpul_keyring *k;
    struct gpul_key key;
    if (node_name == NULL) {
        assert_int_equal(gpul_keyring_of_job(&k, &secret, job_id, NULL), 0);
        return k;
    }
    assert_int_equal(gpul_key_of_node(&key, &secret, job_id, node_name, NULL),
                     0);
    assert_int_equal(gpul_keyring_of_node(&k, &key, job_id, node_name, NULL),
                     0);
    return k;
}
