/* SPDX-License-Identifier: Apache-2.0 */
#include "common/options.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

enum {
    OPTIONS_MAX = 128,
    NAME_BYTES_MAX = 64, /* a longer name is none of ours */
};

struct parse {
    const struct gpul_options *o;
    int argc;
    char *const *argv;
    int at;                         /* the argument that is being read */
    const char *given[OPTIONS_MAX]; /* value of each flag so far, or NULL */
    struct gpul_error *err;
};

/* ---- names --------------------------------------------------------------- */

/* Is `name`, of n bytes, the word; underscores count as dashes. */
static bool is_word(const char *word, size_t word_bytes, const char *name,
                    size_t n)
{
    if (word_bytes != n) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (word[i] != (name[i] == '_' ? '-' : name[i])) {
            return false;
        }
    }
    return true;
}

static bool has_name(const struct gpul_option *option, const char *name,
                     size_t n)
{
    if (is_word(option->name, strlen(option->name), name, n)) {
        return true;
    }
    const char *alias = option->aliases != NULL ? option->aliases : "";
    while (*alias != 0) {
        size_t bytes = strcspn(alias, " ");
        if (is_word(alias, bytes, name, n)) {
            return true;
        }
        alias += bytes + strspn(alias + bytes, " ");
    }
    return false;
}

/* The place in the table, or o->count. */
static size_t find_name(const struct gpul_options *o, const char *name,
                        size_t n)
{
    size_t i = 0;
    while (i < o->count && !has_name(&o->table[i], name, n)) {
        i++;
    }
    return i;
}

static size_t find_letter(const struct gpul_options *o, char letter)
{
    size_t i = 0;
    while (i < o->count && o->table[i].letter != letter) {
        i++;
    }
    return i;
}

/* Say that there is no such option. `dashes` and the name are what the user
 * wrote; `guess` is what may have been meant. */
static int fail_unknown(struct parse *p, const char *dashes, const char *name,
                        size_t n, const char *guess)
{
    const char *names[OPTIONS_MAX];
    size_t count = 0;
    char word[NAME_BYTES_MAX] = {0};
    size_t guess_bytes = strcspn(guess, "=");
    for (size_t i = 0; i < p->o->count; i++) {
        if (!p->o->table[i].is_hidden) {
            names[count++] = p->o->table[i].name;
        }
    }
    if (guess_bytes < sizeof(word)) {
        for (size_t i = 0; i < guess_bytes; i++) {
            word[i] = guess[i] == '_' ? '-' : guess[i];
        }
    }
    const char *near = gpul_nearest(word, names, count);
    if (near == NULL) {
        return gpul_fail(p->err, GPUL_EINVAL,
                         "unknown option %s%.*s; see --help", dashes, (int)n,
                         name);
    }
    return gpul_fail(p->err, GPUL_EINVAL,
                     "unknown option %s%.*s; did you mean --%s?", dashes,
                     (int)n, name, near);
}

/* ---- values -------------------------------------------------------------- */

/* Hand one flag over, unless it only says again what was said before. */
static int give(struct parse *p, size_t index, const char *value,
                const char *spelling)
{
    const struct gpul_options *o = p->o;
    const char *before = p->given[index];
    const char *now = value != NULL ? value : "";
    if (before != NULL && !o->table[index].repeats) {
        if (strcmp(before, now) == 0) {
            return 0;
        }
        return gpul_fail(p->err, GPUL_EINVAL,
                         "option --%s is given twice, as \"%s\" and as \"%s\"",
                         o->table[index].name, before, now);
    }
    p->given[index] = now;
    return o->on_value(o->arg, index, value, spelling, GPUL_SOURCE_FLAG,
                       p->err);
}

/* Take the value from the next argument. One that begins with two dashes is
 * an option whose predecessor lacks its value. */
static int give_next(struct parse *p, size_t index, const char *spelling)
{
    const struct gpul_option *option = &p->o->table[index];
    const char *next = p->at + 1 < p->argc ? p->argv[p->at + 1] : "--";
    if (strncmp(next, "--", 2) == 0) {
        return gpul_fail(p->err, GPUL_EINVAL, "option %s needs a value: %s %s",
                         spelling, spelling, option->value);
    }
    p->at++;
    return give(p, index, next, spelling);
}

static int parse_long(struct parse *p, const char *name)
{
    size_t n = strcspn(name, "=");
    size_t index = find_name(p->o, name, n);
    if (index == p->o->count) {
        return fail_unknown(p, "--", name, n, name);
    }
    char spelling[NAME_BYTES_MAX + 2] = "--";
    strncat(spelling, name, n < NAME_BYTES_MAX ? n : NAME_BYTES_MAX - 1);
    bool has_value = name[n] == '=';
    if (p->o->table[index].value == NULL) {
        return !has_value ? give(p, index, NULL, spelling)
                          : gpul_fail(p->err, GPUL_EINVAL,
                                      "option %s takes no value", spelling);
    }
    return has_value ? give(p, index, name + n + 1, spelling)
                     : give_next(p, index, spelling);
}

