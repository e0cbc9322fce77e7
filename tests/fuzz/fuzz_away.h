/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages of agents that come back or leave, for fuzz_rendezvous, each drawn
 * from one byte.
 */
#ifndef TESTS_FUZZ_FUZZ_AWAY_H
#define TESTS_FUZZ_FUZZ_AWAY_H

#include "proto/message.h"

/* Hello of the `attach`-th agent of one of the keepers that fuzz_rendezvous
 * knows, which may hold `generation`. The body lives until the next call. */
void fuzz_away_hello(Gpul__Frame *frame, uint32_t attach, uint32_t generation,
                     uint8_t choice);

/* Leave. */
void fuzz_away_leave(Gpul__Frame *frame, uint8_t choice);

#endif
