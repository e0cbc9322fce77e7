/* SPDX-License-Identifier: Apache-2.0
 *
 * A machine of folders, and one theme of a survey that looks at it.
 */
#ifndef TESTS_UNIT_WORKER_SURVEY_STAGE_H
#define TESTS_UNIT_WORKER_SURVEY_STAGE_H

#include "tests/lib/fakehost.h"
#include "worker/survey_themes.h"

extern char stage_root[FAKEHOST_ROOT_BYTES];
extern struct survey stage_survey;
extern struct survey_request stage_request;

int stage_set(void **state);
int stage_clear(void **state);

void stage_put(const char *path, const char *text);
void stage_put_bytes(const char *path, const void *bytes, size_t n);
void stage_link(const char *path, const char *target);

/* Look anew. */
void stage_look(void (*theme)(struct survey *s,
                              const struct survey_request *r));

/* It has this value; none, with `words` in its reason; is not there. */
void stage_expect(const char *key, const char *value);
void stage_expect_unknown(const char *key, const char *words);
void stage_expect_absent(const char *key);
const char *stage_value(const char *key);

#endif
