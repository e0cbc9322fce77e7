/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/door.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/hostport.h"
#include "coordinator/gate.h"
#include "coordinator/log.h"
#include "proto/limits.h"
#include "proto/sockaddr.h"

enum {
    BACKLOG = 4096,
    RETRY_MS = 100, /* a connection that there was no memory for */
};

/* A connection that has not shown a key yet. It lives until it is closed or
 * handed over; in the table only while the gate has a ticket for it. */
struct stranger {
    struct door *door;
    struct gpul_transport *transport;
    uint32_t place;  /* in the table; GATE_NONE: in it no more */
    uint32_t ticket; /* of the gate */
};

struct door {
    uv_tcp_t listeners[GPUL_COORDINATORS_MAX];
    uint32_t listener_count;
    uv_timer_t timer;
    uv_timer_t retry;
    const struct door_handlers *handlers;
    void *arg;
    struct gpul_secret *secret; /* until it is open; NULL: no keys */
    struct gpul_keyring *keyring;
    struct gate *gate;
    struct stranger *table[GPUL_STRANGERS_MAX];
    uint32_t free[GPUL_STRANGERS_MAX]; /* places of the table */
    uint32_t free_count;
    uint64_t told_strangers;
    uint64_t next_complaint_ms; /* about what we could not do */
    bool has_complained;        /* to the user */
    bool is_closed;
};

/* ---- what the gate says -------------------------------------------------- */

static void on_timer(uv_timer_t *timer);

/* After each event: its line, its hint, its time. */
static void settle(struct door *d)
{
    char line[GATE_LINE_BYTES];
    uint64_t now_ms = gpul_clock_ms();
    if (d->is_closed) {
        return;
    }
    if (gate_line(d->gate, line, now_ms)) {
        log_line(line);
    }
    uint64_t strangers = gate_total(d->gate, line);
    if (strangers != d->told_strangers) {
        d->told_strangers = strangers;
        d->handlers->on_strangers(d->arg, strangers, line);
    }
    if (d->is_closed) {
        return;
    }
    const char *hint = gate_take_hint(d->gate);
    if (hint != NULL) {
        d->handlers->on_hint(d->arg, hint);
    }
    if (d->is_closed) {
        return;
    }
    uint64_t due_ms = gate_next_deadline_ms(d->gate);
    if (due_ms == UINT64_MAX) {
        uv_timer_stop(&d->timer);
        return;
    }
    uv_update_time(d->timer.loop);
    uv_timer_start(&d->timer, on_timer, due_ms > now_ms ? due_ms - now_ms : 0,
                   0);
}

/* The gate has its ticket back. */
static void leave_table(struct stranger *s)
{
    struct door *d = s->door;
    d->table[s->place] = NULL;
    d->free[d->free_count++] = s->place;
    s->place = GATE_NONE;
}

/* Close the one in this place, if it is one; false: it is none. */
static bool turn_out(struct door *d, uint32_t place)
{
    if (place == GATE_NONE) {
        return false;
    }
    struct stranger *s = d->table[place];
    leave_table(s);
    gpul_transport_close(s->transport, 0);
    return true;
}

static void on_timer(uv_timer_t *timer)
{
    struct door *d = timer->data;
    while (turn_out(d, gate_expel(d->gate, gpul_clock_ms()))) {
    }
    settle(d);
}

/* A fault of this end: a line a second, and once a word to the user, since
 * nodes may be missing for it. */
static void complain(struct door *d, const char *text)
{
    char words[GPUL_ERROR_TEXT_BYTES];
    uint64_t now_ms = gpul_clock_ms();
    if (now_ms >= d->next_complaint_ms) {
        log_line(text);
        d->next_complaint_ms = now_ms + GPUL_STRANGER_LINE_MS;
    }
    if (!d->has_complained && !d->is_closed) {
        d->has_complained = true;
        snprintf(words, sizeof(words),
                 "the coordinator cannot take a connection: %.400s", text);
        d->handlers->on_hint(d->arg, words);
    }
}

/* ---- strangers ----------------------------------------------------------- */

static void on_claimed(void *arg)
{
    struct stranger *s = arg;
    struct door *d = s->door;
    if (s->place != GATE_NONE) {
        const char *name = gpul_transport_claimed_name(s->transport);
        turn_out(d, gate_claimed(d->gate, s->ticket, name));
        settle(d);
    }
}

