/* SPDX-License-Identifier: Apache-2.0
 *
 * Values under "scope/key" names, bounded in bytes. Pure. The rules are what
 * Horovod's gloo controller expects of its rendezvous: each process puts its
 * address into a scope, reads those of all others, and then deletes its own.
 */
#ifndef WORKER_KVSTORE_H
#define WORKER_KVSTORE_H

#include <stddef.h>
#include <stdint.h>

enum { KVSTORE_ENTRIES_MAX = 1 << 18 };

/* A name: `scope_bytes` bytes without a slash, a slash, and the key. Not
 * NUL-terminated. For a whole scope the key is empty. */
struct kvstore_name {
    const char *text;
    size_t bytes;
    size_t scope_bytes;
};

struct kvstore_entry;

struct kvstore {
    struct kvstore_entry **entries; /* sorted by name */
    size_t count;
    size_t capacity;
    size_t bytes; /* of all names and values, and what holds them */
    size_t bytes_max;
};

void kvstore_init(struct kvstore *s, size_t bytes_max);
void kvstore_release(struct kvstore *s);

/* Set or replace a value. Errors (nothing is changed then): GPUL_ELIMIT,
 * GPUL_ENOMEM. */
int kvstore_put(struct kvstore *s, const struct kvstore_name *name,
                const void *value, size_t bytes);

/* The value, valid until the next change, and its length; NULL if there is
 * none (a value of no bytes is not NULL). */
const void *kvstore_get(const struct kvstore *s,
                        const struct kvstore_name *name, size_t *bytes);

/* Delete one value, or a scope when the key is empty. In the scopes in which
 * all processes meet (global..., local_..., cross_...) a key is only marked
 * as done with, since others may not have read it; when all keys of such a
 * scope are, it is emptied for the next meeting. */
void kvstore_delete(struct kvstore *s, const struct kvstore_name *name);

#endif
