/* SPDX-License-Identifier: Apache-2.0
 *
 * How a rank ended, in words that coordinator and front end share. Pure.
 */
#ifndef GPUL_PROTO_CAUSE_H
#define GPUL_PROTO_CAUSE_H

#include "gpulaunch.pb-c.h"

/* The text of an exit is GPUL_TEXT_BYTES_MAX at most. */
enum { GPUL_CAUSE_BYTES = 1200 };

/* "exited with code 7"; "was ended by signal 11 (SIGSEGV): segmentation
 * fault"; "could not start: ...". Returns `out`. */
const char *gpul_exit_cause(char out[GPUL_CAUSE_BYTES], const Gpul__Exit *fate);

#endif
