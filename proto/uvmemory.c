/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/uvmemory.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "common/writeall.h"

enum { EXIT_OWN_FAILURE = 125 };

static const char *program_name;

static void *grow_or_end(void *p, size_t n)
{
    static const char text[] = ": out of memory\n";
    void *grown = realloc(p, n);
    if (grown == NULL && n > 0) {
        (void)gpul_write_all(STDERR_FILENO, program_name, strlen(program_name));
        (void)gpul_write_all(STDERR_FILENO, text, sizeof(text) - 1);
        _exit(EXIT_OWN_FAILURE);
    }
    return grown;
}

void gpul_uv_memory(const char *program)
{
    program_name = program;
    (void)uv_replace_allocator(malloc, grow_or_end, calloc, free);
}
