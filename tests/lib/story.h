/* SPDX-License-Identifier: Apache-2.0
 *
 * A scripted simulation is a story: it is run, and its trace compared with
 * the text that it must be, word by word.
 */
#ifndef TESTS_LIB_STORY_H
#define TESTS_LIB_STORY_H

#include "tests/lib/cluster.h"

enum { STORY_RANKS = 4 };

/* What each rank does, in the first generation and in later ones. */
extern struct rank_plan story_plans[2][STORY_RANKS];

/* Two nodes of two ranks without a self-test, whose ranks follow story_plans:
 * at first each runs for 100 ms and ends with 0. */
void story_init(struct cluster *c);

/* The ranks of the first generation run until they are stopped. */
void story_run_for_ever(void);

/* Nodes of one rank and `gpus` devices each, on one host, with a self-test
 * over NCCL. */
void story_init_gpus(struct cluster *c, uint32_t nodes, uint32_t gpus);

/* Run the job to its end, tracing from `from_ms` on, compare, and release the
 * cluster. */
void story_expect(struct cluster *c, uint64_t from_ms, const char *expected);

/* The same up to `until_ms` only. */
void story_expect_part(struct cluster *c, uint64_t from_ms, uint64_t until_ms,
                       const char *expected);

#endif
