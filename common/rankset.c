/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rankset.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void gpul_rankset_init(struct gpul_rankset *s)
{
    *s = (struct gpul_rankset){0};
}

void gpul_rankset_release(struct gpul_rankset *s)
{
    free(s->ranges);
    gpul_rankset_init(s);
}

/* Index of the first range that ends at `rank` or later. */
static size_t find(const struct gpul_rankset *s, uint32_t rank)
{
    size_t low = 0;
    size_t high = s->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->ranges[middle].last < rank) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static int make_room(struct gpul_rankset *s)
{
    if (s->count < s->capacity) {
        return 0;
    }
    size_t capacity = s->capacity > 0 ? s->capacity * 2 : 8;
    struct gpul_rankrange *ranges =
        realloc(s->ranges, capacity * sizeof(*ranges));
    if (ranges == NULL) {
        return GPUL_ENOMEM;
    }
    s->ranges = ranges;
    s->capacity = capacity;
    return 0;
}

int gpul_rankset_add(struct gpul_rankset *s, uint32_t first, uint32_t last)
{
    if (make_room(s) != 0) {
        return GPUL_ENOMEM;
    }
    /* Ranges begin .. end-1 overlap the new one or touch it. */
    size_t begin = find(s, first > 0 ? first - 1 : 0);
    size_t end = begin;
    while (end < s->count &&
           (last == UINT32_MAX || s->ranges[end].first <= last + 1)) {
        struct gpul_rankrange r = s->ranges[end++];
        first = r.first < first ? r.first : first;
        last = r.last > last ? r.last : last;
    }
    memmove(&s->ranges[begin + 1], &s->ranges[end],
            (s->count - end) * sizeof(*s->ranges));
    s->ranges[begin] = (struct gpul_rankrange){first, last};
    s->count = s->count + 1 - (end - begin);
    return 0;
}

static bool read_rank(uint32_t *out, const char **at)
{
    const char *start = *at;
    uint64_t value = 0;
    while (**at >= '0' && **at <= '9' && value <= UINT32_MAX) {
        value = value * 10 + (uint64_t)(*(*at)++ - '0');
    }
    *out = (uint32_t)value;
    return *at > start && value <= UINT32_MAX;
}

/* Read one "3" or "3-5"; NULL, or what is wrong there. */
static const char *read_range(struct gpul_rankrange *r, const char **at)
{
    if (!read_rank(&r->first, at)) {
        return "a rank is missing";
    }
    r->last = r->first;
    if (**at == '-') {
        (*at)++;
        if (!read_rank(&r->last, at)) {
            return "the end of the range is missing";
        }
    }
    if (r->last < r->first) {
        return "the range runs backwards";
    }
    return **at == 0 || **at == ',' ? NULL : "unexpected character";
}

int gpul_rankset_parse(struct gpul_rankset *s, const char *text,
                       struct gpul_error *err)
{
    struct gpul_rankset parsed;
    gpul_rankset_init(&parsed);
    int rc = 0;
    for (const char *at = text; rc == 0;) {
        struct gpul_rankrange r;
        const char *fault = read_range(&r, &at);
        if (fault != NULL) {
            rc = gpul_fail(err, GPUL_EINVAL, "ranks \"%s\", column %zu: %s",
                           text, (size_t)(at - text) + 1, fault);
        } else if (gpul_rankset_add(&parsed, r.first, r.last) != 0) {
            rc = gpul_fail(err, GPUL_ENOMEM, "ranks \"%s\": out of memory",
                           text);
        } else if (*at++ == 0) {
            gpul_rankset_release(s);
            *s = parsed;
            return 0;
        }
    }
    gpul_rankset_release(&parsed);
    return rc;
}

int gpul_rankset_format(struct gpul_buf *out, const struct gpul_rankset *s)
{
    int rc = 0;
    for (size_t i = 0; i < s->count && rc == 0; i++) {
        const struct gpul_rankrange *r = &s->ranges[i];
        rc = gpul_buf_appendf(out, "%s%" PRIu32, i > 0 ? "," : "", r->first);
        if (rc == 0 && r->last > r->first) {
            rc = gpul_buf_appendf(out, "-%" PRIu32, r->last);
        }
    }
    return rc;
}

bool gpul_rankset_has(const struct gpul_rankset *s, uint32_t rank)
{
    size_t at = find(s, rank);
    return at < s->count && s->ranges[at].first <= rank;
}

uint64_t gpul_rankset_size(const struct gpul_rankset *s)
{
    uint64_t size = 0;
    for (size_t i = 0; i < s->count; i++) {
        size += (uint64_t)s->ranges[i].last - s->ranges[i].first + 1;
    }
    return size;
}

uint64_t gpul_rankset_size_below(const struct gpul_rankset *s, uint32_t bound)
{
    uint64_t size = 0;
    for (size_t i = 0; i < s->count && s->ranges[i].first < bound; i++) {
        uint32_t last = s->ranges[i].last;
        size += (last < bound ? last : bound - 1) - s->ranges[i].first + 1;
    }
    return size;
}
