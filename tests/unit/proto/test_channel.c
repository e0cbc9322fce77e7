/* SPDX-License-Identifier: Apache-2.0
 *
 * Channels between honest ends, and ends with the wrong key.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <malloc.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/channelpair.h"
#include "tests/lib/memory.h"

/* ---- OpenSSL's memory --------------------------------------------------- */

static size_t held;

static void *count_malloc(size_t n, const char *file, int line)
{
    (void)file;
    (void)line;
    void *p = malloc(n);
    held += p == NULL ? 0 : malloc_usable_size(p);
    return p;
}

static void count_free(void *p, const char *file, int line)
{
    (void)file;
    (void)line;
    held -= p == NULL ? 0 : malloc_usable_size(p);
    free(p);
}

static void *count_realloc(void *p, size_t n, const char *file, int line)
{
    (void)file;
    (void)line;
    size_t before = p == NULL ? 0 : malloc_usable_size(p);
    void *q = realloc(p, n);
    if (q != NULL) {
        held += malloc_usable_size(q) - before;
    }
    return q;
}

/* ---- honest ends -------------------------------------------------------- */

static void open_pair(struct pair *p)
{
    pair_init(p, 1, PAIR_JOB, PAIR_NODE);
    pair_run(p);
    assert_true(gpul_channel_is_open(p->client.channel));
    assert_true(gpul_channel_is_open(p->server.channel));
}

static void send_text(struct pair_end *from, const char *text)
{
    assert_int_equal(gpul_channel_send(from->channel, (const uint8_t *)text,
                                       strlen(text), NULL),
                     0);
}

static void assert_inbox(const struct pair_end *e, const char *text)
{
    assert_int_equal(e->inbox.used, strlen(text));
    assert_memory_equal(e->inbox.data, text, strlen(text));
}

/* Both ways, and the server knows who it is. */
static void test_open(void **state)
{
    (void)state;
    struct pair p;
    pair_init(&p, 1, PAIR_JOB, PAIR_NODE);
    assert_false(gpul_channel_is_open(p.client.channel));
    assert_string_equal(gpul_channel_node_name(p.server.channel), "");
    assert_int_equal(gpul_channel_stranger(p.server.channel),
                     GPUL_STRANGER_CLOSED);
    pair_run(&p);
    assert_string_equal(gpul_channel_node_name(p.server.channel), PAIR_NODE);
    assert_int_equal(gpul_channel_stranger(p.server.channel),
                     GPUL_STRANGER_NONE);
    send_text(&p.client, "there");
    send_text(&p.server, "and back");
    pair_run(&p);
    assert_inbox(&p.server, "there");
    assert_inbox(&p.client, "and back");
    pair_release(&p);
}

/* What is sent before the handshake has ended goes out when it has. */
static void test_send_early(void **state)
{
    (void)state;
    struct pair p;
    pair_init(&p, 1, PAIR_JOB, PAIR_NODE);
    send_text(&p.client, "one ");
    send_text(&p.client, "two");
    send_text(&p.server, "three");
    assert_int_equal(gpul_channel_waiting_bytes(p.client.channel), 7);
    pair_run(&p);
    assert_int_equal(gpul_channel_waiting_bytes(p.client.channel), 0);
    assert_inbox(&p.server, "one two");
    assert_inbox(&p.client, "three");
    pair_release(&p);
}

/* The wire may bring bytes one at a time, or in pieces of any size. */
static void test_pieces(void **state)
{
    (void)state;
    for (size_t piece = 1; piece < 700; piece += piece < 20 ? 1 : 97) {
        struct pair p;
        pair_init(&p, 1, PAIR_JOB, PAIR_NODE);
        p.piece = piece;
        send_text(&p.client, "hello");
        pair_run(&p);
        send_text(&p.server, "welcome");
        pair_run(&p);
        assert_inbox(&p.server, "hello");
        assert_inbox(&p.client, "welcome");
        pair_release(&p);
    }
}

/* 5 MB each way, around the size of a record and in one go. */
static void test_large(void **state)
{
    (void)state;
    enum { N = 5000000 };
    static const size_t sizes[] = {1, 16383, 16384, 16385, 100000, N};
    struct pair p;
    open_pair(&p);
    uint8_t *bytes = malloc(N);
    assert_non_null(bytes);
    for (size_t i = 0; i < N; i++) {
        bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    }
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        p.server.inbox.used = p.client.inbox.used = 0;
        assert_int_equal(
            gpul_channel_send(p.client.channel, bytes, sizes[i], NULL), 0);
        assert_int_equal(
            gpul_channel_send(p.server.channel, bytes, sizes[i], NULL), 0);
        pair_run(&p);
        assert_int_equal(p.server.inbox.used, sizes[i]);
        assert_int_equal(p.client.inbox.used, sizes[i]);
        assert_memory_equal(p.server.inbox.data, bytes, sizes[i]);
        assert_memory_equal(p.client.inbox.data, bytes, sizes[i]);
    }
    free(bytes);
    pair_release(&p);
}

