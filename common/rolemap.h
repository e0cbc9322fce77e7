/* SPDX-License-Identifier: Apache-2.0
 *
 * Which rank plays which part of a TensorFlow cluster. Ranks take roles in
 * a fixed order: chief, worker, ps, evaluator; so rank 0 is the chief where
 * there is one, else worker 0. Pure.
 *
 * Source of the names and counts: TensorFlow's
 * python/distribute/multi_worker_util.py (at most one chief and evaluator).
 */
#ifndef GPUL_COMMON_ROLEMAP_H
#define GPUL_COMMON_ROLEMAP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

enum gpul_role {
    GPUL_ROLE_CHIEF = 0,
    GPUL_ROLE_WORKER = 1,
    GPUL_ROLE_PS = 2,
    GPUL_ROLE_EVALUATOR = 3,
    GPUL_ROLE_COUNT = 4,
};

struct gpul_rolemap {
    uint32_t counts[GPUL_ROLE_COUNT];
};

/* "chief", "worker", "ps", "evaluator". */
const char *gpul_role_name(enum gpul_role role);

/* All of a world of `world_size` ranks are workers. */
void gpul_rolemap_all_workers(struct gpul_rolemap *m, uint32_t world_size);

/* Parse "chief=1,worker=3,ps=2,evaluator=1", any order, none twice. Errors:
 * GPUL_EINVAL naming the fault: an unknown role (with the known ones), a
 * count that is no number or 0, more than one chief or evaluator, ps without
 * a worker, nothing that trains. */
int gpul_rolemap_parse(struct gpul_rolemap *m, const char *text,
                       struct gpul_error *err);

/* Add to one role by name; for reading a Job message. GPUL_EINVAL. */
int gpul_rolemap_add(struct gpul_rolemap *m, const char *name, uint32_t count,
                     struct gpul_error *err);

/* The rules that parse applies to the whole, for maps built by add. */
int gpul_rolemap_check(const struct gpul_rolemap *m, struct gpul_error *err);

uint32_t gpul_rolemap_total(const struct gpul_rolemap *m);

/* Role of a rank (< total) and its index within the role. */
enum gpul_role gpul_rolemap_role(const struct gpul_rolemap *m, uint32_t rank,
                                 uint32_t *index);

/* First rank that has the role; meaningless if its count is 0. */
uint32_t gpul_rolemap_first(const struct gpul_rolemap *m, enum gpul_role role);

/* Does this rank decide success? docs/protocol.md, "The end": with ps the
 * chief (without one: every worker); else every chief and worker. */
bool gpul_rolemap_decides(const struct gpul_rolemap *m, uint32_t rank);

#endif
