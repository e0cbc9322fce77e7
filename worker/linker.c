/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/linker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/sockaddr.h"
#include "worker/linkhello.h"

enum { BACKLOG = 512 };

/* A listener. */
struct linker_socket {
    uv_tcp_t tcp; /* first */
    struct linker *linker;
};

/* A dial, or an answer to one. It is gone once both handles are closed. */
struct linker_conn {
    uv_tcp_t tcp;
    uv_timer_t timer;
    uv_connect_t connect;
    uv_write_t write;
    struct linker_conn *next;
    struct linker_conn *previous;
    struct linker *linker; /* NULL: it is closing */
    bool is_dial;
    bool has_answered;
    struct linkplan_dial dial;
    uint8_t sent[LINKHELLO_BYTES];
    uint8_t got[LINKHELLO_BYTES];
    size_t got_bytes;
    unsigned open_handles;
};

static void pump(struct linker *l);

/* ---- connections --------------------------------------------------------- */

static void on_handle_closed(uv_handle_t *handle)
{
    struct linker_conn *c = handle->data;
    if (--c->open_handles == 0) {
        free(c);
    }
}

/* Its linker knows it no more. */
static void drop(struct linker_conn *c)
{
    struct linker *l = c->linker;
    if (c->previous != NULL) {
        c->previous->next = c->next;
    } else {
        l->conns = c->next;
    }
    if (c->next != NULL) {
        c->next->previous = c->previous;
    }
    l->answers -= !c->is_dial;
    c->linker = NULL;
    uv_close((uv_handle_t *)&c->tcp, on_handle_closed);
    uv_close((uv_handle_t *)&c->timer, on_handle_closed);
}

static struct linker_conn *create(struct linker *l, bool is_dial)
{
    struct linker_conn *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return NULL;
    }
    uv_tcp_init(l->loop, &c->tcp);
    uv_timer_init(l->loop, &c->timer);
    c->tcp.data = c;
    c->timer.data = c;
    c->open_handles = 2;
    c->is_dial = is_dial;
    c->linker = l;
    c->next = l->conns;
    if (c->next != NULL) {
        c->next->previous = c;
    }
    l->conns = c;
    l->answers += !is_dial;
    return c;
}

/* The dial has come to nothing. */
static void fail(struct linker_conn *c, Gpul__LinkFailure__Kind kind,
                 uint32_t answered_by)
{
    struct linker *l = c->linker;
    linkplan_failed(&l->plan, &c->dial, kind, answered_by);
    drop(c);
    pump(l);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    struct linker_conn *c = handle->data;
    (void)suggested;
    out->base = (char *)c->got + c->got_bytes;
    out->len = sizeof(c->got) - c->got_bytes;
}

static void on_written(uv_write_t *write, int status)
{
    (void)write;
    (void)status; /* the reader hears of it, or the timer does */
}

static void say(struct linker_conn *c, uint32_t to)
{
    const struct linkhello hello = {
        .token = c->linker->token, .from = c->linker->self, .to = to};
    uv_buf_t buf = uv_buf_init((char *)c->sent, sizeof(c->sent));
    linkhello_write(c->sent, &hello);
    uv_write(&c->write, (uv_stream_t *)&c->tcp, &buf, 1, on_written);
}

/* ---- dials --------------------------------------------------------------- */

static Gpul__LinkFailure__Kind kind_of(int status)
{
    switch (status) {
    case UV_ECONNREFUSED:
        return GPUL__LINK_FAILURE__KIND__REFUSED;
    case UV_ETIMEDOUT:
        return GPUL__LINK_FAILURE__KIND__TIMED_OUT;
    case UV_ECONNRESET:
    case UV_EOF:
    case UV_EPIPE:
        return GPUL__LINK_FAILURE__KIND__CLOSED;
    default:
        return GPUL__LINK_FAILURE__KIND__UNREACHABLE;
    }
}

/* The own candidate that this connection comes from. */
static uint8_t source_of(const struct linker_conn *c)
{
    const struct linker *l = c->linker;
    struct sockaddr_storage address = {0};
    char text[GPUL_ADDRESS_BYTES_MAX + 1];
    int n = sizeof(address);
    if (uv_tcp_getsockname(&c->tcp, (struct sockaddr *)&address, &n) != 0) {
        return LINKPLAN_NO_SOURCE;
    }
    gpul_sockaddr_format(&address, text, NULL);
    for (uint8_t i = 0; i < l->candidate_count; i++) {
        if (strcmp(l->all[i].address, text) == 0) {
            return i;
        }
    }
    return LINKPLAN_NO_SOURCE;
}

static void judge_answer(struct linker_conn *c)
{
    struct linker *l = c->linker;
    struct linkhello hello;
    if (!linkhello_read(&hello, c->got) || hello.token != l->token) {
        fail(c, GPUL__LINK_FAILURE__KIND__OTHER_MACHINE, 0);
    } else if (hello.from != c->dial.node) {
        bool is_known = hello.from < l->node_count;
        fail(c, GPUL__LINK_FAILURE__KIND__OTHER_MACHINE,
             is_known ? hello.from + 1 : 0);
    } else {
        linkplan_reached(&l->plan, &c->dial, source_of(c));
        drop(c);
        pump(l);
    }
}

