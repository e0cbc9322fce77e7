/* SPDX-License-Identifier: Apache-2.0
 *
 * The sentence that ends a failed job: the coordinator's own, which names
 * rank, node, host and cause, and where the logs are. Pure.
 */
#ifndef LAUNCHER_REPORT_H
#define LAUNCHER_REPORT_H

#include "common/buf.h"
#include "gpulaunch.pb-c.h"

/* Append the sentence, without prefix and newline. `log_dir` is named where
 * a rank failed that has no log of its own; NULL or "" if there is none. */
int report_sentence(struct gpul_buf *out, const Gpul__JobEnd *end,
                    const char *log_dir);

#endif
