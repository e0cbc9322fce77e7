/* SPDX-License-Identifier: Apache-2.0 */
#include "common/hostlist.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hostport.h"

enum {
    BRACKETS_MAX = 4, /* in one name: rack[1-4]node[1-8] has two */
    DIGITS_MAX = 18,  /* fits uint64_t, with room for one more */
};

void gpul_hostlist_init(struct gpul_hostlist *l)
{
    *l = (struct gpul_hostlist){0};
}

static void truncate_list(struct gpul_hostlist *l, size_t count)
{
    while (l->count > count) {
        free(l->names[--l->count]);
    }
}

void gpul_hostlist_release(struct gpul_hostlist *l)
{
    truncate_list(l, 0);
    free(l->names);
    gpul_hostlist_init(l);
}

int gpul_hostlist_push(struct gpul_hostlist *l, const char *name)
{
    if (l->count == l->capacity) {
        size_t capacity = l->capacity > 0 ? l->capacity * 2 : 16;
        char **names = realloc(l->names, capacity * sizeof(*names));
        if (names == NULL) {
            return GPUL_ENOMEM;
        }
        l->names = names;
        l->capacity = capacity;
    }
    char *copy = strdup(name);
    if (copy == NULL) {
        return GPUL_ENOMEM;
    }
    l->names[l->count++] = copy;
    return 0;
}

/* ---- expanding ----------------------------------------------------------- */

struct expansion {
    struct gpul_hostlist *list;
    const char *text; /* the item */
    size_t count_max;
    struct gpul_hostlist_fault fault;
    char name[GPUL_HOST_BYTES]; /* what stands before the current place */
};

