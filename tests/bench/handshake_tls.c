/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/handshake_tls.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static void need(bool is_good)
{
    if (!is_good) {
        ERR_print_errors_fp(stderr);
        exit(1);
    }
}

/* A certificate for `key`, signed by `authority`; NULL: by itself, as one. */
static X509 *certify(EVP_PKEY *key, const char *name, X509 *authority,
                     EVP_PKEY *authority_key)
{
    X509 *x = X509_new();
    need(x != NULL && X509_set_version(x, 2) == 1);
    need(ASN1_INTEGER_set(X509_get_serialNumber(x), 1));
    need(X509_gmtime_adj(X509_getm_notBefore(x), -3600) != NULL);
    need(X509_gmtime_adj(X509_getm_notAfter(x), 86400) != NULL);
    need(X509_set_pubkey(x, key));
    X509_NAME *subject = X509_get_subject_name(x);
    need(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                                    (const unsigned char *)name, -1, -1, 0));
    need(X509_set_issuer_name(
        x, authority != NULL ? X509_get_subject_name(authority) : subject));
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, authority != NULL ? authority : x, x, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(
        NULL, &ctx, NID_basic_constraints,
        authority != NULL ? "critical,CA:FALSE" : "critical,CA:TRUE");
    need(e != NULL && X509_add_ext(x, e, -1));
    X509_EXTENSION_free(e);
    need(X509_sign(x, authority_key != NULL ? authority_key : key,
                   EVP_sha256()) > 0);
    return x;
}

static SSL_CTX *context(const SSL_METHOD *method, const char *name,
                        X509 *authority, EVP_PKEY *authority_key)
{
    SSL_CTX *ctx = SSL_CTX_new(method);
    EVP_PKEY *key = EVP_EC_gen("P-256");
    need(ctx != NULL && key != NULL);
    X509 *x = certify(key, name, authority, authority_key);
    need(SSL_CTX_use_certificate(ctx, x) && SSL_CTX_use_PrivateKey(ctx, key));
    need(X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), authority));
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                       NULL);
    need(1 == SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION));
    need(1 == SSL_CTX_set1_groups_list(ctx, "X25519"));
    need(SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256"));
    need(SSL_CTX_set_num_tickets(ctx, 0));
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    X509_free(x);
    EVP_PKEY_free(key);
    return ctx;
}

void handshake_tls_init(struct handshake_tls *t)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    need(key != NULL);
    X509 *authority = certify(key, "authority", NULL, NULL);
    t->server = context(TLS_server_method(), "coordinator", authority, key);
    t->client = context(TLS_client_method(), "node", authority, key);
    X509_free(authority);
    EVP_PKEY_free(key);
}

SSL *handshake_tls_begin(SSL_CTX *ctx, int fd)
{
    SSL *ssl = SSL_new(ctx);
    need(ssl != NULL && SSL_set_fd(ssl, fd));
    need((SSL_is_server(ssl) ? SSL_accept(ssl) : SSL_connect(ssl)) == 1);
    need(SSL_get_verify_result(ssl) == X509_V_OK);
    return ssl;
}
