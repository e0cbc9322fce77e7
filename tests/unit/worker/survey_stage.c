/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/worker/survey_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

char stage_root[FAKEHOST_ROOT_BYTES];
struct survey stage_survey;
struct survey_request stage_request;

int stage_set(void **state)
{
    (void)state;
    fakehost_make(stage_root);
    stage_request = (struct survey_request){
        .root = stage_root,
        .salt = "job",
        .deadline_ms = SURVEY_DEADLINE_MS,
    };
    return 0;
}

int stage_clear(void **state)
{
    (void)state;
    survey_release(&stage_survey);
    fakehost_remove(stage_root);
    return 0;
}

void stage_put(const char *path, const char *text)
{
    fakehost_put(stage_root, path, text);
}

void stage_put_bytes(const char *path, const void *bytes, size_t n)
{
    char whole[512];
    fakehost_put(stage_root, path, "");
    snprintf(whole, sizeof(whole), "%s%s", stage_root, path);
    FILE *f = fopen(whole, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

void stage_link(const char *path, const char *target)
{
    char whole[512];
    fakehost_put(stage_root, path, "");
    snprintf(whole, sizeof(whole), "%s%s", stage_root, path);
    assert_int_equal(unlink(whole), 0);
    assert_int_equal(symlink(target, whole), 0);
}

void stage_look(void (*theme)(struct survey *s, const struct survey_request *r))
{
    survey_release(&stage_survey);
    theme(&stage_survey, &stage_request);
    assert_false(stage_survey.is_short);
}

static const Gpul__Fact *find(const char *key)
{
    for (size_t i = 0; i < stage_survey.message.n_facts; i++) {
        if (strcmp(stage_survey.message.facts[i]->key, key) == 0) {
            return stage_survey.message.facts[i];
        }
    }
    return NULL;
}

const char *stage_value(const char *key)
{
    const Gpul__Fact *fact = find(key);
    if (fact == NULL || fact->unknown[0] != 0) {
        fail_msg("%s: %s", key, fact != NULL ? fact->unknown : "not told");
    }
    return fact->value;
}

void stage_expect(const char *key, const char *value)
{
    if (strcmp(stage_value(key), value) != 0) {
        fail_msg("%s is \"%s\" and not \"%s\"", key, stage_value(key), value);
    }
}

void stage_expect_unknown(const char *key, const char *words)
{
    const Gpul__Fact *fact = find(key);
    if (fact == NULL || fact->value[0] != 0 ||
        strstr(fact->unknown, words) == NULL) {
        fail_msg("%s: \"%s\" \"%s\"", key, fact != NULL ? fact->value : "",
                 fact != NULL ? fact->unknown : "not told");
    }
}

void stage_expect_absent(const char *key)
{
    assert_null(find(key));
}
