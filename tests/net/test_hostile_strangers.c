/* SPDX-License-Identifier: Apache-2.0
 *
 * Whoever speaks to the port of the real coordinator without the job's key:
 * refused, counted by kind, at most a line a second in the log, one hint for
 * the user; and then an honest node joins as if nothing had been.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/rng.h"
#include "proto/channel.h"
#include "proto/opening.h"
#include "tests/lib/coordstage.h"

enum {
    PATIENCE_MS = 120000,
    RANDOM_BYTES = 1 << 20,
    RANDOM_SEEDS = 60,
    /* What a coordinator of two nodes may take, with nobody to hold. */
    MEMORY_KIB = 16 << 10,
};

static struct coordstage stage;
static char log_path[] = "/tmp/gpulaunch-strangers-XXXXXX";
static uint64_t begun_ms;
static unsigned expected[GPUL_STRANGER_COUNT];

/* ---- the log ------------------------------------------------------------ */

/* How often it says that one of this kind was closed. */
static unsigned count_in(const char *line, const char *words)
{
    unsigned long n = 0;
    char with_count[128];
    const char *kinds = strstr(line, "without the job's key: ");
    if (kinds == NULL) {
        return 0;
    }
    kinds += strlen("without the job's key: ");
    if (strstr(line, "closed a connection from ") != NULL) {
        return strcspn(kinds, "\n") == strlen(words) &&
               strncmp(kinds, words, strlen(words)) == 0;
    }
    snprintf(with_count, sizeof(with_count), "%s (", words);
    const char *at = strstr(kinds, with_count);
    if (at != NULL) {
        n = strtoul(at + strlen(with_count), NULL, 10);
    }
    return (unsigned)n;
}

struct tally {
    unsigned lines, total;
    unsigned kinds[GPUL_STRANGER_COUNT];
};

static struct tally read_log(void)
{
    struct tally t = {0};
    char line[4096];
    FILE *file = fopen(log_path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        t.lines++;
        for (int kind = 0; kind < GPUL_STRANGER_COUNT; kind++) {
            unsigned n =
                count_in(line, gpul_stranger_words((enum gpul_stranger)kind));
            t.kinds[kind] += n;
            t.total += n;
        }
    }
    fclose(file);
    return t;
}

static bool all_are_counted(const void *of)
{
    return read_log().total >= *(const unsigned *)of;
}

static void expect_counts(void)
{
    unsigned total = 0;
    for (int kind = 0; kind < GPUL_STRANGER_COUNT; kind++) {
        total += expected[kind];
    }
    /* The timer of the stage wakes the loop. */
    coordstage_until(&stage, all_are_counted, &total, PATIENCE_MS);
    struct tally t = read_log();
    for (int kind = 0; kind < GPUL_STRANGER_COUNT; kind++) {
        if (t.kinds[kind] != expected[kind]) {
            print_error("%s: %u in the log, not %u\n",
                        gpul_stranger_words((enum gpul_stranger)kind),
                        t.kinds[kind], expected[kind]);
        }
    }
    assert_memory_equal(t.kinds, expected, sizeof(expected));
    assert_in_range(t.lines, 1, (gpul_clock_ms() - begun_ms) / 1000 + 2);
    assert_true(coordstage_is_alive(&stage));
}

/* ---- connections -------------------------------------------------------- */

static int dial(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons(stage.port)};
    struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
    inet_pton(AF_INET, stage.config.address, &at.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    return fd;
}

/* It ends it; returns how many bytes it said before. */
static size_t expect_end(int fd)
{
    char bytes[4096];
    size_t total = 0;
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    for (;;) {
        assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
        ssize_t n = recv(fd, bytes, sizeof(bytes), 0);
        if (n <= 0) {
            close(fd);
            return total;
        }
        total += (size_t)n;
    }
}

/* All of it, or until the other end has had enough. */
static void send_all(int fd, const uint8_t *bytes, size_t n)
{
    while (n > 0) {
        ssize_t put = send(fd, bytes, n, MSG_NOSIGNAL);
        if (put <= 0) {
            return;
        }
        bytes += put;
        n -= (size_t)put;
    }
}

static void say(const void *bytes, size_t n, enum gpul_stranger kind)
{
    int fd = dial();
    send_all(fd, bytes, n);
    assert_int_equal(expect_end(fd), 0); /* not a word */
    expected[kind]++;
}

/* ---- what is no TLS of ours --------------------------------------------- */

#define ROW(text, kind)                                                        \
    {                                                                          \
        text, sizeof(text) - 1, GPUL_STRANGER_##kind                           \
    }

