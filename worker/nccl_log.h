/* SPDX-License-Identifier: Apache-2.0
 *
 * How far NCCL has come in making communicators, by what it logs at level
 * INFO. Nothing else tells: while ranks wait for each other in there, the
 * state of all of them is "in progress". Pure.
 *
 * Of the lines that NCCL 2.22 and later write for every communicator, whatever
 * the devices, these are milestones, in this order (src/init.cc,
 * src/bootstrap.cc): "Init START", "Bootstrap timings total", "nNodes",
 * "P2P Chunksize set to", "Init COMPLETE". In older ones some are missing on
 * all ranks alike.
 */
#ifndef WORKER_NCCL_LOG_H
#define WORKER_NCCL_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NCCL_LOG_LINE_BYTES = 512 }; /* what is beyond it is not looked at */

struct nccl_log {
    char line[NCCL_LOG_LINE_BYTES]; /* the one that has no end yet */
    size_t used;
    uint32_t stage; /* 0: no line yet; rises with each milestone */
};

/* The next bytes of the log. True when the stage has risen. */
bool nccl_log_take(struct nccl_log *log, const char *bytes, size_t n);

#endif
