/* SPDX-License-Identifier: Apache-2.0
 *
 * A record as JUnit XML, for continuous integration: one suite, a case for
 * each finding, each verdict on a node or path, and each bandwidth that has a
 * verdict. "fail" and what is slow are failures, "unknown" is skipped with its
 * reason (and never passes), a warning passes with its text as output. Pure.
 *
 * Source: the schema that Jenkins and GitLab read,
 * https://github.com/jenkinsci/xunit-plugin (junit-10.xsd).
 */
#ifndef LAUNCHER_JUNIT_H
#define LAUNCHER_JUNIT_H

#include "common/buf.h"
#include "launcher/dossier.h"

/* A record without an end was cut short: a case of its own says so, as an
 * error. Errors: GPUL_ENOMEM, GPUL_ELIMIT. */
int junit_draw(struct gpul_buf *out, const struct dossier *d);

#endif
