/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/nodes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/hostlist.h"
#include "common/units.h"
#include "launcher/nodes_inside.h"
#include "proto/limits.h"

enum { NAMES_SHOWN = 10, NAMES_BYTES = 400, WHERE_BYTES = 160 };

static void truncate_list(struct nodes *n, uint32_t count)
{
    while (n->count > count) {
        free(n->list[--n->count].name);
    }
}

void nodes_release(struct nodes *n)
{
    truncate_list(n, 0);
    free(n->list);
    free(n->where);
    *n = (struct nodes){0};
}

int nodes_begin(struct nodes *n, enum nodes_source source, const char *where,
                struct gpul_error *err)
{
    size_t bytes = strlen(where);
    const char *tail =
        bytes > WHERE_BYTES ? where + bytes - WHERE_BYTES : where;
    nodes_release(n);
    n->source = source;
    n->where = strdup(tail);
    return n->where != NULL ? 0 : gpul_fail(err, GPUL_ENOMEM, "out of memory");
}

bool nodes_source_adds(enum nodes_source source)
{
    return source == NODES_PBS || source == NODES_LSF ||
           source == NODES_GRID_ENGINE;
}

/* ---- mentions into nodes ------------------------------------------------- */

static int compare_mentions(const void *a, const void *b)
{
    const struct node *x = *(const struct node *const *)a;
    const struct node *y = *(const struct node *const *)b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : (x > y) - (x < y);
}

static int refuse_repeat(const struct nodes *n, const struct node *first,
                         const struct node *again, struct gpul_error *err)
{
    if (again->line > 0) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s:%" PRIu32 ": %s is on line %" PRIu32
                         " already, and slots are given; launchers differ in "
                         "whether they add up; keep one of the two lines",
                         n->where, again->line, again->name, first->line);
    }
    return gpul_fail(err, GPUL_EINVAL,
                     "%s: %s is named twice, and slots are given; launchers "
                     "differ in whether they add up; name it once",
                     n->where, again->name);
}

static uint32_t mentioned(const struct node *node)
{
    return node->slots > 0 ? node->slots : 1;
}

static int absorb(const struct nodes *n, struct node *first, struct node *again,
                  struct gpul_error *err)
{
    bool has_number = first->has_number || again->has_number;
    if (has_number && !nodes_source_adds(n->source)) {
        return refuse_repeat(n, first, again, err);
    }
    uint64_t slots = (uint64_t)mentioned(first) + mentioned(again);
    if (slots > GPUL_RANKS_MAX) {
        return gpul_fail(err, GPUL_ELIMIT, "%s: %s has more than %u slots",
                         n->where, first->name, GPUL_RANKS_MAX);
    }
    first->slots = (uint32_t)slots;
    free(again->name);
    again->name = NULL;
    return 0;
}

/* A repeat goes into the first mention, and its own name away. */
static int absorb_repeats(struct nodes *n, struct gpul_error *err)
{
    struct node **sorted = malloc(n->count * sizeof(struct node *));
    if (sorted == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    for (uint32_t i = 0; i < n->count; i++) {
        sorted[i] = &n->list[i];
    }
    qsort(sorted, n->count, sizeof(struct node *), compare_mentions);
    int rc = 0;
    struct node *first = sorted[0];
    for (uint32_t i = 1; i < n->count && rc == 0; i++) {
        if (strcmp(first->name, sorted[i]->name) == 0) {
            rc = absorb(n, first, sorted[i], err);
        } else {
            first = sorted[i];
        }
    }
    free(sorted);
    return rc;
}

static void drop_empty(struct nodes *n)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n->count; i++) {
        if (n->list[i].name != NULL) {
            n->list[kept++] = n->list[i];
        }
    }
    n->count = kept;
}

static int compare_naturally(const void *a, const void *b)
{
    return gpul_hostlist_compare(((const struct node *)a)->name,
                                 ((const struct node *)b)->name);
}

int nodes_finish(struct nodes *n, int rc, struct gpul_error *err)
{
    if (rc == 0 && n->count > 0) {
        rc = absorb_repeats(n, err);
        drop_empty(n);
    }
    if (rc == 0 && n->count > GPUL_NODES_MAX) {
        rc = gpul_fail(err, GPUL_ELIMIT,
                       "%s: %" PRIu32 " nodes; at most %u are possible",
                       n->where, n->count, GPUL_NODES_MAX);
    }
    if (rc != 0) {
        nodes_release(n);
        return rc;
    }
    if (n->source == NODES_SET) {
        qsort(n->list, n->count, sizeof(*n->list), compare_naturally);
    }
    return 0;
}

