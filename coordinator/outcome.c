/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/outcome.h"

#include <errno.h>
#include <string.h>

#include "common/signals.h"

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

/* "exited with code 7", and the reason's token. */
static const char *describe(struct text *cause, const Gpul__Exit *fate)
{
    if (fate->exec_errno != 0) {
        text_format(cause, "could not start: %s", fate->text);
        return is_shortage(fate) ? "internal" : "exec_failed";
    }
    if (fate->signal != 0) {
        char name[GPUL_SIGNAL_TEXT_BYTES];
        text_format(cause, "was ended by %s",
                    gpul_format_signal(name, fate->signal));
        return "rank_signaled";
    }
    text_format(cause, "exited with code %u", fate->code);
    return "rank_failed";
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

/* A record that finds no room is left out: the first is what matters. */
static void record_exit(struct outcome *o, const Gpul__Exit *fate)
{
    size_t bytes = strlen(fate->text) + strlen(fate->log) + 64;
    if (o->exit_count == GPUL_JOB_END_EXITS_MAX ||
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
    o->exits[o->exit_count++] = copy;
    o->exit_bytes += bytes;
}

bool outcome_rank_failed(struct outcome *o, const struct node *node,
                         const Gpul__Exit *fate)
{
    struct text cause;
    const char *reason = describe(&cause, fate);
    bool has_log = fate->log[0] != 0;
    bool decides = outcome_decide(
        o, exit_code(fate), reason, node, "rank %u on node %s (%s) %s%s%s",
        fate->rank, node->name, node_hostname(node), cause.bytes,
        has_log ? "; its log: " : "", has_log ? fate->log : "");
    if (decides) {
        o->has_rank = true;
        o->rank = fate->rank;
    }
    if (o->exit_code != OUTCOME_SUCCESS) {
        record_exit(o, fate);
    }
    return decides;
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
