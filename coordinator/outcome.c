/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/outcome.h"

#include <errno.h>
#include <string.h>

#include "proto/cause.h"

void outcome_init(struct outcome *o)
{
    *o = (struct outcome){0};
    arena_init(&o->memory);
}

void outcome_release(struct outcome *o)
{
    arena_release(&o->memory);
    outcome_init(o);
}

bool outcome_decide(struct outcome *o, uint32_t code, const char *reason,
                    const struct node *node, const char *format, ...)
{
    if (o->is_decided) {
        return false;
    }
    o->is_decided = true;
    o->exit_code = code;
    o->reason = reason;
    o->node = node;
    va_list args;
    va_start(args, format);
    text_vformat(&o->text, format, args);
    va_end(args);
    return true;
}

bool exit_is_failure(const Gpul__Exit *fate)
{
    return fate->code != 0 || fate->signal != 0 || fate->exec_errno != 0;
}

/* The node was short of something; nothing is known of the command. */
static bool is_shortage(const Gpul__Exit *fate)
{
    return fate->exec_errno == EMFILE || fate->exec_errno == ENFILE ||
           fate->exec_errno == EAGAIN || fate->exec_errno == ENOMEM;
}

uint32_t exit_code(const Gpul__Exit *fate)
{
    if (is_shortage(fate)) {
        return OUTCOME_INTERNAL;
    }
    if (fate->exec_errno != 0) {
        return fate->exec_errno == ENOENT ? OUTCOME_NOT_FOUND
                                          : OUTCOME_NOT_EXECUTABLE;
    }
    if (fate->signal != 0) {
        uint32_t code = OUTCOME_SIGNAL_BASE + fate->signal % 128;
        return code;
    }
    /* The kernel has 8 bits for it; a liar's 256 must not look like 0. */
    return fate->code % 256 != 0 ? fate->code % 256 : 1;
}

static const char *reason_of(const Gpul__Exit *fate)
{
    if (fate->exec_errno != 0) {
        return is_shortage(fate) ? "internal" : "exec_failed";
    }
    return fate->signal != 0 ? "rank_signaled" : "rank_failed";
}

static char *keep(struct outcome *o, const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = arena_alloc(&o->memory, n);
    if (copy != NULL) {
        memcpy(copy, text, n);
    }
    return copy;
}

/* ---- what a rank has left ------------------------------------------------ */

static size_t evidence_bytes(const Gpul__Evidence *e)
{
    size_t bytes = 64 + strlen(e->tail) + e->error_file.len;
    for (size_t i = 0; i < e->n_nccl_warnings; i++) {
        bytes += strlen(e->nccl_warnings[i]) + 4;
    }
    return bytes;
}

static bool keep_warnings(struct outcome *o, Gpul__Evidence *copy,
                          const Gpul__Evidence *e)
{
    size_t n = e->n_nccl_warnings;
    copy->n_nccl_warnings = 0;
    copy->nccl_warnings = arena_alloc(&o->memory, (n + 1) * sizeof(char *));
    for (size_t i = 0; copy->nccl_warnings != NULL && i < n; i++) {
        copy->nccl_warnings[i] = keep(o, e->nccl_warnings[i]);
        copy->n_nccl_warnings += copy->nccl_warnings[i] != NULL ? 1 : 0;
    }
    return copy->nccl_warnings != NULL && copy->n_nccl_warnings == n;
}

static bool keep_error_file(struct outcome *o, Gpul__Evidence *copy,
                            const Gpul__Evidence *e)
{
    size_t n = e->error_file.len;
    copy->error_file.data = n > 0 ? arena_alloc(&o->memory, n) : NULL;
    if (n > 0 && copy->error_file.data != NULL) {
        memcpy(copy->error_file.data, e->error_file.data, n);
    }
    return n == 0 || copy->error_file.data != NULL;
}

/* NULL without memory. */
static Gpul__Evidence *keep_evidence(struct outcome *o, const Gpul__Evidence *e)
{
    Gpul__Evidence *copy = arena_alloc(&o->memory, sizeof(*copy));
    if (copy == NULL) {
        return NULL;
    }
    *copy = *e;
    copy->base.n_unknown_fields = 0;
    copy->base.unknown_fields = NULL;
    copy->tail = keep(o, e->tail);
    bool is_whole = copy->tail != NULL && keep_warnings(o, copy, e) &&
                    keep_error_file(o, copy, e);
    return is_whole ? copy : NULL;
}

