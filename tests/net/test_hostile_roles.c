/* SPDX-License-Identifier: Apache-2.0
 *
 * A node that was broken into has its own key. With that it is this node, and
 * neither another one, nor the coordinator, nor the front end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/spawn.h"
#include "proto/keypipe.h"
#include "tests/lib/coordstage.h"
#include "tests/lib/samples.h"

enum { PATIENCE_MS = 120000, WORDS_BYTES = 2048 };

extern char **environ;

static struct coordstage stage;
static char log_path[] = "/tmp/gpulaunch-roles-XXXXXX";

static int set_up(void **state)
{
    (void)state;
    const struct coordstage_config config = {
        .program = GPUL_TEST_COORDINATOR,
        .address = "127.0.0.1",
        .log = log_path,
        .node_count = 2,
    };
    coordstage_open(&stage, &config);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    coordstage_close(&stage);
    return 0;
}

/* The node of this name in its Hello, with the key of another. */
static void make_node(struct coordstage_node *n, const char *name,
                      const char *key_of)
{
    *n = (struct coordstage_node){.keyring = coordstage_key(&stage, key_of)};
    snprintf(n->name, sizeof(n->name), "%s", name);
}

static bool is_welcome(const void *of)
{
    const struct coordstage_node *n = of;
    return n->is_welcome;
}

static bool has_ended(const void *of)
{
    const struct coordstage_node *n = of;
    return n->transport == NULL;
}

static void assert_unharmed(void)
{
    assert_true(coordstage_join(&stage, 2, PATIENCE_MS));
    if (stage.has_end) {
        print_error("%.*s", (int)stage.notices.used,
                    (char *)stage.notices.data);
    }
    assert_false(stage.has_end);
}

/* ---- another node ------------------------------------------------------- */

/* By its Hello: refused with both names, and the user is told. */
static void test_other_name(void **state)
{
    (void)state;
    struct coordstage_node n;
    make_node(&n, "n1", "n0");
    coordstage_expect_end(&stage, &n, PATIENCE_MS);
    assert_true(n.is_refused);
    assert_false(n.is_welcome);
    assert_non_null(strstr(n.why, "n0"));
    assert_non_null(strstr(n.why, "n1"));
    gpul_keyring_destroy(n.keyring);
    assert_unharmed();
    assert_int_equal(stage.refused, 1);
}

/* By the identity that it shows: no key of its own opens that. */
static void test_other_identity(void **state)
{
    (void)state;
    struct gpul_key key;
    struct coordstage_node n = {.name = "n1"};
    assert_int_equal(
        gpul_key_of_node(&key, &stage.secret, COORDSTAGE_JOB, "n0", NULL), 0);
    assert_int_equal(
        gpul_keyring_of_node(&n.keyring, &key, COORDSTAGE_JOB, "n1", NULL), 0);
    coordstage_expect_end(&stage, &n, PATIENCE_MS);
    assert_false(n.is_refused || n.is_welcome);
    gpul_keyring_destroy(n.keyring);
    assert_unharmed();
}

/* ---- the coordinator, or the front end ---------------------------------- */

/* What they say and a node does not, instead of a Hello. */
static void test_first_words(void **state)
{
    (void)state;
    unsigned tried = 0;
    for (uint32_t type = 1; type != 0; type = sample_next(type)) {
        struct coordstage_node n;
        Gpul__Frame frame = sample_frame(type);
        if ((gpul_message_rule(type)->senders & GPUL_PEER_NODE) != 0) {
            continue;
        }
        make_node(&n, "n0", "n0");
        n.first = &frame;
        coordstage_expect_end(&stage, &n, PATIENCE_MS);
        assert_false(n.is_welcome);
        gpul_keyring_destroy(n.keyring);
        tried++;
    }
    assert_true(tried > 10);
    assert_unharmed();
}

