/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/drawing.h"

#include <string.h>
#include <unistd.h>

#include "common/writeall.h"
#include "launcher/dossier_diff.h"
#include "launcher/dossier_json.h"
#include "launcher/exposition.h"
#include "launcher/junit.h"
#include "launcher/page.h"
#include "launcher/readfile.h"
#include "launcher/savefile.h"

/* A check of ten thousand nodes has 500 facts of each. */
enum { BYTES_MAX = 1 << 30 };

enum { KINDS = 4 };

struct kind {
    const char *option;
    const char *path;
    int (*draw)(struct gpul_buf *out, const struct dossier *d);
};

static void list_kinds(struct kind kinds[KINDS], const struct drawings *w)
{
    kinds[0] = (struct kind){"--record", w->record, dossier_print};
    kinds[1] = (struct kind){"--html", w->html, page_draw};
    kinds[2] = (struct kind){"--junit", w->junit, junit_draw};
    kinds[3] = (struct kind){"--prometheus", w->prometheus, exposition_draw};
}

static bool is_stdout(const char *path)
{
    return strcmp(path, "-") == 0;
}

int drawing_check(const struct drawings *w, struct gpul_error *err)
{
    struct kind kinds[KINDS];
    list_kinds(kinds, w);
    for (size_t i = 0; i < KINDS; i++) {
        const char *path = kinds[i].path;
        if (path != NULL && !is_stdout(path)) {
            int rc = savefile_check(path, err);
            if (rc != 0) {
                return gpul_wrap(err, rc, "%s", kinds[i].option);
            }
        }
    }
    return 0;
}

static int print(const struct gpul_buf *text, struct gpul_error *err)
{
    int why =
        gpul_write_all(STDOUT_FILENO, (const char *)text->data, text->used);
    return why == 0
               ? 0
               : gpul_fail_errno(err, why, "cannot write to standard output");
}

static int write_kind(const struct kind *kind, const struct dossier *d,
                      struct gpul_error *err)
{
    struct gpul_buf text;
    gpul_buf_init(&text, BYTES_MAX);
    int rc = kind->draw(&text, d);
    if (rc != 0) {
        gpul_fail(err, rc, "%s: %s", kind->option, gpul_status_text(rc));
    } else if (is_stdout(kind->path)) {
        rc = print(&text, err);
    } else {
        rc = savefile_write(kind->path, text.data, text.used, err);
    }
    gpul_buf_release(&text);
    return rc;
}

int drawing_write(const struct drawings *w, const struct dossier *d,
                  struct gpul_error *err)
{
    struct kind kinds[KINDS];
    list_kinds(kinds, w);
    for (size_t i = 0; i < KINDS; i++) {
        int rc = kinds[i].path != NULL ? write_kind(&kinds[i], d, err) : 0;
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

int drawing_read(struct dossier *d, const char *path, struct gpul_error *err)
{
    struct gpul_buf text;
    gpul_buf_init(&text, BYTES_MAX);
    int rc = readfile(&text, path, err);
    if (rc == 0) {
        rc = dossier_read(d, text.used > 0 ? (const char *)text.data : "",
                          text.used, path, err);
    }
    gpul_buf_release(&text);
    return rc;
}

static int print_difference(bool *is_same, const struct dossier *before,
                            const struct dossier *after, struct gpul_error *err)
{
    struct gpul_buf text;
    gpul_buf_init(&text, BYTES_MAX);
    int rc = dossier_diff(&text, is_same, before, after);
    rc = rc != 0 ? gpul_fail(err, rc, "diff: %s", gpul_status_text(rc))
                 : print(&text, err);
    gpul_buf_release(&text);
    return rc;
}

int drawing_compare(bool *is_same, const char *before, const char *after,
                    struct gpul_error *err)
{
    struct dossier old, new;
    dossier_init(&old);
    dossier_init(&new);
    int rc = drawing_read(&old, before, err);
    if (rc == 0) {
        rc = drawing_read(&new, after, err);
    }
    if (rc == 0) {
        rc = print_difference(is_same, &old, &new, err);
    }
    dossier_release(&old);
    dossier_release(&new);
    return rc;
}
