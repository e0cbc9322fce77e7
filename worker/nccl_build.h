/* SPDX-License-Identifier: Apache-2.0
 *
 * For which CUDA an NCCL was built. No function of the library tells it, but
 * the library writes it into its log from a constant text of its own, as in
 * "NCCL version 2.28.9+cuda13.0" (NCCL, src/init.cc, VERSION_STRING): it is
 * read from there, in the file. Edge.
 */
#ifndef WORKER_NCCL_BUILD_H
#define WORKER_NCCL_BUILD_H

#include <stddef.h>

enum { NCCL_BUILD_BYTES = 32 };

/* Write "+cuda13.0" for the library of this version ("2.28.9"), or "" where
 * the file does not say, says another version, or cannot be read. */
void nccl_build_read(char out[NCCL_BUILD_BYTES], const char *path,
                     const char *version);

/* The same for bytes in memory. */
void nccl_build_find(char out[NCCL_BUILD_BYTES], const char *bytes, size_t n,
                     const char *version);

#endif
