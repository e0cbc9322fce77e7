/* SPDX-License-Identifier: Apache-2.0
 *
 * Standard input for the ranks of this node: one run of bytes, held once, that
 * each of them reads at its own pace. What the slowest has read is forgotten
 * and may be credited. Pure; worker/input.h writes the pipes.
 *
 * Happy path: put (bytes may be here before the ranks are), open, next and
 * took for each reader until it is done, close it. A reader that is closed
 * holds up nobody; without any reader what comes is swallowed.
 */
#ifndef WORKER_INPUTQUEUE_H
#define WORKER_INPUTQUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"

struct inputqueue_reader {
    uint64_t at; /* bytes that it has read */
    bool is_open;
};

struct inputqueue {
    struct gpul_buf bytes;
    size_t start;      /* bytes at the front that every reader has read */
    uint64_t base;     /* how many bytes there were before the buffer's first */
    uint64_t credited; /* bytes for which credit was given */
    bool has_end;
    bool has_told_closed;
    bool has_begun; /* the readers are known */
    struct inputqueue_reader *readers;
    uint32_t reader_count;
};

void inputqueue_init(struct inputqueue *q);
void inputqueue_release(struct inputqueue *q);

/* Forget everything: new ranks are to come. */
void inputqueue_clear(struct inputqueue *q);

/* These are all readers, numbered from 0. Errors: GPUL_ENOMEM. */
int inputqueue_open(struct inputqueue *q, uint32_t reader_count);

/* Bytes, perhaps none, and perhaps the end. Errors: GPUL_ELIMIT when the
 * sender ignores its credit or goes on behind its end; GPUL_ENOMEM. */
int inputqueue_put(struct inputqueue *q, const void *bytes, size_t n,
                   bool is_end);

/* What this reader has not read; returns how much, 0 for a closed one. The
 * bytes are good until the queue changes. */
size_t inputqueue_next(const struct inputqueue *q, uint32_t reader,
                       const uint8_t **bytes);
void inputqueue_took(struct inputqueue *q, uint32_t reader, size_t n);

/* It has read all, and no more will come: close it. */
bool inputqueue_is_done(const struct inputqueue *q, uint32_t reader);
void inputqueue_close(struct inputqueue *q, uint32_t reader);

/* Is there something to tell the sender? Then *bytes and *is_closed are it,
 * and count as told. Small amounts wait for more while bytes are here. */
bool inputqueue_credit(struct inputqueue *q, uint64_t *bytes, bool *is_closed);

#endif
