/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/limits.h"
#include "worker/envreport.h"

enum { ENTRIES_MAX = GPUL_ENV_ENTRIES_MAX + 10 };

/* What came out: every frame must pass the coordinator's own checks. */
struct outcome {
    size_t frames;
    size_t entries;
    bool has_last;
    const struct env *env;
};

static void on_frame(void *arg, Gpul__Frame *frame)
{
    struct outcome *o = arg;
    struct gpul_buf bytes;
    Gpul__Frame *back;
    gpul_buf_init(&bytes, GPUL_ENV_REPORT_BYTES_MAX + GPUL_FRAME_PREFIX_BYTES);
    assert_int_equal(gpul_message_encode(&bytes, frame, NULL), 0);
    assert_int_equal(gpul_message_decode(&back,
                                         bytes.data + GPUL_FRAME_PREFIX_BYTES,
                                         bytes.used - GPUL_FRAME_PREFIX_BYTES,
                                         GPUL_PEER_NODE, NULL),
                     0);
    assert_int_equal(back->env_report->rank, 7);
    assert_string_equal(back->env_report->cpus, "0-3,8");
    assert_string_equal(back->env_report->memory_nodes, "1");
    assert_false(o->has_last);
    o->has_last = back->env_report->is_last;
    for (size_t i = 0; i < back->env_report->n_entries; i++) {
        const Gpul__EnvEntry *have = back->env_report->entries[i];
        const struct env_entry *want = &o->env->entries[o->entries++];
        assert_int_equal(have->name.len, strlen(want->name));
        assert_memory_equal(have->name.data, want->name, have->name.len);
        assert_int_equal(have->value.len, strlen(want->value));
        assert_int_equal((int)have->action, (int)want->action);
        assert_string_equal(have->rule, want->rule);
    }
    o->frames++;
    gpul_message_release(back);
    gpul_buf_release(&bytes);
}

static struct outcome report(const struct env_entry *entries, size_t count)
{
    struct env_entry *copy = calloc(count + 1, sizeof(*copy));
    memcpy(copy, entries, count * sizeof(*copy));
    struct env env = {.entries = copy, .count = count};
    struct outcome o = {.env = &env};
    static struct binding_place places[] = {
        {.cpus = {0}},
        {.cpus = {0x10f}, .nodes = {2}, .has_nodes = true},
    };
    struct binding binding = {.rank_count = 2, .places = places};
    const struct launch launch = {.first_rank = 6, .binding = &binding};
    assert_int_equal(envreport_make(&env, &launch, 1, on_frame, &o, NULL), 0);
    assert_true(o.has_last);
    assert_int_equal(o.entries, count);
    free(copy);
    return o;
}

/* A usual environment is one frame; an empty one too. */
static void test_one_frame(void **state)
{
    (void)state;
    static const struct env_entry entries[] = {
        {"HOME", "/root", ENV_INHERITED, "inherited"},
        {"RANK", "7", ENV_SET, "PyTorch"},
        {"PMI_RANK", "\xff\x01", ENV_DROPPED, "left over"},
    };
    assert_int_equal(report(entries, 3).frames, 1);
    assert_int_equal(report(entries, 0).frames, 1);
}

/* Values of 128 KiB, the most that Linux lets through, go one by one. */
static void test_large_values(void **state)
{
    (void)state;
    enum { BYTES = (128 << 10) - 16, COUNT = 5 };
    char *value = malloc(BYTES + 1);
    memset(value, 'v', BYTES);
    value[BYTES] = 0;
    struct env_entry entries[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        entries[i] = (struct env_entry){"NAME", value, ENV_KEPT, "kept"};
    }
    assert_in_range(report(entries, COUNT).frames, 3, 5);
    free(value);
}

/* More entries than one message may have. */
static void test_many_entries(void **state)
{
    (void)state;
    struct env_entry *entries = calloc(ENTRIES_MAX, sizeof(*entries));
    for (size_t i = 0; i < ENTRIES_MAX; i++) {
        entries[i] = (struct env_entry){"NAME", "", ENV_SET, "inherited"};
    }
    assert_true(report(entries, ENTRIES_MAX).frames >= 2);
    free(entries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_frame),
        cmocka_unit_test(test_large_values),
        cmocka_unit_test(test_many_entries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
