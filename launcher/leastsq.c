/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/leastsq.h"

#include <math.h>

enum { MAX = LEASTSQ_CONSTANTS_MAX };

/* Columns that are alike to this many digits are one. */
#define PIVOT_MIN 1e-10

/* Sums of products of the columns, each made of length 1. */
struct normal {
    double matrix[MAX][MAX];
    double right[MAX];
    double lengths[MAX];
};

static bool normal_make(struct normal *out, const struct leastsq_row *rows,
                        size_t count, size_t constants)
{
    *out = (struct normal){0};
    for (size_t r = 0; r < count; r++) {
        for (size_t i = 0; i < constants; i++) {
            double term = rows[r].terms[i] / rows[r].value;
            out->right[i] += term;
            for (size_t j = 0; j < constants; j++) {
                out->matrix[i][j] += term * rows[r].terms[j] / rows[r].value;
            }
        }
    }
    for (size_t i = 0; i < constants; i++) {
        out->lengths[i] = sqrt(out->matrix[i][i]);
        if (!(out->lengths[i] > 0) || !isfinite(out->lengths[i])) {
            return false;
        }
    }
    for (size_t i = 0; i < constants; i++) {
        out->right[i] /= out->lengths[i];
        for (size_t j = 0; j < constants; j++) {
            out->matrix[i][j] /= out->lengths[i] * out->lengths[j];
        }
    }
    return true;
}

/* The inverse of the part of the matrix that belongs to the constants of
 * `subset`, by Gauss and Jordan; the matrix is symmetric and not negative, so
 * the pivots may be taken as they come. False when it has none. */
static bool invert(double inverse[MAX][MAX], const struct normal *n,
                   unsigned int subset)
{
    double work[MAX][MAX];
    for (size_t i = 0; i < MAX; i++) {
        for (size_t j = 0; j < MAX; j++) {
            bool is_in = (subset >> i & 1) != 0 && (subset >> j & 1) != 0;
            work[i][j] = is_in ? n->matrix[i][j] : i == j;
            inverse[i][j] = i == j;
        }
    }
    for (size_t p = 0; p < MAX; p++) {
        double pivot = work[p][p];
        if (!(pivot > PIVOT_MIN)) {
            return false;
        }
        for (size_t j = 0; j < MAX; j++) {
            work[p][j] /= pivot;
            inverse[p][j] /= pivot;
        }
        for (size_t i = 0; i < MAX; i++) {
            double factor = i == p ? 0 : work[i][p];
            for (size_t j = 0; j < MAX; j++) {
                work[i][j] -= factor * work[p][j];
                inverse[i][j] -= factor * inverse[p][j];
            }
        }
    }
    return true;
}

/* Constants of a subset; false when one of them is negative. */
static bool solve(struct leastsq *out, const struct normal *n,
                  double inverse[MAX][MAX], unsigned int subset)
{
    *out = (struct leastsq){0};
    for (size_t i = 0; i < MAX; i++) {
        if ((subset >> i & 1) == 0) {
            continue;
        }
        for (size_t j = 0; j < MAX; j++) {
            out->constants[i] +=
                (subset >> j & 1) != 0 ? inverse[i][j] * n->right[j] : 0;
        }
        out->constants[i] /= n->lengths[i];
        if (!(out->constants[i] >= 0)) {
            return false;
        }
    }
    return true;
}

static void measure_errors(struct leastsq *out, const struct leastsq_row *rows,
                           size_t count, size_t constants)
{
    double squares = 0;
    for (size_t r = 0; r < count; r++) {
        double fit = 0;
        for (size_t i = 0; i < constants; i++) {
            fit += out->constants[i] * rows[r].terms[i];
        }
        double error = fabs(fit / rows[r].value - 1);
        squares += error * error;
        out->error_max = error > out->error_max ? error : out->error_max;
    }
    out->error_rms = sqrt(squares / (double)count);
}

static void spread(struct leastsq *out, const struct normal *n,
                   double inverse[MAX][MAX], unsigned int subset, size_t count,
                   size_t constants)
{
    if (count == constants) {
        return;
    }
    double variance = out->error_rms * out->error_rms * (double)count /
                      (double)(count - constants);
    for (size_t i = 0; i < constants; i++) {
        for (size_t j = 0; j < constants; j++) {
            bool is_in = (subset >> i & 1) != 0 && (subset >> j & 1) != 0;
            out->covariance[i][j] =
                is_in ? variance * inverse[i][j] / n->lengths[i] / n->lengths[j]
                      : 0;
        }
    }
}

bool leastsq_fit(struct leastsq *out, const struct leastsq_row *rows,
                 size_t count, size_t constants)
{
    struct normal n;
    double inverse[MAX][MAX];
    unsigned int all = (1u << constants) - 1;
    bool is_found = false;
    *out = (struct leastsq){0};
    if (count < constants || !normal_make(&n, rows, count, constants) ||
        !invert(inverse, &n, all)) {
        return false;
    }
    for (unsigned int subset = all; subset > 0; subset--) {
        struct leastsq one;
        if (!invert(inverse, &n, subset) || !solve(&one, &n, inverse, subset)) {
            continue;
        }
        measure_errors(&one, rows, count, constants);
        if (!is_found || one.error_rms < out->error_rms) {
            spread(&one, &n, inverse, subset, count, constants);
            *out = one;
            is_found = true;
        }
        if (subset == all) {
            break; /* the best without the bound keeps the bound */
        }
    }
    return is_found;
}
