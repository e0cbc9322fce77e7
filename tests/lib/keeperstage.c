/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/keeperstage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/buf.h"
#include "common/clock.h"
#include "worker/cleanup.h"
#include "worker/keeper.h"

enum { PAUSE_MS = 2 };

void stage_init(struct keeperstage *s)
{
    static unsigned int count;
    memset(s, 0, sizeof(*s));
    s->socket = -1;
    snprintf(s->job, sizeof(s->job), "stage-%d-%u", getpid(), count++);
}

/* In the agent. */
static int hand_over(void *arg, int socket)
{
    const struct keeperstage *s = arg;
    struct keeper_packet packet = {.type = KEEPER_STATE, .pid = getpid()};
    if (s->has_bad_agents ||
        keeperwire_send(s->control, &packet, &socket, 1) != 0) {
        return 9;
    }
    close(socket);
    if (keeperwire_send(s->control, &packet, NULL, 0) != 0) {
        return 9;
    }
    /* The last one of a test that failed ends with it. */
    char byte;
    return read(s->control, &byte, 1) < 0 ? 1 : 0;
}

void stage_open(struct keeperstage *s)
{
    int ends[2];
    assert_int_equal(
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(ends[0]);
        setpgid(0, 0);
        s->control = ends[1];
        const struct keeper_config config = {.agent_main = hand_over,
                                             .forget = s->forget,
                                             .arg = s,
                                             .node_name = "node7",
                                             .root = s->root};
        if (s->in_keeper != NULL) {
            s->in_keeper();
        }
        _exit(keeper_run(&config));
    }
    close(ends[1]);
    s->keeper = pid;
    s->control = ends[0];
}

static void await_input(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, STAGE_WAIT_MS), 1);
}

void stage_take_agent(struct keeperstage *s, struct keeper_mail *mail)
{
    await_input(s->control);
    assert_int_equal(keeperwire_receive(s->control, mail), 0);
    s->agent = mail->packet.pid;
    s->socket = mail->fds[0];
    await_input(s->control);
    assert_int_equal(keeperwire_receive(s->control, mail), 0);
    stage_expect(s, mail, KEEPER_STATE);
}

void stage_kill_agent(struct keeperstage *s)
{
    assert_int_equal(kill(s->agent, SIGKILL), 0);
    close(s->socket);
    s->socket = -1;
}

static void send_fds(struct keeperstage *s, const struct keeper_packet *packet,
                     const int *fds, size_t count)
{
    int rc;
    while ((rc = keeperwire_send(s->socket, packet, fds, count)) == EAGAIN) {
        struct pollfd p = {.fd = s->socket, .events = POLLOUT};
        assert_int_equal(poll(&p, 1, STAGE_WAIT_MS), 1);
    }
    assert_int_equal(rc, 0);
}

void stage_send(struct keeperstage *s, const struct keeper_packet *packet)
{
    send_fds(s, packet, NULL, 0);
}

void stage_say(struct keeperstage *s, enum keeper_packet_type type,
               int32_t signal)
{
    struct keeper_packet packet = {
        .type = type, .slot = KEEPER_ALL_SLOTS, .signal = signal};
    stage_send(s, &packet);
}

void stage_begin(struct keeperstage *s, uint32_t ranks, uint32_t orphan_ms)
{
    struct keeper_packet packet = {.type = KEEPER_BEGIN,
                                   .generation = 1,
                                   .rank_count = ranks,
                                   .grace_ms = 300,
                                   .orphan_ms = orphan_ms};
    snprintf(packet.text, sizeof(packet.text), "%s", s->job);
    stage_send(s, &packet);
}

static int make_spec(const struct startspec *spec)
{
    struct gpul_buf bytes;
    gpul_buf_init(&bytes, STARTSPEC_BYTES_MAX);
    assert_int_equal(startspec_encode(&bytes, spec, NULL), 0);
    int fd = memfd_create("start", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes.data, bytes.used), bytes.used);
    gpul_buf_release(&bytes);
    return fd;
}

