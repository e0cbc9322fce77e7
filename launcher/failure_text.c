/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/failure_text.h"

#include <string.h>

#include "common/rankset.h"
#include "common/units.h"
#include "proto/cause.h"

enum { DURATION_BYTES = 32, LINE_BYTES_MAX = 400, NODES_SHOWN = 4 };

/* ---- the first failure --------------------------------------------------- */

static void append_place(struct gpul_buf *out, const struct record *r,
                         uint32_t rank)
{
    const Gpul__Member *m = record_member(r, rank);
    gpul_buf_appendf(out, "rank %u", rank);
    if (m != NULL) {
        gpul_buf_appendf(out, " on node %s (%s)", m->node_name, m->hostname);
    }
}

static void append_header(struct gpul_buf *out, const struct record *r,
                          const Gpul__Exit *e)
{
    char cause[GPUL_CAUSE_BYTES], duration[DURATION_BYTES];
    gpul_buf_append_text(out, "first failure: ");
    append_place(out, r, e->rank);
    if (e->pid != 0) {
        gpul_buf_appendf(out, ", pid %u,", e->pid);
    }
    gpul_format_duration(duration, e->ran_ms);
    gpul_buf_appendf(out, " %s; it had run for %s\n", gpul_exit_cause(cause, e),
                     duration);
}

static void append_memory(struct gpul_buf *out, const Gpul__Exit *e)
{
    char size[DURATION_BYTES];
    if (e->signal != 0 && e->rss_bytes > 0 &&
        e->out_of_memory != GPUL__EXIT__OUT_OF_MEMORY__NO) {
        gpul_format_size(size, e->rss_bytes);
        gpul_buf_appendf(out, "  its memory was %s at most\n", size);
    }
}

/* Where the last `count` lines of `text` begin. */
static const char *last_lines(const char *text, size_t count)
{
    const char *at = text + strlen(text);
    while (at > text && (at[-1] != '\n' || --count > 0)) {
        at--;
    }
    return at;
}

/* A tab is as wide as it is; a very long line is cut. */
static void append_line(struct gpul_buf *out, const char *line, size_t n)
{
    size_t shown = n < LINE_BYTES_MAX ? n : LINE_BYTES_MAX;
    while (shown < n && shown > 0 &&
           ((unsigned char)line[shown] & 0xc0u) == 0x80u) {
        shown--;
    }
    gpul_buf_append_text(out, "  | ");
    for (size_t i = 0; i < shown; i++) {
        if (line[i] == '\t') {
            gpul_buf_append_text(out, "    ");
        } else {
            gpul_buf_append(out, line + i, 1);
        }
    }
    gpul_buf_append_text(out, shown < n ? "...\n" : "\n");
}

static void append_tail(struct gpul_buf *out, const char *line)
{
    if (line[0] == 0) {
        return;
    }
    gpul_buf_append_text(out, "  the end of its standard error:\n");
    while (line != NULL && line[0] != 0) {
        const char *end = strchr(line, '\n');
        append_line(out, line,
                    end != NULL ? (size_t)(end - line) : strlen(line));
        line = end != NULL ? end + 1 : NULL;
    }
}

/* What stands in the lines above is not said again. */
static void append_warnings(struct gpul_buf *out, const Gpul__Evidence *e,
                            const char *shown)
{
    for (size_t i = 0; i < e->n_nccl_warnings; i++) {
        if (strstr(shown, e->nccl_warnings[i]) == NULL) {
            gpul_buf_appendf(out, "  NCCL: %s\n", e->nccl_warnings[i]);
        }
    }
}

static void append_exception(struct gpul_buf *out,
                             const struct failure_exception *x,
                             const char *shown)
{
    const char *words = x->message[0] != 0 ? x->message : x->type;
    if (strstr(shown, words) == NULL) {
        gpul_buf_appendf(out, "  exception: %s%s%s\n", x->type,
                         x->type[0] != 0 && x->message[0] != 0 ? ": " : "",
                         x->message);
    }
    if (x->last[0] != 0) {
        gpul_buf_appendf(out, "  raised at %s", x->last);
        if (strcmp(x->first, x->last) != 0) {
            gpul_buf_appendf(out, ", from %s", x->first);
        }
        gpul_buf_append_text(out, "\n");
    }
}

static void append_rest(struct gpul_buf *out, const Gpul__Exit *e,
                        const struct failure_exception *exception)
{
    const char *shown = "";
    append_memory(out, e);
    if (e->evidence != NULL) {
        shown = last_lines(e->evidence->tail, FAILURE_TAIL_LINES_MAX);
        append_tail(out, shown);
        append_warnings(out, e->evidence, shown);
    }
    if (exception != NULL) {
        append_exception(out, exception, shown);
    }
}

/* ---- those after it ------------------------------------------------------ */

static bool is_equal(const Gpul__Exit *a, const Gpul__Exit *b)
{
    char one[GPUL_CAUSE_BYTES], other[GPUL_CAUSE_BYTES];
    return strcmp(gpul_exit_cause(one, a), gpul_exit_cause(other, b)) == 0;
}

/* Has one before it the same cause? Then it was told with that. */
static bool is_told(const Gpul__JobEnd *end, size_t index, size_t from)
{
    for (size_t i = from; i < index; i++) {
        if (!end->exits[i]->is_stopped &&
            is_equal(end->exits[i], end->exits[index])) {
            return true;
        }
    }
    return false;
}

