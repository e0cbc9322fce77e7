/* SPDX-License-Identifier: Apache-2.0
 *
 * The calling thread's context, for all parts of the double of libcuda. */
#ifndef DOUBLES_CUDA_CONTEXT_H
#define DOUBLES_CUDA_CONTEXT_H

#include "worker/cuda_api.h"

enum { CUDA_DEVICE_UNAVAILABLE = 46, CUDA_INVALID_CONTEXT = 201 };

/* The context of this thread, in `context`: 0, or why it has none. */
int context_get(struct cuda_context **context);

/* Its default stream. */
struct cuda_stream *context_stream(struct cuda_context *context);

/* Puts the default stream of this thread's context in the place of NULL: 0,
 * or why there is none. */
int stream_get(struct cuda_stream **stream);

#endif
