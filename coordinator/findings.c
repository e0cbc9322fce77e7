/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/findings.h"

#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/hostlist.h"
#include "coordinator/text.h"

/* The codes of failed findings, the one that counts most first. */
static const enum outcome_code codes[FINDINGS_CODES] = {
    OUTCOME_WRONG_DATA,
    OUTCOME_CHECK_FAILED,
    OUTCOME_SLOW,
    OUTCOME_INTERNAL,
};

void findings_release(struct findings *f)
{
    free(f->items);
    free(f->hashes);
    arena_release(&f->memory);
    *f = (struct findings){0};
}

static const char *or_nothing(const char *text)
{
    return text != NULL ? text : "";
}

static uint64_t hash_of(const struct finding *finding)
{
    uint64_t hash = text_hash(finding->id);
    hash = hash * 31 + text_hash(or_nothing(finding->nodes));
    return hash * 31 + text_hash(or_nothing(finding->text));
}

/* A generation that is begun anew finds the same things again. */
static bool is_known(const struct findings *f, const struct finding *finding,
                     uint64_t hash)
{
    for (size_t i = 0; i < f->count; i++) {
        const Gpul__Finding *item = f->items[i];
        if (f->hashes[i] == hash && strcmp(item->id, finding->id) == 0 &&
            item->severity == finding->severity) {
            return true;
        }
    }
    return false;
}

static bool has_room(const struct findings *f, const struct finding *finding)
{
    bool is_pass = finding->severity == GPUL__FINDING__SEVERITY__PASS;
    return f->count < (is_pass ? FINDINGS_PASSES_MAX : GPUL_CHECK_FINDINGS_MAX);
}

static bool grow(struct findings *f)
{
    if (f->count < f->capacity) {
        return true;
    }
    size_t capacity = f->capacity > 0 ? 2 * f->capacity : 64;
    Gpul__Finding **items = realloc(f->items, capacity * sizeof(*items));
    if (items == NULL) {
        return false;
    }
    f->items = items;
    uint64_t *hashes = realloc(f->hashes, capacity * sizeof(*hashes));
    if (hashes == NULL) {
        return false;
    }
    f->hashes = hashes;
    f->capacity = capacity;
    return true;
}

/* NULL without memory. */
static char *keep(struct findings *f, const char *text, size_t bytes_max)
{
    size_t n = strlen(or_nothing(text));
    if (n > bytes_max) {
        n = text_whole_bytes(text, bytes_max);
    }
    char *copy = arena_alloc(&f->memory, n + 1);
    if (copy != NULL) {
        memcpy(copy, or_nothing(text), n);
        copy[n] = 0;
    }
    return copy;
}

static Gpul__Finding *copy_of(struct findings *f, const struct finding *from)
{
    Gpul__Finding *to = arena_alloc(&f->memory, sizeof(*to));
    if (to == NULL) {
        return NULL;
    }
    gpul__finding__init(to);
    to->severity = from->severity;
    to->id = keep(f, from->id, GPUL_CHECK_ID_BYTES_MAX);
    to->nodes = keep(f, from->nodes, GPUL_CHECK_NODES_BYTES_MAX);
    to->text = keep(f, from->text, GPUL_TEXT_BYTES_MAX);
    to->value = keep(f, from->value, GPUL_CHECK_VALUE_BYTES_MAX);
    to->expected = keep(f, from->expected, GPUL_CHECK_VALUE_BYTES_MAX);
    to->remedy = keep(f, from->remedy, GPUL_CHECK_REMEDY_BYTES_MAX);
    bool is_whole = to->id != NULL && to->nodes != NULL && to->text != NULL &&
                    to->value != NULL && to->expected != NULL &&
                    to->remedy != NULL;
    return is_whole ? to : NULL;
}

static void count(struct findings *f, const struct finding *finding)
{
    bool has_failed = finding->severity == GPUL__FINDING__SEVERITY__FAIL;
    f->counts[finding->severity]++;
    for (size_t i = 0; has_failed && i < FINDINGS_CODES; i++) {
        f->failed[i] += codes[i] == finding_code(finding->id);
    }
}

