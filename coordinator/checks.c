/* SPDX-License-Identifier: Apache-2.0
 *
 * Taking the surveys in. What they come to is in checks_judge.c.
 */
#include "coordinator/checks.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/checks_inside.h"

enum { WORD_BITS = 64 };

size_t checks_words(uint32_t node_count)
{
    return node_count / WORD_BITS + 1;
}

bool checks_bit(const uint64_t *bits, uint32_t index)
{
    return (bits[index / WORD_BITS] >> (index % WORD_BITS) & 1u) != 0;
}

void checks_set_bit(uint64_t *bits, uint32_t index)
{
    bits[index / WORD_BITS] |= UINT64_C(1) << (index % WORD_BITS);
}

bool checks_names(const struct checks_finding *f, uint32_t node_rank)
{
    return f->nodes != NULL && checks_bit(f->nodes, node_rank);
}

const char *check_id(const struct check *check)
{
    return check->id;
}

/* ---- memory -------------------------------------------------------------- */

static double *make_numbers(uint32_t node_count)
{
    double *numbers = malloc(node_count * sizeof(*numbers));
    for (uint32_t i = 0; numbers != NULL && i < node_count; i++) {
        numbers[i] = NAN;
    }
    return numbers;
}

static bool make_state(struct checks_state *s, uint32_t node_count)
{
    size_t count;
    const struct check *table = checks_table(&count);
    s->outcomes = calloc(count, sizeof(*s->outcomes));
    s->numbers = calloc(count, sizeof(*s->numbers));
    s->reported = calloc(checks_words(node_count), sizeof(*s->reported));
    bool is_made =
        s->outcomes != NULL && s->numbers != NULL && s->reported != NULL;
    for (size_t i = 0; is_made && i < count; i++) {
        if (table[i].kind == CHECK_NEAR) {
            s->numbers[i] = make_numbers(node_count);
            is_made = s->numbers[i] != NULL;
        }
    }
    return is_made;
}

int checks_init(struct checks *c, uint32_t node_count,
                const struct checks_need *need)
{
    *c = (struct checks){.node_count = node_count, .need = *need};
    if (c->need.node_ranks == 0) {
        c->need.node_ranks = 1;
    }
    if (c->need.job_ranks == 0) {
        c->need.job_ranks = node_count;
    }
    if (c->need.memory_ratio == 0) {
        c->need.memory_ratio = 1.5;
    }
    if (c->need.data_bytes_per_s == 0) {
        c->need.data_bytes_per_s = CHECKS_DATA_BYTES_PER_S;
    }
    c->state = calloc(1, sizeof(*c->state));
    return c->state != NULL && make_state(c->state, node_count) ? 0
                                                                : GPUL_ENOMEM;
}

static void release_outcomes(struct checks_state *s)
{
    size_t count;
    checks_table(&count);
    for (size_t i = 0; i < count; i++) {
        for (int k = 0; s->outcomes != NULL && k < CHECK_SEVERITIES; k++) {
            tally_release(&s->outcomes[i].by_severity[k]);
            free(s->outcomes[i].expected[k]);
        }
        if (s->numbers != NULL) {
            free(s->numbers[i]);
        }
    }
    free(s->outcomes);
    free(s->numbers);
}

static void release_state(struct checks_state *s)
{
    release_outcomes(s);
    for (size_t i = 0; i < s->column_count; i++) {
        tally_release(&s->columns[i]->values);
        tally_release(&s->columns[i]->unknown);
        free(s->columns[i]->key);
        free(s->columns[i]);
    }
    for (size_t i = 0; i < s->given_count; i++) {
        free(s->given[i].nodes);
        free(s->given[i].text);
    }
    free(s->reported);
    free(s);
}

void checks_release(struct checks *c)
{
    if (c->state != NULL) {
        release_state(c->state);
    }
    for (size_t i = 0; i < c->finding_count; i++) {
        free(c->findings[i].nodes);
        free(c->findings[i].text);
        free(c->findings[i].value);
        free(c->findings[i].expected);
    }
    free(c->findings);
    *c = (struct checks){0};
}

