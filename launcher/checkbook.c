/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/checkbook.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/record.h"

static void release(Gpul__Event **list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        gpul__event__free_unpacked(list[i], NULL);
    }
    free(list);
}

void checkbook_release(struct checkbook *b)
{
    release(b->pages, b->page_count);
    release(b->facts, b->fact_count);
    release(b->trials, b->trial_count);
    *b = (struct checkbook){0};
}

static void append(Gpul__Event ***list, size_t *count, const Gpul__Event *event)
{
    Gpul__Event **grown = realloc(*list, (*count + 1) * sizeof(**list));
    if (grown == NULL) {
        return;
    }
    *list = grown;
    Gpul__Event *copy = record_copy(&event->base);
    if (copy != NULL) {
        grown[(*count)++] = copy;
    }
}

/* A check that is begun anew asks again. */
static void keep_facts(struct checkbook *b, const Gpul__Event *event)
{
    for (size_t i = 0; i < b->fact_count; i++) {
        if (strcmp(b->facts[i]->node_name, event->node_name) == 0) {
            Gpul__Event *copy = record_copy(&event->base);
            if (copy != NULL) {
                gpul__event__free_unpacked(b->facts[i], NULL);
                b->facts[i] = copy;
            }
            return;
        }
    }
    append(&b->facts, &b->fact_count, event);
}

/* The first page of the first round: what there was before counts no more. */
static void keep_trials(struct checkbook *b, const Gpul__Event *event)
{
    bool is_first = event->n_pairs > 0 && event->pairs[0]->round == 1 &&
                    event->have == event->n_pairs;
    if (is_first) {
        release(b->trials, b->trial_count);
        b->trials = NULL;
        b->trial_count = 0;
    }
    append(&b->trials, &b->trial_count, event);
}

void checkbook_event(struct checkbook *b, const Gpul__Event *event)
{
    if (event->kind == GPUL__EVENT__KIND__FINDINGS) {
        append(&b->pages, &b->page_count, event);
    } else if (event->kind == GPUL__EVENT__KIND__FACTS) {
        keep_facts(b, event);
    } else if (event->kind == GPUL__EVENT__KIND__PAIRS ||
               event->kind == GPUL__EVENT__KIND__VERDICTS) {
        keep_trials(b, event);
    }
}

const Gpul__Finding *checkbook_next(const struct checkbook *b,
                                    Gpul__Finding__Severity severity,
                                    struct checkbook_place *at)
{
    while (at->page < b->page_count) {
        const Gpul__Event *page = b->pages[at->page];
        while (at->index < page->n_findings) {
            const Gpul__Finding *finding = page->findings[at->index++];
            if (finding->severity == severity) {
                return finding;
            }
        }
        at->page++;
        at->index = 0;
    }
    return NULL;
}
