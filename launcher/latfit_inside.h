/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of launcher/latfit.h share.
 */
#ifndef LAUNCHER_LATFIT_INSIDE_H
#define LAUNCHER_LATFIT_INSIDE_H

#include <stdbool.h>
#include <stddef.h>

#include "launcher/latfit.h"

/* Are there so many points, and is each a measurement? */
int latfit_check(const struct latfit_point *points, size_t count, size_t least,
                 struct gpul_error *err);

/* A copy by rising size, to be freed, of points of one count of ranks; NULL,
 * and why not in `status`. */
struct latfit_point *latfit_sorted(const struct latfit_point *points,
                                   size_t count, size_t least, int *status,
                                   struct gpul_error *err);

/* One line through points by rising size. False if they are of one size. */
bool latfit_fit_line(struct latfit_regime *out,
                     const struct latfit_point *points, size_t count);

/* 0, or the error that says why such a fit predicts nothing. */
int latfit_refuse(double error_max, size_t points, size_t constants,
                  struct gpul_error *err);

/* Around a predicted time: what the constants vary (`variance`, seconds
 * squared) and what one more measurement does by itself. */
struct gpul_interval latfit_interval(double value, double variance,
                                     double error_rms, size_t points,
                                     size_t constants);

/* By what factor a value is outside a range; 1 within. */
double latfit_beyond(double value, double min, double max);

#endif
