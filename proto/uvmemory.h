/* SPDX-License-Identifier: Apache-2.0
 *
 * What libuv does without memory. It reports a shortage, but for its table of
 * descriptors, which grows by realloc: there it calls abort(). Edge.
 */
#ifndef GPUL_PROTO_UVMEMORY_H
#define GPUL_PROTO_UVMEMORY_H

/* Before anything else of libuv: have it end this process where it would
 * abort, with "<program>: out of memory" on standard error and exit code 125.
 * `program` is kept. */
void gpul_uv_memory(const char *program);

#endif
