/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/coordstage.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/spawn.h"
#include "coordinator/text.h"
#include "proto/keypipe.h"
#include "proto/sockaddr.h"

enum {
    BACKLOG = 4096,
    TICK_MS = 20,
    RETRY_FIRST_MS = 50, /* as an agent does */
    RETRY_LAST_MS = 5000,
    START_MS = 20000,
};

extern char **environ;

static void need(bool is_good, const char *what)
{
    if (!is_good) {
        fprintf(stderr, "coordstage: %s: %s\n", what, strerror(errno));
        exit(1);
    }
}

static void must(int rc, const struct gpul_error *err)
{
    if (rc != 0) {
        fprintf(stderr, "coordstage: %s\n", err->text);
        exit(1);
    }
}

/* ---- the coordinator ---------------------------------------------------- */

static int listen_on(struct coordstage *s)
{
    struct sockaddr_storage at;
    struct gpul_error err;
    char text[GPUL_ADDRESS_BYTES_MAX + 1];
    must(gpul_sockaddr_parse(&at, s->config.address, 0, &err), &err);
    socklen_t n = sizeof(at);
    int fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    need(fd >= 0 &&
             bind(fd, (struct sockaddr *)&at,
                  at.ss_family == AF_INET ? sizeof(struct sockaddr_in)
                                          : sizeof(struct sockaddr_in6)) == 0 &&
             listen(fd, BACKLOG) == 0 &&
             getsockname(fd, (struct sockaddr *)&at, &n) == 0,
         "listening");
    gpul_sockaddr_format(&at, text, &s->port);
    return fd;
}

static void start(struct coordstage *s, int desk_fd)
{
    char name[] = "gpulaunch-coordinator", insecure[] = "--insecure";
    char *arguments[] = {name, s->config.is_insecure ? insecure : NULL, NULL};
    struct gpul_error err;
    int exec_errno, secret_fd = -1;
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    int log_fd =
        open(s->config.log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC,
             0600);
    int listen_fd = listen_on(s);
    need(null_fd >= 0 && log_fd >= 0, s->config.log);
    must(gpul_keypipe_put_secret(&secret_fd, &s->secret, &err), &err);
    struct gpul_spawn_fd fds[] = {
        {null_fd, 0}, {null_fd, 1},   {log_fd, 2},
        {desk_fd, 3}, {listen_fd, 4}, {secret_fd, 5},
    };
    struct gpul_spawn spec = {
        .path = s->config.program,
        .arguments = arguments,
        .environment = environ,
        .fds = fds,
        .fd_count = s->config.is_insecure ? 5 : 6,
        .parent_death_signal = SIGKILL,
    };
    must(gpul_spawn(&s->pid, &exec_errno, &spec, &err), &err);
    close(null_fd);
    close(log_fd);
    close(listen_fd);
    close(secret_fd);
    close(desk_fd);
}

/* ---- its front end ------------------------------------------------------ */

static void on_told(void *arg, const Gpul__Frame *frame)
{
    struct coordstage *s = arg;
    if (frame->body_case == GPUL__FRAME__BODY_JOB_END) {
        s->has_end = true;
        gpul_buf_appendf(&s->notices, "end: %s\n", frame->job_end->text);
    }
    if (frame->body_case != GPUL__FRAME__BODY_EVENT) {
        return;
    }
    s->joined += frame->event->kind == GPUL__EVENT__KIND__NODE_JOINED;
    if (frame->event->kind == GPUL__EVENT__KIND__NODE_REFUSED ||
        frame->event->kind == GPUL__EVENT__KIND__NOTICE) {
        s->refused += frame->event->kind == GPUL__EVENT__KIND__NODE_REFUSED;
        gpul_buf_appendf(&s->notices, "%s\n", frame->event->text);
    }
}

static void on_desk_closed(void *arg, const struct gpul_error *why)
{
    struct coordstage *s = arg;
    (void)why;
    s->desk = NULL;
}

static const struct gpul_transport_handlers desk_handlers = {
    .on_message = on_told,
    .on_closed = on_desk_closed,
};

