/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker's key: how it gets it, what it does with it, and what it says
 * when it is of no use.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/spawn.h"
#include "proto/frame.h"
#include "proto/keypipe.h"
#include "proto/message.h"
#include "tests/lib/wire.h"

extern char **environ;

enum { SECRET = 3, OTHER_SECRET = 4, TEXT_BYTES = 1024 };

struct post {
    int listener;
    uint16_t port;
    pid_t worker;
    int words; /* its stderr */
};

static void listen_somewhere(struct post *p)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t bytes = sizeof(at);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(p->listener, (struct sockaddr *)&at, bytes), 0);
    assert_int_equal(listen(p->listener, 64), 0);
    getsockname(p->listener, (struct sockaddr *)&at, &bytes);
    p->port = ntohs(at.sin_port);
}

/* Start the worker "node-0" with this as descriptor 3 (-1: nothing there),
 * which is closed here. */
static void start(struct post *p, int key_fd, const char *join_timeout)
{
    char where[32], timeout[32];
    char worker[] = "gpulaunch-worker", connect_to[] = "--connect";
    char job[] = "--job=job", name[] = "--name=node-0";
    char join[] = "--join-timeout";
    char *arguments[] = {worker, connect_to, where,   job,
                         name,   join,       timeout, NULL};
    int pipe_fds[2];
    snprintf(timeout, sizeof(timeout), "%s", join_timeout);
    snprintf(where, sizeof(where), "127.0.0.1:%u", p->port);
    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
    const struct gpul_spawn_fd fds[] = {
        {0, 0}, {1, 1}, {pipe_fds[1], 2}, {key_fd, GPUL_KEYPIPE_OF_NODE}};
    const struct gpul_spawn spec = {
        .path = GPUL_TEST_WORKER,
        .arguments = arguments,
        .environment = environ,
        .fds = fds,
        .fd_count = key_fd >= 0 ? 4 : 3,
        .parent_death_signal = SIGKILL,
    };
    int exec_errno;
    assert_int_equal(gpul_spawn(&p->worker, &exec_errno, &spec, NULL), 0);
    close(pipe_fds[1]);
    p->words = pipe_fds[0];
    if (key_fd >= 0) {
        close(key_fd);
    }
}

/* The worker with the key that SECRET gives it. */
static void open_post(struct post *p, const char *join_timeout)
{
    struct gpul_secret secret = {{SECRET}};
    struct gpul_key key;
    int fd;
    listen_somewhere(p);
    assert_int_equal(gpul_key_of_node(&key, &secret, "job", "node-0", NULL), 0);
    assert_int_equal(gpul_keypipe_put_key(&fd, &key, NULL), 0);
    start(p, fd, join_timeout);
}

