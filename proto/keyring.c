/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/keyring.h"

#include <openssl/ssl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/openssl.h"
#include "proto/text.h"

#define PREFIX "gpulaunch/1 "
#define IDENTITY_BYTES_MAX                                                     \
    (sizeof(PREFIX) + GPUL_JOB_ID_BYTES_MAX + GPUL_NAME_BYTES_MAX)

struct gpul_keyring {
    SSL_CTX *context;
    bool is_server;
    struct gpul_secret secret; /* of a server */
    struct gpul_key key;       /* of a client */
    char job_id[GPUL_JOB_ID_BYTES_MAX + 1];
    char identity[IDENTITY_BYTES_MAX + 1]; /* of a client */
};

/* ---- the identity ------------------------------------------------------- */

/* Split "<job id> <node name>"; n bytes of a stranger. */
static bool split(char *job_id, char *node_name, const char *text, size_t n)
{
    const char *space = memchr(text, ' ', n);
    if (space == NULL) {
        return false;
    }
    size_t job_bytes = (size_t)(space - text);
    size_t name_bytes = n - job_bytes - 1;
    if (job_bytes == 0 || job_bytes > GPUL_JOB_ID_BYTES_MAX ||
        name_bytes == 0 || name_bytes > GPUL_NAME_BYTES_MAX ||
        memchr(text, 0, n) != NULL) {
        return false;
    }
    memcpy(job_id, text, job_bytes);
    job_id[job_bytes] = 0;
    memcpy(node_name, space + 1, name_bytes);
    node_name[name_bytes] = 0;
    return gpul_text_is_valid(job_id, GPUL_TEXT_NAME) &&
           gpul_text_is_valid(node_name, GPUL_TEXT_NAME);
}

/* Take the identity into the claim; is there a key for it? */
static bool take_identity(const struct gpul_keyring *k,
                          struct gpul_claim *claim, const char *identity,
                          size_t n)
{
    char job_id[GPUL_JOB_ID_BYTES_MAX + 1];
    size_t prefix = sizeof(PREFIX) - 1;
    if (n < prefix || memcmp(identity, PREFIX, prefix) != 0 ||
        !split(job_id, claim->node_name, identity + prefix, n - prefix)) {
        claim->node_name[0] = 0;
        claim->fault = GPUL_STRANGER_NO_KEY;
    } else if (strcmp(job_id, k->job_id) != 0) {
        claim->fault = GPUL_STRANGER_OTHER_JOB;
    }
    return claim->fault == GPUL_STRANGER_NONE;
}

/* ---- what OpenSSL asks for ---------------------------------------------- */

/* OpenSSL's form of a pre-shared key; NULL without memory. The cipher stands
 * for its hash: a session of ChaCha20 with SHA-256 may use it too. */
static SSL_SESSION *wrap_key(SSL *ssl, const struct gpul_key *key)
{
    static const unsigned char aes_128_gcm_sha256[] = {0x13, 0x01};
    SSL_SESSION *s = SSL_SESSION_new();
    const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, aes_128_gcm_sha256);
    if (s != NULL && cipher != NULL &&
        SSL_SESSION_set1_master_key(s, key->bytes, sizeof(key->bytes)) == 1 &&
        SSL_SESSION_set_cipher(s, cipher) == 1 &&
        SSL_SESSION_set_protocol_version(s, TLS1_3_VERSION) == 1) {
        return s;
    }
    SSL_SESSION_free(s);
    return NULL;
}

/* With 1 and no session OpenSSL goes on without a key, finds that it has no
 * certificate either, and refuses: the peer gets an alert that says so. */
static int on_identity(SSL *ssl, const unsigned char *identity, size_t n,
                       SSL_SESSION **out)
{
    const struct gpul_keyring *k = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    struct gpul_claim *claim = SSL_get_app_data(ssl);
    *out = NULL;
    if (claim->identities++ > 0) {
        return 0; /* ours shows one; each costs a derivation */
    }
    if (!take_identity(k, claim, (const char *)identity, n)) {
        return 1;
    }
    struct gpul_key key;
    if (gpul_key_of_node(&key, &k->secret, k->job_id, claim->node_name, NULL) !=
        0) {
        return 0;
    }
    *out = wrap_key(ssl, &key);
    gpul_wipe(&key, sizeof(key));
    return *out != NULL;
}

static int on_key_wanted(SSL *ssl, const EVP_MD *digest,
                         const unsigned char **identity, size_t *n,
                         SSL_SESSION **out)
{
    const struct gpul_keyring *k = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    (void)digest; /* of our ciphers, SHA-256 in any case */
    *out = wrap_key(ssl, &k->key);
    *identity = (const unsigned char *)k->identity;
    *n = strlen(k->identity);
    return *out != NULL;
}