/* ---- one fact ------------------------------------------------------------ */

static struct column *find_column(const struct checks_state *s, const char *key)
{
    for (size_t i = 0; i < s->column_count; i++) {
        if (strcmp(s->columns[i]->key, key) == 0) {
            return s->columns[i];
        }
    }
    return NULL;
}

static struct column *add_column(struct checks_state *s,
                                 const struct check *check, const char *key)
{
    struct column *column = calloc(1, sizeof(*column));
    char *copy = text_copy(key);
    if (column == NULL || copy == NULL) {
        free(column);
        free(copy);
        return NULL;
    }
    column->check = check;
    column->key = copy;
    s->columns[s->column_count++] = column;
    return column;
}

/* Without room it is left out: *out is NULL then. */
static bool compare(struct column **out, struct checks *c, uint32_t node,
                    const struct check *check, const char *key,
                    const Gpul__Survey *survey)
{
    struct column *column = find_column(c->state, key);
    *out = NULL;
    if (column == NULL && c->state->column_count == COLUMNS_MAX) {
        c->state->dropped++;
        return true;
    }
    if (column == NULL) {
        column = add_column(c->state, check, key);
    }
    if (column == NULL) {
        return false;
    }
    *out = column;
    const Gpul__Fact *fact = look_fact(survey, key);
    bool is_known = fact != NULL && fact->unknown[0] == 0;
    return tally_add(is_known ? &column->values : &column->unknown, node,
                     c->node_count,
                     is_known ? fact->value : look_reason(survey, key)) != NULL;
}

static bool compare_family(struct checks *c, uint32_t node,
                           const struct check *check,
                           const Gpul__Survey *survey)
{
    size_t n = strlen(check->key);
    struct column *column;
    for (size_t i = 0; i < survey->n_facts; i++) {
        const char *key = survey->facts[i]->key;
        if (strncmp(key, check->key, n) == 0 &&
            !compare(&column, c, node, check, key, survey)) {
            return false;
        }
    }
    return true;
}

static bool compare_one(struct checks *c, uint32_t node,
                        const struct check *check, const Gpul__Survey *survey)
{
    struct column *column, *detail;
    if (check->only_with != NULL && !look_was_asked(survey, check->only_with)) {
        return true;
    }
    if (!compare(&column, c, node, check, check->key, survey)) {
        return false;
    }
    if (check->detail == NULL) {
        return true;
    }
    if (!compare(&detail, c, node, check, check->detail, survey)) {
        return false;
    }
    if (column != NULL && detail != NULL) {
        column->detail = detail;
        detail->is_detail = true;
    }
    return true;
}

/* ---- one rule ------------------------------------------------------------ */

static bool keep_outcome(struct checks *c, uint32_t node, size_t index,
                         enum check_severity severity, const struct look *look)
{
    struct outcomes *o = &c->state->outcomes[index];
    if (severity == CHECK_NONE || severity == CHECK_PASS) {
        o->pass_count += severity == CHECK_PASS;
        return true;
    }
    if (o->expected[severity] == NULL) {
        o->expected[severity] =
            text_copy(severity == CHECK_UNKNOWN ? "" : look->expected.bytes);
    }
    return o->expected[severity] != NULL &&
           tally_add(&o->by_severity[severity], node, c->node_count,
                     look->value.bytes) != NULL;
}

static bool follow_rule(struct checks *c, uint32_t node, size_t index,
                        const struct check *check, const Gpul__Survey *survey)
{
    struct look look = {.survey = survey, .need = &c->need};
    enum check_severity severity = check->rule(&look);
    return keep_outcome(c, node, index, severity, &look);
}

