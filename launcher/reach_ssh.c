/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes that are reached by ssh: one session each, AT_ONCE of them on their way
 * at a time, tried again where the other side only had too much to do; then
 * with half as many at a time, and one more for each that got through.
 *
 * What stands for a node here is the ssh process. Before the node has joined,
 * its end is the node's end; after that the control channel decides, and a
 * session that is lost ends nothing.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "common/clock.h"
#include "common/units.h"
#include "launcher/reach_ssh_internal.h"
#include "proto/orders.h"

enum {
    AT_ONCE = 32,
    AT_ONCE_MIN = 2,
    RETRY_FIRST_MS = 200,
    RETRY_LAST_MS = 5000,
    LINES_BYTES = 4096,   /* of what ssh and the host have said last */
    SILENT_TRIES_MAX = 2, /* each has taken ssh's own time */
    MARGIN_MS = 1000,     /* before the coordinator's own bound */
    NAMES_BYTES = 200,    /* of nodes in a sentence */
};

static void pump(struct ssh_way *way);

static struct ssh_way *way_of(const struct reach *r)
{
    return r->state;
}

/* ---- ends ---------------------------------------------------------------- */

static int exit_code(const struct reach_child *child)
{
    return WIFSIGNALED(child->status) ? 128 + WTERMSIG(child->status)
                                      : WEXITSTATUS(child->status);
}

/* What has come of it, and ssh's or the worker's words for that. */
static enum ssh_fault fault_of(char words[REACH_WORDS_BYTES + 1],
                               const struct ssh_node *node)
{
    char lines[LINES_BYTES];
    const struct reach_child *child = &node->way->reach->workers[node->index];
    int code = exit_code(child);
    reach_lines(lines, sizeof(lines), child);
    ssh_choose_words(words, REACH_WORDS_BYTES + 1, code, lines,
                     node->has_greeted);
    return node->fault != SSH_FAULT_OTHER ? node->fault
           : node->tries == 0             ? SSH_FAULT_NOT_TRIED
                              : ssh_judge(code, lines, node->has_greeted);
}

static void leave_start(struct ssh_node *node, enum ssh_state state)
{
    struct ssh_way *way = node->way;
    if (node->state == SSH_STARTING) {
        way->starting--;
    } else if (node->state == SSH_WAITING) {
        way->reach->waiting--;
    }
    node->state = state;
}

/* It has no child, and will have none. */
static void give_up(struct ssh_node *node, enum ssh_fault fault,
                    const char *found)
{
    struct reach *r = node->way->reach;
    struct reach_child *child = &r->workers[node->index];
    leave_start(node, SSH_DONE);
    if (fault != SSH_FAULT_OTHER) {
        node->fault = fault;
        snprintf(node->found, sizeof(node->found), "%s", found);
    }
    child->has_ended = true;
}

/* Doubled, and drawn between half and the whole of it. */
static uint64_t wait_ms(struct ssh_node *node)
{
    uint64_t wait = RETRY_FIRST_MS;
    for (uint32_t i = 1; i < node->tries && wait < RETRY_LAST_MS; i++) {
        wait *= 2;
    }
    return wait / 2 + gpul_rng_below(&node->way->rng, wait / 2 + 1);
}

static bool may_try_again(struct ssh_node *node, enum ssh_fault fault)
{
    return !node->way->is_stopping && !node->has_greeted &&
           ssh_is_transient(fault) &&
           (fault != SSH_FAULT_SILENT || node->tries < SILENT_TRIES_MAX);
}

static bool ended(struct reach *r, uint32_t index)
{
    struct ssh_way *way = way_of(r);
    struct ssh_node *node = &way->nodes[index];
    char words[REACH_WORDS_BYTES + 1];
    ssh_session_close(node);
    uint64_t retry_ms = gpul_clock_ms() + wait_ms(node);
    bool is_retried =
        may_try_again(node, fault_of(words, node)) && retry_ms < way->join_ms;
    leave_start(node, is_retried ? SSH_WAITING : SSH_DONE);
    if (is_retried) {
        way->at_once =
            way->at_once / 2 > AT_ONCE_MIN ? way->at_once / 2 : AT_ONCE_MIN;
        node->retry_ms = retry_ms;
        r->waiting++;
        way->next = index < way->next ? index : way->next;
    }
    pump(way);
    return is_retried;
}

