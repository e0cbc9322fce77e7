/* SPDX-License-Identifier: Apache-2.0
 *
 * A library of somebody else, opened at run time: which file it really is,
 * and a table of its functions filled from its symbols. Edge.
 */
#ifndef WORKER_LIBRARY_H
#define WORKER_LIBRARY_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

/* One function pointer of an API struct. */
struct library_symbol {
    const char *name;
    size_t offset; /* of the pointer in the struct */
    bool is_required;
};

/* What is expected of a library. */
struct library_table {
    const char *title;  /* "NCCL", for messages */
    const char *remedy; /* what to do where it is not found */
    const struct library_symbol *symbols;
    size_t symbol_count;
    size_t api_bytes; /* size of the API struct */
};

enum {
    LIBRARY_BUILD_ID_BYTES = 65, /* 32 bytes in hexadecimal, and NUL */
    LIBRARY_PASSED_BYTES = 256,
};

struct library {
    void *handle;                          /* of dlopen; NULL: not open */
    char path[PATH_MAX];                   /* the file, links resolved */
    char build_id[LIBRARY_BUILD_ID_BYTES]; /* GNU build ID, "" without one */
    bool is_simulated; /* exports GPU_DOUBLE_MARKER: a double */
    /* The first file that was there and not for programs of this kind, and
     * why, "" if there was none. */
    char passed_over[LIBRARY_PASSED_BYTES];
};

/* Open the first of `candidates` that exists, and fill the API struct at
 * `api`; a missing optional function becomes NULL. A candidate with a slash
 * is a file, one without is left to the dynamic linker. The search goes on
 * past what the dynamic linker's would go on past: what does not exist or may
 * not be read, and files of another ELF class or machine. Any other file that
 * cannot be used is what training would load too, so it is the error; and so
 * is every fault of a single candidate, which was asked for by name.
 *
 * Errors, with `out` and `api` cleared: GPUL_ENOTFOUND (no candidate exists),
 * GPUL_EINVAL (not a library, or without a required symbol: the first one
 * missing is named, with the path). */
int library_open(struct library *out, void *api,
                 const struct library_table *table,
                 const char *const *candidates, size_t count,
                 struct gpul_error *err);

/* Not for a library that has started threads, as NCCL does with the first
 * unique ID: leave those open until the process ends. */
void library_close(struct library *lib);

/* Is this file one of the empty libraries that CUDA's toolkit has for
 * linking? They lie in a folder called "stubs". */
bool library_is_stub(const char *path);

#endif
