/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines that are said once a job, whichever node says them first. Pure.
 */
#ifndef COORDINATOR_NOTICES_H
#define COORDINATOR_NOTICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* More different notices than this are dropped: nobody reads them. */
enum { NOTICES_MAX = 256 };

struct notices {
    uint64_t said[NOTICES_MAX]; /* hashes of the texts */
    size_t count;
};

/* True the first time that this text comes up. */
bool notices_is_new(struct notices *n, const char *text);

#endif
