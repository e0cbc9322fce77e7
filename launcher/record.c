/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"

void *record_copy(const ProtobufCMessage *message)
{
    size_t n = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = malloc(n + 1);
    if (bytes == NULL) {
        return NULL;
    }
    protobuf_c_message_pack(message, bytes);
    void *copy = protobuf_c_message_unpack(message->descriptor, NULL, n, bytes);
    free(bytes);
    return copy;
}

static void release_pages(struct record *r)
{
    for (size_t i = 0; i < r->page_count; i++) {
        gpul__event__free_unpacked(r->pages[i], NULL);
    }
    free(r->pages);
    r->pages = NULL;
    r->page_count = 0;
}

static void forget_lines(char **lines, size_t *count)
{
    while (*count > 0) {
        free(lines[--*count]);
    }
}

static void forget_metrics(struct record *r)
{
    for (size_t i = 0; i < r->metric_count; i++) {
        free(r->metrics[i].text);
    }
    free(r->metrics);
    r->metrics = NULL;
    r->metric_count = 0;
}

void record_release(struct record *r)
{
    forget_metrics(r);
    release_pages(r);
    gpul__event__free_unpacked(r->self_test, NULL);
    forget_lines(r->notices, &r->notice_count);
    forget_lines(r->facts, &r->fact_count);
    forget_lines(r->settings, &r->setting_count);
    for (size_t i = 0; i < r->stall_count; i++) {
        gpul__event__free_unpacked(r->stalls[i].report, NULL);
    }
    gpul__job_end__free_unpacked(r->end, NULL);
    *r = (struct record){0};
}

/* A page that begins at rank 0 begins a new generation. */
static void add_page(struct record *r, const Gpul__Event *event)
{
    bool is_first = event->n_members > 0 && event->members[0]->node_rank == 0;
    if (is_first) {
        release_pages(r);
    }
    Gpul__Event **grown =
        realloc(r->pages, (r->page_count + 1) * sizeof(*r->pages));
    if (grown == NULL) {
        return;
    }
    r->pages = grown;
    Gpul__Event *copy = record_copy(&event->base);
    if (copy != NULL) {
        r->pages[r->page_count++] = copy;
    }
}

static Gpul__Member **find_slot(struct record *r, uint32_t node_rank)
{
    for (size_t i = 0; i < r->page_count; i++) {
        for (size_t k = 0; k < r->pages[i]->n_members; k++) {
            if (r->pages[i]->members[k]->node_rank == node_rank) {
                return &r->pages[i]->members[k];
            }
        }
    }
    return NULL;
}

/* What was found out of members that are known. */
static void renew_members(struct record *r, const Gpul__Event *event)
{
    for (size_t i = 0; i < event->n_members; i++) {
        Gpul__Member **slot = find_slot(r, event->members[i]->node_rank);
        Gpul__Member *copy =
            slot != NULL ? record_copy(&event->members[i]->base) : NULL;
        if (copy != NULL) {
            gpul__member__free_unpacked(*slot, NULL);
            *slot = copy;
        }
    }
}

static void add_line(char **lines, size_t *count, size_t count_max,
                     const char *text)
{
    if (*count == count_max) {
        return;
    }
    char *copy = strdup(text);
    if (copy != NULL) {
        lines[(*count)++] = copy;
    }
}

/* A self-test that is begun anew tells its facts again. */
static void note_retry(struct record *r)
{
    if (r->launched_ms == 0) {
        forget_lines(r->facts, &r->fact_count);
        forget_lines(r->settings, &r->setting_count);
    }
}

static void note_metrics(struct record *r, const Gpul__Event *event)
{
    struct record_metric *grown = reallocarray(
        r->metrics, r->metric_count + event->n_metrics, sizeof(*r->metrics));
    if (grown == NULL) {
        return;
    }
    r->metrics = grown;
    for (size_t i = 0; i < event->n_metrics; i++) {
        const Gpul__Metric *m = event->metrics[i];
        char *text = strdup(m->text);
        if (text != NULL) {
            r->metrics[r->metric_count++] =
                (struct record_metric){m->rank, text, m->steps, m->steps_ms};
        }
    }
}

/* The last word on what the self-test runs on is the right one. */
static void note_backend(struct record *r, const Gpul__Event *event)
{
    if (event->backend[0] != '\0') {
        snprintf(r->backend, sizeof(r->backend), "%s", event->backend);
    }
    r->is_simulated = event->is_simulated;
}

static void note_report(struct record *r, const Gpul__Event *event,
                        uint64_t now_ms)
{
    struct record_stall *last =
        r->stall_count > 0 ? &r->stalls[r->stall_count - 1] : NULL;
    bool is_new = last == NULL || last->resumed_ms > 0;
    if (is_new && r->stall_count == RECORD_STALLS_MAX) {
        return;
    }
    Gpul__Event *copy = record_copy(&event->base);
    if (copy == NULL) {
        return;
    }
    if (is_new) {
        last = &r->stalls[r->stall_count++];
        last->first_ms = now_ms;
    }
    gpul__event__free_unpacked(last->report, NULL);
    last->report = copy;
}

