/* SPDX-License-Identifier: Apache-2.0
 *
 * A channel against what does not want to be let in, and against an attacker
 * on the wire.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <string.h>

#include "tests/lib/channelpair.h"

/* ---- strangers ---------------------------------------------------------- */

static void assert_stranger(const struct pair *p, enum gpul_stranger kind)
{
    assert_false(gpul_channel_is_open(p->server.channel));
    assert_int_equal(gpul_channel_stranger(p->server.channel), kind);
    assert_int_equal(p->server.why.status,
                     kind == GPUL_STRANGER_LARGE ? GPUL_ELIMIT : GPUL_EPROTO);
    assert_memory_equal(p->server.why.text,
                        "the peer is no node of this job: ", 33);
    assert_string_equal(p->server.why.text + 33, gpul_stranger_words(kind));
    assert_int_equal(p->server.inbox.used, 0);
}

/* What is not TLS is known by its first bytes, however they come, and gets no
 * answer. */
static void test_not_tls(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        enum gpul_stranger kind;
    } rows[] = {
        {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27, GPUL_STRANGER_HTTP},
        {"SSH-2.0-OpenSSH_9.2\r\n", 21, GPUL_STRANGER_SSH},
        {"\0\0\0\2\x0a\0", 6, GPUL_STRANGER_FRAMES},
        {"\377\0\377\0\377\0", 6, GPUL_STRANGER_GARBAGE},
        {"\x16\3\1\x40\0\1\0\x3f\xfc", 9, GPUL_STRANGER_LARGE},
        {"\x80\x2e\1\3\1\0\x15", 7, GPUL_STRANGER_GARBAGE}, /* SSLv2 */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (size_t piece = 0; piece < 2; piece++) {
            struct pair p;
            pair_init(&p, 1, PAIR_JOB, PAIR_NODE);
            pair_put(&p.server, (const uint8_t *)rows[i].bytes, rows[i].n,
                     piece);
            assert_stranger(&p, rows[i].kind);
            size_t n;
            gpul_channel_output(p.server.channel, &n);
            assert_int_equal(n, 0);
            pair_release(&p);
        }
    }
}

/* OpenSSL's own client, set up by the test. */
struct foreign {
    SSL_CTX *context;
    SSL *ssl;
    BIO *in, *out;
};

static void foreign_begin(struct foreign *f, SSL *ssl)
{
    f->ssl = ssl;
    f->in = BIO_new(BIO_s_mem());
    f->out = BIO_new(BIO_s_mem());
    assert_non_null(f->ssl);
    SSL_set_bio(f->ssl, f->in, f->out);
}

static void foreign_init(struct foreign *f, const SSL_METHOD *method,
                         int version)
{
    f->context = SSL_CTX_new(method);
    assert_non_null(f->context);
    SSL_CTX_set_max_proto_version(f->context, version);
    SSL_CTX_set_min_proto_version(f->context, TLS1_VERSION);
}

static void foreign_release(struct foreign *f)
{
    SSL_free(f->ssl);
    SSL_CTX_free(f->context);
}

/* Carry between a foreign end and one of ours until nothing moves. */
static void foreign_run(struct foreign *f, struct pair_end *e)
{
    bool has_moved = true;
    while (has_moved) {
        uint8_t bytes[16384];
        size_t n;
        SSL_do_handshake(f->ssl);
        int got = BIO_read(f->out, bytes, sizeof(bytes));
        pair_put(e, bytes, got > 0 ? (size_t)got : 0, 0);
        const uint8_t *back = gpul_channel_output(e->channel, &n);
        has_moved = got > 0 || n > 0;
        BIO_write(f->in, back, (int)n);
        gpul_channel_clear_output(e->channel);
    }
}

static void assert_foreign(int version, enum gpul_stranger kind)
{
    struct pair p;
    struct foreign f;
    pair_init(&p, 1, PAIR_JOB, PAIR_NODE);
    foreign_init(&f, TLS_client_method(), version);
    foreign_begin(&f, SSL_new(f.context));
    SSL_set_connect_state(f.ssl);
    foreign_run(&f, &p.server);
    assert_stranger(&p, kind);
    foreign_release(&f);
    pair_release(&p);
}

