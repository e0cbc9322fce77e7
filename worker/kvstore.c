/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/kvstore.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"

struct kvstore_entry {
    size_t name_bytes;
    size_t value_bytes;
    bool is_done;
    char bytes[]; /* the name, then the value */
};

void kvstore_init(struct kvstore *s, size_t bytes_max)
{
    *s = (struct kvstore){.bytes_max = bytes_max};
}

void kvstore_release(struct kvstore *s)
{
    for (size_t i = 0; i < s->count; i++) {
        free(s->entries[i]);
    }
    free(s->entries);
    kvstore_init(s, s->bytes_max);
}

static size_t cost(const struct kvstore_entry *e)
{
    return sizeof(*e) + sizeof(e) + e->name_bytes + e->value_bytes;
}

/* Order by bytes: the keys of a scope stand together, since they share the
 * bytes up to the slash. */
static int compare(const struct kvstore_entry *e, const char *name,
                   size_t bytes)
{
    size_t common = e->name_bytes < bytes ? e->name_bytes : bytes;
    int order = memcmp(e->bytes, name, common);
    return order != 0 ? order
                      : (e->name_bytes > bytes) - (e->name_bytes < bytes);
}

/* The first entry that is not before the name. */
static size_t find(const struct kvstore *s, const char *name, size_t bytes)
{
    size_t low = 0;
    size_t high = s->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(s->entries[middle], name, bytes) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool is_at(const struct kvstore *s, size_t at,
                  const struct kvstore_name *name)
{
    return at < s->count &&
           compare(s->entries[at], name->text, name->bytes) == 0;
}

static int make_room(struct kvstore *s)
{
    if (s->count == KVSTORE_ENTRIES_MAX) {
        return GPUL_ELIMIT;
    }
    if (s->count < s->capacity) {
        return 0;
    }
    size_t capacity = s->capacity > 0 ? s->capacity * 2 : 64;
    struct kvstore_entry **entries =
        realloc(s->entries, capacity * sizeof(struct kvstore_entry *));
    if (entries == NULL) {
        return GPUL_ENOMEM;
    }
    s->entries = entries;
    s->capacity = capacity;
    return 0;
}

int kvstore_put(struct kvstore *s, const struct kvstore_name *name,
                const void *value, size_t bytes)
{
    size_t at = find(s, name->text, name->bytes);
    struct kvstore_entry *old = is_at(s, at, name) ? s->entries[at] : NULL;
    size_t others = s->bytes - (old != NULL ? cost(old) : 0);
    struct kvstore_entry model = {.name_bytes = name->bytes,
                                  .value_bytes = bytes};
    if (bytes > s->bytes_max || cost(&model) > s->bytes_max - others) {
        return GPUL_ELIMIT;
    }
    int rc = old == NULL ? make_room(s) : 0;
    if (rc != 0) {
        return rc;
    }
    struct kvstore_entry *e = malloc(sizeof(*e) + name->bytes + bytes);
    if (e == NULL) {
        return GPUL_ENOMEM;
    }
    *e = model;
    memcpy(e->bytes, name->text, name->bytes);
    if (bytes > 0) {
        memcpy(e->bytes + name->bytes, value, bytes);
    }
    if (old == NULL) {
        memmove(&s->entries[at + 1], &s->entries[at],
                (s->count - at) * sizeof(struct kvstore_entry *));
        s->count++;
    }
    free(old);
    s->entries[at] = e;
    s->bytes = others + cost(e);
    return 0;
}

const void *kvstore_get(const struct kvstore *s,
                        const struct kvstore_name *name, size_t *bytes)
{
    size_t at = find(s, name->text, name->bytes);
    *bytes = 0;
    if (!is_at(s, at, name)) {
        return NULL;
    }
    *bytes = s->entries[at]->value_bytes;
    return s->entries[at]->bytes + name->bytes;
}

static void remove_range(struct kvstore *s, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        s->bytes -= cost(s->entries[i]);
        free(s->entries[i]);
    }
    if (begin < end) {
        memmove(&s->entries[begin], &s->entries[end],
                (s->count - end) * sizeof(struct kvstore_entry *));
        s->count -= end - begin;
    }
}

/* Where the entries of a scope begin and end. */
static void find_scope(const struct kvstore *s, const struct kvstore_name *name,
                       size_t *begin, size_t *end)
{
    size_t prefix = name->scope_bytes + 1; /* with the slash */
    *begin = find(s, name->text, prefix);
    size_t low = *begin;
    size_t high = s->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct kvstore_entry *e = s->entries[middle];
        if (e->name_bytes >= prefix &&
            memcmp(e->bytes, name->text, prefix) == 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *end = low;
}

/* Horovod's scopes of this kind are "global", "local_<host>" and
 * "cross_<local rank>"; older releases end each name with an underscore
 * (horovod/runner/http/http_server.py, common/gloo/gloo_context.cc). */
static bool is_meeting(const struct kvstore_name *name)
{
    static const char *const prefixes[] = {"global", "local_", "cross_"};
    for (size_t i = 0; i < 3; i++) {
        size_t n = strlen(prefixes[i]);
        if (name->scope_bytes >= n && memcmp(name->text, prefixes[i], n) == 0) {
            return true;
        }
    }
    return false;
}

static void finish(struct kvstore *s, const struct kvstore_name *name,
                   size_t at)
{
    size_t begin;
    size_t end;
    find_scope(s, name, &begin, &end);
    bool are_all_done = true;
    s->entries[at]->is_done = true;
    for (size_t i = begin; i < end && are_all_done; i++) {
        are_all_done = s->entries[i]->is_done;
    }
    if (are_all_done) {
        remove_range(s, begin, end);
    }
}

void kvstore_delete(struct kvstore *s, const struct kvstore_name *name)
{
    if (name->bytes == name->scope_bytes + 1) {
        size_t begin;
        size_t end;
        find_scope(s, name, &begin, &end);
        remove_range(s, begin, end);
        return;
    }
    size_t at = find(s, name->text, name->bytes);
    if (!is_at(s, at, name)) {
        return;
    }
    if (is_meeting(name)) {
        finish(s, name, at);
    } else {
        remove_range(s, at, at + 1);
    }
}