/* The first ones only; of a rank that was stopped there is none to tell. */
static void add_evidence(struct outcome *o, Gpul__Exit *copy)
{
    const Gpul__Evidence *e = copy->evidence;
    copy->evidence = NULL;
    if (e == NULL || copy->is_stopped ||
        o->evidence_count == GPUL_EVIDENCES_MAX ||
        evidence_bytes(e) > OUTCOME_EXITS_BYTES_MAX - o->exit_bytes) {
        return;
    }
    copy->evidence = keep_evidence(o, e);
    if (copy->evidence != NULL) {
        o->evidence_count++;
        o->exit_bytes += evidence_bytes(e);
    }
}

/* Those that were stopped leave room for failures of their own. */
static bool has_room(const struct outcome *o, bool is_stopped)
{
    return o->exit_count < GPUL_JOB_END_EXITS_MAX &&
           (!is_stopped || o->stopped_count < OUTCOME_STOPPED_MAX);
}

/* A record that finds no room is left out: the first is what matters. */
static void record_exit(struct outcome *o, const Gpul__Exit *fate,
                        bool is_stopped, uint64_t now_ms)
{
    size_t bytes = strlen(fate->text) + strlen(fate->log) + 96;
    if (!has_room(o, is_stopped) ||
        bytes > OUTCOME_EXITS_BYTES_MAX - o->exit_bytes) {
        return;
    }
    Gpul__Exit *copy = arena_alloc(&o->memory, sizeof(*copy));
    char *text = keep(o, fate->text);
    char *log = keep(o, fate->log);
    if (copy == NULL || text == NULL || log == NULL) {
        return;
    }
    *copy = *fate;
    copy->base.n_unknown_fields = 0;
    copy->base.unknown_fields = NULL;
    copy->text = text;
    copy->log = log;
    copy->metric = wire_text(""); /* an event of its own has told it */
    copy->is_stopped = is_stopped;
    copy->after_ms = o->has_rank ? now_ms - o->decided_ms : 0;
    o->exit_bytes += bytes;
    add_evidence(o, copy);
    o->exits[o->exit_count++] = copy;
    o->stopped_count += is_stopped ? 1 : 0;
}

bool outcome_rank_failed(struct outcome *o, const struct node *node,
                         const Gpul__Exit *fate, uint64_t now_ms)
{
    char cause[GPUL_CAUSE_BYTES];
    bool has_log = fate->log[0] != 0;
    bool decides =
        outcome_decide(o, exit_code(fate), reason_of(fate), node,
                       "rank %u on node %s (%s) %s%s%s", fate->rank, node->name,
                       node_hostname(node), gpul_exit_cause(cause, fate),
                       has_log ? "; its log: " : "", has_log ? fate->log : "");
    if (decides) {
        o->has_rank = true;
        o->rank = fate->rank;
        o->decided_ms = now_ms;
    }
    if (o->exit_code != OUTCOME_SUCCESS) {
        record_exit(o, fate, false, now_ms);
    }
    return decides;
}

void outcome_rank_stopped(struct outcome *o, const Gpul__Exit *fate,
                          uint64_t now_ms)
{
    if (o->exit_code != OUTCOME_SUCCESS) {
        record_exit(o, fate, true, now_ms);
    }
}

void outcome_add_unclean(struct outcome *o, const struct node *node,
                         const char *what)
{
    struct text line;
    if (o->unclean_count == GPUL_UNCLEAN_MAX) {
        return;
    }
    text_format(&line, "%s: %s", node->name, what);
    if (strlen(line.bytes) > GPUL_UNCLEAN_BYTES_MAX) {
        line.bytes[text_whole_bytes(line.bytes, GPUL_UNCLEAN_BYTES_MAX)] = 0;
    }
    char *copy = keep(o, line.bytes);
    if (copy != NULL) {
        o->unclean[o->unclean_count++] = copy;
    }
}

void outcome_fill(struct outcome *o, Gpul__JobEnd *end)
{
    end->exit_code = o->exit_code;
    end->reason = wire_text(o->reason);
    end->text = o->text.bytes;
    end->has_rank = o->has_rank;
    end->rank = o->rank;
    if (o->node != NULL) {
        end->node_name = wire_text(o->node->name);
        end->hostname = wire_text(node_hostname(o->node));
    }
    if (o->has_rank && o->exit_count > 0) {
        end->log = o->exits[0]->log;
    }
    end->unclean = o->unclean;
    end->n_unclean = o->unclean_count;
    end->exits = o->exits;
    end->n_exits = o->exit_count;
}
