/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/fuzz_check.h"

#include "coordinator/text.h"

#define MS UINT64_C(1000000)

static void make_survey(Gpul__Frame *frame, uint8_t choice)
{
    static Gpul__Fact fact;
    static Gpul__Fact *facts[] = {&fact};
    static Gpul__Survey survey;
    gpul__fact__init(&fact);
    gpul__survey__init(&survey);
    fact.key = wire_text((choice & 1u) != 0 ? "os.kernel" : "gpu.0.uuid");
    fact.value = wire_text((choice & 2u) != 0 ? "6.1" : "6.2");
    survey.facts = facts;
    survey.n_facts = choice >> 7;
    frame->body_case = GPUL__FRAME__BODY_SURVEY;
    frame->survey = &survey;
}

static void make_pong(Gpul__Frame *frame, uint8_t choice)
{
    static Gpul__ClockPong pong;
    gpul__clock_pong__init(&pong);
    pong.sequence = choice & 15u;
    pong.received_ns = (uint64_t)(choice >> 4) * MS;
    pong.sent_ns = pong.received_ns;
    frame->body_case = GPUL__FRAME__BODY_CLOCK_PONG;
    frame->clock_pong = &pong;
}

static void make_listening(Gpul__Frame *frame, uint8_t choice)
{
    static uint32_t port;
    static Gpul__PairListening listening;
    gpul__pair_listening__init(&listening);
    port = 1u + choice;
    listening.ports = &port;
    listening.n_ports = choice != 255;
    listening.error = wire_text(choice == 255 ? "no port is left" : "");
    frame->body_case = GPUL__FRAME__BODY_PAIR_LISTENING;
    frame->pair_listening = &listening;
}

static void make_way(Gpul__TrialWay *way, unsigned bits)
{
    gpul__trial_way__init(way);
    way->failure = (bits & 1u) != 0 ? GPUL__TRIAL_WAY__FAILURE__NO_CONNECTION
                                    : GPUL__TRIAL_WAY__FAILURE__NONE;
    way->text = wire_text((bits & 1u) != 0 ? "no connection" : "");
    way->bytes = (bits & 2u) != 0 ? 1u << (bits & 28u) : 0;
    way->ns = way->bytes > 0 ? MS : 0;
    way->segments = bits & 4u;
    way->retransmits = way->segments;
    way->busy_percent = (bits & 8u) != 0 ? 100 : 0;
}

/* Of one of the first eight trials. */
static void make_trial(Gpul__Frame *frame, uint8_t choice)
{
    static Gpul__TrialWay ways[2];
    static Gpul__TrialResult result;
    gpul__trial_result__init(&result);
    make_way(&ways[0], choice >> 3);
    make_way(&ways[1], choice >> 4);
    result.trial = 1 + (choice & 7u);
    result.sending = &ways[0];
    result.receiving = &ways[1];
    frame->body_case = GPUL__FRAME__BODY_TRIAL_RESULT;
    frame->trial_result = &result;
}

static void make_end(Gpul__Frame *frame, uint8_t choice)
{
    static Gpul__PairEnd end;
    gpul__pair_end__init(&end);
    end.error = wire_text((choice & 1u) != 0 ? "it was killed" : "");
    frame->body_case = GPUL__FRAME__BODY_PAIR_END;
    frame->pair_end = &end;
}

void fuzz_check_make(Gpul__Frame *frame, enum fuzz_check what, uint8_t choice)
{
    static void (*const makers[])(Gpul__Frame *, uint8_t) = {
        [FUZZ_CHECK_SURVEY] = make_survey,
        [FUZZ_CHECK_PONG] = make_pong,
        [FUZZ_CHECK_LISTENING] = make_listening,
        [FUZZ_CHECK_TRIAL] = make_trial,
        [FUZZ_CHECK_PAIRS_END] = make_end,
    };
    makers[what](frame, choice);
}