static void offer(struct stranger *s)
{
    struct door *d = s->door;
    if (d->handlers->on_guest(d->arg, s->transport)) {
        free(s);
    } else {
        gpul_transport_close(s->transport, 0);
    }
}

static void on_proved(void *arg)
{
    struct stranger *s = arg;
    struct door *d = s->door;
    if (s->place == GATE_NONE) {
        return; /* of one that is being closed */
    }
    gate_proved(d->gate, s->ticket);
    leave_table(s);
    offer(s);
    settle(d);
}

/* Never called: what comes before the key is no frame, and then it is not
 * ours any more. */
static void on_message(void *arg, const Gpul__Frame *frame)
{
    (void)arg;
    (void)frame;
}

static void on_closed(void *arg, const struct gpul_error *why)
{
    struct stranger *s = arg;
    struct door *d = s->door;
    if (s->place != GATE_NONE) {
        enum gpul_stranger kind = gpul_transport_stranger(s->transport);
        bool is_wrong_key = kind == GPUL_STRANGER_WRONG_KEY && why != NULL;
        if (kind == GPUL_STRANGER_NONE) { /* its key was good, and it left */
            kind = GPUL_STRANGER_CLOSED;
        }
        gate_closed(d->gate, s->ticket, kind, is_wrong_key ? why->text : NULL);
        leave_table(s);
        settle(d);
        if (why != NULL && why->status == GPUL_ENOMEM) {
            complain(d, why->text);
        }
    }
    free(s);
}

static const struct gpul_transport_handlers stranger_handlers = {
    .on_connected = on_proved,
    .on_claimed = on_claimed,
    .on_message = on_message,
    .on_closed = on_closed,
};

/* Ask the gate. */
static void admit(struct stranger *s)
{
    struct door *d = s->door;
    char address[GPUL_ADDRESS_BYTES_MAX + 1];
    gpul_transport_peer_address(s->transport, address, NULL);
    turn_out(d, gate_make_room(d->gate, address, gpul_clock_ms()));
    /* Both have as many places, so with none left the gate refuses. */
    uint32_t place = d->free_count > 0 ? d->free[d->free_count - 1] : 0;
    s->ticket = gate_opened(d->gate, place, address, gpul_clock_ms());
    if (s->ticket == GATE_NONE) {
        gpul_transport_close(s->transport, 0);
        return;
    }
    assert(d->free_count > 0);
    d->free_count--;
    d->table[place] = s;
    s->place = place;
}

static int accept_stranger(struct door *d, uv_stream_t *listener,
                           struct gpul_error *err)
{
    struct stranger *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory for a connection");
    }
    s->door = d;
    s->place = GATE_NONE;
    int rc = gpul_transport_accept(&s->transport, listener, d->keyring,
                                   GPUL_PEER_NODE, &stranger_handlers, s, err);
    if (rc != 0) {
        free(s);
    } else if (d->keyring == NULL) {
        offer(s);
    } else {
        admit(s);
        settle(d);
    }
    return rc;
}

static void on_retry(uv_timer_t *retry);

/* libuv listens no more until the connection that it holds is accepted: where
 * there is no memory for one it must be tried again. */
static void on_connection(uv_stream_t *listener, int status)
{
    struct door *d = listener->data;
    struct gpul_error err;
    if (status < 0) {
        complain(d, uv_strerror(status)); /* it stays in the backlog */
    } else if (accept_stranger(d, listener, &err) != 0) {
        complain(d, err.text);
        uv_timer_start(&d->retry, on_retry, RETRY_MS, 0);
    }
}

/* One with nothing to accept had none that waits, or has lost it. */
static void on_retry(uv_timer_t *retry)
{
    struct door *d = retry->data;
    struct gpul_error err;
    bool is_short = false;
    for (uint32_t i = 0; i < d->listener_count && !d->is_closed; i++) {
        uv_stream_t *listener = (uv_stream_t *)&d->listeners[i];
        is_short =
            accept_stranger(d, listener, &err) == GPUL_ENOMEM || is_short;
    }
    if (is_short) {
        uv_timer_start(retry, on_retry, RETRY_MS, 0);
    }
}

/* ---- opening and closing ------------------------------------------------- */