static Gpul__NodeGone__Why describe(struct reach *r, struct gpul_buf *out,
                                    uint32_t index)
{
    struct ssh_way *way = way_of(r);
    const struct ssh_node *node = &way->nodes[index];
    const struct reach_child *child = &r->workers[index];
    char words[REACH_WORDS_BYTES + 1];
    enum ssh_fault fault = fault_of(words, node);
    if (node->has_greeted && fault == SSH_FAULT_OTHER) {
        gpul_buf_append_text(out, exit_code(child) == 255
                                      ? "its ssh session "
                                      : "gpulaunch-worker ");
        reach_describe(out, child);
    } else {
        ssh_explain(out, fault, way->plan->nodes.list[index].name,
                    node->found[0] != '\0' ? node->found : words);
    }
    return ssh_why(fault);
}

/* ---- starting ------------------------------------------------------------ */

static int start_node(struct ssh_node *node, struct gpul_error *err)
{
    leave_start(node, SSH_STARTING);
    node->way->starting++;
    return ssh_session_start(node, err);
}

static void on_timer(uv_timer_t *timer);

static void arm(struct ssh_way *way, uint64_t next_ms)
{
    uint64_t now_ms = gpul_clock_ms();
    uv_update_time(way->reach->loop);
    uv_timer_start(&way->timer, on_timer,
                   next_ms > now_ms ? next_ms - now_ms : 0, 0);
}

/* Those that are due, as many as may be. Returns when the next one is. */
static uint64_t start_due(struct ssh_way *way, int *rc, struct gpul_error *err)
{
    uint64_t now_ms = gpul_clock_ms(), next_ms = way->join_ms;
    bool is_first = true;
    *rc = 0;
    for (uint32_t i = way->next; i < way->reach->worker_count; i++) {
        struct ssh_node *node = &way->nodes[i];
        if (node->state != SSH_WAITING) {
            way->next = is_first ? i + 1 : way->next;
            continue;
        }
        is_first = false;
        if (way->starting >= way->at_once) {
            break;
        }
        if (node->retry_ms > now_ms) {
            next_ms = node->retry_ms < next_ms ? node->retry_ms : next_ms;
            continue;
        }
        *rc = start_node(node, err);
        if (*rc != 0) {
            give_up(node, SSH_FAULT_NOT_STARTED, err->text);
            break;
        }
    }
    return next_ms;
}

static void pump(struct ssh_way *way)
{
    struct gpul_error err = {0};
    int rc;
    if (way->is_stopping || way->is_closed) {
        return;
    }
    uint64_t next_ms = start_due(way, &rc, &err);
    arm(way, next_ms);
    if (rc != 0) {
        way->reach->on_change(way->reach->arg);
    }
}

void ssh_greeted(struct ssh_node *node)
{
    leave_start(node, SSH_GREETED);
    node->way->at_once += node->way->at_once < AT_ONCE;
    pump(node->way);
}

/* Whom the nodes that wait for their turn have waited for. */
static void describe_starting(char out[SSH_LINE_BYTES],
                              const struct ssh_way *way)
{
    struct node list[AT_ONCE];
    struct nodes starting = {.list = list};
    struct gpul_buf names;
    for (uint32_t i = 0; i < way->reach->worker_count; i++) {
        if (way->nodes[i].state == SSH_STARTING && starting.count < AT_ONCE) {
            list[starting.count++] = way->plan->nodes.list[i];
        }
    }
    gpul_buf_init(&names, SSH_LINE_BYTES);
    nodes_append_names(&names, &starting, NAMES_BYTES);
    const char *text = gpul_buf_text(&names);
    snprintf(out, SSH_LINE_BYTES, "%u session%s still on the way%s%.400s",
             way->starting, gpul_plural(way->starting),
             text != NULL ? ": " : "", text != NULL ? text : "");
    gpul_buf_release(&names);
}

