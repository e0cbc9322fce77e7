/* SPDX-License-Identifier: Apache-2.0
 *
 * Transports of a test, and what each has told its owner. One loop; a test
 * ends with uv_loop_close, which fails while a handle is left.
 */
#ifndef TESTS_LIB_ENDS_H
#define TESTS_LIB_ENDS_H

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "common/error.h"
#include "proto/transport.h"

enum { ENDS_PATIENCE_MS = 120000 };

struct end {
    struct gpul_transport *t;
    unsigned connected;
    unsigned messages;
    unsigned closed;
    unsigned close_at;   /* close within the handler of this message */
    uint64_t allow_next; /* what may come after the first message */
    uint32_t last_type;
    int status; /* of the reason; 1: there was none */
    char text[GPUL_ERROR_TEXT_BYTES];
};

extern uv_loop_t ends_loop;
extern const struct gpul_transport_handlers ends_handlers;

/* Of each test, for cmocka. */
int ends_set_up(void **state);
int ends_tear_down(void **state);

/* The handler of that name among ends_handlers, for others to call. */
void ends_on_closed(void *arg, const struct gpul_error *why);

/* Run until *count reaches n, and fail the test if that takes for ever. */
void ends_run_until(const unsigned *count, unsigned n);

/* A transport that takes `from` for its peer, and the bare other end. */
int ends_open_pair(struct end *e, enum gpul_peer from);

void ends_write_all(int fd, const void *bytes, size_t n);

/* Close a transport that still stands. */
void ends_finish(struct end *e, int fd);

#endif
