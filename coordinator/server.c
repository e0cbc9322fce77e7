/* SPDX-License-Identifier: Apache-2.0
 *
 * Happy path: the operator's Job arrives -> the rendezvous says LISTEN -> the
 * door hands over connections that have shown their key, each gets a free
 * number -> messages and ticks are stepped through -> FINISH -> everything is
 * closed after its last bytes were written -> the loop has nothing left and
 * ends.
 *
 * Failure modes: a peer that breaks the protocol, is too slow or goes away
 * closes its transport, and the rendezvous is told once; the operator's
 * channel the same. A connection over the limit is closed unread. A step that
 * fails (no memory) ends the program with 125; the agents and the front end
 * see their connections close, which is the case of a lost coordinator.
 */
#include "coordinator/server.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <uv.h>

#include "common/clock.h"
#include "coordinator/door.h"
#include "coordinator/log.h"
#include "coordinator/rendezvous.h"
#include "proto/limits.h"
#include "proto/transport.h"
#include "proto/uvmemory.h"

enum { FLUSH_MS = 5000 }; /* for the last bytes to a node or the front end */
#define NO_SLOT UINT32_MAX

/* One connection, by its number in the rendezvous. */
struct slot {
    struct server *server;
    struct gpul_transport *transport; /* NULL: free */
    uint32_t conn;
    uint32_t next_free;
    bool is_told;  /* something was sent to it */
    bool is_ended; /* the rendezvous has closed it */
};

struct server {
    uv_loop_t loop;
    struct door *door;
    uv_timer_t timer;
    uint64_t armed_ms; /* when the timer fires; UINT64_MAX: it does not */
    struct gpul_transport *front_end;
    struct rendezvous *rendezvous;
    struct slot *slots;  /* allocated once, so that they never move */
    uint32_t slot_count; /* used so far */
    uint32_t slot_limit;
    uint32_t first_free;
    bool is_verbose;
    bool is_finishing;
    int exit_code;
    struct gpul_error failure; /* what ended it early; status 0: nothing */
};

static void step(struct server *s, struct rendezvous_event event);

/* ---- ending ---- */

static void slot_end(struct slot *slot)
{
    if (slot->transport != NULL && !slot->is_ended) {
        slot->is_ended = true;
        /* Nothing is on its way to one that was told nothing, and it would
         * keep its place for as long as it likes. */
        gpul_transport_close(slot->transport, slot->is_told ? FLUSH_MS : 0);
    }
}

/* Close everything; the loop ends when all of it is closed. */
static void finish(struct server *s)
{
    if (s->is_finishing) {
        return;
    }
    s->is_finishing = true;
    door_close(s->door);
    uv_close((uv_handle_t *)&s->timer, NULL);
    for (uint32_t i = 0; i < s->slot_count; i++) {
        slot_end(&s->slots[i]);
    }
    if (s->front_end != NULL) {
        /* What a socket pair has taken stays readable when we are gone: there
         * is nothing to wait for then. */
        bool is_written = gpul_transport_queued_bytes(s->front_end) == 0;
        gpul_transport_close(s->front_end, is_written ? 0 : FLUSH_MS);
    }
}

static void fail(struct server *s, const struct gpul_error *why)
{
    if (s->failure.status == 0) {
        s->failure = *why;
    }
    finish(s);
}

/* ---- node connections ---- */

static void on_node_message(void *arg, const Gpul__Frame *frame)
{
    struct slot *slot = arg;
    step(slot->server,
         (struct rendezvous_event){.kind = RENDEZVOUS_PEER_MESSAGE,
                                   .conn = slot->conn,
                                   .frame = frame});
}

static void on_node_closed(void *arg, const struct gpul_error *why)
{
    struct slot *slot = arg;
    struct server *s = slot->server;
    bool is_fault = why != NULL && why->status != GPUL_ECLOSED;
    slot->transport = NULL;
    if (why != NULL && why->status == GPUL_ENOMEM) {
        fail(s, why); /* our fault, not the node's */
    } else if (!slot->is_ended) {
        step(s, (struct rendezvous_event){.kind = RENDEZVOUS_PEER_CLOSED,
                                          .conn = slot->conn,
                                          .text = is_fault ? why->text : NULL});
    }
    slot->next_free = s->first_free;
    s->first_free = slot->conn;
}

static const struct gpul_transport_handlers node_handlers = {
    .on_message = on_node_message,
    .on_closed = on_node_closed,
};