/* Among them what a port scanner sends to find out what listens. */
static void test_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        enum gpul_stranger kind;
    } rows[] = {
        ROW("GET / HTTP/1.1\r\nHost: x\r\n\r\n", HTTP),
        ROW("POST /x HTTP/1.0\r\n\r\n", HTTP),
        ROW("OPTIONS / RTSP/1.0\r\n\r\n", HTTP),
        ROW("SSH-2.0-OpenSSH_9.2p1\r\n", SSH),
        ROW("\0\0\0\x02\x0a\0", FRAMES),
        ROW("\r\n\r\n\r\n", GARBAGE),
        ROW("HELP\r\n", GARBAGE),
        ROW("EHLO x\r\n", GARBAGE),
        ROW("\x80\0\0\x28\x72\xfe\x1d\x13\0\0\0\0\0\0\0\2", GARBAGE), /* RPC */
        ROW("\x30\x0c\2\1\1\x60\7\2\1\3\4\0\x80\0", GARBAGE),         /* LDAP */
        ROW("l\0\x0b\0\0\0\0\0\0\0\0\0", GARBAGE),                    /* X11 */
        ROW("\x16\3\1\x40\0\1\0\x3f\xfc", LARGE),
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        say(rows[i].bytes, rows[i].n, rows[i].kind);
    }
    expect_counts();
}

/* A mebibyte of noise costs what its first bytes cost. */
static void test_noise(void **state)
{
    (void)state;
    struct gpul_rng rng;
    uint8_t *bytes = malloc(RANDOM_BYTES);
    assert_non_null(bytes);
    gpul_rng_init(&rng, 1);
    for (size_t i = 0; i < RANDOM_BYTES; i++) {
        bytes[i] = (uint8_t)gpul_rng_below(&rng, 256);
    }
    bytes[0] = 0xa5;
    say(bytes, RANDOM_BYTES, GPUL_STRANGER_GARBAGE);
    free(bytes);
    expect_counts();
    if (GPUL_TEST_SLOW == 1) { /* a sanitizer shadows all memory */
        assert_in_range(coordstage_memory_kib(&stage, "VmHWM"), 1, MEMORY_KIB);
    }
}

/* ---- TLS of others ------------------------------------------------------ */

static unsigned on_psk(SSL *ssl, const char *hint, char *identity,
                       unsigned identity_max, unsigned char *key,
                       unsigned key_max)
{
    (void)ssl;
    (void)hint;
    snprintf(identity, identity_max, "Client_identity");
    memset(key, 7, key_max < 32 ? key_max : 32);
    return 32;
}

static void shake(int highest, bool has_psk, enum gpul_stranger kind)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    int fd = dial();
    assert_true(SSL_CTX_set_max_proto_version(ctx, highest) == 1);
    if (has_psk) {
        SSL_CTX_set_psk_client_callback(ctx, on_psk);
    }
    SSL *ssl = SSL_new(ctx);
    assert_int_equal(SSL_set_fd(ssl, fd), 1);
    assert_int_not_equal(SSL_connect(ssl), 1);
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    expect_end(fd);
    expected[kind]++;
}

static void test_foreign_tls(void **state)
{
    (void)state;
    shake(TLS1_2_VERSION, false, GPUL_STRANGER_OLD_TLS);
    shake(TLS1_2_VERSION, true, GPUL_STRANGER_OLD_TLS);
    shake(TLS1_3_VERSION, false, GPUL_STRANGER_NO_KEY);
    shake(TLS1_3_VERSION, true, GPUL_STRANGER_NO_KEY);
    expect_counts();
}

/* ---- keys of gpulaunch -------------------------------------------------- */

/* A node of this name with this secret; what it is told. */
static void show_key(const struct gpul_secret *secret, const char *job,
                     const char *name, const char *told,
                     enum gpul_stranger kind)
{
    struct gpul_key key;
    struct coordstage_node n = {0};
    snprintf(n.name, sizeof(n.name), "%s", name);
    assert_int_equal(gpul_key_of_node(&key, secret, job, name, NULL), 0);
    assert_int_equal(gpul_keyring_of_node(&n.keyring, &key, job, name, NULL),
                     0);
    coordstage_expect_end(&stage, &n, PATIENCE_MS);
    assert_false(n.is_welcome);
    assert_string_equal(n.why, told);
    gpul_keyring_destroy(n.keyring);
    expected[kind]++;
}

/* The one hint, when an honest mistake is likely: not more of them, however
 * often it happens. */
static void test_wrong_secret(void **state)
{
    (void)state;
    static const char told[] = "the coordinator refused this node's key: is "
                               "its --secret-file the job's own?";
    static const char hint[] = "a node that calls itself n1 of this job showed "
                               "a wrong secret: is its --secret-file the job's "
                               "own?\n";
    struct gpul_secret other;
    assert_int_equal(gpul_secret_draw(&other, NULL), 0);
    for (int i = 0; i < 3; i++) {
        show_key(&other, COORDSTAGE_JOB, i == 2 ? "n0" : "n1", told,
                 GPUL_STRANGER_WRONG_KEY);
    }
    expect_counts();
    gpul_buf_append(&stage.notices, "", 1);
    assert_string_equal((char *)stage.notices.data, hint);
}