static void start(struct keeperstage *s, uint32_t slot,
                  const struct startspec *spec, int out[2], int err[2])
{
    struct keeper_packet packet = {
        .type = KEEPER_START, .slot = slot, .child_fds = 3};
    int fds[6] = {make_spec(spec), open("/dev/null", O_RDONLY | O_CLOEXEC), 1,
                  2};
    size_t count = 4;
    if (out != NULL) {
        fds[2] = out[1];
        fds[3] = err[1];
        fds[4] = out[0];
        fds[5] = err[0];
        packet.kept_fds = 2;
        count = 6;
    }
    send_fds(s, &packet, fds, count);
    close(fds[0]);
    close(fds[1]);
}

void stage_start_spec(struct keeperstage *s, uint32_t slot,
                      const struct startspec *spec)
{
    start(s, slot, spec, NULL, NULL);
}

void stage_start(struct keeperstage *s, uint32_t slot, const char *script,
                 int *out)
{
    char shell[] = "/bin/sh";
    char flag[] = "-c";
    char marker[96];
    char path[] = "PATH=/usr/bin:/bin";
    char *text = strdup(script);
    char *arguments[] = {shell, flag, text, NULL};
    char *environment[] = {path, marker, NULL};
    struct startspec spec = {
        .path = shell, .arguments = arguments, .environment = environment};
    int pipes[2][2];
    assert_non_null(text);
    snprintf(marker, sizeof(marker), "GPULAUNCH_MARKER=%s/1/%u", s->job, slot);
    assert_int_equal(pipe2(pipes[0], O_CLOEXEC), 0);
    assert_int_equal(pipe2(pipes[1], O_CLOEXEC), 0);
    start(s, slot, &spec, pipes[0], pipes[1]);
    for (int i = 0; i < 2; i++) {
        close(pipes[i][1]);
    }
    close(pipes[1][0]);
    if (out != NULL) {
        *out = pipes[0][0];
    } else {
        close(pipes[0][0]);
    }
    free(text);
}

void stage_expect(struct keeperstage *s, struct keeper_mail *mail,
                  enum keeper_packet_type type)
{
    await_input(s->socket);
    assert_int_equal(keeperwire_receive(s->socket, mail), 0);
    assert_int_equal(mail->packet.type, type);
}

void stage_leave(struct keeperstage *s, int exit_code)
{
    struct keeper_packet packet = {.type = KEEPER_LEAVE, .status = exit_code};
    stage_send(s, &packet);
    stage_kill_agent(s);
    int status = stage_wait(s);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), exit_code);
    assert_int_equal(stage_count(s), 0);
}

int stage_wait(struct keeperstage *s)
{
    uint64_t end_ms = gpul_clock_ms() + STAGE_WAIT_MS;
    int status;
    pid_t pid;
    while ((pid = waitpid(s->keeper, &status, WNOHANG)) == 0) {
        assert_true(gpul_clock_ms() < end_ms);
        poll(NULL, 0, PAUSE_MS);
    }
    assert_int_equal(pid, s->keeper);
    close(s->control);
    return status;
}

size_t stage_count(const struct keeperstage *s)
{
    struct cleanup c = {.generation = 1, .rank_count = UINT32_MAX};
    snprintf(c.job_id, sizeof(c.job_id), "%s", s->job);
    return cleanup_look(&c, 0);
}

void stage_await_count(const struct keeperstage *s, size_t count)
{
    uint64_t end_ms = gpul_clock_ms() + STAGE_WAIT_MS;
    while (stage_count(s) != count) {
        assert_true(gpul_clock_ms() < end_ms);
        poll(NULL, 0, PAUSE_MS);
    }
}

void stage_read_line(int fd, char *line, size_t bytes)
{
    size_t used = 0;
    char byte = 0;
    while (byte != '\n') {
        await_input(fd);
        assert_int_equal(read(fd, &byte, 1), 1);
        assert_true(used + 1 < bytes);
        line[used++] = byte;
    }
    line[used - 1] = 0;
}

size_t stage_open_fds(pid_t pid)
{
    char path[64];
    size_t count = 0;
    snprintf(path, sizeof(path), "/proc/%d/fd", pid);
    DIR *folder = opendir(path);
    assert_non_null(folder);
    for (struct dirent *e; (e = readdir(folder)) != NULL;) {
        count += e->d_name[0] != '.';
    }
    closedir(folder);
    return count;
}
