/* SPDX-License-Identifier: Apache-2.0
 *
 * One connection that carries frames, on libuv: TCP between machines, a
 * socket pair between a program and its child.
 *
 * With a keyring (proto/keyring.h, which outlives it) a connection shows its
 * key first and its bytes are sealed; without one they go as they are.
 *
 * The program must ignore SIGPIPE.
 *
 * A transport lives on the heap from open to its on_closed call; there it
 * may still be read, after it it is gone. Handlers may call any function
 * here, gpul_transport_close included.
 */
#ifndef GPUL_PROTO_TRANSPORT_H
#define GPUL_PROTO_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "common/error.h"
#include "proto/keyring.h"
#include "proto/message.h"

struct gpul_transport;

struct gpul_transport_handlers {
    /* TCP connect finished, of a dialled connection; with a keyring, dialled
     * or accepted, the peer has proved that it has its key. NULL: not told. */
    void (*on_connected)(void *arg);
    /* TCP connect finished, of a dialled connection with a keyring; whether
     * the peer has its key is still to be seen. NULL: not told. */
    void (*on_reached)(void *arg);
    /* Of an accepted connection with a keyring: the peer has begun the
     * handshake of a node of this job, as gpul_transport_claimed_name, and has
     * not ended it yet. NULL: not told. */
    void (*on_claimed)(void *arg);
    /* `frame` is borrowed for the call. */
    void (*on_message)(void *arg, const Gpul__Frame *frame);
    /* Once, last, never from within a call of the functions below. `why` is
     * NULL if gpul_transport_close ended it, else what did (GPUL_ECLOSED: the
     * peer closed). */
    void (*on_closed)(void *arg, const struct gpul_error *why);
};

/* Accept the waiting connection of a listening uv_tcp_t. `keyring` may be
 * NULL, here and below: the bytes are not sealed then. */
int gpul_transport_accept(struct gpul_transport **out, uv_stream_t *listener,
                          const struct gpul_keyring *keyring,
                          enum gpul_peer from,
                          const struct gpul_transport_handlers *handlers,
                          void *arg, struct gpul_error *err);

/* Dial a literal address. A failure to connect ends in on_closed. */
int gpul_transport_connect(struct gpul_transport **out, uv_loop_t *loop,
                           const char *address, uint16_t port,
                           const struct gpul_keyring *keyring,
                           enum gpul_peer from,
                           const struct gpul_transport_handlers *handlers,
                           void *arg, struct gpul_error *err);

/* Use one end of a socket pair; takes ownership of `fd` in any case. */
int gpul_transport_open(struct gpul_transport **out, uv_loop_t *loop, int fd,
                        enum gpul_peer from,
                        const struct gpul_transport_handlers *handlers,
                        void *arg, struct gpul_error *err);

/* It has another owner from now on, who hears what comes; also from within a
 * handler. */
void gpul_transport_hand_over(struct gpul_transport *t,
                              const struct gpul_transport_handlers *handlers,
                              void *arg);

/* Narrow or widen what the peer may send from now on. */
void gpul_transport_allow(struct gpul_transport *t, uint64_t message_mask);

/* Another bound on what may wait for the peer than GPUL_SEND_QUEUE_BYTES_MAX,
 * for an owner that bounds what it sends by other means (credit). */
void gpul_transport_set_queue_max(struct gpul_transport *t, size_t bytes_max);

/* Queue one frame; before a dialled connection stands and the peer has proved
 * itself, it waits for that. Over
 * the bound of the queue the peer counts as too slow: the transport closes
 * with that reason and GPUL_ELIMIT is returned. GPUL_ECLOSED: it is closed, or
 * the peer has gone; what the peer sent before is still delivered, then
 * on_closed. GPUL_ENOMEM: the transport closes with that reason. GPUL_EINVAL,
 * or GPUL_ELIMIT of gpul_message_encode: nothing was sent, the connection
 * stands. */
int gpul_transport_send(struct gpul_transport *t, const Gpul__Frame *frame,
                        struct gpul_error *err);

/* The same for bytes that are already encoded (whole frames with prefix).
 * They are written at once where the socket takes them; the rest is copied. */
int gpul_transport_send_bytes(struct gpul_transport *t, const uint8_t *bytes,
                              size_t n, struct gpul_error *err);

/* Bytes queued and not yet taken by the kernel, sealed if they are. */
size_t gpul_transport_queued_bytes(const struct gpul_transport *t);

/* Literal address of this end or the peer, "" for a socket pair and once the
 * connection is closed. `text` has
 * room for GPUL_ADDRESS_BYTES_MAX + 1 bytes; port may be NULL. */
void gpul_transport_local_address(const struct gpul_transport *t, char *text,
                                  uint16_t *port);
void gpul_transport_peer_address(const struct gpul_transport *t, char *text,
                                 uint16_t *port);

/* The name that the peer of an accepted connection has a key for, "" before
 * it has proved that and without a keyring. */
const char *gpul_transport_node_name(const struct gpul_transport *t);

/* The name that the peer of an accepted connection says it has a key for; ""
 * before it has said so. */
const char *gpul_transport_claimed_name(const struct gpul_transport *t);

/* What the peer is that has not proved anything; in on_closed too. */
enum gpul_stranger gpul_transport_stranger(const struct gpul_transport *t);

/* The process at the other end of this socket pair has ended: take what it
 * sent, then the end, even where a child of it holds the socket open. */
void gpul_transport_end_input(struct gpul_transport *t);

/* Write what is queued, then wait for the peer to close too, so that it has
 * read everything; at most `flush_ms` (0: close at once, losing what is
 * queued). No handler but on_closed is called any more. */
void gpul_transport_close(struct gpul_transport *t, uint64_t flush_ms);

#endif