static void note_stall(struct record *r, const Gpul__Event *event,
                       uint64_t now_ms)
{
    if (event->have > 0) {
        note_report(r, event, now_ms);
    } else if (r->stall_count > 0 &&
               r->stalls[r->stall_count - 1].resumed_ms == 0) {
        r->stalls[r->stall_count - 1].resumed_ms = now_ms;
    }
}

void record_event(struct record *r, const Gpul__Event *event, uint64_t now_ms)
{
    switch (event->kind) {
    case GPUL__EVENT__KIND__ASSIGNED:
        r->assigned_ms = now_ms;
        add_page(r, event);
        break;
    case GPUL__EVENT__KIND__LINKS:
    case GPUL__EVENT__KIND__LINKS_FAILED:
        renew_members(r, event);
        break;
    case GPUL__EVENT__KIND__SELF_TEST_FACTS:
        note_backend(r, event);
        add_line(r->facts, &r->fact_count, RECORD_FACTS_MAX, event->text);
        break;
    case GPUL__EVENT__KIND__SELF_TEST_SETTINGS:
        add_line(r->settings, &r->setting_count, RECORD_FACTS_MAX, event->text);
        break;
    case GPUL__EVENT__KIND__SELF_TEST_STARTED:
        note_backend(r, event);
        break;
    case GPUL__EVENT__KIND__SELF_TEST_PASSED:
    case GPUL__EVENT__KIND__SELF_TEST_SLOW:
    case GPUL__EVENT__KIND__SELF_TEST_SKIPPED:
        note_backend(r, event);
        if (event->kind == GPUL__EVENT__KIND__SELF_TEST_SKIPPED) {
            r->backend[0] = '\0'; /* of facts that led to nothing */
        }
        r->tested_ms = now_ms;
        gpul__event__free_unpacked(r->self_test, NULL);
        r->self_test = record_copy(&event->base);
        break;
    case GPUL__EVENT__KIND__LAUNCHED:
        r->launched_ms = now_ms;
        break;
    case GPUL__EVENT__KIND__METRICS:
        note_metrics(r, event);
        break;
    case GPUL__EVENT__KIND__STALL:
        note_stall(r, event, now_ms);
        break;
    case GPUL__EVENT__KIND__RETRYING:
        note_retry(r);
        forget_metrics(r);
        add_line(r->notices, &r->notice_count, RECORD_NOTICES_MAX, event->text);
        break;
    case GPUL__EVENT__KIND__NOTICE:
        add_line(r->notices, &r->notice_count, RECORD_NOTICES_MAX, event->text);
        break;
    default:
        break;
    }
}

/* The end of a job tells what no event could: of a self-test that was over
 * before all libraries were known. */
static void note_doubles(struct record *r, Gpul__JobEnd__Doubles doubles)
{
    r->may_be_simulated = doubles == GPUL__JOB_END__DOUBLES__UNKNOWN;
    if (doubles == GPUL__JOB_END__DOUBLES__SOME) {
        r->is_simulated = true;
        snprintf(r->backend, sizeof(r->backend), "%s", "double");
    }
}

int record_end(struct record *r, const Gpul__JobEnd *end, uint64_t now_ms)
{
    if (r->end != NULL) {
        return 0;
    }
    note_doubles(r, end->doubles);
    r->ended_ms = now_ms;
    r->end = record_copy(&end->base);
    return r->end != NULL ? 0 : GPUL_ENOMEM;
}

void record_clear_unclean(struct record *r)
{
    for (size_t i = 0; i < r->end->n_unclean; i++) {
        free(r->end->unclean[i]);
    }
    r->end->n_unclean = 0;
}

void record_add_unclean(struct record *r, const char *text)
{
    size_t count = r->end->n_unclean;
    char **list = realloc(r->end->unclean, (count + 1) * sizeof(*list));
    char *copy = strdup(text);
    if (list != NULL) {
        r->end->unclean = list;
    }
    if (list == NULL || copy == NULL) {
        free(copy);
        return;
    }
    list[count] = copy;
    r->end->n_unclean++;
}

uint32_t record_world_size(const struct record *r)
{
    uint32_t world = 0;
    for (size_t i = 0; i < r->page_count; i++) {
        for (size_t k = 0; k < r->pages[i]->n_members; k++) {
            world += r->pages[i]->members[k]->rank_count;
        }
    }
    return world;
}

const Gpul__Member *record_member(const struct record *r, uint32_t rank)
{
    for (size_t i = 0; i < r->page_count; i++) {
        for (size_t k = 0; k < r->pages[i]->n_members; k++) {
            const Gpul__Member *m = r->pages[i]->members[k];
            if (rank >= m->first_rank && rank - m->first_rank < m->rank_count) {
                return m;
            }
        }
    }
    return NULL;
}