int findings_add(struct findings *f, const struct finding *finding)
{
    uint64_t hash = hash_of(finding);
    if (is_known(f, finding, hash)) {
        return 0;
    }
    if (!has_room(f, finding)) {
        f->untold++;
        count(f, finding);
        return 0;
    }
    Gpul__Finding *copy = grow(f) ? copy_of(f, finding) : NULL;
    if (copy == NULL) {
        return GPUL_ENOMEM;
    }
    f->hashes[f->count] = hash;
    f->items[f->count++] = copy;
    count(f, finding);
    return 0;
}

size_t findings_next(struct findings *f, Gpul__Finding ***out, size_t max)
{
    size_t left = f->count - f->told;
    size_t n = left < max ? left : max;
    *out = n > 0 ? f->items + f->told : NULL;
    f->told += n;
    return n;
}

void findings_fill(const struct findings *f, Gpul__FindingCounts *out)
{
    gpul__finding_counts__init(out);
    out->passed = f->counts[GPUL__FINDING__SEVERITY__PASS];
    out->warned = f->counts[GPUL__FINDING__SEVERITY__WARN];
    out->failed = f->counts[GPUL__FINDING__SEVERITY__FAIL];
    out->unknown = f->counts[GPUL__FINDING__SEVERITY__UNKNOWN];
    out->untold = f->untold;
}

/* ---- what they come to --------------------------------------------------- */

enum outcome_code finding_code(const char *id)
{
    if (strncmp(id, "DATA-8", 6) == 0) {
        return OUTCOME_WRONG_DATA;
    }
    if (strcmp(id, "PERF-709") == 0) {
        return OUTCOME_INTERNAL;
    }
    return strncmp(id, "PERF-7", 6) == 0 ? OUTCOME_SLOW : OUTCOME_CHECK_FAILED;
}

enum outcome_code findings_code(const struct findings *f, bool is_strict)
{
    uint32_t doubted = f->counts[GPUL__FINDING__SEVERITY__WARN] +
                       f->counts[GPUL__FINDING__SEVERITY__UNKNOWN];
    for (size_t i = 0; i < FINDINGS_CODES; i++) {
        bool is_doubted =
            is_strict && doubted > 0 && codes[i] == OUTCOME_CHECK_FAILED;
        if (f->failed[i] > 0 || is_doubted) {
            return codes[i];
        }
    }
    return OUTCOME_SUCCESS;
}

static const Gpul__Finding *find(const struct findings *f,
                                 Gpul__Finding__Severity severity,
                                 enum outcome_code code)
{
    for (size_t i = 0; i < f->count; i++) {
        const Gpul__Finding *item = f->items[i];
        bool is_code = severity != GPUL__FINDING__SEVERITY__FAIL ||
                       finding_code(item->id) == code;
        if (item->severity == severity && is_code) {
            return item;
        }
    }
    return NULL;
}

const Gpul__Finding *findings_cause(const struct findings *f,
                                    enum outcome_code code)
{
    static const Gpul__Finding__Severity order[] = {
        GPUL__FINDING__SEVERITY__FAIL,
        GPUL__FINDING__SEVERITY__UNKNOWN,
        GPUL__FINDING__SEVERITY__WARN,
    };
    const Gpul__Finding *cause = NULL;
    for (size_t i = 0; i < 3 && cause == NULL && code != OUTCOME_SUCCESS; i++) {
        cause = find(f, order[i], code);
    }
    return cause;
}

/* ---- names --------------------------------------------------------------- */

void finding_fold(char out[GPUL_CHECK_NODES_BYTES_MAX + 1],
                  const char *const *names, size_t count)
{
    struct gpul_hostlist list;
    struct gpul_buf folded;
    int rc = 0;
    gpul_hostlist_init(&list);
    gpul_buf_init(&folded, GPUL_CHECK_NODES_BYTES_MAX + 1);
    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = gpul_hostlist_push(&list, names[i]);
    }
    size_t shown = list.count;
    while (shown > 0 && gpul_hostlist_fold(&folded, &list, 0, shown) != 0) {
        shown /= 2;
        gpul_buf_clear(&folded);
    }
    const char *text = shown > 0 ? gpul_buf_text(&folded) : NULL;
    size_t n = text != NULL ? strlen(text) : 0;
    if (n > GPUL_CHECK_NODES_BYTES_MAX) {
        n = 0;
    }
    if (n > 0) {
        memcpy(out, text, n);
    }
    out[n] = 0;
    gpul_buf_release(&folded);
    gpul_hostlist_release(&list);
}
