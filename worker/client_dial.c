/* SPDX-License-Identifier: Apache-2.0
 *
 * The connection to the coordinator. Where it has several addresses they are
 * tried in turn; the network says no to some at once and nothing at all to
 * others, so each has its time.
 */
#include <stdio.h>

#include "proto/limits.h"
#include "worker/client_run.h"

enum { FLUSH_MS = 2000 }; /* the last words may take on their way out */

static const struct gpul_hostport *dialled(const struct client *c)
{
    const struct client_config *config = c->config;
    return &config->coordinators[(c->dialing.count - 1) %
                                 config->coordinator_count];
}

static void on_reached(void *arg)
{
    client_post(arg, AGENT_EVENT_REACHED, NULL);
    client_pump(arg);
}

static void on_connected(void *arg)
{
    struct client *c = arg;
    char address[GPUL_ADDRESS_BYTES_MAX + 1];
    uv_timer_stop(&c->dialing.timer);
    c->dialing.is_open = true;
    gpul_transport_local_address(c->transport, address, NULL);
    client_post(c, AGENT_EVENT_CONNECTED, address);
    client_pump(c);
}

static void on_message(void *arg, const Gpul__Frame *frame)
{
    client_take(arg, frame);
}

static void on_closed(void *arg, const struct gpul_error *why)
{
    struct client *c = arg;
    const char *text = why != NULL             ? why->text
                       : c->dialing.is_overdue ? "no answer"
                                               : NULL;
    c->transport = NULL;
    c->dialing.is_open = false;
    if (c->has_left || text == NULL) {
        return;
    }
    uv_timer_stop(&c->dialing.timer);
    if (why != NULL && why->status == GPUL_ENOMEM) {
        client_leave(c, AGENT_EXIT_FAILED, text); /* our own fault */
        return;
    }
    if (c->config->coordinator_count > 1 && !c->has_joined) {
        char words[CLIENT_TEXT_BYTES];
        snprintf(words, sizeof(words), "%s: %s", dialled(c)->host, text);
        client_post(c, AGENT_EVENT_LOST, words);
    } else {
        client_post(c, AGENT_EVENT_LOST, text);
    }
    client_pump(c);
}

/* Its end is told by on_closed. */
static void on_overdue(uv_timer_t *timer)
{
    struct client *c = timer->data;
    if (c->transport != NULL) {
        c->dialing.is_overdue = true;
        gpul_transport_close(c->transport, 0);
    }
}

void client_dial(struct client *c, uint64_t bound_ms)
{
    static const struct gpul_transport_handlers handlers = {
        .on_reached = on_reached,
        .on_connected = on_connected,
        .on_message = on_message,
        .on_closed = on_closed,
    };
    struct gpul_error err;
    c->dialing.count++;
    const struct gpul_hostport *to = dialled(c);
    c->dialing.is_overdue = false;
    if (gpul_transport_connect(&c->transport, &c->loop, to->host, to->port,
                               c->keyring, GPUL_PEER_COORDINATOR, &handlers, c,
                               &err) != 0) {
        c->transport = NULL;
        client_post(c, AGENT_EVENT_LOST, err.text);
    } else if (bound_ms != UINT64_MAX) {
        uv_update_time(&c->loop);
        uv_timer_start(&c->dialing.timer, on_overdue, bound_ms, 0);
    }
}

void client_disconnect(struct client *c)
{
    if (c->transport != NULL) {
        gpul_transport_close(c->transport, c->dialing.is_open ? FLUSH_MS : 0);
    }
}

void client_dial_init(struct client *c)
{
    uv_timer_init(&c->loop, &c->dialing.timer);
    c->dialing.timer.data = c;
}

void client_dial_close(struct client *c)
{
    uv_close((uv_handle_t *)&c->dialing.timer, NULL);
}