static int fault(struct expansion *e, const char *at, const char *what)
{
    e->fault = (struct gpul_hostlist_fault){(size_t)(at - e->text), what};
    return GPUL_EINVAL;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Bytes that a name may have outside brackets. */
static bool is_name_byte(char c)
{
    return c > ' ' && c < 127 && strchr(",[]", c) == NULL;
}

static int finish_name(struct expansion *e)
{
    return e->list->count < e->count_max ? gpul_hostlist_push(e->list, e->name)
                                         : GPUL_ELIMIT;
}

struct number {
    uint64_t value;
    size_t digits;
    bool is_padded; /* begins with a zero that is not all of it */
};

static int read_number(struct expansion *e, struct number *n, const char **at)
{
    const char *start = *at;
    uint64_t value = 0;
    while (is_digit(**at) && *at - start < DIGITS_MAX) {
        value = value * 10 + (uint64_t)(*(*at)++ - '0');
    }
    size_t digits = (size_t)(*at - start);
    if (digits == 0) {
        return fault(e, start, "a number is missing");
    }
    if (is_digit(**at)) {
        return fault(e, start, "the number is too long");
    }
    *n = (struct number){value, digits, digits > 1 && start[0] == '0'};
    return 0;
}

/* Read "7" or "01-16", and leave *at behind it. */
static int read_range(struct expansion *e, struct number *first,
                      struct number *last, const char **at)
{
    int rc = read_number(e, first, at);
    *last = *first;
    if (rc != 0 || **at != '-') {
        return rc;
    }
    const char *start = ++*at;
    rc = read_number(e, last, at);
    if (rc == 0 && last->value < first->value) {
        rc = fault(e, start, "the range runs backwards");
    }
    if (rc == 0 && last->is_padded && last->digits != first->digits) {
        rc = fault(e, start, "the ends of the range differ in leading zeros");
    }
    return rc;
}

static int expand_from(struct expansion *e, size_t used, const char *at,
                       const char *end, int depth);

/* For each number of the range: the name so far, the number, the rest. */
static int expand_range(struct expansion *e, size_t used,
                        const struct number *first, const struct number *last,
                        const char *after, const char *end, int depth)
{
    int width = first->is_padded ? (int)first->digits : 0;
    int rc = 0;
    for (uint64_t i = first->value; i <= last->value && rc == 0; i++) {
        int n = snprintf(e->name + used, sizeof(e->name) - used, "%0*" PRIu64,
                         width, i);
        if ((size_t)n >= sizeof(e->name) - used) {
            return fault(e, after, "the name is too long");
        }
        rc = expand_from(e, used + (size_t)n, after, end, depth);
    }
    return rc;
}

/* `at` is the opening bracket. Every level below adds at least one name, so
 * the bound on names bounds the work. */
static int expand_bracket(struct expansion *e, size_t used, const char *at,
                          const char *end, int depth)
{
    const char *close = memchr(at, ']', (size_t)(end - at));
    if (close == NULL) {
        return fault(e, at, "the closing bracket is missing");
    }
    if (depth == BRACKETS_MAX) {
        return fault(e, at, "too many brackets in one name");
    }
    do {
        struct number first;
        struct number last;
        at++;
        int rc = read_range(e, &first, &last, &at);
        if (rc == 0 && *at != ',' && *at != ']') {
            rc = fault(e, at, "unexpected character");
        }
        if (rc == 0) {
            rc =
                expand_range(e, used, &first, &last, close + 1, end, depth + 1);
        }
        if (rc != 0) {
            return rc;
        }
    } while (*at == ',');
    return 0;
}

/* Extend the name, of which `used` bytes are there, by what is at..end. */
static int expand_from(struct expansion *e, size_t used, const char *at,
                       const char *end, int depth)
{
    for (; at < end && is_name_byte(*at); at++) {
        if (used + 1 == sizeof(e->name)) {
            return fault(e, at, "the name is too long");
        }
        e->name[used++] = *at;
    }
    e->name[used] = 0;
    if (at == end) {
        return finish_name(e);
    }
    return *at == '[' ? expand_bracket(e, used, at, end, depth)
                      : fault(e, at, "unexpected character");
}

/* The end of the item that begins here: a comma outside brackets. */
static const char *item_end(const char *at)
{
    bool is_inside = false;
    for (; *at != 0 && (is_inside || *at != ','); at++) {
        is_inside = *at == '[' || (is_inside && *at != ']');
    }
    return at;
}

static int expand_item(struct expansion *e, size_t n)
{
    const char *at = e->text;
    if (n == 0) {
        return fault(e, at, "a name is missing");
    }
    if (memchr(at, ':', n) != NULL && memchr(at, '[', n) != NULL) {
        return fault(e, at,
                     "a name with a colon is an IPv6 literal, which stands "
                     "here without brackets");
    }
    return expand_from(e, 0, at, at + n, 0);
}

int gpul_hostlist_expand_item(struct gpul_hostlist *l, const char *text,
                              size_t bytes, size_t count_max,
                              struct gpul_hostlist_fault *why)
{
    struct expansion e = {.list = l, .text = text, .count_max = count_max};
    size_t before = l->count;
    int rc = expand_item(&e, bytes);
    if (rc != 0) {
        truncate_list(l, before);
    }
    *why = e.fault;
    return rc;
}

static int fail(const struct gpul_hostlist_fault *why, size_t start, int rc,
                size_t count_max, struct gpul_error *err)
{
    switch (rc) {
    case GPUL_EINVAL:
        return gpul_fail(err, rc, "host list, column %zu: %s",
                         start + why->at + 1, why->what);
    case GPUL_ELIMIT:
        return gpul_fail(err, rc, "host list: more than %zu names", count_max);
    default:
        return gpul_fail(err, rc, "host list: out of memory");
    }
}

int gpul_hostlist_expand(struct gpul_hostlist *l, const char *expression,
                         size_t count_max, struct gpul_error *err)
{
    size_t before = l->count;
    for (const char *at = expression;; at++) {
        struct gpul_hostlist_fault why;
        const char *end = item_end(at);
        int rc = gpul_hostlist_expand_item(l, at, (size_t)(end - at), count_max,
                                           &why);
        if (rc != 0) {
            truncate_list(l, before);
            return fail(&why, (size_t)(at - expression), rc, count_max, err);
        }
        at = end;
        if (*at == 0) {
            return 0;
        }
    }
}

/* ---- folding ------------------------------------------------------------- */

/* Names of a run differ in one number only: where it stands in them. */
struct field {
    size_t prefix; /* bytes before the number */
    size_t suffix; /* bytes after it */
};

/* The number of a name at the field. */
struct value {
    const char *text; /* in the name */
    size_t digits;
    uint64_t number;
};

static size_t count_digits(const char *text)
{
    size_t n = 0;
    while (is_digit(text[n])) {
        n++;
    }
    return n;
}

/* Read the field of `name`, if the name is like `model` around it. */
static bool read_field(struct value *v, const struct field *f,
                       const char *model, const char *name)
{
    size_t bytes = strlen(name);
    if (bytes <= f->prefix + f->suffix) {
        return false;
    }
    const char *suffix = name + bytes - f->suffix;
    const char *model_suffix = model + strlen(model) - f->suffix;
    v->text = name + f->prefix;
    v->digits = (size_t)(suffix - v->text);
    if (memcmp(name, model, f->prefix) != 0 ||
        strcmp(suffix, model_suffix) != 0 || v->digits > DIGITS_MAX ||
        count_digits(v->text) < v->digits) {
        return false;
    }
    v->number = 0;
    for (size_t i = 0; i < v->digits; i++) {
        v->number = v->number * 10 + (uint64_t)(v->text[i] - '0');
    }
    return true;
}

/* Where two names differ, or the last number of two equal ones; false: they
 * do not fold. */
static bool find_field(struct field *f, const char *a, const char *b)
{
    struct value unused;
    size_t start = 0;
    while (a[start] != 0 && a[start] == b[start]) {
        start++;
    }
    bool is_same = a[start] == 0 && b[start] == 0;
    while (is_same && start > 0 && !is_digit(a[start - 1])) {
        start--;
    }
    while (start > 0 && is_digit(a[start - 1])) {
        start--;
    }
    f->prefix = start;
    f->suffix = strlen(a) - start - count_digits(a + start);
    return strchr(a, ':') == NULL && read_field(&unused, f, a, a) &&
           read_field(&unused, f, a, b);
}

/* Does the expansion of first-last go on to this very text? */
static bool follows(const struct value *first, const struct value *last,
                    const struct value *next)
{
    bool is_padded = first->digits > 1 && first->text[0] == '0';
    bool has_zero = next->digits > 1 && next->text[0] == '0';
    bool is_same_style = is_padded
                             ? next->digits == first->digits ||
                                   (next->digits > first->digits && !has_zero)
                             : !has_zero;
    return next->number == last->number + 1 && is_same_style;
}

static void append_range(struct gpul_buf *out, bool is_first_range,
                         const struct value *first, const struct value *last)
{
    gpul_buf_append_text(out, is_first_range ? "" : ",");
    gpul_buf_append(out, first->text, first->digits);
    if (last->text != first->text) {
        gpul_buf_append_text(out, "-");
        gpul_buf_append(out, last->text, last->digits);
    }
}

/* Append one run of at least two names; returns how many it took. */
static size_t fold_run(struct gpul_buf *out, char *const *names, size_t count,
                       const struct field *f)
{
    struct value first;
    struct value next;
    size_t n = 1;
    bool is_first_range = true;
    gpul_buf_append(out, names[0], f->prefix);
    gpul_buf_append_text(out, "[");
    read_field(&first, f, names[0], names[0]);
    struct value last = first;
    for (; n < count && read_field(&next, f, names[0], names[n]); n++) {
        if (!follows(&first, &last, &next)) {
            append_range(out, is_first_range, &first, &last);
            is_first_range = false;
            first = next;
        }
        last = next;
    }
    append_range(out, is_first_range, &first, &last);
    gpul_buf_append_text(out, "]");
    gpul_buf_append_text(out, names[0] + strlen(names[0]) - f->suffix);
    return n;
}

int gpul_hostlist_fold(struct gpul_buf *out, const struct gpul_hostlist *l,
                       size_t first, size_t count)
{
    assert(first <= l->count && count <= l->count - first);
    char *const *names = count > 0 ? l->names + first : NULL;
    for (size_t i = 0; i < count;) {
        struct field f;
        gpul_buf_append_text(out, i > 0 ? "," : "");
        if (i + 1 < count && find_field(&f, names[i], names[i + 1])) {
            i += fold_run(out, names + i, count - i, &f);
        } else {
            gpul_buf_append_text(out, names[i++]);
        }
    }
    return out->is_failed ? GPUL_ELIMIT : 0;
}

/* ---- order --------------------------------------------------------------- */

/* Compare two numbers by value and step over them; the first difference in
 * leading zeros is kept in *zeros. */
static int compare_numbers(const char **a, const char **b, int *zeros)
{
    size_t a_zeros = strspn(*a, "0");
    size_t b_zeros = strspn(*b, "0");
    *a += a_zeros;
    *b += b_zeros;
    size_t a_digits = count_digits(*a);
    size_t b_digits = count_digits(*b);
    int order = a_digits != b_digits ? (a_digits < b_digits ? -1 : 1)
                                     : memcmp(*a, *b, a_digits);
    if (*zeros == 0 && a_zeros != b_zeros) {
        *zeros = a_zeros < b_zeros ? -1 : 1;
    }
    *a += a_digits;
    *b += b_digits;
    return order;
}

int gpul_hostlist_compare(const char *a, const char *b)
{
    int zeros = 0;
    while (*a != 0 && *b != 0) {
        int order = 0;
        if (is_digit(*a) && is_digit(*b)) {
            order = compare_numbers(&a, &b, &zeros);
        } else {
            order = (unsigned char)*a++ - (unsigned char)*b++;
        }
        if (order != 0) {
            return order;
        }
    }
    int order = (*a != 0) - (*b != 0);
    return order != 0 ? order : zeros;
}
