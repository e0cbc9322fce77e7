/* SPDX-License-Identifier: Apache-2.0
 *
 * What a node may say in a check, made of one byte.
 */
#ifndef TESTS_FUZZ_FUZZ_CHECK_H
#define TESTS_FUZZ_FUZZ_CHECK_H

#include <stdint.h>

#include "proto/message.h"

enum fuzz_check {
    FUZZ_CHECK_SURVEY,
    FUZZ_CHECK_PONG,
    FUZZ_CHECK_LISTENING,
    FUZZ_CHECK_TRIAL,
    FUZZ_CHECK_PAIRS_END,
    FUZZ_CHECK_KINDS,
};

/* Kind and content; the body lives until the next call. */
void fuzz_check_make(Gpul__Frame *frame, enum fuzz_check what, uint8_t choice);

#endif