static void send_job(struct coordstage *s)
{
    char names[64];
    char *list = names;
    struct gpul_error err;
    snprintf(names, sizeof(names), COORDSTAGE_PREFIX "[0-%" PRIu32 "]",
             s->config.node_count - 1);
    Gpul__Sweep sweep = GPUL__SWEEP__INIT;
    Gpul__SelfTest self_test = GPUL__SELF_TEST__INIT;
    Gpul__Command command = GPUL__COMMAND__INIT;
    Gpul__Environment environment = GPUL__ENVIRONMENT__INIT;
    ProtobufCBinaryData argument = {4, (uint8_t *)wire_text("true")};
    Gpul__Job job = GPUL__JOB__INIT;
    self_test.sweep = &sweep;
    command.arguments = &argument;
    command.n_arguments = 1;
    job.job_id = wire_text(COORDSTAGE_JOB);
    job.mode = GPUL__JOB__MODE__RUN;
    job.node_count = s->config.node_count;
    job.ranks_per_node = 1;
    job.node_names = &list;
    job.n_node_names = 1;
    job.join_timeout_ms = 600000;
    job.self_test = &self_test;
    job.command = &command;
    job.environment = &environment;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_JOB;
    frame.job = &job;
    must(gpul_transport_send(s->desk, &frame, &err), &err);
}

/* Every connection needs a descriptor here and one there. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    need(getrlimit(RLIMIT_NOFILE, &limit) == 0, "descriptors");
    limit.rlim_cur = limit.rlim_max;
    need(setrlimit(RLIMIT_NOFILE, &limit) == 0, "descriptors");
}

static void make_nodes(struct coordstage *s)
{
    s->node_count = s->config.node_count;
    s->nodes = calloc(s->node_count, sizeof(*s->nodes));
    need(s->nodes != NULL, "memory");
    for (uint32_t i = 0; i < s->node_count; i++) {
        struct coordstage_node *n = &s->nodes[i];
        snprintf(n->name, sizeof(n->name), COORDSTAGE_PREFIX "%" PRIu32, i);
        n->keyring = s->config.is_insecure ? NULL : coordstage_key(s, n->name);
    }
}

static void on_retry(uv_timer_t *timer);

void coordstage_open(struct coordstage *s, const struct coordstage_config *c)
{
    int fds[2];
    struct gpul_error err;
    *s = (struct coordstage){.config = *c};
    signal(SIGPIPE, SIG_IGN);
    raise_descriptor_limit();
    gpul_buf_init(&s->notices, 1u << 20);
    gpul_rng_init(&s->rng, 1);
    must(gpul_secret_draw(&s->secret, &err), &err);
    make_nodes(s);
    need(uv_loop_init(&s->loop) == 0 && uv_timer_init(&s->loop, &s->retry) == 0,
         "a loop");
    need(uv_timer_start(&s->retry, on_retry, TICK_MS, TICK_MS) == 0, "a timer");
    s->retry.data = s;
    need(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0,
         "a socket pair");
    start(s, fds[1]);
    must(gpul_transport_open(&s->desk, &s->loop, fds[0], GPUL_PEER_DESK,
                             &desk_handlers, s, &err),
         &err);
    send_job(s);
}

/* ---- its nodes ---------------------------------------------------------- */

struct gpul_keyring *coordstage_key(const struct coordstage *s,
                                    const char *name)
{
    struct gpul_key key;
    struct gpul_keyring *k;
    struct gpul_error err;
    must(gpul_key_of_node(&key, &s->secret, COORDSTAGE_JOB, name, &err), &err);
    must(gpul_keyring_of_node(&k, &key, COORDSTAGE_JOB, name, &err), &err);
    return k;
}

static void on_connected(void *arg)
{
    (void)arg; /* Hello has been queued */
}

