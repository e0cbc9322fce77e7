/* SPDX-License-Identifier: Apache-2.0
 *
 * One mention of a node or of a range: "node[01-16]:8".
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hostlist.h"
#include "launcher/nodes_inside.h"
#include "proto/limits.h"

enum { WHAT_BYTES = 256 };

int nodes_fault(const struct nodes_text *t, const char *at, const char *format,
                ...)
{
    char what[WHAT_BYTES];
    size_t column = (size_t)(at - t->line_start) + 1;
    va_list values;
    va_start(values, format);
    vsnprintf(what, sizeof(what), format, values);
    va_end(values);
    if (t->line > 0) {
        return gpul_fail(t->err, GPUL_EINVAL, "%s:%" PRIu32 ":%zu: %s",
                         t->where, t->line, column, what);
    }
    return gpul_fail(t->err, GPUL_EINVAL, "%s, column %zu: %s", t->where,
                     column, what);
}

const char *nodes_byte(char text[8], char c)
{
    if (c > ' ' && c < 127) {
        snprintf(text, 8, "'%c'", c);
    } else if (c == ' ') {
        snprintf(text, 8, "a blank");
    } else {
        snprintf(text, 8, "0x%02x", (unsigned char)c);
    }
    return text;
}

int nodes_read_number(const struct nodes_text *t, uint32_t *out,
                      const char **at, const char *end, uint32_t max,
                      const char *what)
{
    const char *start = *at;
    uint64_t value = 0;
    while (*at < end && **at >= '0' && **at <= '9' && value <= max) {
        value = value * 10 + (uint64_t)(*(*at)++ - '0');
    }
    if (*at == start || value < 1 || value > max) {
        return nodes_fault(t, start, "%s is a number from 1 to %" PRIu32, what,
                           max);
    }
    *out = (uint32_t)value;
    return 0;
}

/* ---- the parts of a mention ---------------------------------------------- */

struct mention {
    const char *name;
    size_t name_bytes;
    const char *slots; /* the number behind the colon, or NULL */
    bool is_literal;   /* IPv6 */
};

static size_t count_byte(const char *text, size_t bytes, char c)
{
    size_t count = 0;
    for (size_t i = 0; i < bytes; i++) {
        count += text[i] == c;
    }
    return count;
}

/* A bracket that holds a colon encloses an IPv6 literal, another a range. */
static int split_bracket(const struct nodes_text *t, struct mention *m,
                         const char *text, size_t bytes)
{
    const char *close = memchr(text, ']', bytes);
    const char *end = text + bytes;
    m->name = text + 1;
    m->name_bytes = (size_t)(close - m->name);
    m->is_literal = true;
    if (close + 1 == end) {
        return 0;
    }
    if (close[1] != ':') {
        return nodes_fault(t, close + 1,
                           "only :SLOTS may stand behind the bracket of an "
                           "IPv6 address");
    }
    m->slots = close + 2;
    return 0;
}

static int split(const struct nodes_text *t, struct mention *m,
                 const char *text, size_t bytes)
{
    *m = (struct mention){.name = text, .name_bytes = bytes};
    size_t colons = count_byte(text, bytes, ':');
    const char *close = memchr(text, ']', bytes);
    if (bytes > 0 && text[0] == '[' && close != NULL &&
        memchr(text, ':', (size_t)(close - text)) != NULL) {
        return split_bracket(t, m, text, bytes);
    }
    m->is_literal = colons > 1;
    if (colons == 1) {
        const char *colon = memchr(text, ':', bytes);
        m->name_bytes = (size_t)(colon - text);
        m->slots = colon + 1;
    }
    return 0;
}

/* ---- judging the name ---------------------------------------------------- */

/* Bytes of names of hosts and of interfaces. */
static bool is_name_byte(char c)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789.-_";
    return c != '\0' && strchr(allowed, c) != NULL;
}

/* "%eth0", or nothing. */
static bool is_scope(const char *scope, size_t bytes)
{
    for (size_t i = 1; i < bytes; i++) {
        if (!is_name_byte(scope[i])) {
            return false;
        }
    }
    return bytes != 1 && bytes <= GPUL_INTERFACE_BYTES_MAX;
}

static int check_literal(const struct nodes_text *t, const struct mention *m)
{
    char literal[INET6_ADDRSTRLEN];
    struct in6_addr address;
    const char *scope = memchr(m->name, '%', m->name_bytes);
    size_t n = scope != NULL ? (size_t)(scope - m->name) : m->name_bytes;
    if (n < sizeof(literal)) {
        memcpy(literal, m->name, n);
        literal[n] = '\0';
    }
    if (n >= sizeof(literal) || strlen(literal) != n ||
        inet_pton(AF_INET6, literal, &address) != 1 ||
        !is_scope(m->name + n, m->name_bytes - n)) {
        return nodes_fault(t, m->name,
                           "\"%.*s\" is no IPv6 address; a name takes one "
                           "colon, before its slots: name:4",
                           (int)(m->name_bytes < 80 ? m->name_bytes : 80),
                           m->name);
    }
    return 0;
}

