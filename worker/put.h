/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing text into memory whose size was computed before. Each function
 * writes at `out` without a NUL and returns the place behind what it wrote.
 * This is for strings of which a node writes thousands at every launch; all
 * others use gpul_buf. Pure.
 */
#ifndef WORKER_PUT_H
#define WORKER_PUT_H

#include <stddef.h>
#include <stdint.h>

enum { PUT_U32_BYTES_MAX = 10 };

char *put_bytes(char *out, const char *bytes, size_t n);
char *put_text(char *out, const char *text);

/* Decimal, at most PUT_U32_BYTES_MAX bytes. */
char *put_u32(char *out, uint32_t value);

/* How many bytes put_u32 writes. */
size_t put_u32_bytes(uint32_t value);

#endif
