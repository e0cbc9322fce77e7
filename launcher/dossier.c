/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/dossier.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "launcher/dossier_fields.h"
#include "proto/text.h"

enum { FIRST_ITEMS = 8 };

static const char masked[] = "***";

/* Memory that items point to, given back as a whole. */
struct dossier_piece {
    struct dossier_piece *next;
    max_align_t bytes[];
};

void dossier_init(struct dossier *d)
{
    *d = (struct dossier){0};
}

void dossier_release(struct dossier *d)
{
    for (int type = 0; type < DOSSIER_TYPE_COUNT; type++) {
        free(d->lists[type].items);
    }
    while (d->pieces != NULL) {
        struct dossier_piece *next = d->pieces->next;
        free(d->pieces);
        d->pieces = next;
    }
    free(d->spare);
    dossier_init(d);
}

static void *take(struct dossier *d, size_t n)
{
    struct dossier_piece *piece = malloc(sizeof(*piece) + n);
    if (piece == NULL) {
        d->is_failed = true;
        return NULL;
    }
    piece->next = d->pieces;
    d->pieces = piece;
    return piece->bytes;
}

/* Nothing is known. */
static void blank(void *item, const struct dossier_shape *shape)
{
    memset(item, 0, shape->bytes);
    for (size_t i = 0; i < shape->field_count; i++) {
        char *at = (char *)item + shape->fields[i].offset;
        switch (shape->fields[i].kind) {
        case DOSSIER_COUNT:
            *(int64_t *)(void *)at = DOSSIER_UNKNOWN;
            break;
        case DOSSIER_FIGURE:
            *(double *)(void *)at = (double)NAN;
            break;
        default:
            break;
        }
    }
}

static size_t largest_shape(void)
{
    size_t bytes = 0;
    for (enum dossier_type type = 0; type < DOSSIER_TYPE_COUNT; type++) {
        size_t n = dossier_shape(type)->bytes;
        bytes = n > bytes ? n : bytes;
    }
    return bytes;
}

static bool grow(struct dossier_list *list, size_t item_bytes)
{
    if (list->count < list->capacity) {
        return true;
    }
    size_t capacity = list->capacity > 0 ? 2 * list->capacity : FIRST_ITEMS;
    char *items = reallocarray(list->items, capacity, item_bytes);
    if (items == NULL) {
        return false;
    }
    list->items = items;
    list->capacity = capacity;
    return true;
}

void *dossier_add(struct dossier *d, enum dossier_type type)
{
    const struct dossier_shape *shape = dossier_shape(type);
    struct dossier_list *list = &d->lists[type];
    if (d->spare == NULL) {
        d->spare = malloc(largest_shape());
    }
    if (d->spare == NULL || !grow(list, shape->bytes)) {
        d->is_failed = true;
        if (d->spare != NULL) {
            blank(d->spare, shape);
        }
        return d->spare;
    }
    void *item = list->items + list->count++ * shape->bytes;
    blank(item, shape);
    return item;
}

size_t dossier_count(const struct dossier *d, enum dossier_type type)
{
    return d->lists[type].count;
}

const void *dossier_at(const struct dossier *d, enum dossier_type type,
                       size_t i)
{
    return d->lists[type].items + i * dossier_shape(type)->bytes;
}

const struct dossier_run *dossier_run(const struct dossier *d)
{
    return dossier_count(d, DOSSIER_RUN) > 0 ? dossier_at(d, DOSSIER_RUN, 0)
                                             : NULL;
}

const struct dossier_end *dossier_end(const struct dossier *d)
{
    return dossier_count(d, DOSSIER_END) > 0 ? dossier_at(d, DOSSIER_END, 0)
                                             : NULL;
}

const char *dossier_text(struct dossier *d, const char *text)
{
    if (text == NULL || text[0] == '\0') {
        return NULL;
    }
    size_t n = strlen(text);
    char *copy = take(d, n + 1);
    if (copy != NULL) {
        memcpy(copy, text, n + 1);
        gpul_text_clean_line(copy, n);
    }
    return copy;
}

