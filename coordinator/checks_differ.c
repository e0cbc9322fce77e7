/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts that are compared between nodes: who differs, and how.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/checks_inside.h"

/* Numbers this near are equal. */
#define NEARLY 0.03

/* ---- differences --------------------------------------------------------- */

/* Nodes that spoke, and not of this, have it not set. */
static void add_absent(struct judge *j, struct column *column)
{
    struct checks *c = j->c;
    uint64_t *told = judge_nodes(j, &column->values, column->values.count);
    for (size_t i = 0; told != NULL && i < column->unknown.count; i++) {
        judge_join(told, column->unknown.answers[i].nodes, c->node_count);
    }
    for (uint32_t i = 0; told != NULL && i < c->node_count; i++) {
        if (checks_bit(c->state->reported, i) && !checks_bit(told, i)) {
            j->is_short |= tally_add(&column->values, i, c->node_count,
                                     "it not set") == NULL;
        }
    }
    free(told);
}

static bool has_word(const char *list, const char *word, size_t n)
{
    for (const char *at = list; *at != 0; at += strspn(at, " ")) {
        size_t bytes = strcspn(at, " ");
        if (bytes == n && strncmp(at, word, n) == 0) {
            return true;
        }
        at += bytes;
    }
    return false;
}

/* Words of `all` that `some` has not, behind `lead` and the names. */
static void tell_missing(struct text *out, const char *lead, const char *names,
                         const char *some, const char *all)
{
    bool is_first = true;
    for (const char *at = all; *at != 0; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        if (!has_word(some, at, n)) {
            text_append(out, "%s%s%s%s%.*s", is_first ? lead : "",
                        is_first ? names : "", is_first ? ":" : "", " ", (int)n,
                        at);
            is_first = false;
        }
        at += n;
    }
}

/* Are the two largest groups equal? The tally is sorted. */
static bool is_tied(const struct tally *t)
{
    return t->answers[t->count - 1].node_count ==
           t->answers[t->count - 2].node_count;
}

/* "c has 565.x; 15 nodes have 570.x" */
static void describe_groups(struct text *out, const struct judge *j,
                            const struct tally *t)
{
    struct text names;
    size_t rest = t->count - !is_tied(t);
    size_t shown = rest < SHOWN_MAX ? rest : SHOWN_MAX;
    for (size_t i = 0; i < shown; i++) {
        const struct tally_answer *answer = &t->answers[i];
        tally_names(&names, answer, j->roster);
        text_append(out, "%s%s %s %.*s", i > 0 ? ", " : "", names.bytes,
                    answer->node_count == 1 ? "has" : "have",
                    judge_shown(judge_words(answer)), judge_words(answer));
    }
    if (rest > shown) {
        text_append(out, ", %zu more values", rest - shown);
    }
    if (rest == t->count) {
        text_append(out, "; no majority");
    } else {
        const struct tally_answer *most = &t->answers[rest];
        text_append(out, "; %u nodes have %.*s", most->node_count,
                    judge_shown(judge_words(most)), judge_words(most));
    }
}

/* What the node said in this column, or NULL. */
static const char *answer_of(const struct column *column, uint32_t node)
{
    for (size_t i = 0; i < column->values.count; i++) {
        if (checks_bit(column->values.answers[i].nodes, node)) {
            return column->values.answers[i].text;
        }
    }
    return NULL;
}

/* Words of the minority and of the majority: of the fact itself, or of the
 * one that tells more of it. */
static void append_words(struct text *out, const struct judge *j,
                         const struct column *column, const struct tally *t)
{
    struct text names;
    const struct column *list =
        column->detail != NULL ? column->detail : column;
    if (t->count != 2) {
        return;
    }
    const char *few = answer_of(list, tally_first_node(&t->answers[0]));
    const char *most = answer_of(list, tally_first_node(&t->answers[1]));
    if (few == NULL || most == NULL) {
        return;
    }
    tally_names(&names, &t->answers[0], j->roster);
    tell_missing(out, "; not on ", names.bytes, few, most);
    tell_missing(out, "; only on ", names.bytes, most, few);
}

static void tell_difference(struct judge *j, const struct column *column,
                            struct tally *t)
{
    const struct check *check = column->check;
    const char *of =
        check->kind == CHECK_FAMILY ? column->key + strlen(check->key) : "";
    struct text text;
    tally_sort(t);
    bool tied = is_tied(t);
    text_format(&text, "%s%s%s differs: ", check->title, of[0] != 0 ? " " : "",
                of);
    describe_groups(&text, j, t);
    if (check->is_list) {
        append_words(&text, j, column, t);
    }
    judge_put(j, check, check->severity,
              judge_nodes(j, t, tied ? t->count : t->count - 1), text.bytes,
              t->count == 2 && !tied ? judge_words(&t->answers[0]) : "",
              tied ? "" : judge_words(&t->answers[t->count - 1]));
}

/* Returns whether there was anything to tell. */
static bool judge_column(struct judge *j, struct column *column)
{
    const struct check *check = column->check;
    bool is_family = check->kind == CHECK_FAMILY;
    if (is_family && !check->skips_absent) {
        add_absent(j, column);
    }
    if (column->unknown.count > 0) {
        judge_tell(j, check, CHECK_UNKNOWN, &column->unknown, "");
    }
    if (column->values.count >= 2) {
        tell_difference(j, column, &column->values);
    }
    return column->unknown.count > 0 || column->values.count >= 2;
}

void judge_same(struct judge *j, const struct check *check)
{
    struct checks_state *s = j->c->state;
    bool is_told = false;
    uint32_t columns = 0;
    if (checks_reported(j->c) < 2) {
        return; /* nothing to compare with */
    }
    for (size_t i = 0; i < s->column_count; i++) {
        if (s->columns[i]->check == check && !s->columns[i]->is_detail) {
            is_told |= judge_column(j, s->columns[i]);
            columns++;
        }
    }
    if (!is_told && (columns > 0 || check->kind == CHECK_FAMILY)) {
        judge_pass(j, check);
    }
}

/* ---- numbers ------------------------------------------------------------- */

static int compare_numbers(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* NAN without memory, or without a number. */
static double median_of(struct judge *j, const double *numbers)
{
    uint32_t count = 0;
    double *sorted = malloc(j->c->node_count * sizeof(*sorted));
    j->is_short |= sorted == NULL;
    for (uint32_t i = 0; sorted != NULL && i < j->c->node_count; i++) {
        if (!isnan(numbers[i])) {
            sorted[count++] = numbers[i];
        }
    }
    double median = NAN;
    if (count >= 2) {
        qsort(sorted, count, sizeof(*sorted), compare_numbers);
        median = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
    }
    free(sorted);
    return median;
}

void judge_near(struct judge *j, const struct check *check, struct outcomes *o,
                const double *numbers)
{
    double median = median_of(j, numbers);
    struct text text;
    for (uint32_t i = 0; !isnan(median) && i < j->c->node_count; i++) {
        if (isnan(numbers[i])) {
            continue;
        }
        if (fabs(numbers[i] - median) <= NEARLY * median) {
            o->pass_count++;
            continue;
        }
        look_size(&text, numbers[i]);
        j->is_short |= tally_add(&o->by_severity[check->severity], i,
                                 j->c->node_count, text.bytes) == NULL;
    }
    look_size(&text, median);
    if (o->by_severity[check->severity].count > 0) {
        struct text expected;
        text_format(&expected, "about %s, the median", text.bytes);
        o->expected[check->severity] = text_copy(expected.bytes);
        j->is_short |= o->expected[check->severity] == NULL;
    }
}
