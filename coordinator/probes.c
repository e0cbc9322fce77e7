/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/probes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "coordinator/text.h"

int probes_init(struct probes *p, uint32_t count, uint64_t now_ms)
{
    *p = (struct probes){.count = count};
    p->steps = calloc(count, sizeof(*p->steps));
    p->reports = calloc(count, sizeof(*p->reports));
    for (uint32_t i = 0; p->reports != NULL && i < count; i++) {
        p->reports[i].heard_ms = now_ms;
    }
    return p->steps != NULL && p->reports != NULL ? 0 : GPUL_ENOMEM;
}

void probes_release(struct probes *p)
{
    for (uint32_t i = 0; p->reports != NULL && i < p->count; i++) {
        free(p->reports[i].words);
        free(p->reports[i].call);
    }
    free(p->reports);
    free(p->steps);
    *p = (struct probes){0};
}

bool probes_pass(struct probes *p, uint32_t rank, enum probes_step step)
{
    assert(rank < p->count && step < PROBES_STEP_COUNT);
    if (p->steps[rank] >= step) {
        return false;
    }
    while (p->steps[rank] < step) {
        p->steps[rank]++;
        p->passed[p->steps[rank]]++;
    }
    return true;
}

/* A copy, cut between characters, in the place of *out. */
static int keep(char **out, const char *text)
{
    size_t n = strlen(text);
    if (n > PROBES_WORDS_BYTES_MAX) {
        n = text_whole_bytes(text, PROBES_WORDS_BYTES_MAX);
    }
    char *copy = realloc(*out, n + 1);
    if (copy == NULL) {
        return GPUL_ENOMEM;
    }
    memcpy(copy, text, n);
    copy[n] = 0;
    *out = copy;
    return 0;
}

int probes_say(struct probes *p, uint32_t rank, const Gpul__ProbePhase *said,
               uint64_t now_ms)
{
    struct probes_report *report = &p->reports[rank];
    bool is_inside = said->state == GPUL__PROBE_PHASE__STATE__STATE_INSIDE;
    report->state = said->state;
    report->since_ms = said->since_ms;
    report->stage = said->stage;
    report->heard_ms = now_ms;
    /* What an agent sees of a stopped one is no progress. */
    if (said->state != GPUL__PROBE_PHASE__STATE__STATE_STOPPED) {
        report->progress = said->progress;
    }
    if (said->text[0] != 0 && keep(&report->words, said->text) != 0) {
        return GPUL_ENOMEM;
    }
    return is_inside ? keep(&report->call, said->call) : 0;
}