static void on_answer(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct linker_conn *c = stream->data;
    (void)buf;
    if (c->linker == NULL || n == 0) {
        return;
    }
    if (n < 0) {
        fail(c, kind_of((int)n), 0);
        return;
    }
    c->got_bytes += (size_t)n;
    if (c->got_bytes == sizeof(c->got)) {
        judge_answer(c);
    }
}

static void on_connected(uv_connect_t *connect, int status)
{
    struct linker_conn *c = connect->handle->data;
    if (c->linker == NULL) {
        return;
    }
    if (status != 0) {
        fail(c, kind_of(status), 0);
        return;
    }
    say(c, c->dial.node);
    uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_answer);
}

static void on_dial_overdue(uv_timer_t *timer)
{
    fail(timer->data, GPUL__LINK_FAILURE__KIND__TIMED_OUT, 0);
}

/* False: it has failed at once, and nothing of it is left. */
static bool dial(struct linker *l, const struct linkplan_dial *dial)
{
    struct sockaddr_storage to;
    struct linker_conn *c =
        gpul_sockaddr_parse(&to, dial->address, dial->port, NULL) == 0
            ? create(l, true)
            : NULL;
    if (c == NULL) {
        linkplan_failed(&l->plan, dial, GPUL__LINK_FAILURE__KIND__UNREACHABLE,
                        0);
        return false;
    }
    c->dial = *dial;
    int rc = uv_tcp_connect(&c->connect, &c->tcp, (struct sockaddr *)&to,
                            on_connected);
    if (rc != 0) {
        linkplan_failed(&l->plan, dial, kind_of(rc), 0);
        drop(c);
        return false;
    }
    uv_timer_start(&c->timer, on_dial_overdue, dial->bound_ms, 0);
    return true;
}

static void report(struct linker *l)
{
    Gpul__LinkReport report;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    l->has_reported = true;
    uv_timer_stop(l->deadline);
    linkplan_fill(&report, &l->plan);
    frame.body_case = GPUL__FRAME__BODY_LINK_REPORT;
    frame.link_report = &report;
    l->handlers->on_frame(l->arg, &frame);
}

static void pump(struct linker *l)
{
    struct linkplan_dial next;
    if (l->has_reported) {
        return;
    }
    while (linkplan_next(&l->plan, &next)) {
        dial(l, &next);
    }
    if (linkplan_is_over(&l->plan)) {
        report(l);
    }
}

/* What is not over by now has failed. */
static void on_deadline(uv_timer_t *timer)
{
    struct linker *l = timer->data;
    struct linker_conn *c = l->conns;
    while (c != NULL) {
        struct linker_conn *next = c->next;
        if (c->is_dial) {
            linkplan_failed(&l->plan, &c->dial,
                            GPUL__LINK_FAILURE__KIND__TIMED_OUT, 0);
            drop(c);
        }
        c = next;
    }
    report(l);
}

/* ---- answers ------------------------------------------------------------- */

static void on_hello(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct linker_conn *c = stream->data;
    struct linkhello hello;
    (void)buf;
    if (c->linker == NULL || n == 0) {
        return;
    }
    if (n < 0 || c->has_answered) {
        drop(c); /* the peer has its answer, or does not want one */
        return;
    }
    c->got_bytes += (size_t)n;
    if (c->got_bytes < sizeof(c->got)) {
        return;
    }
    if (!linkhello_read(&hello, c->got) || hello.token != c->linker->token) {
        drop(c);
        return;
    }
    say(c, hello.from);
    c->has_answered = true;
    c->got_bytes = 0; /* room for the end, or for what is too much */
}

static void on_answer_overdue(uv_timer_t *timer)
{
    drop(timer->data);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct linker *l = ((struct linker_socket *)listener)->linker;
    struct linker_conn *c = status == 0 ? create(l, false) : NULL;
    if (c == NULL) {
        return;
    }
    if (uv_accept(listener, (uv_stream_t *)&c->tcp) != 0 ||
        l->answers > LINKER_ANSWERS_MAX) {
        drop(c);
        return;
    }
    uv_timer_start(&c->timer, on_answer_overdue, LINKER_ANSWER_MS, 0);
    uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_hello);
}

/* ---- listening ----------------------------------------------------------- */

static void on_socket_closed(uv_handle_t *handle)
{
    free(handle);
}

static int bind_socket(uv_tcp_t *tcp, const char *address)
{
    struct sockaddr_storage at;
    if (gpul_sockaddr_parse(&at, address, 0, NULL) != 0) {
        return UV_EINVAL;
    }
    unsigned flags = at.ss_family == AF_INET6 ? UV_TCP_IPV6ONLY : 0;
    int rc = uv_tcp_bind(tcp, (const struct sockaddr *)&at, flags);
    return rc == 0 ? uv_listen((uv_stream_t *)tcp, BACKLOG, on_connection) : rc;
}

