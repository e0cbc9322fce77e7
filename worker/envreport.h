/* SPDX-License-Identifier: Apache-2.0
 *
 * A rank's environment as EnvReport frames, cut so that each stays within
 * GPUL_ENV_REPORT_BYTES_MAX. Pure.
 */
#ifndef WORKER_ENVREPORT_H
#define WORKER_ENVREPORT_H

#include "common/error.h"
#include "proto/message.h"
#include "worker/env.h"
#include "worker/launch.h"

/* Takes one unstamped frame, borrowed for the call. */
typedef void (*envreport_fn)(void *arg, Gpul__Frame *frame);

/* Call `on_frame` for each frame of a rank's environment, with what the launch
 * binds it to, in order; the last one is marked. Errors: GPUL_ENOMEM. */
int envreport_make(const struct env *env, const struct launch *launch,
                   uint32_t local_rank, envreport_fn on_frame, void *arg,
                   struct gpul_error *err);

/* Is this rank, or any of this place, to be reported? */
bool envreport_is_asked(const Gpul__Job *job, uint32_t rank);
bool envreport_is_any_asked(const Gpul__Job *job, const Gpul__Assign *assign);

#endif
