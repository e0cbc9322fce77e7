/* SPDX-License-Identifier: Apache-2.0
 *
 * The inherited and the user's variables in order, each name once: the first
 * of an environment, as getenv has it, and the last -x of a command line.
 */
#include <stdlib.h>
#include <string.h>

#include "worker/env_plan.h"
#include "worker/put.h"

static int compare(const void *a, const void *b)
{
    const struct env_given *x = a;
    const struct env_given *y = b;
    int order = strcmp(x->name, y->name);
    return order != 0
               ? order
               : (x->priority > y->priority) - (x->priority < y->priority);
}

static void sort(struct env_givens *g)
{
    if (g->count == 0) {
        return;
    }
    qsort(g->items, g->count, sizeof(*g->items), compare);
    size_t kept = 1;
    for (size_t i = 1; i < g->count; i++) {
        if (strcmp(g->items[i].name, g->items[kept - 1].name) != 0) {
            g->items[kept++] = g->items[i];
        }
    }
    g->count = kept;
}

/* Bytes of the name of "NAME=VALUE"; 0: not a variable. */
static size_t name_bytes(const char *string)
{
    const char *equals = strchr(string, '=');
    return equals == NULL ? 0 : (size_t)(equals - string);
}

/* Write "NAME=VALUE" and, behind its NUL, "NAME". */
static char *add(struct env_givens *g, char *out, const char *name,
                 size_t bytes, const char *value, size_t priority)
{
    struct env_given *item = &g->items[g->count++];
    item->priority = priority;
    item->string = out;
    out = put_bytes(out, name, bytes);
    out = put_text(out, "=");
    item->value = out;
    out = put_text(out, value) + 1;
    item->name = out;
    return put_bytes(out, name, bytes) + 1;
}

static void sort_inherited(struct env_plan *p)
{
    const char *const *strings = p->in->inherited;
    size_t n = 0;
    size_t bytes = 0;
    for (; strings != NULL && strings[n] != NULL; n++) {
        bytes += strlen(strings[n]) + name_bytes(strings[n]) + 2;
    }
    p->inherited.items = env_plan_alloc(p, n * sizeof(*p->inherited.items));
    char *out = env_plan_alloc(p, bytes);
    for (size_t i = 0; out != NULL && i < n; i++) {
        size_t name = name_bytes(strings[i]);
        if (name > 0) {
            out = add(&p->inherited, out, strings[i], name,
                      strings[i] + name + 1, i);
        }
    }
    sort(&p->inherited);
}

static void sort_user(struct env_plan *p)
{
    const struct env_variable *user = p->in->user;
    size_t n = p->in->user_count;
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        bytes += 2 * strlen(user[i].name) + strlen(user[i].value) + 3;
    }
    p->user.items = env_plan_alloc(p, n * sizeof(*p->user.items));
    char *out = env_plan_alloc(p, bytes);
    for (size_t i = 0; out != NULL && i < n; i++) {
        out = add(&p->user, out, user[i].name, strlen(user[i].name),
                  user[i].value, n - i);
    }
    sort(&p->user);
}

void env_plan_sort(struct env_plan *p)
{
    sort_inherited(p);
    sort_user(p);
}

static int compare_name(const void *name, const void *item)
{
    return strcmp(name, ((const struct env_given *)item)->name);
}

static const char *find(const struct env_givens *g, const char *name)
{
    if (g->count == 0) {
        return NULL;
    }
    const struct env_given *found =
        bsearch(name, g->items, g->count, sizeof(*g->items), compare_name);
    return found == NULL ? NULL : found->value;
}

const char *env_plan_inherited(const struct env_plan *p, const char *name)
{
    return find(&p->inherited, name);
}

const char *env_plan_user(const struct env_plan *p, const char *name)
{
    return find(&p->user, name);
}