/* "-v", "-vq", "-N4", "-N=4", "-N" and the next argument. */
static int parse_letters(struct parse *p, const char *letters)
{
    for (const char *at = letters; *at != 0; at++) {
        char spelling[] = {'-', *at, 0};
        size_t index = find_letter(p->o, *at);
        if (index == p->o->count) {
            bool is_first = at == letters; /* "-nodes" may mean "--nodes" */
            size_t n = is_first ? strcspn(letters, "=") : 1;
            return fail_unknown(p, "-", at, n, is_first ? letters : "");
        }
        if (p->o->table[index].value != NULL) {
            const char *value = at[1] == '=' ? at + 2 : at + 1;
            return at[1] != 0 ? give(p, index, value, spelling)
                              : give_next(p, index, spelling);
        }
        int rc = give(p, index, NULL, spelling);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

/* ---- the environment ----------------------------------------------------- */

/* A switch in the environment: 1, true, yes or on; 0, false, no or off. */
static int read_switch(bool *is_on, const char *name, const char *text,
                       struct gpul_error *err)
{
    static const char *const words[] = {"0",  "1",   "false", "true",
                                        "no", "yes", "off",   "on"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasecmp(text, words[i]) == 0) {
            *is_on = i % 2 == 1;
            return 0;
        }
    }
    return gpul_fail(err, GPUL_EINVAL, "%s is \"%s\"; write 1 or 0", name,
                     text);
}

static int parse_environment(const struct gpul_options *o,
                             struct gpul_error *err)
{
    int rc = 0;
    for (size_t i = 0; i < o->count && o->getenv != NULL && rc == 0; i++) {
        const struct gpul_option *option = &o->table[i];
        const char *value = option->environment != NULL
                                ? o->getenv(o->arg, option->environment)
                                : NULL;
        bool is_on = value != NULL && value[0] != 0; /* empty is unset */
        if (is_on && option->value == NULL) {
            rc = read_switch(&is_on, option->environment, value, err);
            value = NULL;
        }
        if (rc == 0 && is_on) {
            rc = o->on_value(o->arg, i, value, option->environment,
                             GPUL_SOURCE_ENVIRONMENT, err);
        }
    }
    return rc;
}

/* ---- the whole ----------------------------------------------------------- */

int gpul_options_parse(const struct gpul_options *o, int argc,
                       char *const argv[], int *rest, bool *has_separator,
                       struct gpul_error *err)
{
    assert(o->count <= OPTIONS_MAX);
    struct parse p = {.o = o, .argc = argc, .argv = argv, .err = err};
    *rest = 0;
    *has_separator = false;
    int rc = parse_environment(o, err);
    for (; rc == 0 && p.at < argc; p.at++) {
        const char *argument = argv[p.at];
        if (strcmp(argument, "--") == 0) {
            *has_separator = true;
            p.at++;
            break;
        }
        if (argument[0] != '-' || argument[1] == 0) {
            if (o->stops_at_operand) {
                break;
            }
            rc = gpul_fail(err, GPUL_EINVAL, "unexpected argument \"%s\"",
                           argument);
        } else if (argument[1] == '-') {
            rc = parse_long(&p, argument + 2);
        } else {
            rc = parse_letters(&p, argument + 1);
        }
    }
    *rest = rc == 0 ? p.at : 0;
    *has_separator = rc == 0 && *has_separator;
    return rc;
}

/* ---- help ---------------------------------------------------------------- */

enum { HELP_COLUMN = 26, HELP_WIDTH = 79 };

/* Append a word at *column, on a new line if it does not fit on this one. */
static void append_word(struct gpul_buf *out, size_t *column, const char *word,
                        size_t n)
{
    bool is_line_start = *column == HELP_COLUMN;
    if (!is_line_start && *column + 1 + n > HELP_WIDTH) {
        gpul_buf_appendf(out, "\n%*s", HELP_COLUMN, "");
        *column = HELP_COLUMN;
        is_line_start = true;
    }
    gpul_buf_appendf(out, "%s%.*s", is_line_start ? "" : " ", (int)n, word);
    *column += n + (is_line_start ? 0 : 1);
}

static void append_words(struct gpul_buf *out, size_t *column, const char *text)
{
    while (*text != 0) {
        size_t n = strcspn(text, " ");
        append_word(out, column, text, n);
        text += n + strspn(text + n, " ");
    }
}

static void append_aliases(struct gpul_buf *out, size_t *column,
                           const char *aliases)
{
    append_word(out, column, "Also", 4);
    while (*aliases != 0) {
        size_t n = strcspn(aliases, " ");
        const char *next = aliases + n + strspn(aliases + n, " ");
        char word[NAME_BYTES_MAX + 4] = "--";
        strncat(word, aliases, n < NAME_BYTES_MAX ? n : NAME_BYTES_MAX);
        strcat(word, *next != 0 ? "," : ".");
        append_word(out, column, word, strlen(word));
        aliases = next;
    }
}

/* "  -N, --nodes N", and spaces up to the column of the text. */
static void append_label(struct gpul_buf *out, const struct gpul_option *option)
{
    size_t before = out->used;
    if (option->letter != 0) {
        gpul_buf_appendf(out, "  -%c, --%s", option->letter, option->name);
    } else {
        gpul_buf_appendf(out, "      --%s", option->name);
    }
    if (option->value != NULL) {
        gpul_buf_appendf(out, " %s", option->value);
    }
    size_t width = out->used - before;
    if (width + 2 > HELP_COLUMN) {
        gpul_buf_append_text(out, "\n");
        width = 0;
    }
    gpul_buf_appendf(out, "%*s", (int)(HELP_COLUMN - width), "");
}

int gpul_options_help(struct gpul_buf *out, const struct gpul_options *o)
{
    const char *group = NULL;
    for (size_t i = 0; i < o->count; i++) {
        const struct gpul_option *option = &o->table[i];
        if (option->is_hidden) {
            continue;
        }
        if (group == NULL || strcmp(group, option->group) != 0) {
            gpul_buf_appendf(out, "%s%s:\n", group != NULL ? "\n" : "",
                             option->group);
            group = option->group;
        }
        size_t column = HELP_COLUMN;
        append_label(out, option);
        append_words(out, &column, option->help);
        if (option->aliases != NULL) {
            append_aliases(out, &column, option->aliases);
        }
        gpul_buf_append_text(out, "\n");
    }
    return out->is_failed ? GPUL_ELIMIT : 0;
}
