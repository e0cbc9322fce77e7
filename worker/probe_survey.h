/* SPDX-License-Identifier: Apache-2.0
 *
 * The probe of a check: looks at the node, tells what it has found, and ends.
 * In a process of its own, since a file system or a library may hang. Edge.
 */
#ifndef WORKER_PROBE_SURVEY_H
#define WORKER_PROBE_SURVEY_H

#include "worker/probe_channel.h"

/* Returns 0 once the agent was told. */
int probe_survey_serve(struct probe_channel *channel,
                       const Gpul__SurveyStart *start, struct gpul_error *err);

#endif
