/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/roster.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/hostlist.h"
#include "common/units.h"
#include "coordinator/text.h"
#include "proto/limits.h"

static int compare_naturally(const void *a, const void *b)
{
    return gpul_hostlist_compare(*(char *const *)a, *(char *const *)b);
}

static int compare_names(const void *a, const void *b)
{
    const struct node *const *left = a;
    const struct node *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

static int compare_nodes(const void *a, const void *b)
{
    const struct node *left = a;
    const struct node *right = b;
    return gpul_hostlist_compare(left->name, right->name);
}

static int read_names(struct gpul_hostlist *names, const Gpul__Job *job,
                      struct gpul_error *err)
{
    for (size_t i = 0; i < job->n_node_names; i++) {
        int rc = gpul_hostlist_expand(names, job->node_names[i], GPUL_NODES_MAX,
                                      err);
        if (rc != 0) {
            return gpul_wrap(err, rc, "the list of node names");
        }
    }
    if (names->count != job->node_count) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%zu node name%s given for %u node%s", names->count,
                         names->count == 1 ? " was" : "s were", job->node_count,
                         gpul_plural(job->node_count));
    }
    for (size_t i = 0; i < names->count; i++) {
        if (strlen(names->names[i]) > GPUL_NAME_BYTES_MAX) {
            return gpul_fail(err, GPUL_EINVAL,
                             "a node name is longer than %u bytes",
                             GPUL_NAME_BYTES_MAX);
        }
    }
    return 0;
}

/* The nodes that have a name are the first `named`. */
static void index_names(struct roster *r)
{
    for (uint32_t i = 0; i < r->named; i++) {
        r->by_name[i] = &r->nodes[i];
    }
    qsort(r->by_name, r->named, sizeof(struct node *), compare_names);
}

/* The names change their owner. */
static int take_names(struct roster *r, struct gpul_hostlist *names,
                      struct gpul_error *err)
{
    for (uint32_t i = 0; i < r->count; i++) {
        r->nodes[i].name = names->names[i];
        names->names[i] = NULL;
    }
    r->named = r->count;
    index_names(r);
    for (uint32_t i = 1; i < r->count; i++) {
        if (compare_names(&r->by_name[i - 1], &r->by_name[i]) == 0) {
            return gpul_fail(err, GPUL_EINVAL, "node %s is listed twice",
                             r->by_name[i]->name);
        }
    }
    return 0;
}

static int make_nodes(struct roster *r, uint32_t count, struct gpul_error *err)
{
    r->count = count;
    r->nodes = calloc(count, sizeof(*r->nodes));
    r->by_name = calloc(count, sizeof(struct node *));
    if (r->nodes == NULL || r->by_name == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory for %u nodes", count);
    }
    for (uint32_t i = 0; i < count; i++) {
        r->nodes[i].conn = NO_CONN;
    }
    return 0;
}

int roster_init(struct roster *r, const Gpul__Job *job, struct gpul_error *err)
{
    struct gpul_hostlist names;
    *r = (struct roster){.is_open = job->n_node_names == 0};
    r->was_open = r->is_open;
    gpul_hostlist_init(&names);
    int rc = r->is_open ? 0 : read_names(&names, job, err);
    if (rc == 0 && !job->names_are_ordered && names.count > 0) {
        qsort(names.names, names.count, sizeof(char *), compare_naturally);
    }
    if (rc == 0) {
        rc = make_nodes(r, job->node_count, err);
    }
    if (rc == 0 && !r->is_open) {
        rc = take_names(r, &names, err);
    }
    gpul_hostlist_release(&names);
    if (rc != 0) {
        roster_release(r);
    }
    return rc;
}

static void release_node(struct node *node)
{
    free((char *)(uintptr_t)node->name);
    free(node->hostname);
    free(node->link_address);
    free(node->probe_address);
    free(node->last_words);
}

void roster_release(struct roster *r)
{
    for (uint32_t i = 0; r->nodes != NULL && i < r->count; i++) {
        release_node(&r->nodes[i]);
    }
    free(r->nodes);
    free(r->by_name);
    *r = (struct roster){0};
}

struct node *roster_find(const struct roster *r, const char *name)
{
    struct node key = {.name = name};
    const struct node *key_pointer = &key;
    struct node **found = bsearch(&key_pointer, r->by_name, r->named,
                                  sizeof(struct node *), compare_names);
    return found == NULL ? NULL : *found;
}

uint32_t roster_index(const struct roster *r, const struct node *node)
{
    return (uint32_t)(node - r->nodes);
}

