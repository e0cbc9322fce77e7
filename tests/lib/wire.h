/* SPDX-License-Identifier: Apache-2.0
 *
 * One end of a connection in the hands of a test: a blocking descriptor, with
 * a TLS session of ours over it or without.
 */
#ifndef TESTS_LIB_WIRE_H
#define TESTS_LIB_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/channel.h"

enum { WIRE_WAIT_MS = 120000 }; /* for anything that must come */

struct wire {
    int fd;
    struct gpul_channel *channel; /* NULL: bytes go as they are */
    struct gpul_error why;        /* of a channel that failed */
    uint8_t raw[16 << 10];        /* as the channel borrows it */
    uint8_t early;                /* came with the end of the handshake */
    bool has_early;
};

/* Takes the descriptor. */
void wire_init(struct wire *w, int fd);
void wire_release(struct wire *w);

/* Shake hands; the keyring says which end this is, and must outlive it.
 * False: it failed, as `why` says, or the peer closed. */
bool wire_seal(struct wire *w, const struct gpul_keyring *keyring);

/* Write all; false: the peer is gone. */
bool wire_write(struct wire *w, const uint8_t *bytes, size_t n);

/* Wait for bytes, at most n. 0: the end, or a fault. */
size_t wire_read(struct wire *w, uint8_t *room, size_t n);

/* The keyring of a job with a secret of this fill, or of a node of it. */
struct gpul_keyring *wire_keyring(uint8_t fill, const char *job_id,
                                  const char *node_name);

#endif
