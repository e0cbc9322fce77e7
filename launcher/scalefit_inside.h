/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of launcher/scalefit.h share.
 */
#ifndef LAUNCHER_SCALEFIT_INSIDE_H
#define LAUNCHER_SCALEFIT_INSIDE_H

#include "launcher/scalefit.h"

/* What d of a shape stands beside: 0 for one node, then rising. */
double scalefit_growth(enum scalefit_shape shape, double nodes);

/* Fit one shape to a cost u for each point. `is_refuted` is left false. */
void scalefit_model(struct scalefit_model *out, enum scalefit_shape shape,
                    const struct efficiency_point *points, const double *costs,
                    size_t count);

/* u of a fitted model. */
double scalefit_model_cost(const struct scalefit_model *model,
                           enum scalefit_shape shape, uint32_t nodes);

#endif
