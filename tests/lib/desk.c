/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>

#include "desk.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "common/spawn.h"
#include "proto/limits.h"

extern char **environ;

void (*desk_edit_job)(Gpul__Job *job);
const char *desk_worker;
uint32_t desk_lease_ms = 600000;

/* ---- opening ------------------------------------------------------------- */

static void listen_somewhere(struct desk *d)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t bytes = sizeof(at);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    d->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(d->listener, (struct sockaddr *)&at, bytes), 0);
    assert_int_equal(listen(d->listener, 8), 0);
    getsockname(d->listener, (struct sockaddr *)&at, &bytes);
    d->port = ntohs(at.sin_port);
}

static void start_worker(struct desk *d)
{
    char where[32], job[64];
    char worker[] = "gpulaunch-worker", connect_to[] = "--connect";
    char name[] = "--name=node-0";
    char insecure[] = "--insecure";
    char *arguments[] = {worker, connect_to, where, job, name, insecure, NULL};
    int pipe_fds[2];
    snprintf(where, sizeof(where), "127.0.0.1:%u", d->port);
    snprintf(job, sizeof(job), "--job=%s", d->job);
    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
    const struct gpul_spawn_fd fds[] = {{0, 0}, {1, 1}, {pipe_fds[1], 2}};
    const struct gpul_spawn spec = {
        .path = desk_worker != NULL ? desk_worker : GPUL_TEST_WORKER,
        .arguments = arguments,
        .environment = environ,
        .fds = fds,
        .fd_count = 3,
        .parent_death_signal = SIGKILL,
    };
    int exec_errno;
    assert_int_equal(gpul_spawn(&d->worker, &exec_errno, &spec, NULL), 0);
    close(pipe_fds[1]);
    d->worker_error = pipe_fds[0];
}

static void wait_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, DESK_PATIENCE_MS), 1);
}

void desk_open(struct desk *d)
{
    static unsigned count;
    *d = (struct desk){.fd = -1, .gives_credit = true, .acknowledges = true};
    gpul_deframer_init(&d->in, GPUL_PEER_NODE);
    gpul_buf_init(&d->streams[0], DESK_OUTPUT_MAX + 1);
    gpul_buf_init(&d->streams[1], DESK_OUTPUT_MAX + 1);
    gpul_buf_init(&d->notices, DESK_OUTPUT_MAX);
    d->output_hash = UINT64_C(0xcbf29ce484222325);
    snprintf(d->job, sizeof(d->job), "desk-%d-%u", getpid(), ++count);
    snprintf(d->log_dir, sizeof(d->log_dir), "/tmp/gpul-test-XXXXXX");
    assert_non_null(mkdtemp(d->log_dir));
    listen_somewhere(d);
    start_worker(d);
    wait_readable(d->listener);
    d->fd = accept4(d->listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(d->fd >= 0);
}

static void read_error(struct desk *d, char *text)
{
    size_t used = 0;
    ssize_t n;
    while ((n = read(d->worker_error, text + used, 511 - used)) > 0) {
        used += (size_t)n;
    }
    text[used] = 0;
    close(d->worker_error);
}

/* The worker's wait status; its stderr into `error`, 512 bytes. */
static int wait_worker(struct desk *d, char *error)
{
    int status;
    read_error(d, error);
    assert_int_equal(waitpid(d->worker, &status, 0), d->worker);
    return status;
}

static void release(struct desk *d)
{
    if (d->fd >= 0) {
        close(d->fd);
    }
    close(d->listener);
    gpul_deframer_release(&d->in);
    gpul_buf_release(&d->streams[0]);
    gpul_buf_release(&d->streams[1]);
    gpul_buf_release(&d->notices);
    char command[200];
    snprintf(command, sizeof(command), "rm -rf '%s'", d->log_dir);
    assert_int_equal(system(command), 0);
}

void desk_close(struct desk *d, int exit_code, char *text)
{
    char error[512];
    int status = wait_worker(d, error);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != exit_code) {
        print_error("worker: status %x, stderr: %s\n", (unsigned)status, error);
    }
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), exit_code);
    if (text != NULL) {
        memcpy(text, error, sizeof(error));
    } else {
        assert_string_equal(error, "");
    }
    release(d);
}

