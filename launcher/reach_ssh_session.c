/* SPDX-License-Identifier: Apache-2.0
 *
 * One ssh session: its process and its two streams.
 *
 * Happy path: start ssh with a fixed command, wait for the greeting among what
 * the shell there prints, judge it, write the orders.
 * Failure: whatever ends the process is told by its status and its last words;
 * a program of another release is ended from here.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "launcher/reach_ssh_internal.h"
#include "launcher/sshconfig.h"
#include "proto/orders.h"

/* A coordinator that listens already is reached at once, or not at all; each
 * further address of it takes its time. */
#define DIAL_MS 30000u
#define DIAL_MS_MIN 500u

enum { WORDS_MAX = 64 };

/* ---- writing ------------------------------------------------------------- */

struct writing {
    uv_write_t request;
    size_t n;
    char bytes[];
};

static void on_written(uv_write_t *request, int status)
{
    struct writing *w = (struct writing *)request;
    (void)status; /* ssh has ended, or is about to: that is told elsewhere */
    gpul_wipe(w->bytes, w->n);
    free(w);
}

void ssh_session_write(struct ssh_node *node, const void *bytes, size_t n)
{
    struct writing *w = node->in != NULL ? malloc(sizeof(*w) + n) : NULL;
    if (w == NULL) {
        return;
    }
    w->n = n;
    memcpy(w->bytes, bytes, n);
    uv_buf_t buf = uv_buf_init(w->bytes, (unsigned int)n);
    if (uv_write(&w->request, (uv_stream_t *)node->in, &buf, 1, on_written)) {
        gpul_wipe(w->bytes, n);
        free(w);
    }
}

static void on_program_written(uv_write_t *request, int status)
{
    (void)status;
    free(request);
}

/* The file is mapped, and stays so. */
static void write_program(struct ssh_node *node)
{
    uv_write_t *request = malloc(sizeof(*request));
    uv_buf_t buf = uv_buf_init((char *)node->way->program,
                               (unsigned int)node->way->program_bytes);
    if (request == NULL || uv_write(request, (uv_stream_t *)node->in, &buf, 1,
                                    on_program_written) != 0) {
        free(request);
    }
}

/* ---- orders -------------------------------------------------------------- */

static int put_key(struct gpul_orders *orders, const struct ssh_way *way)
{
    struct gpul_key key;
    struct gpul_secret form;
    char line[GPUL_SECRET_TEXT_BYTES];
    orders->is_insecure = !way->is_sealed;
    if (!way->is_sealed) {
        return 0;
    }
    int rc = gpul_key_of_node(&key, &way->secret, orders->job_id,
                              orders->node_name, NULL);
    memcpy(form.bytes, key.bytes, sizeof(form.bytes));
    gpul_secret_format(line, &form);
    memcpy(orders->key, line, GPUL_ORDERS_KEY_DIGITS);
    gpul_wipe(line, sizeof(line));
    gpul_wipe(&form, sizeof(form));
    gpul_wipe(&key, sizeof(key));
    return rc;
}

/* All addresses: what the user has said, then its own, where the route to it
 * begins. */
static void put_coordinators(struct gpul_orders *orders,
                             const struct ssh_node *node)
{
    const struct listening *l = &node->way->listening;
    const char *own = node->way->addresses[node->index].address;
    uint32_t first = l->advertised.host[0] != '\0';
    uint32_t count = listening_told(l, orders->coordinators);
    for (uint32_t i = first; i < count; i++) {
        struct gpul_hostport at = orders->coordinators[i];
        if (strcmp(at.host, own) == 0) {
            memmove(&orders->coordinators[first + 1],
                    &orders->coordinators[first], (i - first) * sizeof(at));
            orders->coordinators[first] = at;
        }
    }
    orders->coordinator_count = count;
}

/* It has to tell that it cannot reach us before the time to join is over. */
static uint32_t dial_ms(const struct ssh_way *way)
{
    uint64_t now_ms = gpul_clock_ms();
    uint64_t left_ms = way->join_ms > now_ms ? way->join_ms - now_ms : 0;
    uint32_t bound_ms = DIAL_MS + (way->listening.count - 1) * GPUL_DIAL_MS;
    left_ms = left_ms > DIAL_MS_MIN ? left_ms : DIAL_MS_MIN;
    return left_ms < bound_ms ? (uint32_t)left_ms : bound_ms;
}

static void give_orders(struct ssh_node *node)
{
    struct gpul_orders orders = {.join_timeout_ms = dial_ms(node->way)};
    struct gpul_buf text;
    snprintf(orders.job_id, sizeof(orders.job_id), "%s", node->way->job_id);
    snprintf(orders.node_name, sizeof(orders.node_name), "%s",
             node->way->plan->nodes.list[node->index].name);
    put_coordinators(&orders, node);
    gpul_buf_init(&text, GPUL_ORDERS_BYTES_MAX);
    if (put_key(&orders, node->way) == 0 &&
        gpul_orders_append(&text, &orders) == 0) {
        ssh_session_write(node, text.data, text.used);
        gpul_wipe(text.data, text.used);
    }
    gpul_wipe(orders.key, sizeof(orders.key));
    gpul_buf_release(&text);
}

/* ---- the greeting -------------------------------------------------------- */