/* What ssh or a shell could take for something else is refused here. */
static int check_bytes(const struct nodes_text *t, const struct mention *m)
{
    bool is_inside = false;
    char byte[8];
    for (size_t i = 0; i < m->name_bytes; i++) {
        char c = m->name[i];
        is_inside = c == '[' || (is_inside && c != ']');
        if (c == '[' || c == ']' || is_inside) {
            continue; /* the reader of ranges judges */
        }
        if (c == '@') {
            return nodes_fault(t, m->name + i,
                               "a user does not go into the list of nodes; "
                               "give it in ~/.ssh/config: Host, User");
        }
        if (!is_name_byte(c)) {
            return nodes_fault(t, m->name + i, "%s cannot be in a host name",
                               nodes_byte(byte, c));
        }
        if (i == 0 && (c == '-' || c == '.')) {
            return nodes_fault(t, m->name, "a host name cannot begin with %s",
                               nodes_byte(byte, c));
        }
    }
    return 0;
}

/* Digits and dots that are no whole IPv4 address: resolvers make something of
 * "4" and of "10.1", but never what was meant. */
static int check_number(const struct nodes_text *t, const char *at,
                        const char *name)
{
    struct in_addr address;
    if (name[strspn(name, "0123456789.")] != '\0' ||
        inet_pton(AF_INET, name, &address) == 1) {
        return 0;
    }
    if (strchr(name, '.') != NULL) {
        return nodes_fault(t, at, "\"%.80s\" is no IPv4 address", name);
    }
    return nodes_fault(t, at,
                       "\"%.80s\" is a number, not a host; for a number of "
                       "nodes there is --nodes",
                       name);
}

/* ---- adding -------------------------------------------------------------- */

static int push(struct nodes *n, const struct nodes_text *t, char *name)
{
    if (n->count == NODES_MENTIONS_MAX) {
        free(name);
        return gpul_fail(t->err, GPUL_ELIMIT,
                         "%s: more than %d mentions of nodes", t->where,
                         NODES_MENTIONS_MAX);
    }
    if (n->count == n->capacity) {
        uint32_t capacity = n->capacity > 0 ? n->capacity * 2 : 16;
        struct node *grown = realloc(n->list, capacity * sizeof(*grown));
        if (grown == NULL) {
            free(name);
            return gpul_fail(t->err, GPUL_ENOMEM, "out of memory");
        }
        n->list = grown;
        n->capacity = capacity;
    }
    n->list[n->count++] = (struct node){.name = name, .line = t->line};
    return 0;
}

static int add_literal(struct nodes *n, const struct nodes_text *t,
                       const struct mention *m)
{
    int rc = check_literal(t, m);
    if (rc != 0) {
        return rc;
    }
    char *name = strndup(m->name, m->name_bytes);
    return name != NULL ? push(n, t, name)
                        : gpul_fail(t->err, GPUL_ENOMEM, "out of memory");
}

static int expand(struct gpul_hostlist *l, const struct nodes_text *t,
                  const struct mention *m)
{
    struct gpul_hostlist_fault why;
    int rc = gpul_hostlist_expand_item(l, m->name, m->name_bytes,
                                       GPUL_NODES_MAX, &why);
    switch (rc) {
    case 0:
        return 0;
    case GPUL_EINVAL:
        return nodes_fault(t, m->name + why.at, "%s", why.what);
    case GPUL_ELIMIT:
        return gpul_fail(t->err, rc, "%s: more than %u nodes", t->where,
                         GPUL_NODES_MAX);
    default:
        return gpul_fail(t->err, rc, "out of memory");
    }
}

static int add_names(struct nodes *n, const struct nodes_text *t,
                     const struct mention *m)
{
    struct gpul_hostlist l;
    gpul_hostlist_init(&l);
    int rc = check_bytes(t, m);
    if (rc == 0) {
        rc = expand(&l, t, m);
    }
    for (size_t i = 0; i < l.count && rc == 0; i++) {
        rc = check_number(t, m->name, l.names[i]);
        if (rc == 0) {
            char *name = l.names[i];
            l.names[i] = NULL; /* the list of nodes has it now */
            rc = push(n, t, name);
        }
    }
    gpul_hostlist_release(&l);
    return rc;
}

int nodes_add(struct nodes *n, const struct nodes_text *t, const char *text,
              size_t bytes, bool is_bare, uint32_t *first)
{
    struct mention m = {.name = text,
                        .name_bytes = bytes,
                        .is_literal = count_byte(text, bytes, ':') > 1};
    uint32_t slots = 0;
    int rc = is_bare ? 0 : split(t, &m, text, bytes);
    *first = n->count;
    if (rc == 0) {
        rc = m.is_literal ? add_literal(n, t, &m) : add_names(n, t, &m);
    }
    if (rc == 0 && m.slots != NULL) {
        const char *at = m.slots;
        rc = nodes_read_number(t, &slots, &at, text + bytes,
                               GPUL_RANKS_PER_NODE_MAX, "slots");
        if (rc == 0 && at != text + bytes) {
            rc = nodes_fault(t, at, "nothing may stand behind the slots");
        }
    }
    for (uint32_t i = *first; rc == 0 && m.slots != NULL && i < n->count; i++) {
        n->list[i].slots = slots;
        n->list[i].has_number = true;
    }
    return rc;
}