static void on_node_message(void *arg, const Gpul__Frame *frame)
{
    struct coordstage_node *n = arg;
    if (frame->body_case == GPUL__FRAME__BODY_REFUSE) {
        n->is_refused = true;
        snprintf(n->why, sizeof(n->why), "%s", frame->refuse->text);
    } else if (frame->body_case == GPUL__FRAME__BODY_WELCOME) {
        n->is_welcome = true;
        n->epoch = frame->epoch;
        n->stage->welcome++;
        n->stage->in_flight--;
    }
}

/* Longer each time, and nobody at the same time as the others. */
static void wait_a_while(struct coordstage_node *n)
{
    uint64_t wait = RETRY_FIRST_MS;
    for (uint32_t i = 1; i < n->dialled && wait < RETRY_LAST_MS; i++) {
        wait *= 2;
    }
    wait = wait < RETRY_LAST_MS ? wait : RETRY_LAST_MS;
    n->retry_at_ms = gpul_clock_ms() + wait / 2 +
                     gpul_rng_below(&n->stage->rng, wait / 2 + 1);
}

static void on_node_closed(void *arg, const struct gpul_error *why)
{
    struct coordstage_node *n = arg;
    n->transport = NULL;
    if (why != NULL && !n->is_refused) {
        snprintf(n->why, sizeof(n->why), "%s", why->text);
    }
    if (!n->is_welcome) {
        n->stage->in_flight--;
        n->stage->turned_away++;
        wait_a_while(n);
    }
}

static const struct gpul_transport_handlers node_handlers = {
    .on_connected = on_connected,
    .on_message = on_node_message,
    .on_closed = on_node_closed,
};

static void say_hello(struct coordstage_node *n)
{
    Gpul__Facts facts = GPUL__FACTS__INIT;
    facts.hostname = wire_text("stage"); /* one host, so loopback will do */
    facts.cores = 1;
    facts.boot_id = wire_text("6a9c9e43-6b51-4d2f-9b5e-6fd8d1b8a1c0");
    facts.address = wire_text(n->stage->config.address);
    Gpul__Hello hello = GPUL__HELLO__INIT;
    hello.protocol_min = GPUL_PROTOCOL_MIN;
    hello.protocol_max = GPUL_PROTOCOL;
    hello.job_id = wire_text(COORDSTAGE_JOB);
    hello.node_name = n->name;
    hello.instance = (uint64_t)(uintptr_t)n;
    hello.facts = &facts;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_HELLO;
    frame.hello = &hello;
    (void)gpul_transport_send(n->transport, &frame, NULL); /* or on_closed */
}

void coordstage_dial(struct coordstage *s, struct coordstage_node *n)
{
    struct gpul_error err;
    n->stage = s;
    n->dialled++;
    s->in_flight++;
    must(gpul_transport_connect(&n->transport, &s->loop, s->config.address,
                                s->port, n->keyring, GPUL_PEER_COORDINATOR,
                                &node_handlers, n, &err),
         &err);
    if (n->first != NULL) {
        (void)gpul_transport_send(n->transport, n->first, NULL);
    } else {
        say_hello(n);
    }
}

/* First those that have not dialled yet. */
static void dial_some(struct coordstage *s)
{
    while (s->next < s->node_count && s->in_flight < s->in_flight_max) {
        coordstage_dial(s, &s->nodes[s->next++]);
    }
}

static void beat(struct coordstage *s, uint64_t now_ms)
{
    Gpul__Heartbeat heartbeat = GPUL__HEARTBEAT__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    if (now_ms < s->beat_at_ms) {
        return;
    }
    s->beat_at_ms = now_ms + GPUL_HEARTBEAT_MS;
    heartbeat.sequence = ++s->beats;
    frame.body_case = GPUL__FRAME__BODY_HEARTBEAT;
    frame.heartbeat = &heartbeat;
    for (uint32_t i = 0; i < s->node_count; i++) {
        struct coordstage_node *n = &s->nodes[i];
        if (n->transport != NULL && n->is_welcome) {
            frame.epoch = n->epoch;
            (void)gpul_transport_send(n->transport, &frame, NULL);
        }
    }
}

