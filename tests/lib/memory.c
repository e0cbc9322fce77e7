/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/memory.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>

static size_t held;
static size_t peak;
static size_t fail_in;

void *__real_malloc(size_t n);
void *__real_calloc(size_t count, size_t n);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t count, size_t n);
void *__wrap_realloc(void *p, size_t n);
void __wrap_free(void *p);

void memory_watch(void)
{
    held = 0;
    peak = 0;
    fail_in = 0;
}

size_t memory_held(void)
{
    return held;
}

size_t memory_peak(void)
{
    return peak;
}

void memory_fail_at(size_t n)
{
    fail_in = n;
}

static bool fails_now(void)
{
    return fail_in > 0 && --fail_in == 0;
}

static void add(size_t n)
{
    held += n;
    if (held > peak) {
        peak = held;
    }
}

/* Blocks from before memory_watch may be freed after it. */
static void subtract(size_t n)
{
    held -= n < held ? n : held;
}

void *__wrap_malloc(size_t n)
{
    void *p = fails_now() ? NULL : __real_malloc(n);
    if (p != NULL) {
        add(malloc_usable_size(p));
    }
    return p;
}

void *__wrap_calloc(size_t count, size_t n)
{
    void *p = fails_now() ? NULL : __real_calloc(count, n);
    if (p != NULL) {
        add(malloc_usable_size(p));
    }
    return p;
}

void *__wrap_realloc(void *p, size_t n)
{
    size_t before = p == NULL ? 0 : malloc_usable_size(p);
    void *q = fails_now() ? NULL : __real_realloc(p, n);
    if (q != NULL) {
        subtract(before);
        add(malloc_usable_size(q));
    }
    return q;
}

void __wrap_free(void *p)
{
    if (p != NULL) {
        subtract(malloc_usable_size(p));
    }
    __real_free(p);
}
