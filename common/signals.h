/* SPDX-License-Identifier: Apache-2.0
 *
 * How signals are called: in messages to users always by number and name, and
 * by users as they like. Pure.
 */
#ifndef GPUL_COMMON_SIGNALS_H
#define GPUL_COMMON_SIGNALS_H

#include <stdint.h>

#include "common/error.h"

enum { GPUL_SIGNAL_TEXT_BYTES = 32 };

/* "signal 9 (SIGKILL)"; "signal 40" where there is no name. Returns `out`. */
const char *gpul_format_signal(char out[GPUL_SIGNAL_TEXT_BYTES],
                               uint32_t number);

/* "10", "USR1", "SIGUSR1", "rtmin+3", "RTMAX-1": from 1 to 64, but not the two
 * that the C library keeps for itself. Errors: GPUL_EINVAL, with the forms. */
int gpul_parse_signal(uint32_t *out, const char *text, struct gpul_error *err);

/* What a signal that ends a process says of it: "segmentation fault" for
 * SIGSEGV. NULL where its name says it all, or anybody may send it. */
const char *gpul_signal_meaning(uint32_t number);

#endif
