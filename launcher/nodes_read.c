/* SPDX-License-Identifier: Apache-2.0
 *
 * The user's list on the command line, and the user's host file.
 */
#include <string.h>

#include "launcher/nodes_inside.h"
#include "proto/limits.h"

/* ---- a list -------------------------------------------------------------- */

/* A comma outside brackets, or the end. */
static const char *item_end(const char *at, const char *end)
{
    bool is_inside = false;
    for (; at < end && (is_inside || *at != ','); at++) {
        is_inside = *at == '[' || (is_inside && *at != ']');
    }
    return at;
}

int nodes_parse_list(struct nodes *n, enum nodes_source source,
                     const char *text, const char *where,
                     struct gpul_error *err)
{
    struct nodes_text t = {.line_start = text, .err = err};
    int rc = nodes_begin(n, source, where, err);
    t.where = n->where;
    const char *text_end = text + strlen(text), *end = text;
    uint32_t first;
    if (rc == 0 && strchr(text, '/') != NULL) {
        rc = nodes_fault(&t, strchr(text, '/'),
                         "a / is in no host name; a file of nodes is given "
                         "with --hostfile FILE");
    }
    for (const char *at = text; rc == 0; at = end + 1) {
        end = item_end(at, text_end);
        rc = nodes_add(n, &t, at, (size_t)(end - at), false, &first);
        if (end == text_end) {
            break;
        }
    }
    return nodes_finish(n, rc, err);
}

/* ---- a file -------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && is_blank(*at)) {
        at++;
    }
    return at;
}

static bool is_key(const char *key, size_t bytes, const char *name)
{
    if (strlen(name) != bytes) {
        return false;
    }
    for (size_t i = 0; i < bytes; i++) {
        if ((key[i] == '_' ? '-' : key[i]) != name[i]) {
            return false;
        }
    }
    return true;
}

static int refuse_key(const struct nodes_text *t, const char *key, size_t bytes)
{
    static const char *const of_ssh[] = {"user", "username", "user-name",
                                         "port"};
    for (size_t i = 0; i < sizeof(of_ssh) / sizeof(of_ssh[0]); i++) {
        if (is_key(key, bytes, of_ssh[i])) {
            return nodes_fault(t, key,
                               "%.*s is a matter of ssh; give it in "
                               "~/.ssh/config: Host, User, Port",
                               (int)bytes, key);
        }
    }
    return nodes_fault(t, key,
                       "unknown word; behind a node stand slots=N and "
                       "max_slots=N, and comments begin with #");
}

/* "slots=4", "max_slots = 8"; *at moves behind it. */
static int read_setting(const struct nodes_text *t, struct node *out,
                        const char **at, const char *end)
{
    const char *key = *at;
    while (*at < end && !is_blank(**at) && **at != '=' && **at != '#') {
        (*at)++;
    }
    size_t bytes = (size_t)(*at - key);
    bool is_max =
        is_key(key, bytes, "max-slots") || is_key(key, bytes, "slots-max");
    const char *equals = skip_blanks(*at, end);
    if ((!is_max && !is_key(key, bytes, "slots")) || equals == end ||
        *equals != '=') {
        return refuse_key(t, key, bytes);
    }
    *at = skip_blanks(equals + 1, end);
    if (is_max ? out->slots_max > 0 : out->has_number) {
        return nodes_fault(t, key, "%s: given twice",
                           is_max ? "max_slots" : "slots");
    }
    out->has_number |= !is_max;
    return nodes_read_number(t, is_max ? &out->slots_max : &out->slots, at, end,
                             GPUL_RANKS_PER_NODE_MAX,
                             is_max ? "max_slots" : "slots");
}

/* All that stands behind the node of a line, into `out`. */
static int read_settings(const struct nodes_text *t, struct node *out,
                         const char *at, const char *end)
{
    const char *start = at;
    for (;;) {
        const char *next = skip_blanks(at, end);
        if (next == end || *next == '#') {
            break;
        }
        if (next == at && at != start) {
            return nodes_fault(t, at, "a blank is missing");
        }
        at = next;
        int rc = read_setting(t, out, &at, end);
        if (rc != 0) {
            return rc;
        }
    }
    if (out->slots_max > 0 && out->slots > out->slots_max) {
        return nodes_fault(t, start, "slots=%u is more than max_slots=%u",
                           out->slots, out->slots_max);
    }
    return 0;
}

/* Where the name ends that begins at `at`. */
static const char *name_end(const char *at, const char *end)
{
    while (at < end && !is_blank(*at) && *at != '#') {
        at++;
    }
    return at;
}

static int read_line(struct nodes *n, const struct nodes_text *t,
                     const char *end)
{
    const char *at = skip_blanks(t->line_start, end);
    const char *behind = name_end(at, end);
    uint32_t first;
    if (at == behind) {
        return 0; /* empty, or a comment */
    }
    const char *comma = item_end(at, behind);
    if (comma < behind) {
        return nodes_fault(t, comma, "one node a line, without commas");
    }
    int rc = nodes_add(n, t, at, (size_t)(behind - at), false, &first);
    if (rc != 0) {
        return rc;
    }
    struct node said = n->list[first];
    rc = read_settings(t, &said, behind, end);
    for (uint32_t i = first; i < n->count && rc == 0; i++) {
        n->list[i].slots = said.slots;
        n->list[i].slots_max = said.slots_max;
        n->list[i].has_number = said.has_number;
    }
    return rc;
}

int nodes_parse_file(struct nodes *n, const char *text, size_t bytes,
                     const char *where, struct gpul_error *err)
{
    struct nodes_text t = {.line_start = text, .err = err};
    const char *end = text + bytes;
    int rc = nodes_begin(n, NODES_FILE, where, err);
    t.where = n->where;
    while (rc == 0 && t.line_start < end) {
        const char *newline =
            memchr(t.line_start, '\n', (size_t)(end - t.line_start));
        const char *line_end = newline != NULL ? newline : end;
        const char *next = newline != NULL ? newline + 1 : end;
        if (line_end > t.line_start && line_end[-1] == '\r') {
            line_end--; /* a file from Windows */
        }
        t.line++;
        rc = read_line(n, &t, line_end);
        t.line_start = next;
    }
    if (rc == 0 && n->count == 0) {
        rc = gpul_fail(err, GPUL_EINVAL,
                       "%s: names no node; write one a line, as in: "
                       "node1 slots=8",
                       n->where);
    }
    return nodes_finish(n, rc, err);
}
