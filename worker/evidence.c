/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/evidence.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/text.h"

#define ESCAPE '\x1b'
#define BELL '\a'

static const char CUT_MARK[] = "...";

/* ---- the last lines ------------------------------------------------------ */

static bool is_between(char c, char low, char high)
{
    return c >= low && c <= high;
}

/* Where an escape sequence that begins at `at` ends (ECMA-48: CSI, strings,
 * and those of two or three bytes). One that is cut off takes all. */
static size_t escape_end(const char *bytes, size_t n, size_t at)
{
    char kind = at + 1 < n ? bytes[at + 1] : 0;
    size_t i = at + 2;
    if (kind == '[') {
        while (i < n && is_between(bytes[i], ' ', '?')) {
            i++;
        }
        return i < n && is_between(bytes[i], '@', '~') ? i + 1 : i;
    }
    if (kind != 0 && strchr("]PX^_", kind) != NULL) {
        while (i < n && bytes[i] != BELL && bytes[i] != '\n' &&
               bytes[i] != ESCAPE) {
            i++;
        }
        bool is_st = i + 1 < n && bytes[i] == ESCAPE && bytes[i + 1] == '\\';
        return is_st ? i + 2 : i < n && bytes[i] == BELL ? i + 1 : i;
    }
    return is_between(kind, ' ', '/') ? i + 1 : i;
}

struct pen {
    char *out;
    size_t used;
    size_t line;      /* where the current line begins */
    bool is_at_start; /* a carriage return: what follows replaces the line */
};

static void put(struct pen *p, char c)
{
    if (c == '\r') {
        p->is_at_start = true;
        return;
    }
    if (p->is_at_start && c != '\n') {
        p->used = p->line;
    }
    p->is_at_start = false;
    p->out[p->used++] = c != 0 ? c : '?';
    if (c == '\n') {
        p->line = p->used;
    }
}

/* Where the first whole line begins; 0: there is none. */
static size_t whole_line(const char *bytes, size_t n)
{
    const char *end = memchr(bytes, '\n', n);
    size_t at = end != NULL ? (size_t)(end - bytes) + 1 : 0;
    return at < n ? at : 0;
}

static size_t trim(char *text, size_t n)
{
    while (n > 0 && strchr("\n\t ", text[n - 1]) != NULL) {
        n--;
    }
    text[n] = 0;
    return n;
}

size_t evidence_tail(char out[GPUL_TAIL_BYTES_MAX + 1], const char *bytes,
                     size_t n, bool is_cut)
{
    struct pen pen = {.out = out};
    size_t i = 0;
    if (n > GPUL_TAIL_BYTES_MAX) {
        i = n - GPUL_TAIL_BYTES_MAX;
        is_cut = true;
    }
    if (is_cut) {
        size_t skipped = whole_line(bytes + i, n - i);
        size_t mark = skipped == 0 ? sizeof(CUT_MARK) - 1 : 0;
        memcpy(out, CUT_MARK, mark);
        pen.used = mark;
        i += skipped > 0 ? skipped : mark;
        while (i < n && ((unsigned char)bytes[i] & 0xc0u) == 0x80u) {
            i++; /* the rest of a character that was cut */
        }
    }
    while (i < n) {
        if (bytes[i] == ESCAPE) {
            i = escape_end(bytes, n, i);
        } else {
            put(&pen, bytes[i++]);
        }
    }
    out[pen.used] = 0;
    gpul_text_clean(out, GPUL_TAIL_BYTES_MAX);
    return trim(out, strlen(out));
}

/* ---- NCCL ---------------------------------------------------------------- */

/* What all that is looked for has in it: a block without is passed over. */
static const char *const stems[] = {"NCCL", "nccl", "Watchdog caught"};

/* NCCL's own warnings (its src/debug.cc), its results by name (nccl.h), and
 * how PyTorch tells of both (ProcessGroupNCCL, NCCLUtils). */
static const char *const phrases[] = {
    "NCCL WARN",
    "NCCL error",
    "ncclUnhandledCudaError",
    "ncclSystemError",
    "ncclInternalError",
    "ncclInvalidArgument",
    "ncclInvalidUsage",
    "ncclRemoteError",
    "Watchdog caught collective operation timeout",
};

/* PyTorch puts NCCL's last words on the line after this. */
static const char ANNOUNCEMENT[] = "Last error:";

static bool has(const char *bytes, size_t n, const char *phrase)
{
    return memmem(bytes, n, phrase, strlen(phrase)) != NULL;
}

static bool has_any(const char *bytes, size_t n, const char *const *list,
                    size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (has(bytes, n, list[i])) {
            return true;
        }
    }
    return false;
}

#define HAS_ANY(bytes, n, list)                                                \
    has_any(bytes, n, list, sizeof(list) / sizeof((list)[0]))

