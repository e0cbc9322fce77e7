/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/checktable.h"

#include <inttypes.h>
#include <string.h>

#include "common/error.h"
#include "common/units.h"
#include "launcher/table.h"
#include "proto/limits.h"

enum {
    INDENT = 4,
    WRAP_WIDTH_MIN = 40,
    TABLE_WIDTH = 80, /* where the terminal's is not known */
};

#define RED "\x1b[31m"
#define GREEN "\x1b[32m"
#define YELLOW "\x1b[33m"
#define PLAIN "\x1b[0m"

static const struct {
    Gpul__Finding__Severity severity;
    const char *word;
    const char *color;
} groups[] = {
    {GPUL__FINDING__SEVERITY__FAIL, "FAIL", RED},
    {GPUL__FINDING__SEVERITY__UNKNOWN, "UNKNOWN", YELLOW},
    {GPUL__FINDING__SEVERITY__WARN, "WARN", YELLOW},
    {GPUL__FINDING__SEVERITY__PASS, "PASS", GREEN},
};

/* ---- lines --------------------------------------------------------------- */

/* How much of the text goes into a line of `room` columns: up to a blank, or
 * all that fits where there is none. Bytes stand for columns: names and
 * figures are ASCII. */
static size_t line_bytes(const char *text, size_t room)
{
    size_t n = strlen(text);
    if (n <= room) {
        return n;
    }
    for (n = room; n > 0 && text[n] != ' '; n--) {
    }
    return n > 0 ? n : strcspn(text, " ");
}

/* A sentence, indented; what it goes on with two columns more. */
static void append_wrapped(struct gpul_buf *out, const struct checktable *t,
                           const char *lead, const char *text)
{
    size_t used = INDENT + strlen(lead);
    gpul_buf_appendf(out, "%*s%s", INDENT, "", lead);
    while (t->width >= WRAP_WIDTH_MIN && strlen(text) + used > t->width) {
        size_t n = line_bytes(text, t->width - used);
        gpul_buf_append(out, text, n);
        text += n + strspn(text + n, " ");
        if (text[0] == 0) {
            break;
        }
        used = INDENT + 2;
        gpul_buf_appendf(out, "\n%*s", (int)used, "");
    }
    gpul_buf_appendf(out, "%s\n", text);
}

static void append_colored(struct gpul_buf *out, const struct checktable *t,
                           const char *color, const char *text)
{
    gpul_buf_appendf(out, "%s%s%s", t->has_color ? color : "", text,
                     t->has_color ? PLAIN : "");
}

/* ---- findings ------------------------------------------------------------ */

/* Where the sentence does not say them. */
static void append_values(struct gpul_buf *out, const struct checktable *t,
                          const Gpul__Finding *f)
{
    struct gpul_buf line;
    bool has_value = f->value[0] != 0 && strstr(f->text, f->value) == NULL;
    bool has_expected =
        f->expected[0] != 0 && strstr(f->text, f->expected) == NULL;
    if (!has_value && !has_expected) {
        return;
    }
    gpul_buf_init(&line, GPUL_TEXT_BYTES_MAX);
    if (has_value) {
        gpul_buf_appendf(&line, "found %s%s", f->value,
                         has_expected ? ", " : "");
    }
    if (has_expected) {
        gpul_buf_appendf(&line, "expected %s", f->expected);
    }
    const char *text = gpul_buf_text(&line);
    if (text != NULL) {
        append_wrapped(out, t, "", text);
    }
    gpul_buf_release(&line);
}

static void append_finding(struct gpul_buf *out, const struct checktable *t,
                           size_t group, const Gpul__Finding *f)
{
    append_colored(out, t, groups[group].color, groups[group].word);
    gpul_buf_appendf(out, "%*s%s", (int)(8 - strlen(groups[group].word)), "",
                     f->id);
    if (f->nodes[0] != 0) {
        gpul_buf_appendf(out, "  %s", f->nodes);
    }
    gpul_buf_append_text(out, "\n");
    append_wrapped(out, t, "", f->text);
    if (f->severity != GPUL__FINDING__SEVERITY__PASS) {
        append_values(out, t, f);
        if (f->remedy[0] != 0) {
            append_wrapped(out, t, "-> ", f->remedy);
        }
    }
}

/* Returns the first that failed, or is not known, or is a warning. */
static const Gpul__Finding *append_findings(struct gpul_buf *out,
                                            const struct checktable *t)
{
    const Gpul__Finding *first = NULL;
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        bool is_pass = groups[i].severity == GPUL__FINDING__SEVERITY__PASS;
        struct checkbook_place at = {0};
        const Gpul__Finding *f;
        while ((!is_pass || t->has_passes) &&
               (f = checkbook_next(t->book, groups[i].severity, &at)) != NULL) {
            append_finding(out, t, i, f);
            first = first != NULL || is_pass ? first : f;
        }
    }
    return first;
}

/* ---- the end ------------------------------------------------------------- */

static void append_figures(struct gpul_buf *out, const struct checktable *t)
{
    const Gpul__Event *event = t->record->self_test;
    if (event != NULL && event->n_rows > 0) {
        table_self_test(out, event, t->node_count,
                        t->width > 0 ? t->width : TABLE_WIDTH);
    }
}

/* What a coordinator that was lost did not tell is counted here. */
static void count(Gpul__FindingCounts *out, const struct checktable *t)
{
    uint32_t *const counts[] = {&out->failed, &out->unknown, &out->warned,
                                &out->passed};
    gpul__finding_counts__init(out);
    if (t->record->end->findings != NULL) {
        *out = *t->record->end->findings;
        return;
    }
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        struct checkbook_place at = {0};
        while (checkbook_next(t->book, groups[i].severity, &at) != NULL) {
            (*counts[i])++;
        }
    }
}

static bool is_early(const struct checktable *t)
{
    const char *reason = t->record->end->reason;
    return strncmp(reason, "check_", 6) != 0 && strcmp(reason, "success") != 0;
}

static void append_end(struct gpul_buf *out, const struct checktable *t,
                       const Gpul__Finding *first)
{
    Gpul__FindingCounts c;
    bool is_good = t->exit_code == 0;
    count(&c, t);
    if (t->record->is_simulated) {
        gpul_buf_append_text(out, "SIMULATED ");
    }
    append_colored(out, t, is_good ? GREEN : RED,
                   is_good       ? "PASSED"
                   : is_early(t) ? "ENDED EARLY"
                                 : "FAILED");
    gpul_buf_appendf(
        out,
        "  %" PRIu32 " node%s: %" PRIu32 " failed, %" PRIu32
        " unknown, %" PRIu32 " warning%s, %" PRIu32 " passed; exit code %d\n",
        t->node_count, gpul_plural(t->node_count), c.failed, c.unknown,
        c.warned, gpul_plural(c.warned), c.passed, t->exit_code);
    if (c.untold > 0) {
        gpul_buf_appendf(out, "%*s%" PRIu32 " of these are not listed\n",
                         INDENT, "", c.untold);
    }
    if (is_early(t)) {
        append_wrapped(out, t, "", t->record->end->text);
    } else if (!is_good && first != NULL) {
        gpul_buf_appendf(out, "%*sbegin with %s%s%s\n", INDENT, "", first->id,
                         first->nodes[0] != 0 ? " on " : "", first->nodes);
    }
}

int checktable_print(struct gpul_buf *out, const struct checktable *t)
{
    const Gpul__Finding *first = append_findings(out, t);
    append_figures(out, t);
    append_end(out, t, first);
    return out->is_failed ? GPUL_ELIMIT : 0;
}
