/* SPDX-License-Identifier: Apache-2.0
 *
 * What every fuzz target includes: libFuzzer's entry point, and a check that
 * stops the program in every build.
 */
#ifndef TESTS_LIB_FUZZ_H
#define TESTS_LIB_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A property that must hold for every input. */
#define FUZZ_CHECK(condition)                                                  \
    do {                                                                       \
        if (!(condition)) {                                                    \
            fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__,         \
                    #condition);                                               \
            abort();                                                           \
        }                                                                      \
    } while (0)

#endif
