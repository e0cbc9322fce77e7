/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/table.h"
#include "proto/text.h"

enum {
    TEXT_BYTES_MAX = 256 << 10,
    LINE_BYTES = 8192,
    LIVE_FIRST_MS = 300, /* what is faster needs no line */
    LIVE_EVERY_MS = 200,
    PLAIN_EVERY_MS = 30000,
    STOPPING_AFTER_MS = 1000,
    PREFIX = 11, /* columns of "gpulaunch: " */
    INDENT = 2,  /* of what a sentence goes on with */
    WRAP_WIDTH_MIN = 40,
};

#define RED "\x1b[31m"
#define GREEN "\x1b[32m"
#define PLAIN "\x1b[0m"

/* https://no-color.org: any value but the empty one asks for none. */
static bool choose_color(const struct plan *plan, bool is_capable)
{
    if (plan->color != PLAN_CHOICE_AUTO) {
        return plan->color == PLAN_CHOICE_YES;
    }
    const char *no_color = getenv("NO_COLOR");
    return is_capable && (no_color == NULL || no_color[0] == '\0');
}

int progress_init(struct progress *p, struct console *console,
                  const struct plan *plan, uint64_t now_ms)
{
    bool is_capable = console_can_redraw(console);
    *p = (struct progress){
        .console = console,
        .plan = plan,
        .started_ms = now_ms,
        .stopping_ms = UINT64_MAX,
        .is_live = is_capable && !plan->is_quiet,
        .has_color = choose_color(plan, is_capable),
    };
    p->next_ms = now_ms + (p->is_live ? LIVE_FIRST_MS : PLAIN_EVERY_MS);
    return status_init(&p->status, &plan->nodes, plan->node_count);
}

void progress_release(struct progress *p)
{
    status_release(&p->status);
    free(p->stopping);
    free(p->said);
}

static void say_line(struct progress *p, const char *color, const char *text)
{
    char line[LINE_BYTES];
    int n = snprintf(line, sizeof(line), "gpulaunch: %s%s%s\n",
                     p->has_color ? color : "", text,
                     p->has_color && color[0] != '\0' ? PLAIN : "");
    if (n >= (int)sizeof(line)) {
        n = (int)sizeof(line) - 1;
        line[n - 1] = '\n';
    }
    console_say(p->console, line, (size_t)n);
}

__attribute__((format(printf, 3, 0))) static void
say_formatted(struct progress *p, const char *color, const char *format,
              va_list args)
{
    char text[LINE_BYTES - 64];
    vsnprintf(text, sizeof(text), format, args);
    /* Names of files may stand in it: still one line, and harmless. */
    gpul_text_clean_line(text, sizeof(text) - 1);
    say_line(p, color, text);
}

void progress_fault(struct progress *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say_formatted(p, RED, format, args);
    va_end(args);
}

void progress_note(struct progress *p, const char *format, ...)
{
    if (p->plan->is_quiet) {
        return;
    }
    va_list args;
    va_start(args, format);
    say_formatted(p, "", format, args);
    va_end(args);
}

/* Where to part a sentence for a terminal with room for n columns of it: at
 * the last blank that fits; NULL: nowhere. */
static char *find_break(char *text, size_t n)
{
    if (strlen(text) <= n) {
        return NULL;
    }
    for (char *at = text + n; at > text + INDENT; at--) {
        if (*at == ' ') {
            return at;
        }
    }
    return NULL;
}

/* A terminal breaks long lines anywhere, in paths and numbers too. */
static void say_sentence(struct progress *p, const char *color, char *text)
{
    size_t width = console_width(p->console);
    if (!console_has_terminal(p->console) || width < WRAP_WIDTH_MIN) {
        say_line(p, color, text);
        return;
    }
    char *at = find_break(text, width - PREFIX);
    while (at != NULL) {
        *at = '\0';
        say_line(p, color, text);
        text = at - (INDENT - 1);
        memset(text, ' ', INDENT);
        at = find_break(text, width - PREFIX);
    }
    say_line(p, color, text);
}

/* A text of several lines: each gets the prefix. */
static void say_lines(struct progress *p, const char *color, char *text)
{
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        say_sentence(p, color, line);
    }
}

static void say_table(struct progress *p, const Gpul__Event *event)
{
    struct gpul_buf out;
    gpul_buf_init(&out, TEXT_BYTES_MAX);
    if (table_self_test(&out, event, p->status.node_count,
                        console_width(p->console)) == 0) {
        console_say(p->console, (const char *)out.data, out.used);
    }
    gpul_buf_release(&out);
}

