/* SPDX-License-Identifier: Apache-2.0
 *
 * Standard input of a worker that a remote shell has started. Its end means
 * that the remote session is gone, or the front end: one that has not joined
 * leaves then, since nobody else could tell it to. One that has joined stays:
 * the control channel decides, and the loss of a session alone ends nothing.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "proto/orders.h"
#include "worker/client_run.h"

enum { WORDS_BYTES = 64 };

static void stop_hearing(struct client *c)
{
    c->hearing.is_on = false;
    uv_poll_stop(&c->hearing.poll);
}

/* The first agent of its keeper only: a later one may find the end of a
 * session that was there when its node joined. */
static bool has_never_joined(const struct client *c)
{
    return !c->has_joined && c->state.agent == 0;
}

static void on_input(uv_poll_t *poll, int status, int events)
{
    struct client *c = poll->data;
    char words[WORDS_BYTES];
    (void)events;
    ssize_t n = status < 0 ? 0 : read(STDIN_FILENO, words, sizeof(words));
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (n <= 0) {
        stop_hearing(c);
        if (has_never_joined(c)) {
            client_post(c, AGENT_EVENT_SIGNAL, NULL)->signal = SIGHUP;
        }
    } else if (memmem(words, (size_t)n, GPUL_ORDERS_STOP,
                      sizeof(GPUL_ORDERS_STOP) - 1) != NULL) {
        client_post(c, AGENT_EVENT_SIGNAL, NULL)->signal = SIGTERM;
    }
    client_pump(c);
}

int client_hear(struct client *c, struct gpul_error *err)
{
    if (!c->config->hears_orders) {
        return 0;
    }
    int rc = uv_poll_init(&c->loop, &c->hearing.poll, STDIN_FILENO);
    if (rc == 0) {
        c->hearing.poll.data = c;
        c->hearing.is_on = true;
        rc = uv_poll_start(&c->hearing.poll, UV_READABLE, on_input);
    }
    return rc == 0 ? 0
                   : gpul_fail(err, GPUL_ESYS, "watching standard input: %s",
                               uv_strerror(rc));
}

void client_hear_close(struct client *c)
{
    if (c->hearing.poll.data != NULL) {
        uv_close((uv_handle_t *)&c->hearing.poll, NULL);
    }
}
