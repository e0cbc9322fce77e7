/* SPDX-License-Identifier: Apache-2.0
 *
 * The scout and the probes of a fake node: docs/gpu-self-test.md in virtual
 * time. A probe passes its steps one after another, each step_ms later; the
 * communicator needs the IDs.
 */
#ifndef TESTS_LIB_FAKEPROBES_H
#define TESTS_LIB_FAKEPROBES_H

#include "tests/lib/cluster.h"

/* A probe that is not well says so each time. */
enum { SAY_EVERY_MS = 2500 };

void fake_scout(struct cluster *c, uint32_t node);

/* How it is, and it hangs inside cuInit. */
void fake_scout_hang(struct cluster *c, uint32_t node);
void fake_probes_begin(struct cluster *c, uint32_t node,
                       const Gpul__ProbeBegin *begin);
void fake_probes_connect(struct cluster *c, uint32_t node,
                         const Gpul__ProbeIds *ids);

/* Of SIM_PROBE: the local probe and its step in one number. */
void fake_probe_step(struct cluster *c, uint32_t node, uint32_t number,
                     uint32_t generation);

#endif