void desk_reap(struct desk *d, int signal)
{
    char error[512];
    int status = wait_worker(d, error);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), signal);
    release(d);
}

/* ---- frames -------------------------------------------------------------- */

void desk_send(struct desk *d, Gpul__Frame *frame)
{
    struct gpul_buf out;
    struct gpul_error err;
    gpul_buf_init(&out, GPUL_JOB_BYTES_MAX);
    frame->epoch = DESK_EPOCH;
    frame->generation = d->generation;
    int rc = gpul_message_encode(&out, frame, &err);
    if (rc != 0) {
        print_error("encode: %s\n", err.text);
    }
    assert_int_equal(rc, 0);
    for (size_t at = 0; at < out.used;) {
        ssize_t n = send(d->fd, out.data + at, out.used - at, MSG_NOSIGNAL);
        assert_true(n > 0);
        at += (size_t)n;
    }
    gpul_buf_release(&out);
}

static void acknowledge(struct desk *d, uint64_t sequence)
{
    Gpul__HeartbeatAck ack;
    gpul__heartbeat_ack__init(&ack);
    ack.sequence = sequence;
    Gpul__Frame frame;
    gpul__frame__init(&frame);
    frame.body_case = GPUL__FRAME__BODY_HEARTBEAT_ACK;
    frame.heartbeat_ack = &ack;
    if (d->acknowledges) {
        desk_send(d, &frame);
    }
}

static void collect(struct desk *d, const Gpul__Output *output)
{
    assert_true(output->data.len <= GPUL_OUTPUT_BYTES_MAX);
    bool is_out = output->stream == GPUL__OUTPUT__STREAM__STDOUT;
    struct gpul_buf *b = &d->streams[is_out ? 0 : 1];
    size_t room = DESK_OUTPUT_MAX - b->used;
    size_t n = output->data.len < room ? output->data.len : room;
    gpul_buf_append(b, output->data.data, n);
    for (size_t i = 0; is_out && i < output->data.len; i++) {
        d->output_hash ^= output->data.data[i];
        d->output_hash *= UINT64_C(0x100000001b3);
    }
    d->output_bytes += output->data.len;
    d->uncredited += output->data.len;
    if (d->gives_credit) {
        desk_credit(d, d->uncredited);
        d->uncredited = 0;
    }
}

/* Is this one of the frames that the desk deals with itself? */
static bool absorb(struct desk *d, const Gpul__Frame *frame)
{
    switch (frame->body_case) {
    case GPUL__FRAME__BODY_HEARTBEAT:
        d->heartbeats++;
        acknowledge(d, frame->heartbeat->sequence);
        return true;
    case GPUL__FRAME__BODY_OUTPUT:
        assert_int_equal(frame->generation, d->generation);
        collect(d, frame->output);
        return true;
    case GPUL__FRAME__BODY_NOTICE:
        gpul_buf_appendf(&d->notices, "%s\n", frame->notice->text);
        return true;
    default:
        return false;
    }
}

/* Wait for bytes; false at their end. */
static bool feed(struct desk *d)
{
    static uint8_t bytes[32 << 10];
    struct gpul_error err;
    wait_readable(d->fd);
    ssize_t n = recv(d->fd, bytes, sizeof(bytes), 0);
    if (n <= 0) {
        return false;
    }
    int rc = gpul_deframer_feed(&d->in, bytes, (size_t)n, &err);
    if (rc != 0) {
        print_error("from the worker: %s\n", err.text);
    }
    assert_int_equal(rc, 0);
    return true;
}

