/* SPDX-License-Identifier: Apache-2.0
 *
 * Where to look for a library, in which order, so that the self-test loads
 * the file that training will load. Pure: the folders of Python that exist
 * are given in by worker/library_find.h.
 *
 *   1. --nccl-lib: then nothing else.
 *   2. The environment of Python that the command belongs to: the prefix of
 *      its program (<prefix>/bin/torchrun), VIRTUAL_ENV, CONDA_PREFIX, the
 *      user's own packages, at last /usr/local and /usr; in each the wheel's
 *      folder, and <prefix>/lib itself where conda puts libraries.
 *   3. LD_LIBRARY_PATH of the ranks.
 *   4. The bare name, for the dynamic linker's own search.
 */
#ifndef WORKER_LIBRARY_SEARCH_H
#define WORKER_LIBRARY_SEARCH_H

#include <limits.h>
#include <stddef.h>

#include "common/error.h"

enum {
    LIBRARY_PREFIXES_MAX = 8,
    LIBRARY_PYTHONS_MAX = 8,       /* of one prefix */
    LIBRARY_CANDIDATES_MAX = 4096, /* a variable of 128 KiB has room for more */
};

struct library_search {
    const char *const *names; /* "libnccl.so.2", NULL-terminated, best first */
    const char *wheel;   /* below site-packages, "nvidia/nccl/lib"; or NULL */
    const char *chosen;  /* --nccl-lib, or NULL */
    const char *program; /* path of the training command, or NULL */
    const char *const *environment; /* of a rank, NULL-terminated, or NULL */
};

/* A place in which Python and its packages may live. */
struct library_prefix {
    char path[PATH_MAX];
    /* Folders below <path>/lib whose name begins with "python3". */
    char pythons[LIBRARY_PYTHONS_MAX][NAME_MAX + 1];
    size_t python_count;
};

/* The prefixes of step 2, in order and each once, without their Pythons.
 * Returns their number, at most LIBRARY_PREFIXES_MAX. */
size_t library_search_prefixes(struct library_prefix *out,
                               const struct library_search *in);

struct library_candidates {
    char **paths; /* for library_open */
    size_t count;
};

/* Errors, with `out` cleared: GPUL_ENOMEM, GPUL_ELIMIT (an LD_LIBRARY_PATH
 * of more than LIBRARY_CANDIDATES_MAX places). */
int library_search(struct library_candidates *out,
                   const struct library_search *in,
                   const struct library_prefix *prefixes, size_t prefix_count,
                   struct gpul_error *err);
void library_candidates_release(struct library_candidates *c);

#endif