/* What a node did not tell is not far from the others': it is unknown. */
static bool take_number(struct checks *c, uint32_t node, size_t index,
                        const struct check *check, const Gpul__Survey *survey)
{
    struct look look = {.survey = survey, .need = &c->need};
    if (look_number(&look, &c->state->numbers[index][node], check->key)) {
        return true;
    }
    return keep_outcome(c, node, index, CHECK_UNKNOWN, &look);
}

static bool follow(struct checks *c, uint32_t node, size_t index,
                   const struct check *check, const Gpul__Survey *survey)
{
    switch (check->kind) {
    case CHECK_RULE:
        return follow_rule(c, node, index, check, survey);
    case CHECK_SAME:
        return compare_one(c, node, check, survey);
    case CHECK_FAMILY:
        return compare_family(c, node, check, survey);
    case CHECK_NEAR:
        return take_number(c, node, index, check, survey);
    case CHECK_ALL:
    case CHECK_GIVEN:
        break;
    }
    return true;
}

/* ---- what GPUs say of themselves ------------------------------------------
 */

/* "GPU-231 sentence": what has no ID is of the GPU's state. */
static bool take_finding(struct checks *c, uint32_t node,
                         const Gpul__Fact *fact)
{
    size_t count;
    size_t n = strcspn(fact->value, " ");
    const struct check *check = checks_find(fact->value, n);
    const char *words = fact->value + (check != NULL ? n + 1 : 0);
    struct look look = {0};
    if (check == NULL) {
        check = checks_find("GPU-250", strlen("GPU-250"));
    }
    bool is_known = fact->unknown[0] == 0;
    text_format(&look.value, "%s", is_known ? words : fact->unknown);
    return keep_outcome(c, node, (size_t)(check - checks_table(&count)),
                        is_known ? check->severity : CHECK_UNKNOWN, &look);
}

static bool take_findings(struct checks *c, uint32_t node,
                          const Gpul__Survey *survey)
{
    static const char beginning[] = "gpu.finding.";
    for (size_t i = 0; i < survey->n_facts; i++) {
        const Gpul__Fact *fact = survey->facts[i];
        if (strncmp(fact->key, beginning, strlen(beginning)) == 0 &&
            !take_finding(c, node, fact)) {
            return false;
        }
    }
    return true;
}

/* ---- a survey ------------------------------------------------------------ */

int checks_add(struct checks *c, uint32_t node, const Gpul__Survey *survey)
{
    size_t count;
    const struct check *table = checks_table(&count);
    assert(node < c->node_count);
    if (checks_bit(c->state->reported, node)) {
        return 0;
    }
    checks_set_bit(c->state->reported, node);
    for (size_t i = 0; i < count; i++) {
        if (!follow(c, node, i, &table[i], survey)) {
            return GPUL_ENOMEM;
        }
    }
    return take_findings(c, node, survey) ? 0 : GPUL_ENOMEM;
}

/* ---- what others found --------------------------------------------------- */

int checks_add_sentence(struct checks *c, enum check_severity severity,
                        const uint64_t *nodes, const char *sentence)
{
    struct checks_state *s = c->state;
    size_t bytes = checks_words(c->node_count) * sizeof(*nodes);
    size_t n = strcspn(sentence, " ");
    const struct check *check = checks_find(sentence, n);
    if (check == NULL) {
        return GPUL_ENOTFOUND;
    }
    if (s->given_count == GIVEN_MAX) {
        s->dropped++;
        return 0;
    }
    struct given given = {.check = check, .severity = severity};
    given.text = text_copy(sentence + n + (sentence[n] != 0));
    given.nodes = nodes != NULL ? malloc(bytes) : NULL;
    if (given.text == NULL || (nodes != NULL && given.nodes == NULL)) {
        free(given.text);
        free(given.nodes);
        return GPUL_ENOMEM;
    }
    if (nodes != NULL) {
        memcpy(given.nodes, nodes, bytes);
    }
    s->given[s->given_count++] = given;
    return 0;
}
