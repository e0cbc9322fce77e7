/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "common/error.h"
#include "worker/kvstore.h"

static struct kvstore_name name_of(const char *text)
{
    return (struct kvstore_name){text, strlen(text),
                                 (size_t)(strchr(text, '/') - text)};
}

static int put(struct kvstore *s, const char *name, const char *value)
{
    struct kvstore_name n = name_of(name);
    return kvstore_put(s, &n, value, strlen(value));
}

static void drop(struct kvstore *s, const char *name)
{
    struct kvstore_name n = name_of(name);
    kvstore_delete(s, &n);
}

/* The value must be `expected`; NULL: there must be none. */
static void assert_value(const struct kvstore *s, const char *name,
                         const char *expected)
{
    struct kvstore_name n = name_of(name);
    size_t bytes = 99;
    const char *value = kvstore_get(s, &n, &bytes);
    if (expected == NULL) {
        assert_null(value);
        assert_int_equal(bytes, 0);
    } else {
        assert_non_null(value);
        assert_int_equal(bytes, strlen(expected));
        assert_memory_equal(value, expected, bytes);
    }
}

/* Values are set, replaced and deleted one by one; names that are the
 * beginning of others are names of their own. */
static void test_put_get_delete(void **state)
{
    (void)state;
    struct kvstore s;
    kvstore_init(&s, 10000);
    assert_value(&s, "a/b", NULL);
    assert_int_equal(put(&s, "a/b", "1"), 0);
    assert_int_equal(put(&s, "a/bc", "2"), 0);
    assert_int_equal(put(&s, "ab/c", "3"), 0);
    assert_int_equal(put(&s, "a/empty", ""), 0);
    assert_int_equal(put(&s, "a/b", "longer"), 0);
    assert_value(&s, "a/b", "longer");
    assert_value(&s, "a/bc", "2");
    assert_value(&s, "ab/c", "3");
    assert_value(&s, "a/empty", "");
    drop(&s, "a/b");
    drop(&s, "a/none");
    assert_value(&s, "a/b", NULL);
    assert_value(&s, "a/bc", "2");
    kvstore_release(&s);
}

/* A scope goes as a whole, and no other with it. */
static void test_delete_scope(void **state)
{
    (void)state;
    struct kvstore s;
    kvstore_init(&s, 10000);
    static const char *const names[] = {"a-/1", "a/1",  "a/2",
                                        "a/~",  "a0/1", "b/1"};
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(put(&s, names[i], "x"), 0);
    }
    drop(&s, "a/");
    for (size_t i = 0; i < 6; i++) {
        assert_value(&s, names[i], strncmp(names[i], "a/", 2) ? "x" : NULL);
    }
    drop(&s, "none/");
    drop(&s, "b/");
    assert_int_equal(s.count, 2);
    kvstore_release(&s);
    assert_int_equal(s.bytes, 0);
}

/* Where all meet, a key stays readable until the last has done with its own;
 * then the scope is empty for the next meeting. */
static void test_meeting(void **state)
{
    (void)state;
    static const char *const scopes[] = {"global", "global_", "local_host",
                                         "cross_0"};
    for (size_t i = 0; i < 4; i++) {
        struct kvstore s;
        char names[3][32];
        kvstore_init(&s, 10000);
        put(&s, "other/0", "x");
        for (int rank = 0; rank < 3; rank++) {
            snprintf(names[rank], sizeof(names[rank]), "%s/%d", scopes[i],
                     rank);
            put(&s, names[rank], "address");
        }
        drop(&s, names[1]);
        drop(&s, names[1]);
        drop(&s, names[0]);
        for (int rank = 0; rank < 3; rank++) {
            assert_value(&s, names[rank], "address");
        }
        put(&s, names[0], "again"); /* in use again: not done with */
        drop(&s, names[2]);
        assert_value(&s, names[2], "address");
        drop(&s, names[0]);
        for (int rank = 0; rank < 3; rank++) {
            assert_value(&s, names[rank], NULL);
        }
        assert_value(&s, "other/0", "x");
        kvstore_release(&s);
    }
}

/* The bound holds for names, values and what holds them; a refused value
 * leaves the old one. */
static void test_bytes_bound(void **state)
{
    (void)state;
    struct kvstore s;
    char value[200];
    memset(value, 'v', sizeof(value) - 1);
    value[sizeof(value) - 1] = 0;
    kvstore_init(&s, 1000);
    int rc = 0;
    int count = 0;
    for (; rc == 0 && count < 100; count++) {
        char name[16];
        snprintf(name, sizeof(name), "s/%d", count);
        rc = put(&s, name, value);
        assert_true(s.bytes <= 1000);
    }
    assert_int_equal(rc, GPUL_ELIMIT);
    assert_int_equal(count, 5); /* four fit: the fifth was refused */
    assert_value(&s, "s/3", value);
    assert_value(&s, "s/4", NULL);
    assert_int_equal(put(&s, "s/3", "short"), 0);
    assert_int_equal(put(&s, "s/0", "short"), 0);
    assert_int_equal(put(&s, "s/4", value), 0);
    char large[900];
    memset(large, 'l', sizeof(large) - 1);
    large[sizeof(large) - 1] = 0;
    assert_int_equal(put(&s, "s/0", large), GPUL_ELIMIT);
    assert_value(&s, "s/0", "short");
    struct kvstore_name n = name_of("s/huge");
    assert_int_equal(kvstore_put(&s, &n, value, SIZE_MAX), GPUL_ELIMIT);
    kvstore_release(&s);
}

/* So does the bound on entries. */
static void test_entries_bound(void **state)
{
    (void)state;
    struct kvstore s;
    kvstore_init(&s, SIZE_MAX);
    char name[16];
    for (int i = 0; i < KVSTORE_ENTRIES_MAX; i++) {
        snprintf(name, sizeof(name), "s/%07d", i);
        assert_int_equal(put(&s, name, ""), 0);
    }
    assert_int_equal(put(&s, "s/more", ""), GPUL_ELIMIT);
    assert_int_equal(put(&s, name, "replaced"), 0);
    assert_value(&s, "s/0001234", "");
    drop(&s, "s/");
    assert_int_equal(s.bytes, 0);
    kvstore_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_put_get_delete),
        cmocka_unit_test(test_delete_scope),
        cmocka_unit_test(test_meeting),
        cmocka_unit_test(test_bytes_bound),
        cmocka_unit_test(test_entries_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
