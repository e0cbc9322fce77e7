/* SPDX-License-Identifier: Apache-2.0
 *
 * The limits of open files and locked memory. Ranks get both raised to the
 * hard limit (common/spawn.h); what is too low even then is worth a line. Edge.
 */
#ifndef WORKER_ULIMITS_H
#define WORKER_ULIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ULIMITS_NOTICES_MAX = 2, ULIMITS_NOTICE_BYTES = 256 };

struct ulimits {
    uint64_t files;         /* hard; UINT64_MAX: no limit */
    uint64_t locked_memory; /* hard, bytes; likewise */
    bool has_rdma; /* the machine has a card that needs locked memory */
};

typedef void (*ulimits_notice_fn)(void *arg, const char *text);

/* Look at this process and machine, and say what there is to say: the ranks can
 * get no more. */
void ulimits_tell(ulimits_notice_fn on_notice, void *arg);

/* `root` stands before the path of /sys: "" in the program. */
void ulimits_read(struct ulimits *out, const char *root);

/* Sentences for the user, the same on equal nodes. Returns their number. */
size_t ulimits_notices(char out[ULIMITS_NOTICES_MAX][ULIMITS_NOTICE_BYTES],
                       const struct ulimits *u);

#endif
