/* SPDX-License-Identifier: Apache-2.0
 *
 * What a check has told, for whatever is written of it at the end: findings
 * in the order in which they came, the facts of each node, pair trials. The
 * rest (who the nodes are, the rows of the self-test, the end) is in
 * launcher/record.h. Pure.
 */
#ifndef LAUNCHER_CHECKBOOK_H
#define LAUNCHER_CHECKBOOK_H

#include <stdbool.h>
#include <stddef.h>

#include "gpulaunch.pb-c.h"

struct checkbook {
    Gpul__Event **pages; /* FINDINGS */
    size_t page_count;
    Gpul__Event **facts; /* FACTS, the last of each node */
    size_t fact_count;
    Gpul__Event **trials; /* PAIRS and VERDICTS, of the last generation */
    size_t trial_count;
};

/* An all-zero one is empty. */
void checkbook_release(struct checkbook *b);

/* Keep what matters of an event. Without memory the book stays thinner. */
void checkbook_event(struct checkbook *b, const Gpul__Event *event);

/* The next finding of a severity behind `at`, which starts at {0}; NULL: there
 * is none. */
struct checkbook_place {
    size_t page;
    size_t index;
};
const Gpul__Finding *checkbook_next(const struct checkbook *b,
                                    Gpul__Finding__Severity severity,
                                    struct checkbook_place *at);

#endif
