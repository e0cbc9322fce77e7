/* SPDX-License-Identifier: Apache-2.0
 *
 * What all that was added comes to: findings, in their order.
 */
#include "coordinator/checks.h"

#include <stdlib.h>
#include <string.h>

#include "coordinator/checks_inside.h"
#include "coordinator/missing.h"

/* ---- findings ------------------------------------------------------------ */

static bool grow(struct judge *j)
{
    struct checks *c = j->c;
    if (c->finding_count == j->capacity) {
        size_t capacity = j->capacity > 0 ? 2 * j->capacity : 64;
        void *more = realloc(c->findings, capacity * sizeof(*c->findings));
        if (more == NULL) {
            j->is_short = true;
            return false;
        }
        c->findings = more;
        j->capacity = capacity;
    }
    return true;
}

void judge_put(struct judge *j, const struct check *check,
               enum check_severity severity, uint64_t *nodes, const char *text,
               const char *value, const char *expected)
{
    struct checks_finding f = {
        .check = check,
        .severity = severity,
        .nodes = nodes,
        .text = text_copy(text),
        .value = text_copy(value),
        .expected = text_copy(expected),
    };
    if (f.text == NULL || f.value == NULL || f.expected == NULL || !grow(j)) {
        free(f.nodes);
        free(f.text);
        free(f.value);
        free(f.expected);
        j->is_short = true;
        return;
    }
    j->c->findings[j->c->finding_count++] = f;
    j->c->counts[severity]++;
}

void judge_pass(struct judge *j, const struct check *check)
{
    judge_put(j, check, CHECK_PASS, NULL, check->title, "", "");
}

static uint64_t *make_bits(struct judge *j)
{
    uint64_t *bits = calloc(checks_words(j->c->node_count), sizeof(*bits));
    j->is_short |= bits == NULL;
    return bits;
}

void judge_join(uint64_t *bits, const uint64_t *others, uint32_t node_count)
{
    for (size_t i = 0; i < checks_words(node_count); i++) {
        bits[i] |= others[i];
    }
}

/* The nodes of the first `count` answers. */
uint64_t *judge_nodes(struct judge *j, const struct tally *t, size_t count)
{
    uint64_t *bits = make_bits(j);
    for (size_t i = 0; bits != NULL && i < count; i++) {
        judge_join(bits, t->answers[i].nodes, j->c->node_count);
    }
    return bits;
}

const char *checks_remedy(const struct checks_finding *f)
{
    switch (f->severity) {
    case CHECK_WARN:
    case CHECK_FAIL:
        return f->check->remedy;
    case CHECK_UNKNOWN:
        return "see why it could not be found out, and check again";
    default:
        return "";
    }
}

int judge_shown(const char *value)
{
    size_t n = strlen(value);
    return (int)(n <= SHOWN_BYTES_MAX
                     ? n
                     : text_whole_bytes(value, SHOWN_BYTES_MAX));
}

const char *judge_words(const struct tally_answer *answer)
{
    return answer->text != NULL ? answer->text : "something else";
}

uint32_t checks_reported(const struct checks *c)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->node_count; i++) {
        count += checks_bit(c->state->reported, i);
    }
    return count;
}

/* ---- one node ------------------------------------------------------------ */

/* "title: node3 has X, node[4-5] have Y". A reason why something
 * is unknown is no thing to have. */
void judge_tell(struct judge *j, const struct check *check,
                enum check_severity severity, struct tally *t,
                const char *expected)
{
    struct text text;
    struct text names;
    tally_sort(t);
    text_format(&text, "%s: ", check->title);
    size_t shown = t->count < SHOWN_MAX ? t->count : SHOWN_MAX;
    for (size_t i = 0; i < shown; i++) {
        const struct tally_answer *answer = &t->answers[i];
        const char *verb = answer->node_count == 1 ? " has" : " have";
        tally_names(&names, answer, j->roster);
        text_append(&text, "%s%s%s %.*s", i > 0 ? ", " : "", names.bytes,
                    severity == CHECK_UNKNOWN ? ":" : verb,
                    judge_shown(judge_words(answer)), judge_words(answer));
    }
    if (t->count > shown) {
        text_append(&text, ", and there are %zu more", t->count - shown);
    }
    judge_put(j, check, severity, judge_nodes(j, t, t->count), text.bytes,
              t->count == 1 ? judge_words(&t->answers[0]) : "", expected);
}

static void judge_outcomes(struct judge *j, const struct check *check,
                           struct outcomes *o)
{
    static const enum check_severity order[] = {CHECK_FAIL, CHECK_WARN,
                                                CHECK_UNKNOWN};
    bool is_told = false;
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        struct tally *t = &o->by_severity[order[i]];
        if (t->count > 0) {
            judge_tell(j, check, order[i], t, o->expected[order[i]]);
            is_told = true;
        }
    }
    if (!is_told && o->pass_count > 0) {
        judge_pass(j, check);
    }
}

/* ---- what is not a check's own ------------------------------------------- */

static bool is_silent(const struct roster *r, uint32_t index, const void *arg)
{
    (void)r;
    return !checks_bit(arg, index);
}