static void on_tls_message(int is_sent, int version, int type,
                           const void *bytes, size_t n, SSL *ssl, void *arg)
{
    struct gpul_claim *claim = SSL_get_app_data(ssl);
    (void)version;
    (void)arg;
    if (!is_sent && type == SSL3_RT_HANDSHAKE && n > 0 &&
        *(const uint8_t *)bytes == SSL3_MT_KEY_UPDATE) {
        claim->key_updates++;
    }
}

/* ---- contexts ----------------------------------------------------------- */

static bool configure(SSL_CTX *c)
{
    SSL_CTX_set_options(c, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION |
                               SSL_OP_NO_COMPRESSION |
                               SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_clear_options(c, SSL_OP_ENABLE_MIDDLEBOX_COMPAT |
                                 SSL_OP_ALLOW_NO_DHE_KEX);
    SSL_CTX_set_mode(c, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_msg_callback(c, on_tls_message);
    return SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION) == 1 &&
           SSL_CTX_set_max_proto_version(c, TLS1_3_VERSION) == 1 &&
           SSL_CTX_set_num_tickets(c, 0) == 1 &&
           SSL_CTX_set_max_early_data(c, 0) == 1 &&
           SSL_CTX_set1_groups_list(c, "X25519") == 1 &&
           SSL_CTX_set_ciphersuites(c, "TLS_AES_128_GCM_SHA256:"
                                       "TLS_CHACHA20_POLY1305_SHA256") == 1;
}

static int create(struct gpul_keyring **out, bool is_server, const char *job_id,
                  struct gpul_error *err)
{
    *out = NULL;
    size_t n = strlen(job_id);
    if (n == 0 || n > GPUL_JOB_ID_BYTES_MAX ||
        !gpul_text_is_valid(job_id, GPUL_TEXT_NAME)) {
        return gpul_fail(err, GPUL_EINVAL, "no job id");
    }
    bool can_begin = gpul_openssl_begin();
    struct gpul_keyring *k = calloc(1, sizeof(*k));
    if (k != NULL && can_begin) {
        k->is_server = is_server;
        memcpy(k->job_id, job_id, n + 1);
        k->context =
            SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method());
    }
    if (k == NULL || k->context == NULL || !configure(k->context) ||
        SSL_CTX_set_app_data(k->context, k) != 1) {
        gpul_keyring_destroy(k);
        return gpul_fail(err, GPUL_ENOMEM,
                         "OpenSSL cannot begin: out of memory?");
    }
    *out = k;
    return 0;
}

int gpul_keyring_of_job(struct gpul_keyring **out,
                        const struct gpul_secret *secret, const char *job_id,
                        struct gpul_error *err)
{
    int rc = create(out, true, job_id, err);
    if (rc == 0) {
        (*out)->secret = *secret;
        SSL_CTX_set_psk_find_session_callback((*out)->context, on_identity);
    }
    return rc;
}

int gpul_keyring_of_node(struct gpul_keyring **out, const struct gpul_key *key,
                         const char *job_id, const char *node_name,
                         struct gpul_error *err)
{
    size_t n = strlen(node_name);
    *out = NULL;
    if (n == 0 || n > GPUL_NAME_BYTES_MAX ||
        !gpul_text_is_valid(node_name, GPUL_TEXT_NAME)) {
        return gpul_fail(err, GPUL_EINVAL, "no name of a node");
    }
    int rc = create(out, false, job_id, err);
    if (rc == 0) {
        (*out)->key = *key;
        snprintf((*out)->identity, sizeof((*out)->identity), PREFIX "%s %s",
                 job_id, node_name);
        SSL_CTX_set_psk_use_session_callback((*out)->context, on_key_wanted);
        /* Nobody vouches for a certificate here: one is never good. */
        SSL_CTX_set_verify((*out)->context, SSL_VERIFY_PEER, NULL);
    }
    return rc;
}

void gpul_keyring_destroy(struct gpul_keyring *k)
{
    if (k != NULL) {
        SSL_CTX_free(k->context);
        gpul_wipe(k, sizeof(*k));
        free(k);
    }
}

bool gpul_keyring_is_server(const struct gpul_keyring *k)
{
    return k->is_server;
}

SSL *gpul_keyring_begin(const struct gpul_keyring *k, struct gpul_claim *claim)
{
    SSL *ssl = SSL_new(k->context);
    if (ssl == NULL || SSL_set_app_data(ssl, claim) != 1) {
        SSL_free(ssl);
        return NULL;
    }
    if (k->is_server) {
        SSL_set_accept_state(ssl);
    } else {
        SSL_set_connect_state(ssl);
    }
    return ssl;
}
