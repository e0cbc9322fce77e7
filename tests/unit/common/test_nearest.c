/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/nearest.h"

static const char *const verbs[] = {"run",  "check", "env",
                                    "help", "nodes", "node-list"};
enum { VERBS = sizeof(verbs) / sizeof(verbs[0]) };

/* One slip of the fingers is seen through, more than a third is not. */
static void test_nearest(void **state)
{
    (void)state;
    static const struct {
        const char *word;
        const char *nearest; /* or NULL */
    } rows[] = {
        {"run", "run"},     {"rnu", "run"},   {"runn", "run"},
        {"chekc", "check"}, {"hepl", "help"}, {"node", "nodes"},
        {"nodez", "nodes"}, {"nod", "nodes"}, {"node-", "nodes"},
        {"che", "check"},   {"ch", NULL},     {"x", NULL},
        {"", NULL},         {"scale", NULL},  {"environment", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *nearest = gpul_nearest(rows[i].word, verbs, VERBS);
        if (rows[i].nearest == NULL) {
            assert_null(nearest);
        } else {
            assert_non_null(nearest);
            assert_string_equal(nearest, rows[i].nearest);
        }
    }
}

/* Words of any length are safe; those over 63 bytes have no neighbour. */
static void test_long_words(void **state)
{
    (void)state;
    char word[65];
    memset(word, 'a', 64);
    word[64] = 0;
    const char *const same[] = {word};
    assert_null(gpul_nearest(word, same, 1));
    word[63] = 0;
    assert_ptr_equal(gpul_nearest(word, same, 1), word);
    word[63] = 'a';
    assert_null(gpul_nearest("aaa", same, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_long_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
