/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/tally.h"

#include <stdlib.h>
#include <string.h>

#include "coordinator/missing.h"

enum { WORD_BITS = 64, SHOWN_MAX = 4 };

void tally_release(struct tally *t)
{
    for (size_t i = 0; i < t->count; i++) {
        free(t->answers[i].text);
        free(t->answers[i].nodes);
    }
    *t = (struct tally){0};
}

static struct tally_answer *find(struct tally *t, const char *text)
{
    for (size_t i = 0; i < t->count; i++) {
        struct tally_answer *answer = &t->answers[i];
        if (answer->text == NULL || strcmp(answer->text, text) == 0) {
            return answer;
        }
    }
    return NULL;
}

/* The one behind the last known answer stands for all others. */
static struct tally_answer *start(struct tally *t, uint32_t node_count,
                                  const char *text)
{
    struct tally_answer *answer = &t->answers[t->count];
    bool has_text = t->count < TALLY_ANSWERS_MAX;
    answer->text = has_text ? text_copy(text) : NULL;
    answer->nodes = calloc(node_count / WORD_BITS + 1, sizeof(uint64_t));
    if (answer->nodes == NULL || (has_text && answer->text == NULL)) {
        free(answer->text);
        free(answer->nodes);
        *answer = (struct tally_answer){0};
        return NULL;
    }
    t->count++;
    return answer;
}

static bool has_node(const struct tally_answer *answer, uint32_t index)
{
    return (answer->nodes[index / WORD_BITS] >> (index % WORD_BITS) & 1u) != 0;
}

struct tally_answer *tally_add(struct tally *t, uint32_t index,
                               uint32_t node_count, const char *text)
{
    struct tally_answer *answer = find(t, text);
    if (answer == NULL) {
        answer = start(t, node_count, text);
    }
    if (answer == NULL) {
        return NULL;
    }
    answer->times++;
    if (!has_node(answer, index)) {
        answer->nodes[index / WORD_BITS] |= UINT64_C(1) << (index % WORD_BITS);
        answer->node_count++;
    }
    return answer;
}

static bool comes_before(const struct tally_answer *a,
                         const struct tally_answer *b)
{
    return a->node_count != b->node_count
               ? a->node_count < b->node_count
               : tally_first_node(a) < tally_first_node(b);
}

/* By insertion: there are few. */
void tally_sort(struct tally *t)
{
    for (size_t i = 1; i < t->count; i++) {
        struct tally_answer moved = t->answers[i];
        size_t at = i;
        for (; at > 0 && comes_before(&moved, &t->answers[at - 1]); at--) {
            t->answers[at] = t->answers[at - 1];
        }
        t->answers[at] = moved;
    }
}

static bool is_among(const struct roster *r, uint32_t index, const void *arg)
{
    (void)r;
    return has_node(arg, index);
}

void tally_names(struct text *out, const struct tally_answer *answer,
                 const struct roster *r)
{
    missing_names(out, r, is_among, answer);
}

uint32_t tally_first_node(const struct tally_answer *answer)
{
    uint32_t index = 0;
    while (!has_node(answer, index)) {
        index++; /* an answer has a node */
    }
    return index;
}

void tally_describe(struct text *out, const struct tally *t,
                    const struct roster *r)
{
    struct text names;
    size_t shown = t->count < SHOWN_MAX ? t->count : SHOWN_MAX;
    text_format(out, "%s", "");
    for (size_t i = 0; i < shown; i++) {
        const struct tally_answer *answer = &t->answers[i];
        tally_names(&names, answer, r);
        text_append(out, "%s%s %s %s", i > 0 ? ", " : "", names.bytes,
                    answer->node_count == 1 ? "has" : "have",
                    answer->text != NULL ? answer->text : "something else");
    }
    if (t->count > shown) {
        text_append(out, ", and there are %zu more", t->count - shown);
    }
}