/* ---- what the plan makes of them ----------------------------------------- */

int nodes_take(struct nodes *n, uint32_t count, struct gpul_error *err)
{
    if (count > n->count) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%" PRIu32 " nodes are asked for, but %s has %" PRIu32
                         "; ask for fewer, or name more",
                         count, n->where, n->count);
    }
    truncate_list(n, count);
    return 0;
}

int nodes_slots(const struct nodes *n, uint32_t *slots, struct gpul_error *err)
{
    *slots = 0;
    if (n->count == 0 || nodes_source_adds(n->source)) {
        return 0;
    }
    const struct node *first = &n->list[0];
    for (uint32_t i = 1; i < n->count; i++) {
        const struct node *other = &n->list[i];
        if (mentioned(other) != mentioned(first)) {
            return gpul_fail(err, GPUL_EINVAL,
                             "%s: %s has %" PRIu32 " slot%s, %s has %" PRIu32
                             "; a job has as many ranks on each node: make "
                             "them equal, or give --per-node K",
                             n->where, first->name, mentioned(first),
                             gpul_plural(mentioned(first)), other->name,
                             mentioned(other));
        }
    }
    *slots = first->slots;
    return 0;
}

int nodes_check_ranks(const struct nodes *n, uint32_t count,
                      struct gpul_error *err)
{
    for (uint32_t i = 0; i < n->count; i++) {
        const struct node *node = &n->list[i];
        if (node->slots_max > 0 && count > node->slots_max) {
            return gpul_fail(err, GPUL_EINVAL,
                             "%s:%" PRIu32 ": %s has max_slots=%" PRIu32
                             ", but %" PRIu32 " ranks are to run on each node; "
                             "lower --per-node, or raise max_slots",
                             n->where, node->line, node->name, node->slots_max,
                             count);
        }
    }
    return 0;
}

/* ---- words --------------------------------------------------------------- */

const char *nodes_scheduler(enum nodes_source source)
{
    static const char *const names[] = {
        [NODES_SLURM] = "Slurm",
        [NODES_PBS] = "PBS",
        [NODES_LSF] = "LSF",
        [NODES_GRID_ENGINE] = "Grid Engine",
        [NODES_FLUX] = "Flux",
        [NODES_AWS_BATCH] = "AWS Batch",
        [NODES_KUBERNETES] = "Kubernetes",
    };
    return names[source];
}

int nodes_fold(struct gpul_buf *out, const struct nodes *n, uint32_t first,
               uint32_t count)
{
    struct gpul_hostlist l;
    gpul_hostlist_init(&l);
    int rc = 0;
    for (uint32_t i = first; i < first + count && rc == 0; i++) {
        rc = gpul_hostlist_push(&l, n->list[i].name);
    }
    if (rc == 0) {
        rc = gpul_hostlist_fold(out, &l, 0, l.count);
    }
    gpul_hostlist_release(&l);
    return rc;
}

void nodes_append_names(struct gpul_buf *out, const struct nodes *n,
                        size_t bytes_max)
{
    struct gpul_buf names;
    gpul_buf_init(&names, bytes_max);
    if (nodes_fold(&names, n, 0, n->count) == 0) {
        gpul_buf_append(out, names.data, names.used);
        gpul_buf_release(&names);
        return;
    }
    gpul_buf_release(&names);
    uint32_t shown = n->count < NAMES_SHOWN ? n->count : NAMES_SHOWN;
    for (uint32_t i = 0; i < shown; i++) {
        gpul_buf_appendf(out, "%s%s", i > 0 ? "," : "", n->list[i].name);
    }
    if (shown < n->count) {
        gpul_buf_appendf(out, " and %" PRIu32 " more", n->count - shown);
    }
}

int nodes_describe(struct gpul_buf *out, const struct nodes *n)
{
    const char *scheduler = nodes_scheduler(n->source);
    gpul_buf_appendf(out, "%" PRIu32 " node%s of %s, ", n->count,
                     gpul_plural(n->count), n->where);
    if (scheduler != NULL) {
        gpul_buf_appendf(out, "in the order of %s: ", scheduler);
    } else {
        gpul_buf_append_text(out, n->source == NODES_SET ? "in natural order: "
                                                         : "in its order: ");
    }
    nodes_append_names(out, n, NAMES_BYTES);
    return out->is_failed ? GPUL_ELIMIT : 0;
}
