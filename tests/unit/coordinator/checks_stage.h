/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes n0, n1, ... that are well, until a test changes what they say: what
 * the tests of coordinator/checks.h share.
 */
#ifndef TESTS_UNIT_COORDINATOR_CHECKS_STAGE_H
#define TESTS_UNIT_COORDINATOR_CHECKS_STAGE_H

#include <stdint.h>

#include "coordinator/checks.h"

extern struct checks checks;
extern struct roster stage_roster;
/* What the job asks of each node: two ranks a node, unless it is changed. */
extern struct checks_need stage_need;

/* Begin anew with so many nodes. */
void stage_begin(uint32_t nodes);
void stage_end(void);

/* What one node says instead; of STAGE_ALL: every one. */
#define STAGE_ALL UINT32_MAX
void stage_say(uint32_t node, const char *key, const char *value);
void stage_unknown(uint32_t node, const char *key, const char *why);
void stage_forget(uint32_t node, const char *key);
/* It says nothing at all. */
void stage_silence(uint32_t node);

/* All speak, the last one first, and are judged. */
void stage_judge(void);

/* The first finding of a check, NULL: none. */
const struct checks_finding *stage_find(const char *id);

/* There is a finding of this severity that names exactly these nodes ("n0 n2",
 * "" for the job) and whose text, value or expectation contains `words`. */
void stage_expect(const char *id, enum check_severity severity,
                  const char *nodes, const char *words);
/* The check has passed; it does not apply. */
void stage_expect_pass(const char *id);
void stage_expect_none(const char *id);

#endif