/* Plain frames are for this machine only. */
static int check_listener(const struct door *d, const uv_tcp_t *listener,
                          struct gpul_error *err)
{
    struct sockaddr_storage name;
    int n = sizeof(name);
    char address[GPUL_ADDRESS_BYTES_MAX + 1];
    int rc = uv_tcp_getsockname(listener, (struct sockaddr *)&name, &n);
    if (rc != 0) {
        return gpul_fail(err, GPUL_ESYS, "the listener's address: %s",
                         uv_strerror(rc));
    }
    gpul_sockaddr_format(&name, address, NULL);
    if (d->secret == NULL && !gpul_host_is_loopback(address)) {
        return gpul_fail(err, GPUL_EINVAL,
                         "--insecure is for a listener on loopback, and this "
                         "one is on %s, where whoever reaches it could run "
                         "commands as you; leave --insecure out",
                         address);
    }
    return 0;
}

static int open_listener(struct door *d, int fd, struct gpul_error *err)
{
    uv_tcp_t *listener = &d->listeners[d->listener_count++];
    listener->data = d;
    uv_tcp_init(d->timer.loop, listener);
    int rc = uv_tcp_open(listener, fd);
    return rc == 0
               ? check_listener(d, listener, err)
               : gpul_fail(err, GPUL_ESYS, "descriptor %d cannot listen: %s",
                           fd, uv_strerror(rc));
}

static struct door *create(uv_loop_t *loop)
{
    struct door *d = calloc(1, sizeof(*d));
    struct gate *gate = d != NULL ? gate_create() : NULL;
    if (gate == NULL) {
        free(d);
        return NULL;
    }
    d->gate = gate;
    for (uint32_t i = 0; i < GPUL_STRANGERS_MAX; i++) {
        d->free[i] = GPUL_STRANGERS_MAX - 1 - i;
    }
    d->free_count = GPUL_STRANGERS_MAX;
    d->timer.data = d;
    d->retry.data = d;
    uv_timer_init(loop, &d->timer);
    uv_timer_init(loop, &d->retry);
    return d;
}

int door_create(struct door **out, uv_loop_t *loop, const int *listen_fds,
                uint32_t listen_count, struct gpul_secret *secret,
                const struct door_handlers *handlers, void *arg,
                struct gpul_error *err)
{
    struct door *d = create(loop);
    *out = d;
    if (d == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory for a listener");
    }
    d->secret = secret;
    d->handlers = handlers;
    d->arg = arg;
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < listen_count; i++) {
        rc = open_listener(d, listen_fds[i], err);
    }
    return rc;
}

int door_open(struct door *d, const char *job_id, struct gpul_error *err)
{
    int rc = 0;
    if (d->secret != NULL) {
        rc = gpul_keyring_of_job(&d->keyring, d->secret, job_id, err);
        gpul_wipe(d->secret, sizeof(*d->secret)); /* the keyring has it */
        d->secret = NULL;
    }
    if (rc != 0) {
        return rc;
    }
    for (uint32_t i = 0; rc == 0 && i < d->listener_count; i++) {
        rc = uv_listen((uv_stream_t *)&d->listeners[i], BACKLOG, on_connection);
    }
    return rc == 0 ? 0
                   : gpul_fail(err, GPUL_ESYS, "cannot listen: %s",
                               uv_strerror(rc));
}

void door_close(struct door *d)
{
    char line[GATE_LINE_BYTES];
    if (d == NULL || d->is_closed) {
        return;
    }
    d->is_closed = true;
    for (uint32_t i = 0; i < d->listener_count; i++) {
        uv_close((uv_handle_t *)&d->listeners[i], NULL);
    }
    uv_close((uv_handle_t *)&d->timer, NULL);
    uv_close((uv_handle_t *)&d->retry, NULL);
    for (uint32_t i = 0; i < GPUL_STRANGERS_MAX; i++) {
        struct stranger *s = d->table[i];
        if (s != NULL) {
            gate_proved(d->gate, s->ticket); /* it is not its fault */
            leave_table(s);
            gpul_transport_close(s->transport, 0);
        }
    }
    if (gate_line(d->gate, line, UINT64_MAX)) {
        log_line(line); /* what its second had not come for */
    }
}

void door_destroy(struct door *d)
{
    if (d != NULL) {
        gpul_keyring_destroy(d->keyring);
        gate_destroy(d->gate);
        free(d);
    }
}
