/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing the whole of something to a blocking descriptor. Edge.
 */
#ifndef GPUL_COMMON_WRITEALL_H
#define GPUL_COMMON_WRITEALL_H

#include <stddef.h>

/* 0, or the errno of the write that failed. */
int gpul_write_all(int fd, const void *bytes, size_t n);

#endif
