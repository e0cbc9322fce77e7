/* SPDX-License-Identifier: Apache-2.0
 *
 * The key-value store over HTTP that Horovod's gloo controller meets at: the
 * agent of the node with rank 0 runs it, HOROVOD_GLOO_RENDEZVOUS_ADDR and
 * _PORT name it. Edge; requests and store are worker/kvhttp.h and kvstore.h.
 *
 * Anybody who reaches the port may use it, as with horovodrun; so it is
 * bounded: 64 MiB of values, 64 MiB of requests and responses on their way,
 * 1024 connections, and 5 s for each request with its response.
 */
#ifndef WORKER_KEYVALUE_H
#define WORKER_KEYVALUE_H

#include <stdint.h>
#include <uv.h>

#include "common/error.h"

struct keyvalue;

/* Listen on a literal address; port 0 takes any. Errors: GPUL_EINVAL (not a
 * literal), GPUL_ESYS, GPUL_ENOMEM; *out is then NULL and the loop has at
 * most a closing handle of ours, which frees itself. */
int keyvalue_start(struct keyvalue **out, uv_loop_t *loop, const char *address,
                   uint16_t port, struct gpul_error *err);

/* The port it listens on. */
uint16_t keyvalue_port(const struct keyvalue *kv);

/* Close everything and free `kv` once the loop has closed the handles; not
 * to be used any more after this call. NULL is accepted. */
void keyvalue_stop(struct keyvalue *kv);

#endif
