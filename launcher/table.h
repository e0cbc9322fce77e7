/* SPDX-License-Identifier: Apache-2.0
 *
 * The self-test's rows as a table with the columns that users of nccl-tests
 * know. Pure.
 */
#ifndef LAUNCHER_TABLE_H
#define LAUNCHER_TABLE_H

#include <stddef.h>

#include "common/buf.h"
#include "gpulaunch.pb-c.h"

/* From this width on the whole table is drawn, below it the columns that
 * matter most (35 columns wide). */
enum { TABLE_WIDTH_FULL = 78 };

/* Append a title, the heading and the rows. Times are microseconds of the
 * slowest rank: "time" is the median over the iterations; bandwidths are 1e9
 * bytes/s. */
int table_self_test(struct gpul_buf *out, Gpul__SelfTestRow *const *rows,
                    size_t count, uint32_t node_count, size_t width);

#endif
