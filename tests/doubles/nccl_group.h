/* SPDX-License-Identifier: Apache-2.0
 *
 * Groups: every call is one, or part of one that the thread has opened.
 * Nothing begins before the outermost group ends. Source: NCCL 2.30,
 * src/group.cc. */
#ifndef DOUBLES_NCCL_GROUP_H
#define DOUBLES_NCCL_GROUP_H

#include "tests/doubles/nccl_comm.h"

void group_start(void);

/* Begins all that was asked for, unless one of the calls failed: then the
 * first failure, and nothing begins. NCCL_IN_PROGRESS where a communicator
 * of the group does not block. */
int group_end(void);

/* Ends the group that one call was, with the call's own status; what the
 * call returns. `comm` may be NULL. */
int group_call_end(struct nccl_comm *comm, int status);

/* Asks for the init of a communicator: false without memory. */
bool group_add_init(struct nccl_comm *comm);

/* Asks for an operation; owns `op`. */
int group_add_op(struct nccl_comm *comm, struct op *op,
                 struct cuda_stream *stream);

#endif