/* Then those that were turned away. */
static void on_retry(uv_timer_t *timer)
{
    struct coordstage *s = timer->data;
    uint64_t now_ms = gpul_clock_ms();
    beat(s, now_ms);
    if (s->next < s->node_count) {
        return;
    }
    for (uint32_t i = 0; i < s->node_count; i++) {
        struct coordstage_node *n = &s->nodes[i];
        if (n->transport == NULL && !n->is_welcome && !n->is_refused &&
            n->retry_at_ms <= now_ms && s->in_flight < s->in_flight_max) {
            coordstage_dial(s, n);
        }
    }
}

static bool all_are_in(const void *of)
{
    const struct coordstage *s = of;
    return s->welcome == s->node_count && s->joined == s->node_count;
}

bool coordstage_join(struct coordstage *s, uint32_t at_once, uint64_t limit_ms)
{
    s->in_flight_max = at_once;
    return coordstage_until(s, all_are_in, s, limit_ms);
}

/* ---- looking ------------------------------------------------------------ */

static void on_limit(uv_timer_t *timer)
{
    *(bool *)timer->data = true;
}

bool coordstage_until(struct coordstage *s, bool (*is_done)(const void *of),
                      const void *of, uint64_t limit_ms)
{
    bool is_late = false;
    uv_timer_t limit;
    uv_timer_init(&s->loop, &limit);
    limit.data = &is_late;
    uv_update_time(&s->loop);
    uv_timer_start(&limit, on_limit, limit_ms, 0);
    while (!is_done(of) && !is_late) {
        dial_some(s);
        uv_run(&s->loop, UV_RUN_ONCE);
    }
    bool is_good = is_done(of);
    uv_close((uv_handle_t *)&limit, NULL);
    uv_run(&s->loop, UV_RUN_NOWAIT);
    return is_good;
}

static bool has_ended(const void *of)
{
    const struct coordstage_node *n = of;
    return n->transport == NULL;
}

void coordstage_expect_end(struct coordstage *s, struct coordstage_node *n,
                           uint64_t limit_ms)
{
    coordstage_dial(s, n);
    if (!coordstage_until(s, has_ended, n, limit_ms)) {
        fprintf(stderr, "coordstage: %s: its connection does not end\n",
                n->name);
        exit(1);
    }
}

uint64_t coordstage_memory_kib(const struct coordstage *s, const char *field)
{
    char path[64], line[256];
    uint64_t kib = 0;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)s->pid);
    FILE *file = fopen(path, "r");
    need(file != NULL, path);
    while (fgets(line, sizeof(line), file) != NULL) {
        size_t n = strlen(field);
        if (strncmp(line, field, n) == 0 && line[n] == ':') {
            kib = strtoull(line + n + 1, NULL, 10);
        }
    }
    fclose(file);
    need(kib > 0, field);
    return kib;
}

uint64_t coordstage_processor_ns(const struct coordstage *s)
{
    clockid_t id;
    struct timespec t;
    need(clock_getcpuclockid(s->pid, &id) == 0 && clock_gettime(id, &t) == 0,
         "its processor time");
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

bool coordstage_is_alive(struct coordstage *s)
{
    if (s->pid != 0 && waitpid(s->pid, &s->status, WNOHANG) == s->pid) {
        s->pid = 0;
    }
    return s->pid != 0;
}

void coordstage_close(struct coordstage *s)
{
    if (coordstage_is_alive(s)) {
        kill(s->pid, SIGKILL);
        waitpid(s->pid, &s->status, 0);
        s->pid = 0;
    }
    for (uint32_t i = 0; i < s->node_count; i++) {
        if (s->nodes[i].transport != NULL) {
            gpul_transport_close(s->nodes[i].transport, 0);
        }
    }
    if (s->desk != NULL) {
        gpul_transport_close(s->desk, 0);
    }
    uv_close((uv_handle_t *)&s->retry, NULL);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    need(uv_loop_close(&s->loop) == 0, "closing the loop");
    for (uint32_t i = 0; i < s->node_count; i++) {
        gpul_keyring_destroy(s->nodes[i].keyring);
    }
    free(s->nodes);
    gpul_buf_release(&s->notices);
}