/* The next frame if one is whole; NULL otherwise. */
static Gpul__Frame *next(struct desk *d)
{
    const uint8_t *body;
    size_t n;
    struct gpul_error err;
    if (gpul_deframer_next(&d->in, &body, &n, &err) <= 0) {
        return NULL;
    }
    Gpul__Frame *frame;
    int rc = gpul_message_decode(&frame, body, n, GPUL_PEER_NODE, &err);
    if (rc != 0) {
        print_error("from the worker: %s\n", err.text);
    }
    assert_int_equal(rc, 0);
    return frame;
}

Gpul__Frame *desk_expect_any(struct desk *d)
{
    for (;;) {
        Gpul__Frame *frame = next(d);
        if (frame == NULL) {
            assert_true(feed(d));
            continue;
        }
        if (!absorb(d, frame)) {
            return frame;
        }
        gpul_message_release(frame);
    }
}

Gpul__Frame *desk_expect(struct desk *d, Gpul__Frame__BodyCase kind)
{
    Gpul__Frame *frame = desk_expect_any(d);
    assert_int_equal(frame->body_case, kind);
    return frame;
}

/* Take in one of the frames that the desk deals with itself. */
static void take_one(struct desk *d)
{
    Gpul__Frame *frame = next(d);
    if (frame == NULL) {
        assert_true(feed(d));
        return;
    }
    assert_true(absorb(d, frame));
    gpul_message_release(frame);
}

void desk_until(struct desk *d, bool (*is_done)(const struct desk *d))
{
    uint64_t deadline = gpul_clock_ms() + DESK_PATIENCE_MS;
    while (!is_done(d)) {
        assert_true(gpul_clock_ms() < deadline);
        take_one(d);
    }
}

void desk_await_heartbeats(struct desk *d, uint32_t count)
{
    uint32_t end = d->heartbeats + count;
    while (d->heartbeats < end) {
        take_one(d);
    }
}

const char *desk_output(struct desk *d, int stream)
{
    return gpul_buf_text(&d->streams[stream]);
}

/* ---- the usual messages -------------------------------------------------- */

static void welcome(struct desk *d, uint32_t attach)
{
    Gpul__Frame *hello = desk_expect(d, GPUL__FRAME__BODY_HELLO);
    assert_int_equal(hello->hello->attach, attach);
    assert_int_equal(hello->hello->held_generation,
                     attach > 0 ? d->generation : 0);
    assert_string_equal(hello->hello->job_id, d->job);
    assert_string_equal(hello->hello->node_name, "node-0");
    assert_string_equal(hello->hello->facts->address, "127.0.0.1");
    gpul_message_release(hello);
    Gpul__Welcome body;
    gpul__welcome__init(&body);
    body.protocol = GPUL_PROTOCOL;
    body.version = (char[]){"0"};
    body.heartbeat_ms = 200;
    body.lease_ms = desk_lease_ms;
    Gpul__Frame frame;
    gpul__frame__init(&frame);
    frame.body_case = GPUL__FRAME__BODY_WELCOME;
    frame.welcome = &body;
    desk_send(d, &frame);
}

static void send_job(struct desk *d, int argc, const char *const *argv)
{
    char log_dir[160];
    char node[] = "node-0";
    char *nodes[] = {node};
    ProtobufCBinaryData arguments[8];
    Gpul__Command command;
    gpul__command__init(&command);
    for (int i = 0; i < argc; i++) {
        arguments[i].data = (uint8_t *)(uintptr_t)argv[i];
        arguments[i].len = strlen(argv[i]);
    }
    command.arguments = arguments;
    command.n_arguments = (size_t)argc;
    Gpul__SelfTest self_test;
    gpul__self_test__init(&self_test);
    Gpul__Sweep sweep;
    gpul__sweep__init(&sweep);
    self_test.sweep = &sweep;
    Gpul__Environment environment;
    gpul__environment__init(&environment);
    Gpul__Job job;
    gpul__job__init(&job);
    snprintf(log_dir, sizeof(log_dir), "%s/test-job", d->log_dir);
    job.job_id = d->job;
    job.mode = GPUL__JOB__MODE__RUN;
    job.node_count = 1;
    job.ranks_per_node = d->world_size;
    job.node_names = nodes;
    job.n_node_names = 1;
    job.join_timeout_ms = 10000;
    job.grace_ms = 300;
    job.self_test = &self_test;
    job.command = &command;
    job.environment = &environment;
    job.log_dir = log_dir;
    job.forwards_output = true;
    if (desk_edit_job != NULL) {
        desk_edit_job(&job);
    }
    Gpul__Frame frame;
    gpul__frame__init(&frame);
    frame.body_case = GPUL__FRAME__BODY_JOB;
    frame.job = &job;
    desk_send(d, &frame);
}

