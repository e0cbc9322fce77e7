/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic on elements of NCCL's types. */
#ifndef DOUBLES_NCCL_REDUCE_H
#define DOUBLES_NCCL_REDUCE_H

#include <stddef.h>

#include "worker/nccl_api.h"

/* Bytes of an element; 0 for a type that the double does not have. */
size_t reduce_bytes(int type);

/* into[i] = into[i] op from[i]. NCCL_AVG adds: reduce_finish() divides. */
void reduce_add(void *into, const void *from, size_t count, int type, int op);

/* Makes an average of a sum over `ranks`; does nothing for another op. */
void reduce_finish(void *into, size_t count, int type, int op, int ranks);

#endif