/* ---- an open roster ---- */

/* Where the name is in by_name, or would be. */
static uint32_t find_place(const struct roster *r, const char *name)
{
    uint32_t low = 0;
    uint32_t high = r->named;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (strcmp(r->by_name[middle]->name, name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct node *roster_add(struct roster *r, const char *name)
{
    assert(r->is_open && r->named < r->count);
    struct node *node = r->nodes;
    while (node->name != NULL) {
        node++;
    }
    node->name = text_copy(name);
    if (node->name == NULL) {
        return NULL;
    }
    uint32_t place = find_place(r, name);
    memmove(&r->by_name[place + 1], &r->by_name[place],
            (r->named - place) * sizeof(struct node *));
    r->by_name[place] = node;
    r->named++;
    return node;
}

void roster_remove(struct roster *r, struct node *node)
{
    assert(r->is_open && node->conn == NO_CONN);
    uint32_t place = find_place(r, node->name);
    assert(r->by_name[place] == node);
    r->named--;
    memmove(&r->by_name[place], &r->by_name[place + 1],
            (r->named - place) * sizeof(struct node *));
    release_node(node);
    *node = (struct node){.conn = NO_CONN};
}

void roster_close(struct roster *r)
{
    assert(r->is_open && r->named == r->count);
    r->is_open = false;
    qsort(r->nodes, r->count, sizeof(*r->nodes), compare_nodes);
    index_names(r);
}

/* ---- members ---- */

/* hostname, boot_id and address behind one another in one block. */
static char *facts_copy(const Gpul__Facts *facts, size_t *boot_id_at,
                        size_t *address_at)
{
    size_t hostname_bytes = strlen(facts->hostname) + 1;
    size_t boot_id_bytes = strlen(facts->boot_id) + 1;
    size_t address_bytes = strlen(facts->address) + 1;
    char *block = malloc(hostname_bytes + boot_id_bytes + address_bytes);
    if (block != NULL) {
        *boot_id_at = hostname_bytes;
        *address_at = hostname_bytes + boot_id_bytes;
        memcpy(block, facts->hostname, hostname_bytes);
        memcpy(block + *boot_id_at, facts->boot_id, boot_id_bytes);
        memcpy(block + *address_at, facts->address, address_bytes);
    }
    return block;
}

int roster_join(struct roster *r, struct node *node, uint32_t conn,
                const Gpul__Hello *hello)
{
    static const Gpul__Facts nothing = GPUL__FACTS__INIT;
    const Gpul__Facts *facts = hello->facts != NULL ? hello->facts : &nothing;
    size_t boot_id_at;
    size_t address_at;
    assert(node->conn == NO_CONN);
    char *block = facts_copy(facts, &boot_id_at, &address_at);
    if (block == NULL) {
        return GPUL_ENOMEM;
    }
    free(node->hostname);
    node->hostname = block;
    node->boot_id = block + boot_id_at;
    node->address =
        node->link_address != NULL ? node->link_address : block + address_at;
    node->network_namespace = facts->network_namespace;
    node->instance = hello->instance;
    node->attach = hello->attach;
    node->gpus = facts->gpus;
    node->conn = conn;
    free(node->last_words); /* they were of an earlier worker */
    node->last_words = NULL;
    node->has_accounted = false;
    r->joined++;
    return 0;
}

int roster_set_address(struct node *node, const char *address)
{
    char *copy = text_copy(address);
    if (copy == NULL) {
        return GPUL_ENOMEM;
    }
    free(node->link_address);
    node->link_address = copy;
    node->address = copy;
    return 0;
}

void roster_leave(struct roster *r, struct node *node)
{
    assert(node->conn != NO_CONN && r->joined > 0);
    node->conn = NO_CONN;
    r->joined--;
}

void roster_conns(const struct roster *r, uint32_t *conns)
{
    size_t n = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        if (r->nodes[i].conn != NO_CONN) {
            conns[n++] = r->nodes[i].conn;
        }
    }
    assert(n == r->joined);
}

bool node_is_here(const struct node *node)
{
    return node->conn != NO_CONN;
}

const char *node_hostname(const struct node *node)
{
    return node->hostname != NULL ? node->hostname : "";
}

bool node_shares_host(const struct node *a, const struct node *b)
{
    return strcmp(a->hostname, b->hostname) == 0 &&
           strcmp(a->boot_id, b->boot_id) == 0;
}

bool node_has_rank(const struct node *node, uint32_t rank)
{
    return rank >= node->first_rank &&
           rank - node->first_rank < node->rank_count;
}
