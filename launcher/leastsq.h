/* SPDX-License-Identifier: Apache-2.0
 *
 * Least squares with few constants of which none is negative. Pure.
 *
 * Fitted are relative errors: each row is divided by its value first, so that
 * small values count as much as large ones. Of each subset of the constants
 * the normal equations are solved (the others are 0), and of the answers
 * without a negative one the best is taken: with three constants eight small
 * systems, and no iteration that could end elsewhere. Source: C. Lawson and
 * R. Hanson, "Solving least squares problems", 1974, chapter 23.
 */
#ifndef LAUNCHER_LEASTSQ_H
#define LAUNCHER_LEASTSQ_H

#include <stdbool.h>
#include <stddef.h>

enum { LEASTSQ_CONSTANTS_MAX = 3 };

/* value = sum of constants[i] * terms[i] */
struct leastsq_row {
    double terms[LEASTSQ_CONSTANTS_MAX]; /* >= 0 */
    double value;                        /* > 0 */
};

struct leastsq {
    double constants[LEASTSQ_CONSTANTS_MAX]; /* >= 0 */
    double error_max; /* the largest |fit - value| / value */
    double error_rms; /* root of the mean of their squares */
    /* Of the constants, by what is left of the errors and the rows to spare;
     * 0 where there is none to spare, and of a constant that is 0. */
    double covariance[LEASTSQ_CONSTANTS_MAX][LEASTSQ_CONSTANTS_MAX];
};

/* False, and zeroes, when there are fewer rows than constants (1 to
 * LEASTSQ_CONSTANTS_MAX), or the rows do not tell the constants apart. */
bool leastsq_fit(struct leastsq *out, const struct leastsq_row *rows,
                 size_t count, size_t constants);

#endif
