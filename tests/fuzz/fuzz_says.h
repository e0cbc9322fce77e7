/* SPDX-License-Identifier: Apache-2.0
 *
 * What a node says in the course of a job, for fuzz_rendezvous, each message
 * drawn from one byte.
 */
#ifndef TESTS_FUZZ_FUZZ_SAYS_H
#define TESTS_FUZZ_FUZZ_SAYS_H

#include "proto/message.h"

/* The corpus knows these by number; two are drawn from more than a byte, and
 * not made here. */
enum fuzz_says {
    FUZZ_SAYS_HELLO = 0,
    FUZZ_SAYS_READY,
    FUZZ_SAYS_LISTENING,
    FUZZ_SAYS_RESULT,
    FUZZ_SAYS_EXITS, /* not here */
    FUZZ_SAYS_IDLE,
    FUZZ_SAYS_OUTPUT,
    FUZZ_SAYS_REPORT,
    FUZZ_SAYS_BYTES, /* not here; these have other numbers: */
    FUZZ_SAYS_TAKEN, /* InputCredit */
    FUZZ_SAYS_STALL,
};

/* The body lives until the next call. */
void fuzz_says_make(Gpul__Frame *frame, enum fuzz_says what, uint32_t conn,
                    uint8_t choice);

#endif
