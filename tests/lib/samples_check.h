/* SPDX-License-Identifier: Apache-2.0
 *
 * The samples of the messages of docs/check.md, for samples.c only.
 */
#ifndef TESTS_LIB_SAMPLES_CHECK_H
#define TESTS_LIB_SAMPLES_CHECK_H

#include "proto/message.h"

extern Gpul__Check sample_check;
extern Gpul__SurveyStart sample_survey_start;
extern Gpul__Survey sample_survey;
extern Gpul__ClockPing sample_clock_ping;
extern Gpul__ClockPong sample_clock_pong;
extern Gpul__Finding *sample_findings[1];
extern Gpul__Fact *sample_facts[2];
extern Gpul__FindingCounts sample_counts;

#endif