static struct slot *take_slot(struct server *s)
{
    if (s->first_free != NO_SLOT) {
        struct slot *slot = &s->slots[s->first_free];
        s->first_free = slot->next_free;
        return slot;
    }
    if (s->slot_count == s->slot_limit) {
        return NULL;
    }
    struct slot *slot = &s->slots[s->slot_count];
    slot->server = s;
    slot->conn = s->slot_count++;
    return slot;
}

/* One over the limit is left to the door, which closes it. */
static bool on_guest(void *arg, struct gpul_transport *t)
{
    struct server *s = arg;
    struct slot *slot = s->is_finishing ? NULL : take_slot(s);
    char address[GPUL_ADDRESS_BYTES_MAX + 1];
    if (slot == NULL) {
        return false;
    }
    slot->transport = t;
    slot->is_ended = false;
    slot->is_told = false;
    gpul_transport_hand_over(t, &node_handlers, slot);
    gpul_transport_peer_address(t, address, NULL);
    const char *name = gpul_transport_node_name(t);
    step(s, (struct rendezvous_event){.kind = RENDEZVOUS_PEER_OPENED,
                                      .conn = slot->conn,
                                      .text = address,
                                      .name = name[0] != 0 ? name : NULL});
    return true;
}

static void on_hint(void *arg, const char *text)
{
    step(arg,
         (struct rendezvous_event){.kind = RENDEZVOUS_NOTICE, .text = text});
}

static void on_strangers(void *arg, uint64_t count, const char *words)
{
    step(arg, (struct rendezvous_event){
                  .kind = RENDEZVOUS_STRANGERS, .count = count, .text = words});
}

static const struct door_handlers door_handlers = {
    .on_guest = on_guest,
    .on_hint = on_hint,
    .on_strangers = on_strangers,
};

static void listen_for(struct server *s, uint32_t limit, const char *job_id)
{
    struct gpul_error err = {0};
    s->slots = calloc(limit, sizeof(*s->slots));
    s->slot_limit = limit;
    if (s->slots == NULL) {
        gpul_fail(&err, GPUL_ENOMEM, "out of memory for %u connections", limit);
        fail(s, &err);
    } else if (door_open(s->door, job_id, &err) != 0) {
        fail(s, &err);
    }
}

/* ---- the operator ---- */

static void on_operator_message(void *arg, const Gpul__Frame *frame)
{
    step(arg, (struct rendezvous_event){.kind = RENDEZVOUS_OPERATOR_MESSAGE,
                                        .frame = frame});
}

static void on_operator_closed(void *arg, const struct gpul_error *why)
{
    struct server *s = arg;
    s->front_end = NULL;
    if (why != NULL && why->status == GPUL_ENOMEM) {
        fail(s, why);
        return;
    }
    if (why != NULL && why->status != GPUL_ECLOSED) {
        log_line(why->text);
    }
    step(s, (struct rendezvous_event){.kind = RENDEZVOUS_OPERATOR_CLOSED});
}

static const struct gpul_transport_handlers operator_handlers = {
    .on_message = on_operator_message,
    .on_closed = on_operator_closed,
};

/* ---- doing what the rendezvous says ---- */

/* NULL: the connection is gone, and the rendezvous is about to hear it. */
static struct gpul_transport *transport_of(struct server *s, uint32_t conn)
{
    bool is_usable = conn < s->slot_count && !s->slots[conn].is_ended;
    return is_usable ? s->slots[conn].transport : NULL;
}

/* A send that fails closes the transport, which reports itself. */
static void send_to(struct gpul_transport *t, const uint8_t *bytes, size_t n)
{
    if (t != NULL) {
        (void)gpul_transport_send_bytes(t, bytes, n, NULL);
    }
}

static void send_node(struct server *s, uint32_t conn,
                      const struct rendezvous_action *action)
{
    struct gpul_transport *t = transport_of(s, conn);
    if (t != NULL) {
        s->slots[conn].is_told = true;
        send_to(t, action->bytes, action->byte_count);
    }
}

static void send_many(struct server *s, const struct rendezvous_action *action)
{
    for (size_t i = 0; i < action->conn_count; i++) {
        send_node(s, action->conns[i], action);
    }
}

static void allow(struct server *s, const struct rendezvous_action *action)
{
    struct gpul_transport *t = transport_of(s, action->conn);
    if (t != NULL) {
        gpul_transport_allow(t, action->mask);
    }
}

