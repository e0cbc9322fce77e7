/* SPDX-License-Identifier: Apache-2.0
 *
 * A growable run of bytes that cannot grow past its stated maximum.
 *
 * Invariants: used <= capacity <= bytes_max; data is NULL iff capacity is 0.
 * A failed append leaves the contents as they were and sets `is_failed`, so
 * that a chain of appends needs one check at its end.
 */
#ifndef GPUL_COMMON_BUF_H
#define GPUL_COMMON_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpul_buf {
    uint8_t *data;
    size_t used;
    size_t capacity;
    size_t bytes_max;
    bool is_failed;
};

/* No allocation yet. `bytes_max` bounds the contents for ever. */
void gpul_buf_init(struct gpul_buf *b, size_t bytes_max);

/* Free the contents; the buffer may be used again, with the same maximum. */
void gpul_buf_release(struct gpul_buf *b);

/* Forget the contents and the failure, keep the memory. */
void gpul_buf_clear(struct gpul_buf *b);

/* Each append returns 0, GPUL_ELIMIT past bytes_max, or GPUL_ENOMEM. */
int gpul_buf_append(struct gpul_buf *b, const void *bytes, size_t n);
int gpul_buf_append_text(struct gpul_buf *b, const char *text);
int gpul_buf_appendf(struct gpul_buf *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Room for n more bytes at the end, to be written by the caller; NULL on
 * failure. The bytes count as used at once. */
uint8_t *gpul_buf_extend(struct gpul_buf *b, size_t n);

/* Drop the first n bytes (n <= used). */
void gpul_buf_consume(struct gpul_buf *b, size_t n);

/* The contents as a C string, owned by the buffer and valid until the next
 * change; NULL if the NUL does not fit. */
const char *gpul_buf_text(struct gpul_buf *b);

#endif