/* It has a port then, or a reason why not. */
static int listen_on(struct linker *l, struct gpul_interface *interface)
{
    struct linker_socket *s = calloc(1, sizeof(*s));
    struct sockaddr_storage at = {0};
    char text[GPUL_ADDRESS_BYTES_MAX + 1];
    int n = sizeof(at);
    if (s == NULL) {
        return GPUL_ENOMEM;
    }
    s->linker = l;
    uv_tcp_init(l->loop, &s->tcp);
    int rc = bind_socket(&s->tcp, interface->address);
    if (rc == 0) {
        rc = uv_tcp_getsockname(&s->tcp, (struct sockaddr *)&at, &n);
    }
    if (rc != 0) {
        snprintf(interface->rejection, sizeof(interface->rejection),
                 "cannot listen there: %.40s", uv_strerror(rc));
        uv_close((uv_handle_t *)&s->tcp, on_socket_closed);
        return 0;
    }
    gpul_sockaddr_format(&at, text, &interface->port);
    l->sockets[l->socket_count++] = s;
    return 0;
}

static void tell_listening(struct linker *l, size_t count, const char *wanted)
{
    Gpul__LinkInterface all[GPUL_INTERFACES_MAX];
    Gpul__LinkInterface *list[GPUL_INTERFACES_MAX];
    char why[LINKPICK_TEXT_BYTES] = "";
    for (size_t i = 0; i < count; i++) {
        struct gpul_interface *from = &l->all[i];
        gpul__link_interface__init(&all[i]);
        all[i].name = from->name;
        all[i].address = from->address;
        all[i].kind = (char *)(uintptr_t)from->kind;
        all[i].mbits = from->mbits;
        all[i].is_rdma = from->is_rdma;
        all[i].is_tunnel = from->is_tunnel;
        all[i].port = from->port;
        all[i].rejection = from->rejection;
        list[i] = &all[i];
    }
    if (l->candidate_count == 0) {
        linkpick_explain(why, l->all, count, wanted);
    }
    Gpul__LinkListening listening = GPUL__LINK_LISTENING__INIT;
    listening.interfaces = list;
    listening.n_interfaces = count;
    listening.error = why;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_LINK_LISTENING;
    frame.link_listening = &listening;
    l->handlers->on_frame(l->arg, &frame);
}

void linker_init(struct linker *l, uv_loop_t *loop,
                 const struct linker_handlers *handlers, void *arg)
{
    *l = (struct linker){.loop = loop, .handlers = handlers, .arg = arg};
}

/* Those that cannot be listened on go behind the others. */
static size_t order(struct linker *l, size_t count)
{
    return linkpick_sort(l->all, count, "", &l->candidate_count);
}

int linker_open(struct linker *l, const struct linker_request *request,
                struct gpul_error *err)
{
    size_t candidates;
    linker_close(l);
    l->is_open = true;
    l->has_reported = false;
    l->token = request->token;
    l->self = request->self;
    l->node_count = request->node_count;
    memcpy(l->all, request->found, request->found_count * sizeof(*l->all));
    for (size_t i = 0; i < request->found_count; i++) {
        l->all[i].is_joined = strcmp(l->all[i].address, request->joined) == 0;
    }
    size_t count = linkpick_sort(l->all, request->found_count, request->wanted,
                                 &candidates);
    l->deadline = malloc(sizeof(*l->deadline));
    int rc = l->deadline == NULL ? GPUL_ENOMEM : 0;
    if (rc == 0) {
        uv_timer_init(l->loop, l->deadline);
        l->deadline->data = l;
    }
    for (size_t i = 0; i < candidates && rc == 0; i++) {
        rc = listen_on(l, &l->all[i]);
    }
    count = order(l, count);
    if (rc == 0) {
        rc = linkplan_init(&l->plan, l->self, l->node_count,
                           (uint32_t)l->candidate_count, err);
    }
    if (rc != 0) {
        linker_close(l);
        return gpul_fail(err, rc, "addresses of this node");
    }
    tell_listening(l, count, request->wanted);
    return 0;
}

int linker_add(struct linker *l, const Gpul__LinkPeers *page,
               struct gpul_error *err)
{
    if (!l->is_open || linkplan_is_complete(&l->plan)) {
        return gpul_fail(err, GPUL_EPROTO, "a page of addresses out of turn");
    }
    int rc = linkplan_add(&l->plan, page, err);
    if (rc == 0 && linkplan_is_complete(&l->plan)) {
        uv_update_time(l->loop);
        uv_timer_start(l->deadline, on_deadline, l->plan.dial_ms, 0);
        pump(l);
    }
    return rc;
}

void linker_close(struct linker *l)
{
    while (l->conns != NULL) {
        drop(l->conns);
    }
    for (size_t i = 0; i < l->socket_count; i++) {
        uv_close((uv_handle_t *)&l->sockets[i]->tcp, on_socket_closed);
    }
    l->socket_count = 0;
    if (l->deadline != NULL) {
        uv_close((uv_handle_t *)l->deadline, on_socket_closed);
        l->deadline = NULL;
    }
    linkplan_release(&l->plan);
    l->is_open = false;
}
