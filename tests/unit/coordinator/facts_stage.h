/* SPDX-License-Identifier: Apache-2.0
 *
 * Three nodes with two devices each, whose scouts report: what the tests of
 * coordinator/facts.h share.
 */
#ifndef TESTS_UNIT_COORDINATOR_FACTS_STAGE_H
#define TESTS_UNIT_COORDINATOR_FACTS_STAGE_H

#include <stddef.h>
#include <stdint.h>

#include "coordinator/facts.h"

enum { NODES = 3, DEVICES = 2, NICS = 2 };

/* One node's report, good until a test changes it. */
struct report {
    Gpul__ProbeFacts facts;
    Gpul__Library nccl;
    Gpul__Library cuda;
    Gpul__Device devices[DEVICES];
    Gpul__Device *list[DEVICES];
    Gpul__Nic nics[NICS];
    Gpul__Nic *nic_list[NICS];
    char uuids[DEVICES][16];
};

extern struct roster roster;
extern struct facts facts;
extern struct report reports[NODES];
extern struct facts_judgement judgement;

/* Before and after each test: nodes n0 to n2 on hosts h0 to h2, and reports
 * that are all good. */
int stage_set(void **state);
int stage_clear(void **state);

void stage_make_report(struct report *r, uint32_t node);

/* All report, in another order than that of the nodes. */
enum facts_verdict stage_judge(void);

#endif
