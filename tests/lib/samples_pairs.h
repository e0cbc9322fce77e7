/* SPDX-License-Identifier: Apache-2.0
 *
 * The samples of the messages of trials between two nodes, for samples.c only.
 */
#ifndef TESTS_LIB_SAMPLES_PAIRS_H
#define TESTS_LIB_SAMPLES_PAIRS_H

#include "proto/message.h"

extern Gpul__PairStart sample_pair_start;
extern Gpul__PairListening sample_pair_listening;
extern Gpul__TrialStart sample_trial_start;
extern Gpul__TrialResult sample_trial_result;
extern Gpul__PairEnd sample_pair_end;

/* For the sample of an Event. */
enum { SAMPLE_PAIR_ROWS = 1, SAMPLE_PAIR_VERDICTS = 1 };
extern Gpul__PairRow *sample_pair_rows[SAMPLE_PAIR_ROWS];
extern Gpul__PairVerdict *sample_pair_verdicts[SAMPLE_PAIR_VERDICTS];

#endif