/* The time to join is over: whoever has not come by now is told of with what
 * is known, before the coordinator only knows that somebody is missing. */
static void give_up_all(struct ssh_way *way)
{
    char starting[SSH_LINE_BYTES];
    describe_starting(starting, way);
    way->is_stopping = true;
    for (uint32_t i = 0; i < way->reach->worker_count; i++) {
        struct ssh_node *node = &way->nodes[i];
        if (node->state == SSH_WAITING && node->tries == 0) {
            give_up(node, SSH_FAULT_NOT_TRIED, starting);
        } else if (node->state == SSH_WAITING) {
            give_up(node, SSH_FAULT_OTHER, "");
        } else if (node->state == SSH_STARTING) {
            node->fault = SSH_FAULT_SLOW;
            kill(way->reach->workers[i].pid, SIGTERM);
        }
    }
    way->reach->on_change(way->reach->arg);
}

static void on_timer(uv_timer_t *timer)
{
    struct ssh_way *way = timer->data;
    if (gpul_clock_ms() >= way->join_ms) {
        give_up_all(way);
    } else {
        pump(way);
    }
}

/* Four descriptors for a session: take all that may be had. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int start(struct reach *r, const struct reach_job *job,
                 struct gpul_error *err)
{
    struct ssh_way *way = way_of(r);
    uint32_t bound_ms = job->plan->join_timeout_ms;
    uint64_t seed = 0;
    int rc;
    raise_descriptor_limit();
    if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed)) {
        return gpul_fail_errno(err, errno, "no random bytes");
    }
    gpul_rng_init(&way->rng, seed);
    snprintf(way->job_id, sizeof(way->job_id), "%s", job->job_id);
    way->listening = *job->listening;
    way->is_sealed = job->secret != NULL;
    if (way->is_sealed) {
        way->secret = *job->secret;
    }
    way->join_ms = job->started_ms + bound_ms -
                   (bound_ms / 4 < MARGIN_MS ? bound_ms / 4 : MARGIN_MS);
    uv_timer_init(r->loop, &way->timer);
    way->timer.data = way;
    way->at_once = AT_ONCE;
    r->waiting = r->worker_count;
    arm(way, start_due(way, &rc, err));
    return rc;
}

/* ---- ending -------------------------------------------------------------- */

/* Whoever signals wants the end: nobody is started any more. */
static void signal_node(struct reach *r, uint32_t index, int number)
{
    struct ssh_way *way = way_of(r);
    struct ssh_node *node = &way->nodes[index];
    pid_t pid = r->workers[index].pid;
    way->is_stopping = true;
    if (node->state == SSH_WAITING) {
        give_up(node, SSH_FAULT_OTHER, "");
    } else if (node->state == SSH_GREETED && number == SIGTERM) {
        ssh_session_write(node, GPUL_ORDERS_STOP, sizeof(GPUL_ORDERS_STOP) - 1);
    } else if (pid > 0) {
        kill(pid, number);
    }
}

static void close_way(struct reach *r)
{
    struct ssh_way *way = way_of(r);
    if (way == NULL || way->is_closed || way->timer.data == NULL) {
        return;
    }
    way->is_closed = true;
    uv_close((uv_handle_t *)&way->timer, NULL);
    for (uint32_t i = 0; i < r->worker_count; i++) {
        ssh_session_close(&way->nodes[i]);
    }
}

static void release(struct reach *r)
{
    struct ssh_way *way = way_of(r);
    if (way == NULL) {
        return;
    }
    gpul_wipe(&way->secret, sizeof(way->secret));
    if (way->program != NULL) {
        munmap(way->program, way->program_bytes);
    }
    free(way->script);
    ssh_free_words(way->ssh);
    free(way->addresses);
    free(way->nodes);
    free(way);
    r->state = NULL;
}

const struct reach_way reach_ssh = {
    .prepare = ssh_prepare,
    .start = start,
    .ended = ended,
    .signal = signal_node,
    .describe = describe,
    .close = close_way,
    .release = release,
};
