/* SPDX-License-Identifier: Apache-2.0
 *
 * The lists of schedulers: words, pairs, lines, and what Grid Engine writes.
 */
#include <inttypes.h>
#include <string.h>

#include "common/units.h"
#include "launcher/allocation.h"
#include "launcher/nodes_inside.h"
#include "proto/limits.h"

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The next word before `end`, or false. *at moves behind it. */
static bool next_word(const char **word, size_t *bytes, const char **at,
                      const char *end)
{
    while (*at < end && is_space(**at)) {
        (*at)++;
    }
    *word = *at;
    while (*at < end && !is_space(**at)) {
        (*at)++;
    }
    *bytes = (size_t)(*at - *word);
    return *bytes > 0;
}

/* Processors beside a name. */
static int read_processors(struct nodes *n, const struct nodes_text *t,
                           uint32_t first, const char *word, size_t bytes)
{
    const char *at = word, *end = word + bytes;
    uint32_t processors;
    if (bytes == 0) {
        return nodes_fault(t, word, "a number of slots is missing");
    }
    int rc =
        nodes_read_number(t, &processors, &at, end, GPUL_RANKS_MAX, "slots");
    if (rc == 0 && at != end) {
        rc = nodes_fault(t, at, "the slots are no number");
    }
    for (uint32_t i = first; i < n->count && rc == 0; i++) {
        n->list[i].slots = processors;
        n->list[i].has_number = true;
    }
    return rc;
}

static int read_words(struct nodes *n, const struct nodes_text *t,
                      const char *text, bool has_numbers)
{
    const char *at = text, *end = text + strlen(text), *word;
    size_t bytes;
    int rc = 0;
    while (rc == 0 && next_word(&word, &bytes, &at, end)) {
        uint32_t first;
        rc = nodes_add(n, t, word, bytes, true, &first);
        if (rc == 0 && has_numbers) {
            next_word(&word, &bytes, &at, end);
            rc = read_processors(n, t, first, word, bytes);
        }
    }
    return rc;
}

/* One line: a name, and for Grid Engine its slots; what follows there, the
 * queue and the processors, says nothing to us. */
static int read_line(struct nodes *n, const struct nodes_text *t,
                     const char *end, bool has_numbers)
{
    const char *at = t->line_start, *word;
    size_t bytes;
    uint32_t first;
    if (!next_word(&word, &bytes, &at, end)) {
        return 0;
    }
    int rc = nodes_add(n, t, word, bytes, true, &first);
    if (rc == 0 && has_numbers) {
        next_word(&word, &bytes, &at, end);
        return read_processors(n, t, first, word, bytes);
    }
    if (rc == 0 && next_word(&word, &bytes, &at, end)) {
        return nodes_fault(t, word, "one name a line, and nothing behind it");
    }
    return rc;
}

static int read_file(struct nodes *n, struct nodes_text *t, const char *text,
                     size_t bytes, bool has_numbers)
{
    const char *end = text + bytes;
    int rc = 0;
    t->line_start = text;
    while (rc == 0 && t->line_start < end) {
        const char *newline =
            memchr(t->line_start, '\n', (size_t)(end - t->line_start));
        t->line++;
        rc = read_line(n, t, newline != NULL ? newline : end, has_numbers);
        t->line_start = newline != NULL ? newline + 1 : end;
    }
    return rc;
}

static int check_count(struct nodes *n, const struct allocation *a,
                       struct gpul_error *err)
{
    const char *scheduler = nodes_scheduler(a->source);
    if (n->count == 0) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s names no node, though this is a job of %s; name "
                         "them with --hosts or --hostfile",
                         a->variable, scheduler);
    }
    if (a->node_count > 0 && n->count != a->node_count) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s names %" PRIu32 " node%s, but the job of %s has "
                         "%" PRIu32 "; the variables are of two jobs or were "
                         "changed: name the nodes with --hosts",
                         a->variable, n->count, gpul_plural(n->count),
                         scheduler, a->node_count);
    }
    return 0;
}

static int read_nodes(struct nodes *n, const struct allocation *a,
                      const char *file, size_t file_bytes,
                      struct gpul_error *err)
{
    struct nodes_text t = {
        .where = n->where, .line_start = a->value, .err = err};
    switch (a->shape) {
    case ALLOCATION_WORDS:
    case ALLOCATION_PAIRS:
        return read_words(n, &t, a->value, a->shape == ALLOCATION_PAIRS);
    default: /* a file */
        return read_file(n, &t, file, file_bytes,
                         a->shape == ALLOCATION_PE_HOSTFILE);
    }
}

int allocation_nodes(struct nodes *n, const struct allocation *a,
                     const char *file, size_t file_bytes,
                     struct gpul_error *err)
{
    int rc;
    if (a->shape == ALLOCATION_EXPRESSION) {
        rc = nodes_parse_list(n, a->source, a->value, a->variable, err);
    } else {
        const char *path = allocation_file(a);
        rc = nodes_begin(n, a->source, path != NULL ? path : a->variable, err);
        if (rc == 0) {
            rc = read_nodes(n, a, file, file_bytes, err);
        }
        rc = nodes_finish(n, rc, err);
    }
    for (uint32_t i = 0; rc == 0 && a->slots > 0 && i < n->count; i++) {
        n->list[i].slots = a->slots;
    }
    if (rc == 0) {
        rc = check_count(n, a, err);
    }
    if (rc != 0) {
        nodes_release(n);
    }
    return rc;
}
