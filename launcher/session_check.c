/* SPDX-License-Identifier: Apache-2.0
 *
 * The last words of a check: what was found on standard output, as a table or
 * as one JSON object, and its record.
 */
#include <unistd.h>

#include "launcher/checkdossier.h"
#include "launcher/checktable.h"
#include "launcher/dossier_json.h"
#include "launcher/drawing.h"
#include "launcher/json.h"
#include "launcher/session_internal.h"

enum { DATA_BYTES_MAX = 1 << 30 };

static void print_table(struct session *s)
{
    struct gpul_buf out;
    bool is_terminal = isatty(STDOUT_FILENO) == 1;
    const struct checktable table = {
        .book = &s->checkbook,
        .record = &s->record,
        .node_count = s->plan->node_count,
        .exit_code = session_exit_code(s),
        .width = is_terminal ? console_width(s->console) : 0,
        .has_color = s->progress.has_color &&
                     (is_terminal || s->plan->color == PLAN_CHOICE_YES),
        .has_passes = s->plan->is_verbose,
    };
    gpul_buf_init(&out, DATA_BYTES_MAX);
    if (checktable_print(&out, &table) == 0) {
        console_data(s->console, out.data, out.used);
    } else {
        progress_fault(&s->progress, "no memory to print what was found");
    }
    gpul_buf_release(&out);
}

static void print_object(struct session *s, const struct dossier *d)
{
    struct gpul_buf out;
    json_t *object = dossier_object(d);
    gpul_buf_init(&out, DATA_BYTES_MAX);
    if (object != NULL && json_print(&out, object) == 0) {
        console_data(s->console, out.data, out.used);
    } else {
        progress_fault(&s->progress, "no memory to print what was found");
    }
    json_decref(object);
    gpul_buf_release(&out);
}

/* A file that cannot be written takes none of the others along. */
static void write_drawings(struct session *s, const struct dossier *d)
{
    const struct drawings *all = &s->plan->drawings;
    const struct drawings each[] = {
        {.record = all->record},
        {.html = all->html},
        {.junit = all->junit},
        {.prometheus = all->prometheus},
    };
    for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
        struct gpul_error err = {0};
        if (drawing_write(&each[i], d, &err) != 0) {
            s->has_lost_record = true;
            progress_fault(&s->progress, "not written: %s", err.text);
        }
    }
}

void session_report_check(struct session *s)
{
    struct dossier d;
    const struct checkdossier source = {
        .plan = s->plan,
        .record = &s->record,
        .book = &s->checkbook,
        .job_id = s->job_id,
        .exit_code = session_exit_code(s),
    };
    dossier_init(&d);
    checkdossier_fill(&d, &source);
    if (d.is_failed) {
        progress_fault(&s->progress, "no memory for all that was found");
    }
    if (s->plan->is_json) {
        print_object(s, &d);
    } else {
        print_table(s);
    }
    write_drawings(s, &d);
    dossier_release(&d);
}