static int take_call(const struct post *p)
{
    struct pollfd ready = {.fd = p->listener, .events = POLLIN};
    assert_int_equal(poll(&ready, 1, WIRE_WAIT_MS), 1);
    int fd = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

/* The worker's exit code; its words into `text`. */
static int close_post(struct post *p, char text[TEXT_BYTES])
{
    size_t used = 0;
    ssize_t n;
    int status;
    while ((n = read(p->words, text + used, TEXT_BYTES - 1 - used)) > 0) {
        used += (size_t)n;
    }
    text[used] = 0;
    close(p->words);
    close(p->listener);
    assert_int_equal(waitpid(p->worker, &status, 0), p->worker);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Take a call, and the Hello that comes over it. */
static void expect_hello(const struct post *p, struct wire *w,
                         const struct gpul_keyring *keyring, uint32_t attach)
{
    uint8_t bytes[4096];
    const uint8_t *body;
    size_t n;
    struct gpul_deframer in;
    wire_init(w, take_call(p));
    assert_true(wire_seal(w, keyring));
    gpul_deframer_init(&in, GPUL_PEER_NODE);
    while (gpul_deframer_next(&in, &body, &n, NULL) == 0) {
        size_t got = wire_read(w, bytes, sizeof(bytes));
        assert_true(got > 0);
        assert_int_equal(gpul_deframer_feed(&in, bytes, got, NULL), 0);
    }
    Gpul__Frame *frame;
    assert_int_equal(gpul_message_decode(&frame, body, n, GPUL_PEER_NODE, NULL),
                     0);
    assert_int_equal(frame->body_case, GPUL__FRAME__BODY_HELLO);
    assert_string_equal(frame->hello->node_name, "node-0");
    assert_int_equal(frame->hello->attach, attach);
    assert_string_equal(gpul_channel_node_name(w->channel), "node-0");
    gpul_message_release(frame);
    gpul_deframer_release(&in);
}

/* The agent among the worker's children. */
static pid_t find_agent(const struct post *p)
{
    char path[64], text[64] = "";
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", p->worker,
             p->worker);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    assert_non_null(fgets(text, sizeof(text), f));
    fclose(f);
    return (pid_t)strtol(text, NULL, 10);
}

/* With the key it is in; the agent that follows a dead one has it too. */
static void test_key(void **state)
{
    (void)state;
    struct post p;
    struct wire w;
    char text[TEXT_BYTES];
    struct gpul_keyring *keyring = wire_keyring(SECRET, "job", NULL);
    open_post(&p, "20");
    expect_hello(&p, &w, keyring, 0);
    assert_int_equal(kill(find_agent(&p), SIGKILL), 0);
    wire_release(&w);
    expect_hello(&p, &w, keyring, 1);
    kill(p.worker, SIGTERM);
    assert_int_equal(close_post(&p, text), 128 + SIGTERM);
    wire_release(&w);
    gpul_keyring_destroy(keyring);
}

/* Another secret than the coordinator's: it tries again until its time to
 * join is over, and then says what is wrong. */
static void test_wrong_secret(void **state)
{
    (void)state;
    struct post p;
    char text[TEXT_BYTES];
    struct gpul_keyring *keyring = wire_keyring(OTHER_SECRET, "job", NULL);
    open_post(&p, "2");
    for (int i = 0; i < 2; i++) {
        struct wire w;
        wire_init(&w, take_call(&p));
        assert_false(wire_seal(&w, keyring));
        assert_int_equal(gpul_channel_stranger(w.channel),
                         GPUL_STRANGER_WRONG_KEY);
        wire_release(&w);
    }
    close(p.listener);
    p.listener = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(close_post(&p, text), 40);
    assert_non_null(strstr(text, "gpulaunch-worker: node-0: no connection to "
                                 "the coordinator at 127.0.0.1:"));
    gpul_keyring_destroy(keyring);
}

/* The same, told by the last try. */
static void test_wrong_secret_said(void **state)
{
    (void)state;
    struct post p;
    struct wire w;
    char text[TEXT_BYTES];
    struct gpul_keyring *keyring = wire_keyring(OTHER_SECRET, "job", NULL);
    open_post(&p, "700ms");
    wire_init(&w, take_call(&p));
    assert_false(wire_seal(&w, keyring));
    wire_release(&w);
    /* Later calls are answered by nobody, and tell nothing new. */
    assert_int_equal(close_post(&p, text), 40);
    assert_non_null(strstr(text, " within 700 ms: the coordinator refused this "
                                 "node's key: is its --secret-file the job's "
                                 "own?\n"));
    gpul_keyring_destroy(keyring);
}

/* A coordinator that closes before it has looked at the key. */
static void test_closed(void **state)
{
    (void)state;
    struct post p;
    char text[TEXT_BYTES];
    open_post(&p, "700ms");
    close(take_call(&p));
    assert_int_equal(close_post(&p, text), 40);
    assert_non_null(strstr(text, " within 700 ms: the peer closed the "
                                 "connection before it had shown a key\n"));
}

/* A coordinator that takes the call, and says nothing. */
static void test_silence(void **state)
{
    (void)state;
    struct post p;
    char text[TEXT_BYTES];
    open_post(&p, "700ms");
    int fd = take_call(&p);
    assert_int_equal(close_post(&p, text), 40);
    close(fd);
    assert_non_null(strstr(text, "gpulaunch-worker: node-0: connected to the "
                                 "coordinator at 127.0.0.1:"));
    assert_non_null(strstr(text, ", but it did not answer within 700 ms\n"));
}

static int pipe_with(const char *text)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    size_t n = strlen(text);
    assert_int_equal(write(ends[1], text, n), (ssize_t)n);
    close(ends[1]);
    return ends[0];
}

/* No key is an error, and no way to do without. */
static void test_no_key(void **state)
{
    (void)state;
    static const char no_pipe[] =
        "gpulaunch-worker: descriptor 3 is no pipe with this node's key; "
        "gpulaunch hands it over when it starts this program\n";
    static const char no_line[] =
        "gpulaunch-worker: descriptor 3 does not hold this node's key: not one "
        "line of 64 hexadecimal digits\n";
    char line[72];
    memset(line, 'a', sizeof(line));
    line[66] = 0;
    const int fds[] = {-1, open("/dev/null", O_RDONLY | O_CLOEXEC),
                       pipe_with(""), pipe_with("0123"), pipe_with(line)};
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
        struct post p;
        char text[TEXT_BYTES];
        listen_somewhere(&p);
        start(&p, fds[i], "20");
        assert_int_equal(close_post(&p, text), 125);
        assert_string_equal(text, i < 2 ? no_pipe : no_line);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_key),
        cmocka_unit_test(test_wrong_secret),
        cmocka_unit_test(test_wrong_secret_said),
        cmocka_unit_test(test_closed),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_no_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
