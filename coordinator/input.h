/* SPDX-License-Identifier: Apache-2.0
 *
 * The accounts of standard input on its way to the ranks: which nodes still
 * read it, how much each has taken, how much more the front end may send, and
 * the first bytes, which are kept while a retry of the ranks would need them.
 * docs/protocol.md, "Input and signals". Pure.
 *
 * Happy path: init, add each node that reads, grant, take what comes, credit
 * it, grant again, until nobody reads. A retry: begin, add, and the kept bytes
 * once more. A node without a connection: leave, lacks, return.
 */
#ifndef COORDINATOR_INPUT_H
#define COORDINATOR_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"
#include "common/minheap.h"
#include "proto/message.h"

struct input {
    bool is_wanted; /* some rank reads what the front end reads */
    bool is_all;    /* every rank; else this one */
    uint32_t rank;
    uint64_t window_bytes; /* that may be on the way to the slowest reader */
    uint64_t received;     /* bytes that the front end has sent, ever */
    uint64_t granted;      /* and that it may have sent */
    bool has_end;
    struct gpul_minheap readers; /* nodes that read, by the bytes they took */
    struct gpul_buf kept;        /* all that was received, or nothing */
    struct gpul_minheap away;    /* readers to be sent all from there, later */
    struct gpul_buf waiting;     /* what they lack: the end of what came */
};

/* `target` NULL: nobody reads. Errors: GPUL_ENOMEM. */
int input_init(struct input *in, const Gpul__InputTarget *target,
               uint32_t node_count, uint64_t window_bytes);

/* An all-zero one may be released too. */
void input_release(struct input *in);

/* For new ranks: nobody reads yet, and what is kept is theirs. */
void input_begin(struct input *in);

/* This node holds ranks that read. */
void input_add(struct input *in, uint32_t node);

bool input_is_read_by(const struct input *in, uint32_t node);

/* From the front end. Returns 0, GPUL_ELIMIT if it had no credit for that,
 * GPUL_EINVAL behind its end, or GPUL_ENOMEM; nothing is changed then. */
int input_take(struct input *in, const Gpul__Input *message);

/* From a node that reads. False: it has not been sent so much. */
bool input_credit(struct input *in, uint32_t node,
                  const Gpul__InputCredit *credit);

/* This node does not read any more. */
void input_drop(struct input *in, uint32_t node);

/* Has this node been sent bytes that it has not given credit for? Whether the
 * ranks have them only its agent knew. */
bool input_is_owed(const struct input *in, uint32_t node);

/* This node, which owes nothing, cannot be sent anything now. What comes is
 * kept for it: no more than a window, as it holds up the credit. */
void input_leave(struct input *in, uint32_t node);

/* What it has to be sent first when it can be; good until the next call that
 * changes anything. False: it had not left. */
bool input_lacks(const struct input *in, uint32_t node, const uint8_t **bytes,
                 size_t *n);
void input_return(struct input *in, uint32_t node);

/* Bytes that the front end may send beyond what it knows of, as much as one
 * message can say; they count as said. 0: none. */
uint64_t input_grant(struct input *in);

/* Could other ranks have all of it? */
bool input_may_begin_again(const struct input *in);

#endif
