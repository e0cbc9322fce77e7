/* SPDX-License-Identifier: Apache-2.0
 *
 * The self-test's rows as a table with the columns that users of nccl-tests
 * know, one block for each collective. Pure.
 */
#ifndef LAUNCHER_TABLE_H
#define LAUNCHER_TABLE_H

#include <stddef.h>

#include "common/buf.h"
#include "gpulaunch.pb-c.h"

/* From these widths on every column is drawn; all but those that an 80-column
 * terminal has no room for; below, what matters most. */
enum { TABLE_WIDTH_WIDE = 107, TABLE_WIDTH_FULL = 80 };

/* Append the table of a SELF_TEST_PASSED or _SLOW on these nodes: each block
 * has a title, the first one the headings. Of one that is SLOW the first title,
 * that of the all-reduce which was judged, says that it failed. Times are
 * microseconds of the slowest rank: "time" is the median over the iterations;
 * bandwidths are 1e9 bytes/s. The columns of the ceiling are left out of a
 * narrow table on host memory. "n/a" stands for a ceiling that is not known,
 * with the verdict "unknown", and for the busbw of a rank without a peer; "-"
 * for a ceiling that does not count since a double measured, and for a wire's
 * rate that is not known. */
int table_self_test(struct gpul_buf *out, const Gpul__Event *event,
                    uint32_t node_count, size_t width);

#endif
