/* SPDX-License-Identifier: Apache-2.0
 *
 * How signals are called in messages to users: always by number and name.
 * Pure.
 */
#ifndef GPUL_COMMON_SIGNALS_H
#define GPUL_COMMON_SIGNALS_H

#include <stdint.h>

enum { GPUL_SIGNAL_TEXT_BYTES = 32 };

/* "signal 9 (SIGKILL)"; "signal 40" where there is no name. Returns `out`. */
const char *gpul_format_signal(char out[GPUL_SIGNAL_TEXT_BYTES],
                               uint32_t number);

#endif
