/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/watchaway.h"

#include <string.h>

#include "proto/limits.h"

#define NO_CONN WATCH_NO_CONN

/* Is the node waited for when its connection closes? */
static bool may_be_away(const struct cluster *c, const struct watch_node *node)
{
    const struct watch *w = c->watch;
    bool is_over = w->has_ended || w->has_finished;
    if (w->generation == 0 || node->is_gone || is_over) {
        return false;
    }
    if (w->is_decided || w->is_by_time) {
        return !node->is_idle;
    }
    if (!w->is_launched || w->is_restarting) {
        return true;
    }
    return c->job.mode == GPUL__JOB__MODE__RUN && !node->is_idle &&
           !(node->reads_input && node->input_taken < w->input_bytes);
}

static void go_away(struct cluster *c, struct watch_node *node)
{
    struct watch *w = c->watch;
    bool is_forming = !w->is_launched && !w->is_restarting;
    node->is_away = true;
    node->away_ms = c->now_ms;
    node->is_idle = false;
    w->is_doomed |= is_forming;
    w->told -= node->has_told;
    node->has_told = false;
    w->linked -= node->has_linked;
    node->has_linked = false;
}

static void lose(struct cluster *c, const struct watch_node *node)
{
    struct watch *w = c->watch;
    if (w->generation == 0 && node->is_gone) {
        watch_decide(w, 40); /* nobody else is to come in its place */
    }
    if (w->generation == 0 || w->is_decided) {
        return;
    }
    bool is_run = c->job.mode == GPUL__JOB__MODE__RUN;
    if (is_run && w->is_launched && !w->is_restarting && node->is_idle) {
        return;
    }
    watch_decide(w, is_run && w->has_launched ? 75 : 41);
}

void watch_lose_overdue(struct cluster *c)
{
    for (uint32_t i = 0; i < c->node_count; i++) {
        struct watch_node *node = &c->watch->nodes[i];
        if (node->is_away && c->now_ms - node->away_ms >= GPUL_AWAY_MS) {
            node->is_away = false;
            lose(c, node);
        }
    }
}

void watch_see_closed(struct cluster *c, uint32_t conn, bool is_by_itself)
{
    struct watch *w = c->watch;
    for (uint32_t i = 0; i < c->node_count; i++) {
        struct watch_node *node = &w->nodes[i];
        if (node->conn != conn) {
            continue;
        }
        w->dropped = &c->nodes[i];
        w->dropped_instance = node->instance;
        node->conn = NO_CONN;
        w->members--;
        bool is_survived =
            is_by_itself || (w->is_hello && w->hello_conn != conn);
        if (is_survived && may_be_away(c, node)) {
            go_away(c, node);
        } else {
            lose(c, node);
        }
        return;
    }
}

void watch_hear_gone(struct cluster *c, const char *name)
{
    struct watch *w = c->watch;
    for (uint32_t i = 0; i < c->node_count; i++) {
        struct watch_node *node = &w->nodes[i];
        if (strcmp(c->nodes[i].name, name) != 0) {
            continue;
        }
        if (node->is_away) {
            node->is_away = false;
            lose(c, node);
            return;
        }
        if (node->conn != NO_CONN) {
            node->is_gone = true;
            return;
        }
    }
    if (w->generation == 0 && c->job.n_node_names > 0) {
        watch_decide(w, 40); /* else nobody knows the name */
    }
}

/* Has its keeper none of the ranks that all have just been told to start? */
static bool lacks_ranks(const struct cluster *c, const struct watch_node *node)
{
    const struct watch *w = c->watch;
    return c->job.mode == GPUL__JOB__MODE__RUN && !node->is_idle &&
           w->held_generation != w->generation;
}

static bool is_anybody_gone(const struct cluster *c)
{
    uint32_t known = 1; /* who returns */
    for (uint32_t i = 0; i < c->node_count; i++) {
        const struct watch_node *node = &c->watch->nodes[i];
        known += node->conn != NO_CONN || node->is_away;
    }
    return known < c->job.node_count;
}

void watch_see_return(struct cluster *c, struct watch_node *node)
{
    struct watch *w = c->watch;
    bool is_over = w->is_decided || w->is_by_time;
    WATCH_RULE(c, node->is_away || node->is_idle,
               "a node was welcomed after the gathering");
    WATCH_RULE(c, w->attach >= node->attach,
               "an agent came back from the dead");
    node->is_away = false;
    w->returns += w->is_launched && !is_over && !w->is_restarting;
    if (w->is_restarting || is_over ||
        (w->is_launched && !lacks_ranks(c, node))) {
        return;
    }
    bool has_read = w->input_bytes > c->input_window;
    if (w->anew == 2 || (w->is_launched && (is_anybody_gone(c) || has_read))) {
        watch_decide(w, w->has_launched ? 75 : 41);
    } else {
        w->anew++;
        w->is_restarting = true;
    }
}
