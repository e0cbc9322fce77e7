/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/checktable.h"

#include "common/error.h"
#include "common/units.h"

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

static void append_finding(struct gpul_buf *out, const struct checktable *t,
                           const char *word, const char *color,
                           const Gpul__Finding *f)
{
    gpul_buf_appendf(out, "%s%-7s%s %s", t->has_color ? color : "", word,
                     t->has_color ? PLAIN : "", f->id);
    if (f->nodes[0] != 0) {
        gpul_buf_appendf(out, "  %s", f->nodes);
    }
    gpul_buf_appendf(out, "\n    %s\n", f->text);
    if (f->remedy[0] != 0) {
        gpul_buf_appendf(out, "    -> %s\n", f->remedy);
    }
}

int checktable_print(struct gpul_buf *out, const struct checktable *t)
{
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        bool is_shown = groups[i].severity != GPUL__FINDING__SEVERITY__PASS ||
                        t->has_passes;
        struct checkbook_place at = {0};
        const Gpul__Finding *finding;
        while (is_shown && (finding = checkbook_next(
                                t->book, groups[i].severity, &at)) != NULL) {
            append_finding(out, t, groups[i].word, groups[i].color, finding);
        }
    }
    gpul_buf_appendf(out, "%s\n", t->end->text);
    return out->is_failed ? GPUL_ELIMIT : 0;
}