/* And from one that is in. */
static void test_cancel(void **state)
{
    (void)state;
    struct coordstage_node n;
    Gpul__Frame cancel = sample_frame(GPUL__FRAME__BODY_CANCEL);
    make_node(&n, "n0", "n0");
    coordstage_dial(&stage, &n);
    assert_true(coordstage_until(&stage, is_welcome, &n, PATIENCE_MS));
    assert_int_equal(gpul_transport_send(n.transport, &cancel, NULL), 0);
    assert_true(coordstage_until(&stage, has_ended, &n, PATIENCE_MS));
    assert_true(coordstage_is_alive(&stage));
    assert_false(stage.has_end);
    gpul_keyring_destroy(n.keyring);
}

/* ---- a coordinator that is none ----------------------------------------- */

static struct gpul_key stolen;

/* OpenSSL's server: for whatever identity, the key that it has. */
static unsigned on_identity(SSL *ssl, const char *identity, unsigned char *key,
                            unsigned key_max)
{
    (void)ssl;
    assert_non_null(strstr(identity, "n1"));
    assert_true(key_max >= sizeof(stolen.bytes));
    memcpy(key, stolen.bytes, sizeof(stolen.bytes));
    return sizeof(stolen.bytes);
}

static int listen_somewhere(uint16_t *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd, 8), 0);
    getsockname(fd, (struct sockaddr *)&at, &n);
    *port = ntohs(at.sin_port);
    return fd;
}

/* The real worker of n1; its stderr. */
static pid_t start_worker(uint16_t port, int *words)
{
    char program[] = "gpulaunch-worker", job[] = "--job=" COORDSTAGE_JOB;
    char name[] = "--name=n1", join[] = "--join-timeout=2s", connect_to[64];
    char *arguments[] = {program, connect_to, job, name, join, NULL};
    struct gpul_key key;
    pid_t pid;
    int out[2], key_fd, exec_errno;
    snprintf(connect_to, sizeof(connect_to), "--connect=127.0.0.1:%u", port);
    assert_int_equal(
        gpul_key_of_node(&key, &stage.secret, COORDSTAGE_JOB, "n1", NULL), 0);
    assert_int_equal(gpul_keypipe_put_key(&key_fd, &key, NULL), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    const struct gpul_spawn_fd fds[] = {
        {0, 0}, {1, 1}, {out[1], 2}, {key_fd, GPUL_KEYPIPE_OF_NODE}};
    const struct gpul_spawn spec = {
        .path = GPUL_TEST_WORKER,
        .arguments = arguments,
        .environment = environ,
        .fds = fds,
        .fd_count = 4,
        .parent_death_signal = SIGKILL,
    };
    assert_int_equal(gpul_spawn(&pid, &exec_errno, &spec, NULL), 0);
    close(out[1]);
    close(key_fd);
    *words = out[0];
    return pid;
}

/* Take a call of the worker, and be its coordinator with the stolen key. */
static void pose(int listener)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    struct pollfd ready = {.fd = listener, .events = POLLIN};
    assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(fd >= 0);
    SSL_CTX_set_psk_server_callback(ctx, on_identity);
    SSL *ssl = SSL_new(ctx);
    assert_int_equal(SSL_set_fd(ssl, fd), 1);
    assert_int_not_equal(SSL_accept(ssl), 1);
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    close(fd);
}

/* A node does not take another node for its coordinator. */
static void test_false_coordinator(void **state)
{
    (void)state;
    char text[WORDS_BYTES];
    size_t used = 0;
    ssize_t n;
    uint16_t port;
    int words, status;
    assert_int_equal(
        gpul_key_of_node(&stolen, &stage.secret, COORDSTAGE_JOB, "n0", NULL),
        0);
    int listener = listen_somewhere(&port);
    pid_t worker = start_worker(port, &words);
    pose(listener);
    close(listener);
    while ((n = read(words, text + used, sizeof(text) - 1 - used)) > 0) {
        used += (size_t)n;
    }
    text[used] = 0;
    close(words);
    print_message("the worker: %s", text);
    assert_int_equal(waitpid(worker, &status, 0), worker);
    assert_true(WIFEXITED(status));
    assert_int_not_equal(WEXITSTATUS(status), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_other_name), T(test_other_identity),    T(test_first_words),
        T(test_cancel),     T(test_false_coordinator),
    };
    close(mkstemp(log_path));
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(log_path);
    return rc;
}
