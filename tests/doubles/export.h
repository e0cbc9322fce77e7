/* SPDX-License-Identifier: Apache-2.0
 *
 * What every double of a library has: names that are seen from outside, and
 * the marker by which a report knows that its numbers are SIMULATED. */
#ifndef DOUBLES_EXPORT_H
#define DOUBLES_EXPORT_H

#define DOUBLE_EXPORT __attribute__((visibility("default")))

/* Once in each library. */
#define DOUBLE_MARKER(library)                                                 \
    extern const char gpulaunch_double[];                                      \
    DOUBLE_EXPORT const char gpulaunch_double[] = library

#endif