static void test_old_tls(void **state)
{
    (void)state;
    assert_foreign(TLS1_2_VERSION, GPUL_STRANGER_OLD_TLS);
}

static void test_no_key(void **state)
{
    (void)state;
    assert_foreign(TLS1_3_VERSION, GPUL_STRANGER_NO_KEY);
}

/* Identities that are none of ours. */
static const char *const identities[] = {
    "Client_identity",
    "gpulaunch/1 ",
    "gpulaunch/1 job-1",
    "gpulaunch/1 job-1 ",
    "gpulaunch/1  alpha",
    "gpulaunch/2 job-1 alpha",
    "gpulaunch/1 job-1 al pha",
    "gpulaunch/1 job-1 al\npha",
    "gpulaunch/1 job-1 al\033[2Jpha",
    "gpulaunch/1 job-1 al\xff",
};
static const char *identity;

static int use_identity(SSL *ssl, const EVP_MD *md, const unsigned char **id,
                        size_t *n, SSL_SESSION **out)
{
    static const unsigned char cipher[] = {0x13, 0x01}, key[32] = {1};
    (void)md;
    *out = SSL_SESSION_new();
    SSL_SESSION_set1_master_key(*out, key, sizeof(key));
    SSL_SESSION_set_cipher(*out, SSL_CIPHER_find(ssl, cipher));
    SSL_SESSION_set_protocol_version(*out, TLS1_3_VERSION);
    *id = (const unsigned char *)identity;
    *n = strlen(identity);
    return 1;
}

static void test_identities(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(identities) / sizeof(identities[0]); i++) {
        struct pair p;
        struct foreign f;
        identity = identities[i];
        pair_init(&p, 1, PAIR_JOB, PAIR_NODE);
        foreign_init(&f, TLS_client_method(), TLS1_3_VERSION);
        SSL_CTX_set_psk_use_session_callback(f.context, use_identity);
        foreign_begin(&f, SSL_new(f.context));
        SSL_set_connect_state(f.ssl);
        foreign_run(&f, &p.server);
        assert_false(gpul_channel_is_open(p.server.channel));
        assert_int_equal(gpul_channel_stranger(p.server.channel),
                         GPUL_STRANGER_NO_KEY);
        assert_string_equal(gpul_channel_node_name(p.server.channel), "");
        foreign_release(&f);
        pair_release(&p);
    }
}

/* A server without the key that shows a certificate instead is no
 * coordinator. */
static void test_certificate(void **state)
{
    (void)state;
    struct pair p;
    struct foreign f;
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *own = X509_new();
    assert_non_null(key);
    X509_set_version(own, 2);
    X509_gmtime_adj(X509_getm_notBefore(own), -60);
    X509_gmtime_adj(X509_getm_notAfter(own), 3600);
    X509_set_pubkey(own, key);
    assert_true(X509_sign(own, key, EVP_sha256()) > 0);
    foreign_init(&f, TLS_server_method(), TLS1_3_VERSION);
    assert_int_equal(SSL_CTX_use_certificate(f.context, own), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(f.context, key), 1);
    pair_init(&p, 1, PAIR_JOB, PAIR_NODE);
    assert_int_equal(
        gpul_channel_send(p.client.channel, (const uint8_t *)"secret", 6, NULL),
        0);
    foreign_begin(&f, SSL_new(f.context));
    SSL_set_accept_state(f.ssl);
    foreign_run(&f, &p.client);
    assert_false(gpul_channel_is_open(p.client.channel));
    assert_int_equal(p.client.why.status, GPUL_EPROTO);
    assert_string_equal(p.client.why.text,
                        "what answers there does not have this job's key");
    foreign_release(&f);
    X509_free(own);
    EVP_PKEY_free(key);
    pair_release(&p);
}

/* What answers with something else than TLS. */
static void test_no_tls_server(void **state)
{
    (void)state;
    struct pair p;
    pair_init(&p, 1, PAIR_JOB, PAIR_NODE);
    pair_put(&p.client, (const uint8_t *)"HTTP/1.1 400 Bad Request\r\n", 26, 0);
    assert_int_equal(p.client.why.status, GPUL_EPROTO);
    assert_string_equal(p.client.why.text,
                        "what answers there does not speak TLS: is it the "
                        "coordinator, and not started with --insecure?");
    pair_release(&p);
}

