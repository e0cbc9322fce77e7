/* SPDX-License-Identifier: Apache-2.0 */
#include "common/buf.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"

enum { CAPACITY_MIN = 64 };

void gpul_buf_init(struct gpul_buf *b, size_t bytes_max)
{
    *b = (struct gpul_buf){.bytes_max = bytes_max};
}

void gpul_buf_release(struct gpul_buf *b)
{
    free(b->data);
    gpul_buf_init(b, b->bytes_max);
}

void gpul_buf_clear(struct gpul_buf *b)
{
    b->used = 0;
    b->is_failed = false;
}

static int fail(struct gpul_buf *b, int status)
{
    b->is_failed = true;
    return status;
}

static int reserve(struct gpul_buf *b, size_t n)
{
    if (n > b->bytes_max - b->used) {
        return fail(b, GPUL_ELIMIT);
    }
    size_t need = b->used + n;
    if (need <= b->capacity) {
        return 0;
    }
    size_t capacity = b->capacity < CAPACITY_MIN ? CAPACITY_MIN : b->capacity;
    while (capacity < need) {
        capacity = capacity > b->bytes_max / 2 ? b->bytes_max : capacity * 2;
    }
    if (capacity > b->bytes_max) {
        capacity = b->bytes_max;
    }
    uint8_t *data = realloc(b->data, capacity);
    if (data == NULL) {
        return fail(b, GPUL_ENOMEM);
    }
    b->data = data;
    b->capacity = capacity;
    return 0;
}

uint8_t *gpul_buf_extend(struct gpul_buf *b, size_t n)
{
    if (reserve(b, n) != 0) {
        return NULL;
    }
    uint8_t *end = b->data + b->used;
    b->used += n;
    return end;
}

int gpul_buf_append(struct gpul_buf *b, const void *bytes, size_t n)
{
    int rc = reserve(b, n);
    if (rc == 0 && n > 0) {
        memcpy(b->data + b->used, bytes, n);
        b->used += n;
    }
    return rc;
}

int gpul_buf_append_text(struct gpul_buf *b, const char *text)
{
    return gpul_buf_append(b, text, strlen(text));
}

int gpul_buf_appendf(struct gpul_buf *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    assert(n >= 0);
    /* vsnprintf writes a NUL that does not count as contents. */
    int rc = reserve(b, (size_t)n + 1);
    if (rc == 0) {
        vsnprintf((char *)b->data + b->used, (size_t)n + 1, format, again);
        b->used += (size_t)n;
    }
    va_end(again);
    return rc;
}

void gpul_buf_consume(struct gpul_buf *b, size_t n)
{
    assert(n <= b->used);
    b->used -= n;
    if (b->used > 0) {
        memmove(b->data, b->data + n, b->used);
    }
}

const char *gpul_buf_text(struct gpul_buf *b)
{
    if (reserve(b, 1) != 0) {
        return NULL;
    }
    b->data[b->used] = 0;
    return (const char *)b->data;
}
