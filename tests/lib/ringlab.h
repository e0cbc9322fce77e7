/* SPDX-License-Identifier: Apache-2.0
 *
 * A ring of n places in one process, each place on a thread of its own.
 */
#ifndef TESTS_LIB_RINGLAB_H
#define TESTS_LIB_RINGLAB_H

#include <stdint.h>

#include "common/error.h"
#include "worker/ringlink.h"

enum { RINGLAB_RANKS_MAX = 64, RINGLAB_DEADLINE_MS = 60000 };

struct ringlab;

/* One place: what a test gives it, and what came of it. */
struct ringlab_place {
    struct ringlab *lab;
    uint32_t rank;
    uint16_t port; /* it listens on 127.0.0.1 */
    struct ringlink link;
    uint64_t deadline_ms;
    int status;
    struct gpul_error err;
    void *result; /* for the body's own use */
};

typedef void (*ringlab_body_fn)(struct ringlab_place *place);

struct ringlab {
    uint32_t n;
    struct ringlab_place places[RINGLAB_RANKS_MAX];
    ringlab_body_fn body;
    void *arg;
};

/* All places listen, none is connected. Asserts that it worked. */
void ringlab_init(struct ringlab *lab, uint32_t n);
void ringlab_release(struct ringlab *lab);

/* Run `body` on every place at once and wait for all; it may block, within
 * the place's deadline. The statuses are the body's to set. */
void ringlab_run(struct ringlab *lab, ringlab_body_fn body, void *arg);

/* A body: connect to the ring, with the deadline of the place. */
void ringlab_connect(struct ringlab_place *place);

/* Asserts that every place has status 0, and prints the text of one that
 * has not. */
void ringlab_assert_ok(const struct ringlab *lab);

#endif