/* An end says that it is done; what it sent before comes first. */
static void test_finish(void **state)
{
    (void)state;
    struct pair p;
    open_pair(&p);
    send_text(&p.client, "last words");
    gpul_channel_finish(p.client.channel);
    pair_run(&p);
    assert_inbox(&p.server, "last words");
    assert_int_equal(p.server.why.status, GPUL_ECLOSED);
    assert_string_equal(p.server.why.text, "the peer closed the connection");
    /* It stays so. */
    uint8_t room[8];
    gpul_channel_put(p.server.channel, (const uint8_t *)"more", 4);
    assert_int_equal(
        gpul_channel_get(p.server.channel, room, sizeof(room), NULL),
        GPUL_ECLOSED);
    pair_release(&p);
}

/* The longest names fit the first record. */
static void test_long_names(void **state)
{
    (void)state;
    char job[GPUL_JOB_ID_BYTES_MAX + 2] = {0};
    char name[GPUL_NAME_BYTES_MAX + 2] = {0};
    memset(job, 'j', GPUL_JOB_ID_BYTES_MAX);
    memset(name, 'n', GPUL_NAME_BYTES_MAX);
    struct pair p;
    pair_init(&p, 1, job, name);
    size_t n;
    gpul_channel_output(p.client.channel, &n);
    assert_in_range(n, 500, GPUL_FIRST_RECORD_BYTES_MAX - 200);
    pair_run(&p);
    assert_int_equal(gpul_channel_stranger(p.server.channel),
                     GPUL_STRANGER_OTHER_JOB);
    assert_string_equal(gpul_channel_node_name(p.server.channel), name);
    pair_release(&p);

    struct gpul_keyring *k;
    struct gpul_secret s = pair_secret(1);
    struct gpul_key key = {{1}};
    struct gpul_error err;
    job[GPUL_JOB_ID_BYTES_MAX] = 'j';
    name[GPUL_NAME_BYTES_MAX] = 'n';
    static const char *const bad[] = {"", "a b", "a\n", "\xc3\xa4", NULL};
    assert_int_equal(gpul_keyring_of_job(&k, &s, job, &err), GPUL_EINVAL);
    assert_int_equal(gpul_keyring_of_node(&k, &key, "j", name, &err),
                     GPUL_EINVAL);
    for (size_t i = 0; bad[i] != NULL; i++) {
        assert_int_equal(gpul_keyring_of_job(&k, &s, bad[i], &err),
                         GPUL_EINVAL);
        assert_int_equal(gpul_keyring_of_node(&k, &key, bad[i], "n", &err),
                         GPUL_EINVAL);
        assert_int_equal(gpul_keyring_of_node(&k, &key, "j", bad[i], &err),
                         GPUL_EINVAL);
        assert_null(k);
    }
}

/* ---- wrong keys --------------------------------------------------------- */

static void assert_refused(struct pair *p, enum gpul_stranger kind,
                           const char *at_server, const char *at_client)
{
    send_text(&p->client, "a secret of the node");
    pair_run(p);
    assert_false(gpul_channel_is_open(p->client.channel));
    assert_false(gpul_channel_is_open(p->server.channel));
    assert_int_equal(gpul_channel_stranger(p->server.channel), kind);
    assert_int_equal(p->server.why.status, GPUL_EPROTO);
    assert_string_equal(p->server.why.text, at_server);
    assert_int_equal(p->client.why.status, GPUL_EPROTO);
    assert_string_equal(p->client.why.text, at_client);
    assert_int_equal(p->server.inbox.used, 0);
    pair_release(p);
}

static void test_wrong_secret(void **state)
{
    (void)state;
    struct pair p;
    pair_init(&p, 2, PAIR_JOB, PAIR_NODE);
    assert_refused(&p, GPUL_STRANGER_WRONG_KEY,
                   "a node that calls itself alpha of this job showed a wrong "
                   "secret: is its --secret-file the job's own?",
                   "the coordinator refused this node's key: is its "
                   "--secret-file the job's own?");
}

static void test_other_job(void **state)
{
    (void)state;
    struct pair p;
    pair_init(&p, 1, "job-2", PAIR_NODE);
    assert_refused(&p, GPUL_STRANGER_OTHER_JOB,
                   "the peer is no node of this job: a key of another job",
                   "the coordinator refused this node: it serves another job, "
                   "or is no gpulaunch");
}

/* A node that was broken into cannot be another one, whatever it says. */
static void test_other_node(void **state)
{
    (void)state;
    struct pair p;
    struct gpul_secret s = pair_secret(1);
    struct gpul_key key;
    pair_init(&p, 1, PAIR_JOB, PAIR_NODE);
    assert_int_equal(gpul_key_of_node(&key, &s, PAIR_JOB, PAIR_NODE, NULL), 0);
    gpul_channel_destroy(p.client.channel);
    gpul_keyring_destroy(p.keyrings[0]);
    assert_int_equal(
        gpul_keyring_of_node(&p.keyrings[0], &key, PAIR_JOB, "beta", NULL), 0);
    assert_int_equal(
        gpul_channel_create(&p.client.channel, p.keyrings[0], NULL), 0);
    assert_refused(&p, GPUL_STRANGER_WRONG_KEY,
                   "a node that calls itself beta of this job showed a wrong "
                   "secret: is its --secret-file the job's own?",
                   "the coordinator refused this node's key: is its "
                   "--secret-file the job's own?");
}

