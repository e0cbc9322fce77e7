/* SPDX-License-Identifier: Apache-2.0
 *
 * Words, numbers and units. */
#include "tests/doubles/scenario_text.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct unit {
    const char *name;
    uint64_t worth;
};

static const struct unit sizes[] = {
    {"", 1},
    {"B", 1},
    {"KiB", 1ull << 10},
    {"MiB", 1ull << 20},
    {"GiB", 1ull << 30},
    {"TiB", 1ull << 40},
    {NULL, 0},
};

static const struct unit durations[] = {
    {"ns", 1},         {"us", 1000},          {"ms", 1000000},
    {"s", 1000000000}, {"m", 60000000000ull}, {NULL, 0},
};

static const struct unit rates[] = {
    {"B/s", 1},           {"kB/s", 1000}, {"MB/s", 1000000},
    {"GB/s", 1000000000}, {NULL, 0},
};

int line_fail(struct line *line, const char *format, ...)
{
    va_list arguments;
    int word = line->next > 0 ? line->next - 1 : 0;
    int column = word < line->count ? line->columns[word] : 1;

    int length =
        snprintf(line->error, SCENARIO_ERROR, "%d:%d: ", line->number, column);
    va_start(arguments, format);
    (void)vsnprintf(line->error + length, SCENARIO_ERROR - (size_t)length,
                    format, arguments);
    va_end(arguments);
    return -1;
}

/* One word from *from into *to; both move on. Bytes it took, 0 at an open
 * quotation. */
static size_t word_cut(const char *from, char *to)
{
    size_t taken = 0;

    if (from[0] == '"') {
        const char *end = strpbrk(from + 1, "\"\n");
        if (!end || *end != '"')
            return 0;
        taken = (size_t)(end - from) + 1;
        memcpy(to, from + 1, taken - 2);
        to[taken - 2] = '\0';
        return taken;
    }
    taken = strcspn(from, " \t\n");
    memcpy(to, from, taken);
    to[taken] = '\0';
    return taken;
}

int line_cut(struct line *line, const char **text)
{
    const char *start = *text;
    size_t length = strcspn(start, "\n");
    const char *end = start + length;
    char *to = line->text;

    line->number++;
    line->count = line->next = 0;
    *text = *end ? end + 1 : end;
    if (length >= LINE_BYTES / 2)
        return line_fail(line, "line of %zu bytes (%d at most)", length,
                         LINE_BYTES / 2 - 1);
    for (const char *at = start; at < end;) {
        at += strspn(at, " \t");
        if (at >= end || *at == '#')
            break;
        line->columns[line->count] = (int)(at - start) + 1;
        size_t taken = word_cut(at, to);
        line->words[line->count++] = to;
        line->next = line->count;
        if (taken == 0)
            return line_fail(line, "quotation without an end");
        if (line->count == LINE_WORDS)
            return line_fail(line, "more than %d words", LINE_WORDS - 1);
        to += strlen(to) + 1;
        at += taken;
    }
    line->next = 0;
    return 0;
}

const char *line_word(struct line *line, const char *what)
{
    if (line->next < line->count)
        return line->words[line->next++];
    (void)line_fail(line, "missing %s at the end of the line", what);
    return NULL;
}

/* A whole number and one of `units`, as in 80GiB. */
static int with_unit(struct line *line, const char *what,
                     const struct unit *units, uint64_t *value)
{
    const char *word = line_word(line, what);
    char *end = NULL;

    *value = 0;
    if (!word)
        return -1;
    errno = 0;
    uint64_t number = strtoull(word, &end, 10);
    if (errno || end == word || word[0] == '-' || word[0] == '+')
        return line_fail(line, "%s is no %s", word, what);
    for (; units->name; units++) {
        if (strcmp(units->name, end) != 0)
            continue;
        if (__builtin_mul_overflow(number, units->worth, value))
            return line_fail(line, "%s is too much", word);
        return 0;
    }
    return line_fail(line, "%s has no unit of a %s", word, what);
}

int line_number(struct line *line, const char *what, uint64_t most,
                uint64_t *value)
{
    const char *word = line_word(line, what);
    char *end = NULL;

    *value = 0;
    if (!word)
        return -1;
    errno = 0;
    *value = strtoull(word, &end, 0);
    if (errno || end == word || *end || word[0] == '-' || word[0] == '+')
        return line_fail(line, "%s is no %s", word, what);
    if (*value > most)
        return line_fail(line, "%s %s is over %llu", what, word,
                         (unsigned long long)most);
    return 0;
}

int line_size(struct line *line, const char *what, uint64_t *bytes)
{
    return with_unit(line, what, sizes, bytes);
}

int line_duration(struct line *line, const char *what, uint64_t *ns)
{
    return with_unit(line, what, durations, ns);
}

int line_rate(struct line *line, const char *what, uint64_t *bytes_per_s)
{
    return with_unit(line, what, rates, bytes_per_s);
}

int line_factor(struct line *line, const char *what, double *factor)
{
    const char *word = line_word(line, what);
    char *end = NULL;

    *factor = 1;
    if (!word)
        return -1;
    *factor = strtod(word, &end);
    if (end == word || strcmp(end, "x") != 0 || !(*factor >= 1) ||
        *factor > 1e6)
        return line_fail(line, "%s is no %s (as in 4x)", word, what);
    return 0;
}

int line_text(struct line *line, const char *what, char text[SCENARIO_TEXT])
{
    const char *word = line_word(line, what);

    if (!word)
        return -1;
    if (strlen(word) >= SCENARIO_TEXT)
        return line_fail(line, "%s of %zu bytes (%d at most)", what,
                         strlen(word), SCENARIO_TEXT - 1);
    (void)snprintf(text, SCENARIO_TEXT, "%s", word);
    return 0;
}

int line_choice(struct line *line, const char *what, const char *const names[],
                int count)
{
    const char *word = line_word(line, what);

    if (!word)
        return -1;
    for (int i = 0; i < count; i++)
        if (strcmp(word, names[i]) == 0)
            return i;
    return line_fail(line, "%s is no %s", word, what);
}

int line_ms(struct line *line, uint64_t *ms)
{
    uint64_t ns = 0;
    int status = line_duration(line, "duration", &ns);

    *ms = ns / 1000000;
    return status;
}

int line_node(struct line *line, const char *node, char pattern[SCENARIO_TEXT])
{
    if (line_text(line, "node", pattern) != 0)
        return -1;
    return fnmatch(pattern, node, 0) == 0;
}
