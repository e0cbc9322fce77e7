/* SPDX-License-Identifier: Apache-2.0
 *
 * A dossier with something of everything, for what draws it.
 */
#ifndef TESTS_LIB_DOSSIER_SAMPLE_H
#define TESTS_LIB_DOSSIER_SAMPLE_H

#include "launcher/dossier.h"

enum { DOSSIER_SAMPLE_NODES = 8 };

/* Eight nodes, of which n5 is slow; the path from n1 to n2 is blocked; sizes
 * of 8 B to 256 MiB on 2 and 8 nodes; efficiencies at 1 to 8 nodes, and a
 * prediction for 64. */
void dossier_sample(struct dossier *d);

#endif