static void test_other_job(void **state)
{
    (void)state;
    static const char told[] = "the coordinator refused this node: it serves "
                               "another job, or is no gpulaunch";
    struct gpul_secret other;
    assert_int_equal(gpul_secret_draw(&other, NULL), 0);
    show_key(&other, "another-job", "n0", told, GPUL_STRANGER_OTHER_JOB);
    show_key(&stage.secret, "another-job", "n0", told, GPUL_STRANGER_OTHER_JOB);
    expect_counts();
}

/* ---- a recording -------------------------------------------------------- */

/* Join as n1 and keep all that was said to the coordinator. */
static void record(struct gpul_buf *said)
{
    struct gpul_channel *c;
    struct gpul_keyring *k = coordstage_key(&stage, "n1");
    uint8_t raw[4096], plain[4096];
    size_t n;
    int fd = dial(), rc = 0;
    assert_int_equal(gpul_channel_create(&c, k, NULL), 0);
    const uint8_t beat[] = {0, 0, 0, 2, 0x22, 0};
    assert_int_equal(gpul_channel_send(c, beat, sizeof(beat), NULL), 0);
    while (rc == 0 && !gpul_channel_is_open(c)) {
        const uint8_t *out = gpul_channel_output(c, &n);
        assert_int_equal(gpul_buf_append(said, out, n), 0);
        send_all(fd, out, n);
        gpul_channel_clear_output(c);
        ssize_t got = recv(fd, raw, sizeof(raw), 0);
        assert_true(got > 0);
        gpul_channel_put(c, raw, (size_t)got);
        rc = gpul_channel_get(c, plain, sizeof(plain), NULL);
    }
    const uint8_t *out = gpul_channel_output(c, &n);
    assert_int_equal(gpul_buf_append(said, out, n), 0);
    assert_true(said->used > 5u + said->data[3] * 256u + said->data[4]);
    send_all(fd, out, n);
    expect_end(fd); /* a Heartbeat is no Hello */
    gpul_channel_destroy(c);
    gpul_keyring_destroy(k);
}

/* A whole session, byte for byte: the coordinator's share of the keys is
 * another one, so its second flight is worth nothing. */
static void test_replay(void **state)
{
    (void)state;
    struct gpul_buf said;
    gpul_buf_init(&said, 1u << 16);
    record(&said);
    for (int i = 0; i < 3; i++) {
        int fd = dial();
        send_all(fd, said.data, said.used);
        expect_end(fd);
        expected[GPUL_STRANGER_BROKEN]++;
    }
    gpul_buf_release(&said);
    expect_counts();
    assert_int_equal(stage.joined, 0);
}

/* ---- and then ----------------------------------------------------------- */

/* Short noise of every kind that a generator makes; whatever it was taken
 * for, everyone was closed. */
static void test_any_noise(void **state)
{
    (void)state;
    struct gpul_rng rng;
    unsigned total = read_log().total + RANDOM_SEEDS;
    for (uint64_t seed = 0; seed < RANDOM_SEEDS; seed++) {
        uint8_t bytes[600] = {0x16, 3, 1};
        gpul_rng_init(&rng, seed);
        for (size_t i = seed % 4; i < sizeof(bytes); i++) {
            bytes[i] = (uint8_t)gpul_rng_below(&rng, 256);
        }
        int fd = dial();
        send_all(fd, bytes, sizeof(bytes));
        shutdown(fd, SHUT_WR);
        expect_end(fd);
    }
    assert_true(coordstage_until(&stage, all_are_counted, &total, PATIENCE_MS));
    assert_int_equal(read_log().total, total);
    assert_true(coordstage_is_alive(&stage));
}

static void test_honest(void **state)
{
    (void)state;
    assert_true(coordstage_join(&stage, 2, PATIENCE_MS));
}

static int set_up(void **state)
{
    (void)state;
    const struct coordstage_config config = {
        .program = GPUL_TEST_COORDINATOR,
        .address = "127.0.0.1",
        .log = log_path,
        .node_count = 2,
    };
    close(mkstemp(log_path));
    begun_ms = gpul_clock_ms();
    coordstage_open(&stage, &config);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    coordstage_close(&stage);
    unlink(log_path);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),       cmocka_unit_test(test_noise),
        cmocka_unit_test(test_foreign_tls), cmocka_unit_test(test_wrong_secret),
        cmocka_unit_test(test_other_job),   cmocka_unit_test(test_replay),
        cmocka_unit_test(test_any_noise),   cmocka_unit_test(test_honest),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
