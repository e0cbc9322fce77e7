/* SPDX-License-Identifier: Apache-2.0
 *
 * A node's part in the proof of addresses (docs/links.md): it listens on its
 * candidates, answers whoever dials them, dials everybody else's, and
 * reports. Edge.
 *
 * Happy path: linker_open (on_frame: LinkListening), linker_add for each page
 * (after the last one, some time later, on_frame: LinkReport), linker_close.
 * Bounded: 8 listeners, LINKPLAN_DIALS_MAX dials, LINKER_ANSWERS_MAX answers,
 * each with a timer of its own.
 */
#ifndef WORKER_LINKER_H
#define WORKER_LINKER_H

#include <uv.h>

#include "common/error.h"
#include "proto/message.h"
#include "worker/linkpick.h"
#include "worker/linkplan.h"

enum {
    LINKER_ANSWERS_MAX = 256,
    /* Whoever connects says hello, and closes, within this. */
    LINKER_ANSWER_MS = 5000,
};

struct linker_handlers {
    /* To be stamped and sent. Never from within a function of this file but
     * linker_open and linker_add. */
    void (*on_frame)(void *arg, Gpul__Frame *frame);
};

struct linker_conn;
struct linker_socket;

/* The members are the file's own. It must live until the loop has run after
 * linker_close. */
struct linker {
    uv_loop_t *loop;
    const struct linker_handlers *handlers;
    void *arg;
    uint64_t token;
    uint32_t self;
    uint32_t node_count;
    struct gpul_interface all[GPUL_INTERFACES_FOUND_MAX];
    size_t candidate_count;
    struct linker_socket *sockets[GPUL_LINKS_MAX];
    size_t socket_count;
    struct linker_conn *conns; /* a list */
    uint32_t answers;
    struct linkplan plan;
    uv_timer_t *deadline; /* of the dials, on the heap; NULL: none */
    bool is_open;
    bool has_reported;
};

struct linker_request {
    uint64_t token;
    uint32_t self; /* node rank */
    uint32_t node_count;
    const char *wanted; /* --interface, "": all */
    const char *joined; /* own address, by which the node has joined */
    const struct gpul_interface *found; /* as gpul_interfaces_read did */
    size_t found_count;                 /* at most GPUL_INTERFACES_FOUND_MAX */
};

void linker_init(struct linker *l, uv_loop_t *loop,
                 const struct linker_handlers *handlers, void *arg);

/* Listen, and say where, or why nowhere. Errors: GPUL_ENOMEM. */
int linker_open(struct linker *l, const struct linker_request *request,
                struct gpul_error *err);

/* Take a page; behind the last one, dial. Errors: as linkplan_add. */
int linker_add(struct linker *l, const Gpul__LinkPeers *page,
               struct gpul_error *err);

/* End it all, reported or not. Fine if nothing is open. */
void linker_close(struct linker *l);

#endif
