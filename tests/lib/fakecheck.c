/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/fakecheck.h"

#include "coordinator/text.h"
#include "tests/lib/fakenode.h"

#define NS_PER_MS UINT64_C(1000000)

uint64_t fake_real_ns(uint64_t now_ms)
{
    return UINT64_C(1796000000000000000) + now_ms * NS_PER_MS;
}

void fake_check_begin(struct cluster *c)
{
    gpul__check__init(&c->check);
    c->check.survey_deadline_ms = 60000;
    c->job.check = &c->check;
    c->job.mode = GPUL__JOB__MODE__CHECK;
}

void fake_survey(struct cluster *c, uint32_t index)
{
    const struct fake_node *node = &c->nodes[index];
    Gpul__Fact fact = GPUL__FACT__INIT;
    Gpul__Fact *facts[] = {&fact};
    Gpul__Survey survey = GPUL__SURVEY__INIT;
    fact.key = wire_text("os.kernel");
    fact.value = wire_text("6.1.0");
    survey.n_facts = 1;
    survey.facts = facts;
    Gpul__Frame frame = fake_frame(node);
    frame.body_case = GPUL__FRAME__BODY_SURVEY;
    frame.survey = &survey;
    fake_send(c, node, &frame);
}

void fake_pong(struct cluster *c, uint32_t index, const Gpul__ClockPing *ping)
{
    const struct fake_node *node = &c->nodes[index];
    uint64_t now_ns =
        fake_real_ns(c->now_ms) + node->clock_ahead_ms * NS_PER_MS;
    Gpul__ClockPong pong = GPUL__CLOCK_PONG__INIT;
    pong.sequence = ping->sequence;
    pong.ping_sent_ns = ping->sent_ns;
    pong.received_ns = now_ns;
    pong.sent_ns = now_ns;
    Gpul__Frame frame = fake_frame(node);
    frame.body_case = GPUL__FRAME__BODY_CLOCK_PONG;
    frame.clock_pong = &pong;
    fake_send(c, node, &frame);
}
