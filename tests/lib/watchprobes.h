/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of the watch that judges the self-test on GPUs: what the scouts'
 * facts must lead to, whose unique IDs go where, when every rank was good.
 */
#ifndef TESTS_LIB_WATCHPROBES_H
#define TESTS_LIB_WATCHPROBES_H

#include "tests/lib/watch.h"

/* The coordinator hears this of the double `node`. */
void watch_hear_facts(struct cluster *c, const Gpul__ProbeFacts *facts);
void watch_hear_id(struct cluster *c, const Gpul__ProbeId *id);
void watch_hear_gpu_result(struct cluster *c, const Gpul__ProbeResult *result);

/* The coordinator says this. */
void watch_see_start(struct cluster *c, const Gpul__ProbeStart *start);
void watch_see_begin(struct cluster *c, const struct sim_link *link,
                     const Gpul__ProbeBegin *begin);
void watch_see_ids(struct cluster *c, const struct sim_link *link,
                   const Gpul__Frame *frame);

/* It launches: has the self-test that was due gone well everywhere? */
void watch_see_tested(struct cluster *c);

/* Every probe was good: the job ends if that was too slow. */
void watch_judge_speed(struct cluster *c, uint32_t ranks);

#endif
