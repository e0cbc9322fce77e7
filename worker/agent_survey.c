/* SPDX-License-Identifier: Apache-2.0
 *
 * What a check asks of a node, docs/check.md, between Ready and the proof of
 * addresses: its facts, which a process of its own finds out, since a file
 * system or a library of the GPUs may hang; and the time.
 */
#include <stdio.h>
#include <string.h>

#include "proto/text.h"
#include "worker/agent_internal.h"

/* The probe keeps its own deadline; this is for one that hangs. */
enum { MARGIN_MS = 2000 };

static ProtobufCBinaryData bytes_within(const ProtobufCBinaryData *bytes)
{
    ProtobufCBinaryData cut = *bytes;
    if (cut.len > GPUL_PATH_BYTES_MAX) {
        cut.len = GPUL_PATH_BYTES_MAX; /* nothing of that name can be found */
    }
    return cut;
}

static void fill(Gpul__SurveyStart *out, const Gpul__Job *job)
{
    const Gpul__Check *check = job->check;
    const Gpul__Command *command = job->command;
    out->data_dir = check->data_dir;
    out->job_id = job->job_id;
    if (check->has_command && command->n_arguments > 0) {
        out->command = bytes_within(&command->arguments[0]);
    }
    out->working_directory = bytes_within(&command->working_directory);
}

bool agent_survey_start(struct agent *a, const Gpul__SurveyStart *start)
{
    if (!agent_is_ready(a) || a->job->check == NULL) {
        return false;
    }
    Gpul__SurveyStart whole = *start;
    fill(&whole, a->job);
    Gpul__Frame frame;
    gpul__frame__init(&frame);
    frame.body_case = GPUL__FRAME__BODY_SURVEY_START;
    frame.survey_start = &whole;
    agent_probes_begin(a, (uint64_t)start->deadline_ms + MARGIN_MS);
    struct agent_action *action = agent_send(a, AGENT_START_PROBE, &frame);
    if (action != NULL) {
        agent_probe_begun(a, action, 0, AGENT_PROBE_SURVEY);
    }
    return true;
}

/* Whatever else this node is doing: it takes no time. */
bool agent_clock_ping(struct agent *a, const Gpul__ClockPing *ping)
{
    if (a->state < AGENT_ASSIGNED) {
        return false;
    }
    agent_emit(a, AGENT_TELL_CLOCK)->ping = ping;
    return true;
}

void agent_survey_failed(struct agent *a, const char *why)
{
    char text[GPUL_FACT_UNKNOWN_BYTES_MAX + 1];
    Gpul__Fact fact = GPUL__FACT__INIT;
    Gpul__Fact *facts[] = {&fact};
    Gpul__Survey survey;
    snprintf(text, sizeof(text),
             "the process that looks at the node failed: %s", why);
    gpul_text_clean_line(text, sizeof(text) - 1);
    fact.key = agent_text("survey");
    fact.unknown = text;
    gpul__survey__init(&survey);
    survey.n_facts = 1;
    survey.facts = facts;
    Gpul__Frame frame;
    gpul__frame__init(&frame);
    frame.body_case = GPUL__FRAME__BODY_SURVEY;
    frame.survey = &survey;
    agent_send(a, AGENT_SEND, &frame);
}
