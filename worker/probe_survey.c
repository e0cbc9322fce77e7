/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/probe_survey.h"

#include <inttypes.h>
#include <stdio.h>

#include "proto/limits.h"
#include "worker/facts.h"

enum { FACTS = 5, NUMBER_BYTES = 24 };

/* What is told, and where its values are. */
struct report {
    struct facts facts;
    Gpul__Fact items[FACTS];
    Gpul__Fact *list[FACTS];
    char numbers[FACTS][NUMBER_BYTES];
    size_t count;
};

static void put(struct report *r, const char *key, const char *value)
{
    Gpul__Fact *fact = &r->items[r->count];
    gpul__fact__init(fact);
    fact->key = (char *)(uintptr_t)key;
    if (value[0] != 0) {
        fact->value = (char *)(uintptr_t)value;
    } else {
        fact->unknown = (char *)(uintptr_t) "it could not be read";
    }
    r->list[r->count++] = fact;
}

static void put_number(struct report *r, const char *key, uint64_t value)
{
    char *text = r->numbers[r->count];
    snprintf(text, NUMBER_BYTES, "%" PRIu64, value);
    put(r, key, text);
}

int probe_survey_serve(struct probe_channel *channel,
                       const Gpul__SurveyStart *start, struct gpul_error *err)
{
    struct report r = {0};
    Gpul__Survey survey = GPUL__SURVEY__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    (void)start;
    int rc = facts_read_here(&r.facts, err);
    if (rc != 0) {
        return rc;
    }
    put(&r, "os.kernel", r.facts.message.kernel);
    put(&r, "os.boot_id", r.facts.message.boot_id);
    put_number(&r, "cpu.usable", r.facts.message.cores);
    put_number(&r, "memory.bytes", r.facts.message.memory_bytes);
    put_number(&r, "gpu.count", r.facts.message.gpus);
    survey.facts = r.list;
    survey.n_facts = r.count;
    frame.body_case = GPUL__FRAME__BODY_SURVEY;
    frame.survey = &survey;
    rc = probe_channel_write(channel, &frame, err);
    facts_release(&r.facts);
    return rc;
}