static void say_event(struct progress *p, const Gpul__Event *event)
{
    bool is_passed = event->kind == GPUL__EVENT__KIND__SELF_TEST_PASSED;
    struct gpul_buf out;
    gpul_buf_init(&out, TEXT_BYTES_MAX);
    bool has_table =
        is_passed || event->kind == GPUL__EVENT__KIND__SELF_TEST_SLOW;
    if (has_table && !plan_is_check(p->plan)) {
        say_table(p, event);
    }
    if (status_sentence(&out, event, &p->status) == 0 && out.used > 0) {
        gpul_buf_append(&out, "", 1);
        say_lines(p, is_passed ? GREEN : "", (char *)out.data);
    }
    gpul_buf_release(&out);
}

/* Words for later; without memory there are none. */
static void put_off(struct progress *p, const Gpul__Event *event,
                    uint64_t now_ms)
{
    struct gpul_buf out;
    gpul_buf_init(&out, TEXT_BYTES_MAX);
    free(p->stopping);
    p->stopping = status_sentence(&out, event, &p->status) == 0
                      ? strdup(gpul_buf_text(&out))
                      : NULL;
    p->stopping_ms = now_ms + STOPPING_AFTER_MS;
    gpul_buf_release(&out);
}

/* Is this another wait than the one that was told last? From now on it is
 * that one. Without memory it counts as another. */
static bool is_new_wait(struct progress *p)
{
    struct gpul_buf words;
    gpul_buf_init(&words, LINE_BYTES);
    status_words(&words, &p->status);
    const char *text = gpul_buf_text(&words);
    bool is_new = p->said == NULL || text == NULL || strcmp(text, p->said) != 0;
    if (is_new) {
        free(p->said);
        p->said = text != NULL ? strdup(text) : NULL;
    }
    gpul_buf_release(&words);
    return is_new;
}

/* The words of a wait for nodes to join name who is missing, and so do those
 * of its event. In other phases the event alone does. */
static bool is_told(struct progress *p, const Gpul__Event *event)
{
    return event->kind == GPUL__EVENT__KIND__WAITING && !is_new_wait(p) &&
           p->status.phase == STATUS_GATHERING;
}

void progress_event(struct progress *p, const Gpul__Event *event,
                    uint64_t now_ms)
{
    status_update(&p->status, event);
    if (status_is_calm(&p->status)) {
        console_live(p->console, NULL, 0);
    }
    if (p->plan->is_quiet ||
        (status_is_detail(event) && !p->plan->is_verbose) ||
        (!p->is_live && is_told(p, event))) {
        return;
    }
    if (event->kind == GPUL__EVENT__KIND__STOPPING && !p->plan->is_verbose) {
        put_off(p, event, now_ms);
    } else {
        say_event(p, event);
    }
}

static void draw(struct progress *p, uint64_t now_ms)
{
    struct gpul_buf out;
    gpul_buf_init(&out, LINE_BYTES);
    size_t width = console_width(p->console);
    status_live(&out, &p->status, now_ms - p->started_ms,
                width > 1 ? width - 1 : width);
    console_live(p->console, (const char *)out.data, out.used);
    gpul_buf_release(&out);
}

/* The same words without a terminal, once in a while, if they are others. */
static void remind(struct progress *p, uint64_t now_ms)
{
    struct gpul_buf out;
    if (!is_new_wait(p)) {
        return;
    }
    gpul_buf_init(&out, LINE_BYTES);
    status_live(&out, &p->status, now_ms - p->started_ms, LINE_BYTES - 1);
    if (out.used > 0) {
        progress_note(p, "%.*s", (int)out.used, (const char *)out.data);
    }
    gpul_buf_release(&out);
}

/* Without a terminal a report of ranks that hang needs no reminder. */
static bool has_nothing(const struct progress *p)
{
    return p->status.phase == STATUS_RUNNING &&
           (!p->is_live || status_is_calm(&p->status));
}

void progress_tick(struct progress *p, uint64_t now_ms)
{
    if (now_ms >= p->stopping_ms) {
        p->stopping_ms = UINT64_MAX;
        if (p->stopping != NULL) {
            progress_note(p, "%s", p->stopping);
        }
    }
    if (has_nothing(p) || now_ms < p->next_ms) {
        return;
    }
    if (p->is_live) {
        draw(p, now_ms);
        p->next_ms = now_ms + LIVE_EVERY_MS;
    } else {
        remind(p, now_ms);
        p->next_ms = now_ms + PLAIN_EVERY_MS;
    }
}

uint64_t progress_next_ms(const struct progress *p)
{
    if (p->plan->is_quiet || has_nothing(p)) {
        return p->stopping_ms;
    }
    return p->next_ms < p->stopping_ms ? p->next_ms : p->stopping_ms;
}
