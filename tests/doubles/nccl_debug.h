/* SPDX-License-Identifier: Apache-2.0
 *
 * The log of the double of libnccl. */
#ifndef DOUBLES_NCCL_DEBUG_H
#define DOUBLES_NCCL_DEBUG_H

/* One line at level INFO, where a log is asked for. */
void nccl_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
