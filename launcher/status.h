/* SPDX-License-Identifier: Apache-2.0
 *
 * What is known of the launch while it is under way, and its words: one line
 * that a terminal shows and redraws, and one sentence per event. Pure.
 */
#ifndef LAUNCHER_STATUS_H
#define LAUNCHER_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/hostlist.h"
#include "gpulaunch.pb-c.h"
#include "launcher/nodes.h"

enum status_phase {
    STATUS_GATHERING = 1,
    STATUS_ASSIGNING = 2,
    STATUS_TESTING = 3,
    STATUS_RUNNING = 4, /* the ranks have the terminal; see status_is_calm */
    STATUS_STOPPING = 5,
    STATUS_SURVEYING = 6, /* of a check */
};

struct status {
    enum status_phase phase;
    uint32_t node_count;
    struct gpul_hostlist names; /* the expected nodes; none: any may come */
    bool *joined;               /* by index in names */
    size_t joined_count;
    bool has_gpus;   /* on some node */
    uint32_t hung;   /* ranks that make no step, of the last report */
    bool is_on_gpus; /* the self-test: it counts ranks, not nodes */
};

/* `nodes` has node_count names, which are copied, or none: then only how many
 * have joined is known. Errors: GPUL_ENOMEM. */
int status_init(struct status *s, const struct nodes *nodes,
                uint32_t node_count);
void status_release(struct status *s);

/* Take an event in. Unknown names change nothing. */
void status_update(struct status *s, const Gpul__Event *event);

/* False for one that is not in the list: of a job whose nodes come by
 * themselves none is. */
bool status_has_joined(const struct status *s, uint32_t index);

/* The ranks run, and none is known to hang: nothing is shown. */
bool status_is_calm(const struct status *s);

/* Append what is being waited for, without the time; nothing while it is calm.
 */
int status_words(struct gpul_buf *out, const struct status *s);

/* Append the live line, at most `width` columns and without newline;
 * nothing in a phase that has none. */
int status_live(struct gpul_buf *out, const struct status *s,
                uint64_t elapsed_ms, size_t width);

/* Append the sentence of an event that has been taken in, with newlines
 * between several; nothing where the event needs no words. The self-test's
 * table is not part of it. */
int status_sentence(struct gpul_buf *out, const Gpul__Event *event,
                    const struct status *s);

/* Is the sentence only for --verbose? */
bool status_is_detail(const Gpul__Event *event);

#endif