static void apply(struct server *s, const struct rendezvous_action *action)
{
    switch (action->kind) {
    case RENDEZVOUS_LISTEN:
        listen_for(s, action->limit, action->text);
        return;
    case RENDEZVOUS_SEND:
        send_node(s, action->conn, action);
        return;
    case RENDEZVOUS_SEND_MANY:
        send_many(s, action);
        return;
    case RENDEZVOUS_SEND_OPERATOR:
        send_to(s->front_end, action->bytes, action->byte_count);
        return;
    case RENDEZVOUS_ALLOW:
        allow(s, action);
        return;
    case RENDEZVOUS_CLOSE:
        if (action->conn < s->slot_count) {
            slot_end(&s->slots[action->conn]);
        }
        return;
    case RENDEZVOUS_LOG:
        if (action->is_fault || s->is_verbose) {
            log_line(action->text);
        }
        return;
    case RENDEZVOUS_FINISH:
        s->exit_code = action->exit_code;
        finish(s);
        return;
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct server *s = timer->data;
    s->armed_ms = UINT64_MAX;
    step(s, (struct rendezvous_event){.kind = RENDEZVOUS_TICK});
}

/* A timer that fires early costs one empty tick; so it is only moved when it
 * would fire late, and not with every message that renews a lease. */
static void arm(struct server *s, uint64_t now_ms)
{
    uint64_t due_ms = rendezvous_next_deadline_ms(s->rendezvous);
    if (s->is_finishing || due_ms >= s->armed_ms) {
        return;
    }
    s->armed_ms = due_ms;
    uv_timer_start(&s->timer, on_timer, due_ms > now_ms ? due_ms - now_ms : 0,
                   0);
}

static void step(struct server *s, struct rendezvous_event event)
{
    struct rendezvous_actions actions;
    struct gpul_error err = {0};
    if (s->is_finishing) {
        return;
    }
    event.now_ms = gpul_clock_ms();
    event.real_ns = gpul_clock_real_ns();
    if (rendezvous_step(s->rendezvous, &actions, &event, &err) != 0) {
        fail(s, &err);
        return;
    }
    for (size_t i = 0; i < actions.count; i++) {
        apply(s, &actions.items[i]);
    }
    arm(s, event.now_ms);
}

/* ---- setting up ---- */

static int init_rendezvous(struct server *s, uint32_t epoch,
                           struct gpul_error *err)
{
    struct rendezvous_config config = {.epoch = epoch,
                                       .version = GPULAUNCH_VERSION};
    if (getrandom(&config.seed, sizeof(config.seed), 0) !=
        (ssize_t)sizeof(config.seed)) {
        return gpul_fail_errno(err, errno, "no random bytes");
    }
    return rendezvous_create(&s->rendezvous, &config, gpul_clock_ms(), err);
}

static int init_handles(struct server *s, const struct server_config *config,
                        struct gpul_error *err)
{
    s->timer.data = s;
    uv_timer_init(&s->loop, &s->timer);
    int rc = door_create(&s->door, &s->loop, config->listen_fds,
                         config->listen_count, config->secret, &door_handlers,
                         s, err);
    if (rc != 0) {
        return rc;
    }
    rc = gpul_transport_open(&s->front_end, &s->loop, config->operator_fd,
                             GPUL_PEER_OPERATOR, &operator_handlers, s, err);
    if (rc == 0) {
        gpul_transport_set_queue_max(s->front_end,
                                     GPUL_FRONT_END_QUEUE_BYTES_MAX);
    }
    return rc;
}

static int init_loop(uv_loop_t *loop, struct gpul_error *err)
{
    int rc = uv_loop_init(loop);
    return rc == 0 ? 0
                   : gpul_fail(err, GPUL_ESYS, "no event loop: %s",
                               uv_strerror(rc));
}

static void run(struct server *s, const struct server_config *config)
{
    struct gpul_error err = {0};
    if (init_handles(s, config, &err) != 0) {
        fail(s, &err);
    } else {
        arm(s, gpul_clock_ms());
    }
    uv_run(&s->loop, UV_RUN_DEFAULT);
}

int server_run(int *exit_code, const struct server_config *config,
               struct gpul_error *err)
{
    struct server s = {.armed_ms = UINT64_MAX,
                       .first_free = NO_SLOT,
                       .is_verbose = config->is_verbose};
    *exit_code = 0;
    gpul_uv_memory("gpulaunch-coordinator");
    int rc = init_rendezvous(&s, config->epoch, err);
    if (rc != 0) {
        return rc;
    }
    rc = init_loop(&s.loop, err);
    if (rc == 0) {
        run(&s, config);
        rc = uv_loop_close(&s.loop);
        assert(rc == 0); /* every handle was closed */
    }
    door_destroy(s.door);
    free(s.slots);
    rendezvous_destroy(s.rendezvous);
    if (s.failure.status != 0) {
        rc = gpul_fail(err, s.failure.status, "%s", s.failure.text);
    }
    *exit_code = s.exit_code;
    return rc;
}