/* ---- bounds ------------------------------------------------------------- */

/* What one connection of a coordinator costs: as a stranger before its first
 * record is whole, in the handshake, and idle once it is open, after much has
 * gone through it. The figures of docs/security.md. */
static void test_memory(void **state)
{
    (void)state;
    enum { N = 1000000 };
    static uint8_t bytes[N];
    struct pair p;
    open_pair(&p); /* what OpenSSL allocates once */
    pair_release(&p);
    pair_init(&p, 1, PAIR_JOB, PAIR_NODE);
    struct gpul_buf hello;
    pair_take(&hello, &p.client);
    struct pair_end *e = &p.server;
    size_t openssl = held;
    memory_watch();
    pair_put(e, hello.data, hello.used - 1, 0);
    assert_in_range(memory_peak(), 1, 2048);
    assert_int_equal(held, openssl);
    pair_put(e, hello.data + hello.used - 1, 1, 0);
    size_t shaking = held - openssl + memory_held();
    struct gpul_channel *client = p.client.channel;
    pair_carry(&p, &p.server, &p.client);
    pair_carry(&p, &p.client, &p.server);
    assert_true(gpul_channel_is_open(client));
    assert_int_equal(gpul_channel_send(client, bytes, N, NULL), 0);
    pair_run(&p);
    assert_int_equal(e->inbox.used, N);
    size_t both = held;
    gpul_channel_destroy(e->channel);
    size_t idle = both - held;
    e->channel = NULL;
    print_message("bytes of a connection: %zu in the handshake, %zu open\n",
                  shaking, idle);
    assert_in_range(shaking, 1, 96u << 10);
    assert_in_range(idle, 1, 20u << 10);
    gpul_buf_release(&hello);
    pair_release(&p);
}

/* What waits for a handshake that does not end is bounded. */
static void test_waiting_bound(void **state)
{
    (void)state;
    static uint8_t bytes[1u << 20];
    struct pair p;
    pair_init(&p, 1, PAIR_JOB, PAIR_NODE);
    int rc = 0;
    unsigned sent = 0;
    while (rc == 0 && sent < 100) {
        rc = gpul_channel_send(p.client.channel, bytes, sizeof(bytes), NULL);
        sent += rc == 0;
    }
    assert_int_equal(rc, GPUL_ELIMIT);
    assert_int_equal(sent, GPUL_SEND_QUEUE_BYTES_MAX / sizeof(bytes));
    assert_int_equal(gpul_channel_send(p.client.channel, bytes, 1, NULL),
                     GPUL_ELIMIT);
    pair_release(&p);
}

/* Each allocation of ours and of OpenSSL may fail: an error, or all is well. */
static void test_no_memory(void **state)
{
    (void)state;
    bool has_failed = true;
    for (size_t n = 1; has_failed; n++) {
        struct pair p;
        struct gpul_channel *extra;
        has_failed = false;
        pair_init(&p, 1, PAIR_JOB, PAIR_NODE);
        memory_fail_at(n);
        has_failed |= gpul_channel_create(&extra, p.keyrings[1], NULL) != 0;
        gpul_channel_destroy(has_failed ? NULL : extra);
        struct gpul_error *why = &p.client.why;
        has_failed |= gpul_channel_send(p.client.channel, (const uint8_t *)"x",
                                        1, why) != 0;
        uint8_t room[64];
        for (int i = 0; i < 4; i++) {
            struct pair_end *from = i % 2 == 0 ? &p.client : &p.server;
            struct pair_end *to = i % 2 == 0 ? &p.server : &p.client;
            size_t size;
            const uint8_t *bytes = gpul_channel_output(from->channel, &size);
            gpul_channel_put(to->channel, bytes, size);
            int rc;
            while ((rc = gpul_channel_get(to->channel, room, sizeof(room),
                                          &to->why)) > 0) {
            }
            has_failed |= rc < 0;
            gpul_channel_clear_output(from->channel);
        }
        memory_fail_at(0);
        assert_true(gpul_channel_is_open(p.server.channel) || has_failed);
        pair_release(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),          cmocka_unit_test(test_send_early),
        cmocka_unit_test(test_pieces),        cmocka_unit_test(test_large),
        cmocka_unit_test(test_finish),        cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_wrong_secret),  cmocka_unit_test(test_other_job),
        cmocka_unit_test(test_other_node),    cmocka_unit_test(test_memory),
        cmocka_unit_test(test_waiting_bound), cmocka_unit_test(test_no_memory),
    };
    if (CRYPTO_set_mem_functions(count_malloc, count_realloc, count_free) !=
        1) {
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
