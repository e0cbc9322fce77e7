/* SPDX-License-Identifier: Apache-2.0
 *
 * What a control channel usually is: mutual TLS 1.3 with P-256 certificates
 * that one authority has signed, over OpenSSL's own blocking sockets, which
 * is its cheapest form. No tickets, X25519, AES-128, as the channel.
 */
#ifndef TESTS_BENCH_HANDSHAKE_TLS_H
#define TESTS_BENCH_HANDSHAKE_TLS_H

#include <openssl/ssl.h>

struct handshake_tls {
    SSL_CTX *server, *client;
};

/* An authority, and a certificate for each end; ends the program if OpenSSL
 * fails. */
void handshake_tls_init(struct handshake_tls *t);

/* Shake hands over a connected socket; ends the program if that fails. The
 * caller frees it. */
SSL *handshake_tls_begin(SSL_CTX *ctx, int fd);

#endif