bool dossier_is(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* ---- lists of an item ---- */

/* Room for one more pointer behind `count`; powers of two have just been
 * filled. NULL: no memory, and the list stays as it is. */
static void *widen(struct dossier *d, void *items, size_t count, size_t bytes)
{
    if (count != 0 && (count & (count - 1)) != 0) {
        return items;
    }
    void *wider = take(d, (count > 0 ? 2 * count : 1) * bytes);
    if (wider != NULL && count > 0) {
        memcpy(wider, items, count * bytes);
    }
    return wider;
}

void dossier_append(struct dossier *d, struct dossier_texts *list,
                    const char *text)
{
    const char *copy = dossier_text(d, text);
    void *items = widen(d, list->items, list->count, sizeof(*list->items));
    if (items != NULL) {
        list->items = items;
        list->items[list->count++] = copy != NULL ? copy : "";
    }
}

void dossier_put(struct dossier *d, struct dossier_map *map, const char *key,
                 const char *value)
{
    const char *name = dossier_text(d, key);
    const char *text = dossier_text(d, value);
    void *keys = widen(d, map->keys, map->count, sizeof(*map->keys));
    void *values = widen(d, map->values, map->count, sizeof(*map->values));
    if (keys != NULL && values != NULL) {
        map->keys = keys;
        map->values = values;
        map->keys[map->count] = name != NULL ? name : "";
        map->values[map->count++] = text != NULL ? text : "";
    }
}

void dossier_put_figure(struct dossier *d, struct dossier_figures *figures,
                        const char *key, double value)
{
    size_t n = figures->count;
    const char *name = dossier_text(d, key);
    void *keys = widen(d, figures->keys, n, sizeof(*figures->keys));
    void *values = widen(d, figures->values, n, sizeof(*figures->values));
    if (keys != NULL && values != NULL) {
        figures->keys = keys;
        figures->values = values;
        figures->keys[n] = name != NULL ? name : "";
        figures->values[n] = value;
        figures->count++;
    }
}

/* ---- the command ---- */

/* Does a name of n bytes speak of a secret? */
static bool is_secret(const char *name, size_t n)
{
    static const char *const words[] = {"token",  "secret",     "key",
                                        "passwd", "password",   "passphrase",
                                        "auth",   "credential", "apikey"};
    for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++) {
        size_t length = strlen(words[w]);
        for (size_t i = 0; i + length <= n; i++) {
            if (strncasecmp(name + i, words[w], length) == 0) {
                return true;
            }
        }
    }
    return false;
}

static bool is_name(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)text[i]) &&
            strchr("-_.", text[i]) == NULL) {
            return false;
        }
    }
    return n > 0;
}

static void append_word(struct dossier *d, struct dossier_run *run,
                        const char *word)
{
    size_t n = strcspn(word, "=");
    if (word[n] == '\0' || !is_name(word, n) || !is_secret(word, n)) {
        dossier_append(d, &run->command, word);
        return;
    }
    char *text = take(d, n + sizeof(masked) + 1);
    if (text != NULL) {
        memcpy(text, word, n + 1);
        memcpy(text + n + 1, masked, sizeof(masked));
        dossier_append(d, &run->command, text);
    }
}

void dossier_put_command(struct dossier *d, struct dossier_run *run,
                         char *const *words, size_t count)
{
    bool is_value = false; /* of the option before it */
    run->has_command = true;
    for (size_t i = 0; i < count; i++) {
        const char *word = words[i];
        size_t n = strlen(word);
        bool is_option = word[0] == '-' && is_name(word, n);
        if (is_value && !is_option) {
            dossier_append(d, &run->command, masked);
        } else {
            append_word(d, run, word);
        }
        is_value = is_option && is_secret(word, n);
    }
}

/* ---- looking things up ---- */

void dossier_count_findings(const struct dossier *d, struct dossier_end *end)
{
    end->passes = end->warnings = end->failures = end->unknowns = 0;
    for (size_t i = 0; i < dossier_count(d, DOSSIER_FINDING); i++) {
        const struct dossier_finding *f = dossier_at(d, DOSSIER_FINDING, i);
        const char *severity = f->severity != NULL ? f->severity : "";
        if (strcmp(severity, "pass") == 0) {
            end->passes++;
        } else if (strcmp(severity, "warn") == 0) {
            end->warnings++;
        } else if (strcmp(severity, "fail") == 0) {
            end->failures++;
        } else {
            end->unknowns++;
        }
    }
}

const struct dossier_node *dossier_find_node(const struct dossier *d,
                                             const char *name)
{
    for (size_t i = 0; i < dossier_count(d, DOSSIER_NODE); i++) {
        const struct dossier_node *node = dossier_at(d, DOSSIER_NODE, i);
        if (node->name != NULL && strcmp(node->name, name) == 0) {
            return node;
        }
    }
    return NULL;
}
