/* SPDX-License-Identifier: Apache-2.0
 *
 * Device memory: host memory whose address has a bit too many, so that a
 * program that reads it without a copy dies here as it would there. What is
 * allocated counts against the device's size together with every other
 * process of the node (records.h). All functions are safe from any thread. */
#ifndef DOUBLES_CUDA_MEMORY_H
#define DOUBLES_CUDA_MEMORY_H

#include "worker/cuda_api.h"

enum { CUDA_INVALID_VALUE = 1 };

/* 0, CUDA_RESULT_OUT_OF_MEMORY or CUDA_INVALID_VALUE. */
int memory_alloc(unsigned gpu, size_t bytes, cuda_address *address);
int memory_free(cuda_address address);

/* What a context that ends gives back. */
void memory_free_all(unsigned gpu);

/* The host memory behind an address, NULL unless `bytes` bytes from there lie
 * in one allocation. */
void *memory_host(cuda_address address, size_t bytes);

#endif
