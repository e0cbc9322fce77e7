/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams and events. A stream is a queue that a thread of its own works off
 * in order; an event is the moment at which its place in the queue was
 * reached. The default stream waits for no other stream. */
#ifndef DOUBLES_CUDA_STREAM_H
#define DOUBLES_CUDA_STREAM_H

#include <stdbool.h>

#include "worker/cuda_api.h"

enum { CUDA_INVALID_HANDLE = 400 };

/* NULL without memory or threads. */
struct cuda_stream *stream_make(void);

/* Ends when all that it was given is done; nobody may use it any more. */
void stream_end(struct cuda_stream *stream);

/* Has `run` called behind all else. 0 or CUDA_RESULT_OUT_OF_MEMORY. */
int stream_push(struct cuda_stream *stream, void (*run)(void *),
                void *argument);
bool stream_is_idle(struct cuda_stream *stream);
void stream_wait(struct cuda_stream *stream);

/* The device stands still, or goes on: nothing that a stream has been given is
 * begun meanwhile. */
void streams_halt(bool halts);

struct cuda_event *event_make(bool is_timed);
void event_end(struct cuda_event *event);
int event_put(struct cuda_event *event, struct cuda_stream *stream);

/* 0 when what was last recorded is reached, or nothing ever was. */
int event_ask(struct cuda_event *event);
int event_elapsed(float *ms, struct cuda_event *from, struct cuda_event *to);

#endif
