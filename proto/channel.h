/* SPDX-License-Identifier: Apache-2.0
 *
 * One TLS session as a transformer of bytes: those of the network in, those
 * of frames out, and the reverse. It has no descriptor and never waits; who
 * owns the connection carries the bytes:
 *
 *     put what was read; get until it returns 0; then write the output
 *     send a frame; then write the output
 *
 * A server makes no TLS object before one whole ClientHello is here (see
 * proto/opening.h), and bounds what it reads before the peer has proved that
 * it has its key. Whatever fails stays failed; an alert for the peer may then
 * be in the output.
 */
#ifndef GPUL_PROTO_CHANNEL_H
#define GPUL_PROTO_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "proto/keyring.h"

struct gpul_channel;

/* The keyring says which end this is, and must outlive the channel. A client
 * has its ClientHello in the output at once. GPUL_ENOMEM. */
int gpul_channel_create(struct gpul_channel **out,
                        const struct gpul_keyring *keyring,
                        struct gpul_error *err);
void gpul_channel_destroy(struct gpul_channel *c); /* NULL is fine */

/* Bytes of the network, borrowed until gpul_channel_get returns 0 or fails;
 * no more may be put before. */
void gpul_channel_put(struct gpul_channel *c, const uint8_t *bytes, size_t n);

/* Bytes of frames into `room`, at most n (n > 0, at most INT_MAX). Returns how
 * many, 0 when there are none until more is put, or a failure that stays:
 * GPUL_EPROTO or GPUL_ELIMIT (gpul_channel_stranger says what the peer is),
 * GPUL_ECLOSED (the peer says that it is done), GPUL_ENOMEM. */
int gpul_channel_get(struct gpul_channel *c, uint8_t *room, size_t n,
                     struct gpul_error *err);

/* Take bytes of frames; before the handshake has ended they wait, at most
 * GPUL_SEND_QUEUE_BYTES_MAX. GPUL_ELIMIT, GPUL_ENOMEM; then the channel has
 * failed. */
int gpul_channel_send(struct gpul_channel *c, const uint8_t *bytes, size_t n,
                      struct gpul_error *err);

/* Bytes taken that wait for the end of the handshake. */
size_t gpul_channel_waiting_bytes(const struct gpul_channel *c);

/* Say to the peer that nothing more comes; it is in the output then. */
void gpul_channel_finish(struct gpul_channel *c);

/* Bytes for the network, owned by the channel until the next call; NULL and 0
 * when there are none. And: they are written or copied, forget them. */
const uint8_t *gpul_channel_output(const struct gpul_channel *c, size_t *n);
void gpul_channel_clear_output(struct gpul_channel *c);

/* Has the peer proved that it has its key? */
bool gpul_channel_is_open(const struct gpul_channel *c);

/* The name that the peer of a server claims; once the channel is open, its
 * own. "" before it has claimed one that can be shown. */
const char *gpul_channel_node_name(const struct gpul_channel *c);

/* After a failure, or when the connection ended (CLOSED), before the channel
 * was open: what the peer is. NONE when it was open. */
enum gpul_stranger gpul_channel_stranger(const struct gpul_channel *c);

#endif