/* ---- with a key, and hostile -------------------------------------------- */

/* A node's own session in the hands of the test, open. */
static void open_foreign(struct foreign *f, struct pair *p,
                         struct gpul_claim *claim)
{
    pair_init(p, 1, PAIR_JOB, PAIR_NODE);
    *claim = (struct gpul_claim){0};
    *f = (struct foreign){0};
    foreign_begin(f, gpul_keyring_begin(p->keyrings[0], claim));
    foreign_run(f, &p->server);
    assert_true(gpul_channel_is_open(p->server.channel));
}

static void test_key_updates(void **state)
{
    (void)state;
    struct pair p;
    struct foreign f;
    struct gpul_claim claim;
    open_foreign(&f, &p, &claim);
    unsigned done = 0;
    while (done < 1000 && p.server.why.status == 0) {
        assert_int_equal(SSL_key_update(f.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
        foreign_run(&f, &p.server);
        done++;
    }
    assert_int_equal(done, GPUL_KEY_UPDATES_MAX + 1);
    assert_int_equal(p.server.why.status, GPUL_ELIMIT);
    assert_string_equal(p.server.why.text,
                        "the peer changes its keys too often");
    foreign_release(&f);
    pair_release(&p);
}

/* A stranger may not go on for ever in its handshake. */
static void test_stranger_bytes(void **state)
{
    (void)state;
    struct pair p;
    struct gpul_buf hello;
    pair_init(&p, 1, PAIR_JOB, PAIR_NODE);
    pair_take(&hello, &p.client);
    pair_put(&p.server, hello.data, hello.used, 0);
    /* A change of cipher spec may stand before the second flight. */
    uint8_t flood[600];
    for (size_t i = 0; i < sizeof(flood); i++) {
        flood[i] = (uint8_t) "\x14\3\3\0\1\1"[i % 6];
    }
    for (int i = 0; i < 20 && p.server.why.status == 0; i++) {
        pair_put(&p.server, flood, sizeof(flood), 0);
    }
    assert_false(gpul_channel_is_open(p.server.channel));
    assert_int_not_equal(p.server.why.status, 0);
    /* One record that is too large for it all. */
    gpul_buf_release(&hello);
    pair_release(&p);
    pair_init(&p, 1, PAIR_JOB, PAIR_NODE);
    pair_take(&hello, &p.client);
    pair_put(&p.server, hello.data, hello.used, 0);
    pair_put(&p.server, (const uint8_t *)"\x17\3\3\x20\0", 5, 0);
    for (int i = 0; i < 20 && p.server.why.status == 0; i++) {
        pair_put(&p.server, flood, sizeof(flood), 0);
    }
    assert_stranger(&p, GPUL_STRANGER_LARGE);
    gpul_buf_release(&hello);
    pair_release(&p);
}

/* ---- on the wire -------------------------------------------------------- */

/* The three flights of a handshake. */
enum flight { HELLO, ANSWER, FINISHED, FLIGHTS };

/* The version in the header of a record in the clear is "ignored for all
 * purposes" (RFC 8446, 5.1). */
static bool is_ignored(enum flight flight, size_t at)
{
    return flight != FINISHED && (at == 1 || at == 2);
}

/* A handshake of which one byte is changed, or all from there on is lost.
 * Does the flight have such a byte? */
static bool disturb(enum flight flight, size_t at, bool is_cut)
{
    struct pair p;
    bool is_there = false;
    pair_init(&p, 1, PAIR_JOB, PAIR_NODE);
    assert_int_equal(
        gpul_channel_send(p.client.channel, (const uint8_t *)"x", 1, NULL), 0);
    for (enum flight now = HELLO; now < FLIGHTS; now++) {
        struct pair_end *from = now == ANSWER ? &p.server : &p.client;
        struct pair_end *to = now == ANSWER ? &p.client : &p.server;
        struct gpul_buf bytes;
        pair_take(&bytes, from);
        if (now == flight && at < bytes.used) {
            is_there = true;
            bytes.data[at] ^= (uint8_t)(1u << at % 8);
            bytes.used = is_cut ? at : bytes.used;
        }
        pair_put(to, bytes.data, bytes.used, 0);
        gpul_buf_release(&bytes);
    }
    if (is_there) {
        assert_true(p.server.inbox.used == 0 || is_ignored(flight, at));
    } else {
        assert_int_equal(p.server.inbox.used, 1);
    }
    pair_release(&p);
    return is_there;
}

static void test_every_byte_changed(void **state)
{
    (void)state;
    for (enum flight flight = HELLO; flight < FLIGHTS; flight++) {
        size_t at = 0;
        while (disturb(flight, at, false)) {
            at++;
        }
        assert_in_range(at, 50, 500);
    }
}

static void test_every_byte_cut(void **state)
{
    (void)state;
    for (enum flight flight = HELLO; flight < FLIGHTS; flight++) {
        size_t at = 0;
        while (disturb(flight, at, true)) {
            at++;
        }
        assert_in_range(at, 50, 500);
    }
}

static void open_pair(struct pair *p)
{
    pair_init(p, 1, PAIR_JOB, PAIR_NODE);
    pair_run(p);
    assert_true(gpul_channel_is_open(p->server.channel));
}

/* A record in flight that was changed. */
static void test_records(void **state)
{
    (void)state;
    for (size_t at = 0; at < 26; at++) {
        struct pair p;
        struct gpul_buf bytes;
        open_pair(&p);
        gpul_channel_send(p.client.channel, (const uint8_t *)"text", 4, NULL);
        pair_take(&bytes, &p.client);
        assert_int_equal(bytes.used, 26);
        bytes.data[at] ^= 1;
        pair_put(&p.server, bytes.data, bytes.used, 0);
        pair_put(&p.server, bytes.data, bytes.used, 0);
        assert_int_equal(p.server.inbox.used, 0);
        /* With a larger size it waits for the rest. */
        assert_int_equal(p.server.why.status, at == 3 ? 0 : GPUL_EPROTO);
        gpul_buf_release(&bytes);
        pair_release(&p);
    }
}

static void test_replay_of_record(void **state)
{
    (void)state;
    struct pair p;
    struct gpul_buf bytes;
    open_pair(&p);
    gpul_channel_send(p.client.channel, (const uint8_t *)"text", 4, NULL);
    pair_take(&bytes, &p.client);
    pair_put(&p.server, bytes.data, bytes.used, 0);
    assert_int_equal(p.server.inbox.used, 4);
    pair_put(&p.server, bytes.data, bytes.used, 0);
    assert_int_equal(p.server.inbox.used, 4);
    assert_int_equal(p.server.why.status, GPUL_EPROTO);
    gpul_buf_release(&bytes);
    pair_release(&p);
}

/* All that a node sent, sent again: another session has another exchange. */
static void test_replay_of_session(void **state)
{
    (void)state;
    struct pair p;
    struct gpul_buf hello, rest;
    pair_init(&p, 1, PAIR_JOB, PAIR_NODE);
    pair_take(&hello, &p.client);
    pair_put(&p.server, hello.data, hello.used, 0);
    pair_carry(&p, &p.server, &p.client);
    pair_take(&rest, &p.client);
    pair_put(&p.server, rest.data, rest.used, 0);
    assert_true(gpul_channel_is_open(p.server.channel));

    gpul_channel_destroy(p.server.channel);
    assert_int_equal(
        gpul_channel_create(&p.server.channel, p.keyrings[1], NULL), 0);
    pair_put(&p.server, hello.data, hello.used, 0);
    assert_int_equal(p.server.why.status, 0);
    pair_put(&p.server, rest.data, rest.used, 0);
    assert_stranger(&p, GPUL_STRANGER_BROKEN);
    gpul_buf_release(&hello);
    gpul_buf_release(&rest);
    pair_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_not_tls),
        cmocka_unit_test(test_old_tls),
        cmocka_unit_test(test_no_key),
        cmocka_unit_test(test_identities),
        cmocka_unit_test(test_certificate),
        cmocka_unit_test(test_no_tls_server),
        cmocka_unit_test(test_key_updates),
        cmocka_unit_test(test_stranger_bytes),
        cmocka_unit_test(test_every_byte_changed),
        cmocka_unit_test(test_every_byte_cut),
        cmocka_unit_test(test_records),
        cmocka_unit_test(test_replay_of_record),
        cmocka_unit_test(test_replay_of_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
