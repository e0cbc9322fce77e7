/* SPDX-License-Identifier: Apache-2.0
 *
 * The little of HTTP/1.1 (RFC 9112) that a key-value store needs: GET, PUT
 * and DELETE of /scope/key, bodies by Content-Length only. Pure: bytes in,
 * bytes out.
 */
#ifndef WORKER_KVHTTP_H
#define WORKER_KVHTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "worker/kvstore.h"

enum {
    KVHTTP_HEAD_BYTES_MAX = 8 << 10,  /* request line and headers */
    KVHTTP_NAME_BYTES_MAX = 1 << 10,  /* scope/key */
    KVHTTP_VALUE_BYTES_MAX = 1 << 20, /* a body */
};

enum kvhttp_method {
    KVHTTP_GET = 1,
    KVHTTP_PUT = 2,
    KVHTTP_DELETE = 3,
};

/* All pointers are into the bytes that were parsed. */
struct kvhttp_request {
    enum kvhttp_method method;
    struct kvstore_name name;
    const void *body;
    size_t body_bytes;
    size_t bytes; /* of the whole request */
    bool keeps_alive;
};

/* Parse the request that begins at `data`. Returns 200 when it is there as a
 * whole, 0 when more bytes are needed, else the HTTP status to refuse it
 * with; the stream cannot be followed any further then. More bytes never
 * change an answer other than 0. */
unsigned int kvhttp_parse(struct kvhttp_request *out, const void *data,
                          size_t n);

/* Do what the request asks and append the response. GPUL_ELIMIT or
 * GPUL_ENOMEM when it did not fit into `out`. */
int kvhttp_answer(struct gpul_buf *out, struct kvstore *store,
                  const struct kvhttp_request *request);

/* Append the response that refuses a request and closes the connection. */
int kvhttp_refuse(struct gpul_buf *out, unsigned int status);

#endif