static void send_roster(struct desk *d, uint32_t ranks)
{
    char address[] = "127.0.0.1";
    uint32_t base = d->port_base;
    Gpul__Roster roster;
    gpul__roster__init(&roster);
    roster.page_count = 1;
    roster.node_count = 1;
    roster.addresses = address;
    roster.port_bases = &base;
    roster.n_port_bases = 1;
    roster.rank_counts = &ranks;
    roster.n_rank_counts = 1;
    Gpul__Frame frame;
    gpul__frame__init(&frame);
    frame.body_case = GPUL__FRAME__BODY_ROSTER;
    frame.roster = &roster;
    desk_send(d, &frame);
}

static void send_assign(struct desk *d, uint32_t ranks)
{
    Gpul__Assign assign;
    gpul__assign__init(&assign);
    assign.node_count = 1;
    assign.rank_count = ranks;
    assign.world_size = ranks;
    assign.host_rank_count = ranks;
    assign.host_node_count = 1;
    assign.host_count = 1;
    Gpul__Frame frame;
    gpul__frame__init(&frame);
    frame.body_case = GPUL__FRAME__BODY_ASSIGN;
    frame.assign = &assign;
    desk_send(d, &frame);
}

void desk_assign(struct desk *d, uint32_t ranks)
{
    d->generation++;
    send_assign(d, ranks);
    Gpul__Frame *ready = desk_expect(d, GPUL__FRAME__BODY_READY);
    assert_string_equal(ready->ready->error, "");
    d->port_base = (uint16_t)ready->ready->port_base;
    gpul_message_release(ready);
    send_roster(d, ranks);
}

void desk_prepare_command(struct desk *d, uint32_t ranks, int argc,
                          const char *const *argv)
{
    d->world_size = ranks;
    welcome(d, 0);
    send_job(d, argc, argv);
    desk_assign(d, ranks);
}

void desk_prepare(struct desk *d, uint32_t ranks, const char *script)
{
    const char *const argv[] = {"sh", "-c", script};
    desk_prepare_command(d, ranks, 3, argv);
}

void desk_attach(struct desk *d, uint32_t attach, const char *script)
{
    const char *const argv[] = {"sh", "-c", script};
    close(d->fd);
    gpul_deframer_release(&d->in);
    gpul_deframer_init(&d->in, GPUL_PEER_NODE);
    wait_readable(d->listener);
    d->fd = accept4(d->listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(d->fd >= 0);
    welcome(d, attach);
    send_job(d, 3, argv);
    send_assign(d, d->world_size);
    send_roster(d, d->world_size);
}

void desk_finish(struct desk *d, bool keeps_logs)
{
    Gpul__Finish finish;
    gpul__finish__init(&finish);
    finish.keeps_logs = keeps_logs;
    Gpul__Frame frame;
    gpul__frame__init(&frame);
    frame.body_case = GPUL__FRAME__BODY_FINISH;
    frame.finish = &finish;
    desk_send(d, &frame);
    while (feed(d)) {
        for (Gpul__Frame *late; (late = next(d)) != NULL;) {
            gpul_message_release(late);
        }
    }
    close(d->fd);
    d->fd = -1;
}
