/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages: who may send which, how large, and what makes one valid.
 * Pure: bytes in, a checked message out.
 */
#ifndef GPUL_PROTO_MESSAGE_H
#define GPUL_PROTO_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"
#include "gpulaunch.pb-c.h" /* generated: Gpul__Frame and the rest */

/* Who sent it, as seen by the receiver. Values are bits of a mask. */
enum gpul_peer {
    GPUL_PEER_NODE = 1,        /* worker agent -> coordinator */
    GPUL_PEER_COORDINATOR = 2, /* coordinator -> agent */
    GPUL_PEER_OPERATOR = 4,    /* front end -> coordinator */
    GPUL_PEER_DESK = 8,        /* coordinator -> front end */
    GPUL_PEER_PROBE = 16,      /* probe -> agent */
    GPUL_PEER_AGENT = 32,      /* agent -> probe */
};

/* The rule of one message type. */
struct gpul_message_rule {
    const char *name;   /* "hello", as in the schema */
    uint32_t bytes_max; /* largest serialised Frame that carries it */
    unsigned senders;   /* mask of enum gpul_peer */
};

/* `type` is the field number of the body in Frame; NULL if unknown. */
const struct gpul_message_rule *gpul_message_rule(uint32_t type);

/* Bit of a type in the masks that narrow what a peer may send now. */
#define GPUL_MESSAGE_BIT(type) (UINT64_C(1) << (type))
#define GPUL_MESSAGE_ANY UINT64_MAX

/* The type of a frame body, read from its first key: > 0, or 0 when one more
 * byte is needed, or GPUL_EPROTO when it is no key of a known body. */
int gpul_message_type(const uint8_t *bytes, size_t n);

/* May `from` send a body of this type (as gpul_message_type gives it) and
 * size, when `allowed` holds the GPUL_MESSAGE_BITs of its phase? Returns 0,
 * GPUL_EPROTO for the type or GPUL_ELIMIT for the size. */
int gpul_message_judge(int type, size_t bytes, enum gpul_peer from,
                       uint64_t allowed, struct gpul_error *err);

/* Append the length prefix and the serialised frame to `out`.
 * Returns 0; GPUL_EINVAL without a body; GPUL_ELIMIT when the frame is over
 * its own maximum or does not fit `out`; GPUL_ENOMEM. `out` is unchanged on
 * failure, except for its is_failed mark. */
int gpul_message_encode(struct gpul_buf *out, const Gpul__Frame *frame,
                        struct gpul_error *err);

/* Decode one frame body (without the length prefix), sent by `from`.
 * Checked in this order: type known and allowed from this sender, size
 * within the type's maximum, decodable within the memory budget, body case
 * equal to the first field, every field within limits.h.
 * On success *out is the caller's, to be given to gpul_message_release.
 * On failure *out is NULL. Errors: GPUL_EPROTO, GPUL_ELIMIT, GPUL_ENOMEM. */
int gpul_message_decode(Gpul__Frame **out, const uint8_t *bytes, size_t n,
                        enum gpul_peer from, struct gpul_error *err);

/* NULL is fine. */
void gpul_message_release(Gpul__Frame *frame);

#endif
