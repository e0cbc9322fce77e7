/* SPDX-License-Identifier: Apache-2.0
 *
 * A record as Prometheus text, format 0.0.4, for the textfile collector of a
 * node exporter or a push gateway. Base units, ratios 0 to 1; what is not
 * known is left out. Pure.
 *
 * Source: https://prometheus.io/docs/instrumenting/exposition_formats/
 */
#ifndef LAUNCHER_EXPOSITION_H
#define LAUNCHER_EXPOSITION_H

#include "common/buf.h"
#include "launcher/dossier.h"

/* Errors: GPUL_ENOMEM, GPUL_ELIMIT. */
int exposition_draw(struct gpul_buf *out, const struct dossier *d);

#endif
