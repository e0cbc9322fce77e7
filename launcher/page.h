/* SPDX-License-Identifier: Apache-2.0
 *
 * A record as one HTML file: nothing is loaded from anywhere, and its own
 * policy forbids it; no script runs. Pure.
 *
 *   page.c          the frame: head, summary, style
 *   page_parts.c    findings, verdicts, nodes
 *   page_pairs.c    node x network, node x node
 *   page_charts.c   bandwidth against size, efficiency against nodes
 */
#ifndef LAUNCHER_PAGE_H
#define LAUNCHER_PAGE_H

#include "common/buf.h"
#include "launcher/dossier.h"

/* Errors: GPUL_ENOMEM, GPUL_ELIMIT. */
int page_draw(struct gpul_buf *out, const struct dossier *d);

/* ---- the parts; each draws nothing where the record has nothing ---- */

void page_findings(struct gpul_buf *out, const struct dossier *d);
void page_verdicts(struct gpul_buf *out, const struct dossier *d);
void page_nodes(struct gpul_buf *out, const struct dossier *d);
void page_rails(struct gpul_buf *out, const struct dossier *d);
void page_pairs(struct gpul_buf *out, const struct dossier *d);
void page_bandwidths(struct gpul_buf *out, const struct dossier *d);
void page_scaling(struct gpul_buf *out, const struct dossier *d);

/* A cell of a table, td with a text or a figure. */
void page_cell(struct gpul_buf *out, const char *text);

/* "a, b and 14 more" of nodes; "all" for none. */
void page_names(struct gpul_buf *out, const struct dossier_texts *nodes);

#endif