static void append_other(struct gpul_buf *out, const struct record *r,
                         size_t index)
{
    const Gpul__JobEnd *end = r->end;
    const Gpul__Exit *e = end->exits[index];
    char cause[GPUL_CAUSE_BYTES], later[DURATION_BYTES];
    struct gpul_rankset ranks;
    gpul_rankset_init(&ranks);
    for (size_t i = index; i < end->n_exits; i++) {
        if (!end->exits[i]->is_stopped && is_equal(end->exits[i], e)) {
            gpul_rankset_add(&ranks, end->exits[i]->rank, end->exits[i]->rank);
        }
    }
    gpul_buf_append_text(out, "then failed: ");
    if (gpul_rankset_size(&ranks) > 1) {
        gpul_buf_append_text(out, "ranks ");
        gpul_rankset_format(out, &ranks);
        gpul_buf_append_text(out, " each");
    } else {
        append_place(out, r, e->rank);
    }
    gpul_format_duration(later, e->after_ms);
    gpul_buf_appendf(out, " %s, %s later\n", gpul_exit_cause(cause, e), later);
    gpul_rankset_release(&ranks);
}

/* `from`: 1 where the first exit is the first failure. */
static void append_others(struct gpul_buf *out, const struct record *r,
                          size_t from)
{
    const Gpul__JobEnd *end = r->end;
    size_t causes = 0;
    for (size_t i = from; i < end->n_exits; i++) {
        const Gpul__Exit *e = end->exits[i];
        bool is_first_again =
            from > 0 && e->exec_errno != 0 && is_equal(e, end->exits[0]);
        if (e->is_stopped || is_first_again || is_told(end, i, from)) {
            continue;
        }
        if (++causes <= FAILURE_OTHERS_MAX) {
            append_other(out, r, i);
        }
    }
    if (causes > FAILURE_OTHERS_MAX) {
        gpul_buf_appendf(out, "then failed: more, in %zu other ways\n",
                         causes - FAILURE_OTHERS_MAX);
    }
}

/* ---- those that were stopped --------------------------------------------- */

/* Of `ranks` those of this node; returns how many. */
static uint64_t append_of_node(struct gpul_buf *out, const Gpul__Member *m,
                               const struct gpul_rankset *ranks,
                               const char *before)
{
    struct gpul_rankset own;
    uint32_t last = m->first_rank + m->rank_count - 1;
    gpul_rankset_init(&own);
    for (size_t i = 0; i < ranks->count; i++) {
        uint32_t from = ranks->ranges[i].first;
        uint32_t to = ranks->ranges[i].last;
        from = from > m->first_rank ? from : m->first_rank;
        to = to < last ? to : last;
        if (from <= to) {
            gpul_rankset_add(&own, from, to);
        }
    }
    uint64_t count = gpul_rankset_size(&own);
    if (count > 0) {
        gpul_buf_append_text(out, before);
        gpul_rankset_format(out, &own);
        gpul_buf_appendf(out, " on node %s", m->node_name);
    }
    gpul_rankset_release(&own);
    return count;
}

static void append_by_node(struct gpul_buf *out, const struct record *r,
                           const struct gpul_rankset *ranks)
{
    uint64_t told = 0;
    size_t nodes = 0;
    for (size_t page = 0; page < r->page_count; page++) {
        for (size_t i = 0; i < r->pages[page]->n_members && nodes < NODES_SHOWN;
             i++) {
            uint64_t count = append_of_node(out, r->pages[page]->members[i],
                                            ranks, nodes > 0 ? "; " : ": ");
            told += count;
            nodes += count > 0 ? 1 : 0;
        }
    }
    if (nodes > 0 && told < r->end->stopped_count) {
        gpul_buf_appendf(out, "; and %u more",
                         r->end->stopped_count - (uint32_t)told);
    }
}

static void append_stopped(struct gpul_buf *out, const struct record *r)
{
    const Gpul__JobEnd *end = r->end;
    struct gpul_rankset ranks;
    gpul_rankset_init(&ranks);
    if (end->stopped_count > 0) {
        gpul_buf_appendf(out, "stopped after it: %u rank%s", end->stopped_count,
                         gpul_plural(end->stopped_count));
        if (gpul_rankset_parse(&ranks, end->stopped_ranks, NULL) == 0) {
            append_by_node(out, r, &ranks);
        }
        gpul_buf_append_text(out, "\n");
    }
    gpul_rankset_release(&ranks);
}

int failure_text(struct gpul_buf *out, const struct record *r,
                 const struct failure_exception *exception)
{
    const Gpul__JobEnd *end = r->end;
    bool is_asked_for = strcmp(end->reason, "canceled") == 0;
    if (end->exit_code == 0 || is_asked_for || record_world_size(r) < 2) {
        return 0;
    }
    bool has_first =
        end->has_rank && end->n_exits > 0 && end->exits[0]->rank == end->rank;
    size_t before = out->used;
    /* Without an exec it has left nothing, and the last line says why. */
    if (has_first && end->exits[0]->exec_errno == 0) {
        append_header(out, r, end->exits[0]);
    }
    size_t header = out->used;
    if (has_first) {
        append_rest(out, end->exits[0], exception);
    }
    append_others(out, r, has_first ? 1 : 0);
    append_stopped(out, r);
    if (out->used == header) {
        out->used = before; /* the last line says as much */
    }
    return out->is_failed ? GPUL_ELIMIT : 0;
}