static void keep_line(struct evidence_nccl *e, const char *bytes, size_t n)
{
    char text[GPUL_TAIL_BYTES_MAX + 1];
    size_t used = evidence_tail(text, bytes, n, false);
    gpul_text_clean_line(text, GPUL_NCCL_WARNING_BYTES_MAX);
    for (size_t i = 0; i < e->count; i++) {
        if (strcmp(e->found[i], text) == 0) {
            return;
        }
    }
    if (used > 0 && e->count < GPUL_NCCL_WARNINGS_MAX) {
        char *copy = strdup(text);
        if (copy != NULL) {
            e->found[e->count++] = copy;
        }
    }
}

static void judge_line(struct evidence_nccl *e, unsigned stream)
{
    const char *bytes = e->open[stream].bytes;
    size_t n = e->open[stream].used;
    if (e->open[stream].is_wanted || HAS_ANY(bytes, n, phrases)) {
        keep_line(e, bytes, n);
    }
    /* Only of one that has told of NCCL before. */
    e->open[stream].is_wanted = e->count > 0 && has(bytes, n, ANNOUNCEMENT);
    e->open[stream].used = 0;
}

/* The beginning of a line is enough. */
static void add_to_line(struct evidence_nccl *e, unsigned stream,
                        const char *bytes, size_t n)
{
    size_t room = EVIDENCE_LINE_BYTES - e->open[stream].used;
    n = n < room ? n : room;
    memcpy(e->open[stream].bytes + e->open[stream].used, bytes, n);
    e->open[stream].used += n;
}

/* How much of it can hold nothing of interest: all but its last line. */
static size_t dull(const struct evidence_nccl *e, unsigned stream,
                   const char *bytes, size_t n)
{
    const char *end = memrchr(bytes, '\n', n);
    bool is_dull = end != NULL && e->open[stream].used == 0 &&
                   !e->open[stream].is_wanted && e->count == 0 &&
                   !HAS_ANY(bytes, n, stems);
    return is_dull ? (size_t)(end - bytes) + 1 : 0;
}

void evidence_nccl_take(struct evidence_nccl *e, unsigned stream,
                        const char *bytes, size_t n)
{
    assert(stream < EVIDENCE_STREAMS);
    while (n > 0 && e->count < GPUL_NCCL_WARNINGS_MAX) {
        size_t skipped = dull(e, stream, bytes, n);
        bytes += skipped;
        n -= skipped;
        const char *end = n > 0 ? memchr(bytes, '\n', n) : NULL;
        size_t length = end != NULL ? (size_t)(end - bytes) : n;
        add_to_line(e, stream, bytes, length);
        if (end == NULL) {
            return;
        }
        judge_line(e, stream);
        bytes += length + 1;
        n -= length + 1;
    }
}

void evidence_nccl_end(struct evidence_nccl *e)
{
    for (unsigned stream = 0; stream < EVIDENCE_STREAMS; stream++) {
        if (e->open[stream].used > 0) {
            judge_line(e, stream);
        }
    }
}

void evidence_nccl_release(struct evidence_nccl *e)
{
    for (size_t i = 0; i < e->count; i++) {
        free(e->found[i]);
    }
    *e = (struct evidence_nccl){0};
}

/* ---- the kernel's log ---------------------------------------------------- */

/* The number that stands behind `before` and is followed by `after`. */
static int32_t number_behind(const char *record, size_t n, const char *before,
                             char after)
{
    const char *at = memmem(record, n, before, strlen(before));
    int64_t number = 0;
    if (at == NULL) {
        return 0;
    }
    const char *end = record + n;
    at += strlen(before);
    while (at < end && is_between(*at, '0', '9') && number < INT32_MAX) {
        number = 10 * number + (*at++ - '0');
    }
    bool is_whole = at < end && *at == after && number <= INT32_MAX;
    return is_whole ? (int32_t)number : 0;
}

int32_t evidence_oom_pid(const char *record, size_t n)
{
    int32_t pid = number_behind(record, n, "Killed process ", ' ');
    if (pid == 0 && has(record, n, "oom-kill:")) {
        pid = number_behind(record, n, ",pid=", ',');
    }
    return pid;
}

Gpul__Exit__OutOfMemory evidence_judge_memory(const struct evidence_memory *m)
{
    if (m->is_killed && m->is_in_log) {
        return GPUL__EXIT__OUT_OF_MEMORY__KERNEL;
    }
    bool may_be_another = m->is_killed && m->is_log_whole;
    if (m->has_counted && !may_be_another) {
        return GPUL__EXIT__OUT_OF_MEMORY__CGROUP;
    }
    return m->is_killed && (m->has_counter || m->is_log_whole)
               ? GPUL__EXIT__OUT_OF_MEMORY__NO
               : GPUL__EXIT__OUT_OF_MEMORY__UNKNOWN;
}