static void refuse(struct ssh_node *node, const struct gpul_greeting *g)
{
    const struct reach_child *child = &node->way->reach->workers[node->index];
    node->fault = SSH_FAULT_VERSION;
    if (g->form != GPUL_ORDERS_VERSION) {
        snprintf(node->found, sizeof(node->found),
                 "it takes orders of form %u, this gpulaunch %s gives form %u",
                 g->form, GPULAUNCH_VERSION, GPUL_ORDERS_VERSION);
    } else {
        snprintf(node->found, sizeof(node->found),
                 "gpulaunch-worker %s speaks protocol %u to %u, this gpulaunch "
                 "%s %u to %u",
                 g->version, g->protocol_min, g->protocol_max,
                 GPULAUNCH_VERSION, GPUL_PROTOCOL_MIN, GPUL_PROTOCOL);
    }
    if (child->pid > 0) {
        kill(child->pid, SIGTERM);
    }
}

static void take_line(struct ssh_node *node)
{
    struct gpul_greeting g;
    if (node->has_greeted || node->fault != SSH_FAULT_OTHER ||
        !gpul_greeting_parse(&g, node->line)) {
        return; /* the shell's own */
    }
    if (g.form != GPUL_ORDERS_VERSION || g.protocol_min > GPUL_PROTOCOL ||
        g.protocol_max < GPUL_PROTOCOL_MIN) {
        refuse(node, &g);
        return;
    }
    node->has_greeted = true;
    reach_forget_words(&node->way->reach->workers[node->index]);
    give_orders(node);
    ssh_greeted(node);
}

static void take_bytes(struct ssh_node *node, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char c = bytes[i];
        if (c == '\n') {
            node->line[node->used] = '\0';
            take_line(node);
            node->used = 0;
        } else if (c != '\r' && node->used + 1 < sizeof(node->line)) {
            node->line[node->used++] = c; /* a longer one is no greeting */
        }
    }
}

/* ---- streams ------------------------------------------------------------- */

static void on_closed(uv_handle_t *handle)
{
    free(handle);
}

static void close_stream(uv_pipe_t **stream)
{
    if (*stream != NULL) {
        uv_close((uv_handle_t *)*stream, on_closed);
        *stream = NULL;
    }
}

void ssh_session_close(struct ssh_node *node)
{
    close_stream(&node->in);
    close_stream(&node->out);
}

static void on_allocate(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    static char bytes[4096];
    (void)handle;
    (void)suggested;
    *buf = uv_buf_init(bytes, sizeof(bytes));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct ssh_node *node = stream->data;
    if (n < 0) {
        close_stream(&node->out);
    } else if (n > 0) {
        take_bytes(node, buf->base, (size_t)n);
    }
}

static int open_stream(uv_pipe_t **stream, struct ssh_node *node, int fd,
                       struct gpul_error *err)
{
    *stream = malloc(sizeof(**stream));
    if (*stream == NULL) {
        close(fd);
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    uv_pipe_init(node->way->reach->loop, *stream, 0);
    (*stream)->data = node;
    int rc = uv_pipe_open(*stream, fd);
    if (rc != 0) {
        close(fd);
        close_stream(stream);
        return gpul_fail(err, GPUL_ESYS, "a pipe to ssh: %s", uv_strerror(rc));
    }
    return 0;
}

static int open_streams(struct ssh_node *node, int in, int out,
                        struct gpul_error *err)
{
    int rc = open_stream(&node->in, node, in, err);
    if (rc != 0) {
        close(out);
        return rc;
    }
    rc = open_stream(&node->out, node, out, err);
    if (rc == 0) {
        uv_read_start((uv_stream_t *)node->out, on_allocate, on_read);
    }
    return rc;
}

/* ---- the process --------------------------------------------------------- */

/* The user's ssh, as the user has set it up but for what a session that nobody
 * sits at cannot have. */
static void fill_arguments(char **arguments, const struct ssh_node *node)
{
    static char no_terminal[] = "-T";
    const struct ssh_way *way = node->way;
    size_t n = 0;
    for (; way->ssh[n] != NULL && n < WORDS_MAX; n++) {
        arguments[n] = way->ssh[n];
    }
    arguments[n++] = no_terminal;
    n += sshconfig_append(arguments + n, way->addresses[node->index].options);
    arguments[n++] = way->plan->nodes.list[node->index].name;
    arguments[n++] = way->script;
    arguments[n] = NULL;
}

static int spawn(struct ssh_node *node, int in, int out, struct gpul_error *err)
{
    char *arguments[WORDS_MAX + SSHCONFIG_WORDS_MAX + 4];
    struct reach *r = node->way->reach;
    struct gpul_spawn_fd fds[] = {{in, 0}, {out, 1}, {-1, 2}};
    fill_arguments(arguments, node);
    const struct reach_program ssh = {.path = node->way->ssh[0],
                                      .arguments = arguments};
    return reach_spawn(r, &r->workers[node->index], &ssh, fds, 3, SIGTERM, err);
}

int ssh_session_start(struct ssh_node *node, struct gpul_error *err)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    node->tries++;
    node->has_greeted = false;
    node->used = 0;
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) {
        int why = errno;
        if (in[0] >= 0) {
            close(in[0]);
            close(in[1]);
        }
        return gpul_fail_errno(err, why, "cannot create a pipe to ssh");
    }
    int rc = spawn(node, in[0], out[1], err);
    close(in[0]);
    close(out[1]);
    if (rc != 0) {
        close(in[1]);
        close(out[0]);
        return rc;
    }
    rc = open_streams(node, in[1], out[0], err);
    if (rc == 0 && node->way->program != NULL) {
        write_program(node);
    }
    return rc;
}
