/* SPDX-License-Identifier: Apache-2.0
 *
 * The deframer: a stream of bytes in, whole frame bodies out. Pure.
 *
 * It judges a frame by its first bytes: first the type (the key of the first
 * field) against what this sender may send in this phase, then the length
 * against that type's maximum. Only the frame at the front is judged, with
 * what is allowed at that moment; so a peer never makes it hold more than one
 * allowed frame and what a single feed brought behind it.
 */
#ifndef GPUL_PROTO_FRAME_H
#define GPUL_PROTO_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"
#include "proto/message.h"

struct gpul_deframer {
    struct gpul_buf buf;
    enum gpul_peer from;
    uint64_t allowed;   /* GPUL_MESSAGE_BIT mask; narrow it by phase */
    size_t frame_bytes; /* prefix and body of the frame being read, 0: none */
    size_t consumed;    /* bytes at the front already handed out */
    size_t room_bytes;  /* size of the last room, see gpul_deframer_room */
    int status;         /* sticky: a broken stream stays broken */
};

void gpul_deframer_init(struct gpul_deframer *d, enum gpul_peer from);
void gpul_deframer_release(struct gpul_deframer *d);

/* Take n bytes of the stream, at most GPUL_READ_BYTES_MAX; then take out the
 * frames before the next feed. All are taken, or the stream is broken.
 * Errors: GPUL_EPROTO, GPUL_ELIMIT, GPUL_ENOMEM; the same for ever after. */
int gpul_deframer_feed(struct gpul_deframer *d, const uint8_t *bytes, size_t n,
                       struct gpul_error *err);

/* The same without a copy: room at the end of the stream for the caller to
 * read into, *n bytes of it (at most GPUL_READ_BYTES_MAX, more the more the
 * stream brings), and then how many bytes were put there. The room is gone
 * with the next call on `d`. Returns NULL if the stream is broken or there
 * is no memory. */
uint8_t *gpul_deframer_room(struct gpul_deframer *d, size_t *n);
int gpul_deframer_fill(struct gpul_deframer *d, size_t n,
                       struct gpul_error *err);

/* The next whole frame body, borrowed until the next call on `d`.
 * Returns 1 with a frame, 0 without one yet, or the sticky failure. */
int gpul_deframer_next(struct gpul_deframer *d, const uint8_t **body, size_t *n,
                       struct gpul_error *err);

#endif
