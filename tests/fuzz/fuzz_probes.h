/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages of the self-test on GPUs for fuzz_rendezvous, each drawn from one
 * byte.
 */
#ifndef TESTS_FUZZ_FUZZ_PROBES_H
#define TESTS_FUZZ_FUZZ_PROBES_H

#include "proto/message.h"

enum { FUZZ_PROBES_KINDS = 3 };

/* ProbeFacts, ProbeId or ProbePhase of connection `conn`, `kind` being below
 * FUZZ_PROBES_KINDS. The body lives until the next call. */
void fuzz_probes_make(Gpul__Frame *frame, uint8_t kind, uint32_t conn,
                      uint8_t choice);

#endif
