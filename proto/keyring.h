/* SPDX-License-Identifier: Apache-2.0
 *
 * What one end proves itself with: the coordinator has the job's secret, a
 * node has its own key. Made once, it begins any number of TLS sessions, and
 * must outlive them.
 *
 * The session is TLS 1.3 with an external pre-shared key and an ephemeral
 * X25519 exchange, and nothing else: no certificates, tickets, early data,
 * older versions or renegotiation. No configuration file of OpenSSL is read.
 *
 * The identity is "gpulaunch/1 <job id> <node name>"; the coordinator derives
 * the node's key from it and keeps no table.
 *
 * Source: RFC 8446, 2.2 and 4.2.11; RFC 9257.
 */
#ifndef GPUL_PROTO_KEYRING_H
#define GPUL_PROTO_KEYRING_H

#include <stdbool.h>

#include "common/error.h"
#include "proto/limits.h"
#include "proto/opening.h"
#include "proto/secret.h"

struct gpul_keyring;
struct ssl_st; /* OpenSSL's SSL */

/* Who the peer of one session says it is. True only once the handshake has
 * ended well. */
struct gpul_claim {
    char node_name[GPUL_NAME_BYTES_MAX + 1]; /* "": none that can be shown */
    enum gpul_stranger fault; /* what is wrong with the identity; NONE */
    unsigned identities;      /* shown in its ClientHello */
    unsigned key_updates;     /* asked for since */
};

/* For the coordinator, and for a node. The job id and the name are graphic
 * ASCII without spaces (GPUL_EINVAL). Copies what it is given; GPUL_ENOMEM. */
int gpul_keyring_of_job(struct gpul_keyring **out,
                        const struct gpul_secret *secret, const char *job_id,
                        struct gpul_error *err);
int gpul_keyring_of_node(struct gpul_keyring **out, const struct gpul_key *key,
                         const char *job_id, const char *node_name,
                         struct gpul_error *err);

/* Wipes the keys; NULL is fine. */
void gpul_keyring_destroy(struct gpul_keyring *k);

bool gpul_keyring_is_server(const struct gpul_keyring *k);

/* A new session that keeps `claim` up to date; for proto/channel.c. NULL:
 * no memory. The caller frees it with SSL_free. */
struct ssl_st *gpul_keyring_begin(const struct gpul_keyring *k,
                                  struct gpul_claim *claim);

#endif
