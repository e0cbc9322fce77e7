/* SPDX-License-Identifier: Apache-2.0
 *
 * One valid frame of every message type, every field set, the same on each
 * call: for codec tests, frozen vectors and fuzz corpora.
 */
#ifndef TESTS_LIB_SAMPLES_H
#define TESTS_LIB_SAMPLES_H

#include <stdint.h>

#include "common/buf.h"
#include "proto/message.h"

/* Body types are 1 .. SAMPLE_TYPE_MAX, with gaps. */
enum { SAMPLE_TYPE_MAX = GPUL__FRAME__BODY_CLOCK_PONG };

/* The type behind `type`, 0 after the last. */
uint32_t sample_next(uint32_t type);

/* Borrowed from static storage; the caller may change the top level of its
 * copy, not what it points to. */
Gpul__Frame sample_frame(uint32_t type);

/* Append the encoded sample, with its prefix. */
void sample_append(struct gpul_buf *out, uint32_t type);

/* The first peer of the mask that may send the type. */
enum gpul_peer sample_sender(uint32_t type);

#endif
