/* SPDX-License-Identifier: Apache-2.0
 *
 * The verb scale: one gpulaunch after the other, on each count of nodes, and
 * the record of what they told. Edge.
 *
 * Happy path: every run of launcher/scaleplan.h leaves a result file in a
 * folder of ours, launcher/scalebook.h takes it; the table goes to standard
 * output, the record to where it is wanted.
 * Failure: a run that fails is a sample without a figure, and the sweep goes
 * on. It ends where no further run would tell more (no result was left, or
 * nothing says how fast the command is) and by a signal, which is passed on to
 * the run; what was measured up to then is reported and recorded all the same.
 */
#ifndef LAUNCHER_SCALING_H
#define LAUNCHER_SCALING_H

#include "common/error.h"
#include "launcher/plan.h"

/* *code: the exit code. Errors, before anything is started: GPUL_EINVAL for a
 * regular expression that is none or has not one group, those of
 * drawing_check; GPUL_ESYS. Behind it: a record that could not be written. */
int scaling_run(const struct plan *plan, int *code, struct gpul_error *err);

#endif