static void judge_silence(struct judge *j, const struct check *check)
{
    struct text names;
    struct text text;
    const struct checks *c = j->c;
    if (checks_reported(c) == c->node_count) {
        judge_pass(j, check);
        return;
    }
    uint64_t *nodes = make_bits(j);
    for (uint32_t i = 0; nodes != NULL && i < c->node_count; i++) {
        if (!checks_bit(c->state->reported, i)) {
            checks_set_bit(nodes, i);
        }
    }
    missing_names(&names, j->roster, is_silent, c->state->reported);
    text_format(&text, "%s: nothing came from %s", check->title, names.bytes);
    judge_put(j, check, CHECK_UNKNOWN, nodes, text.bytes, "", "");
}

static bool is_told_by_survey(const struct checks *c, const struct check *check)
{
    for (size_t i = 0; i < c->finding_count; i++) {
        if (c->findings[i].check == check &&
            c->findings[i].severity != CHECK_PASS) {
            return true;
        }
    }
    return false;
}

/* A pass of the survey gives way to what somebody else has found. */
static void drop_pass(struct checks *c, const struct check *check)
{
    for (size_t i = 0; i < c->finding_count; i++) {
        struct checks_finding *f = &c->findings[i];
        if (f->check == check && f->severity == CHECK_PASS) {
            free(f->text);
            free(f->value);
            free(f->expected);
            *f = c->findings[--c->finding_count];
            c->counts[CHECK_PASS]--;
            return;
        }
    }
}

static void judge_given(struct judge *j)
{
    struct checks_state *s = j->c->state;
    bool *is_left_out = calloc(GIVEN_MAX, sizeof(*is_left_out));
    j->is_short |= is_left_out == NULL;
    for (size_t i = 0; is_left_out != NULL && i < s->given_count; i++) {
        is_left_out[i] = is_told_by_survey(j->c, s->given[i].check);
    }
    for (size_t i = 0; is_left_out != NULL && i < s->given_count; i++) {
        struct given *given = &s->given[i];
        if (!is_left_out[i]) {
            drop_pass(j->c, given->check);
            judge_put(j, given->check, given->severity, given->nodes,
                      given->text, "", "");
            given->nodes = NULL;
        }
    }
    free(is_left_out);
}

static void judge_dropped(struct judge *j)
{
    struct text text;
    if (j->c->state->dropped > 0) {
        text_format(&text, "%u facts or findings are beyond what is compared",
                    j->c->state->dropped);
        judge_put(j, checks_find("HOST-500", strlen("HOST-500")), CHECK_UNKNOWN,
                  NULL, text.bytes, "", "");
    }
}

/* ---- all of it ----------------------------------------------------------- */

static int rank_of(enum check_severity severity)
{
    static const int ranks[CHECK_SEVERITIES] = {
        [CHECK_FAIL] = 0,
        [CHECK_WARN] = 1,
        [CHECK_UNKNOWN] = 2,
        [CHECK_PASS] = 3,
    };
    return ranks[severity];
}

/* The bits of the first node that only one of them has decide. */
static int compare_nodes(const uint64_t *a, const uint64_t *b)
{
    if (a == NULL || b == NULL) {
        return (a != NULL) - (b != NULL);
    }
    for (size_t i = 0;; i++) {
        if (a[i] != 0 || b[i] != 0) {
            uint32_t x = a[i] != 0 ? (uint32_t)__builtin_ctzll(a[i]) : 64;
            uint32_t y = b[i] != 0 ? (uint32_t)__builtin_ctzll(b[i]) : 64;
            return (x > y) - (x < y); /* both have some node */
        }
    }
}

static int compare_findings(const void *x, const void *y)
{
    const struct checks_finding *a = x, *b = y;
    int order = rank_of(a->severity) - rank_of(b->severity);
    if (order == 0) {
        order = strcmp(a->check->id, b->check->id);
    }
    if (order == 0) {
        order = compare_nodes(a->nodes, b->nodes);
    }
    return order != 0 ? order : strcmp(a->text, b->text);
}

static void judge_one(struct judge *j, const struct check *check, size_t index)
{
    struct outcomes *o = &j->c->state->outcomes[index];
    if (check->kind == CHECK_SAME || check->kind == CHECK_FAMILY) {
        judge_same(j, check);
    } else if (check->kind == CHECK_NEAR) {
        judge_near(j, check, o, j->c->state->numbers[index]);
    } else if (check->kind == CHECK_ALL) {
        judge_silence(j, check);
    }
    judge_outcomes(j, check, o);
}

int checks_judge(struct checks *c, const struct roster *r)
{
    size_t count;
    const struct check *table = checks_table(&count);
    struct judge j = {.c = c, .roster = r};
    for (size_t i = 0; i < count && !j.is_short; i++) {
        judge_one(&j, &table[i], i);
    }
    judge_dropped(&j);
    judge_given(&j);
    if (j.is_short) {
        return GPUL_ENOMEM;
    }
    if (c->finding_count > 0) {
        qsort(c->findings, c->finding_count, sizeof(*c->findings),
              compare_findings);
    }
    return 0;
}
