/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/ids.h"

static struct ids ids;

/* One for every 128 ranks, at most what fits a frame, one where NCCL cannot
 * take several. */
static void test_count(void **state)
{
    (void)state;
    static const struct {
        uint32_t ranks;
        bool has_one;
        uint32_t count;
    } table[] = {
        {1, false, 1},       {128, false, 1},
        {129, false, 2},     {300, false, 3},
        {300, true, 1},      {51200, false, 400},
        {51201, false, 400}, {GPUL_RANKS_MAX, false, 400},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        ids_init(&ids, table[i].ranks, table[i].has_one);
        assert_int_equal(ids.count, table[i].count);
        assert_int_equal(ids.have, 0);
    }
}

/* Each ID has one root, roots are spread, and nobody else is one. */
static void test_roots(void **state)
{
    (void)state;
    for (uint32_t ranks = 1; ranks < 1000; ranks += 7) {
        uint32_t found = 0;
        ids_init(&ids, ranks, false);
        for (uint32_t rank = 0; rank < ranks; rank++) {
            uint32_t index;
            if (ids_is_root(&ids, rank, &index)) {
                assert_int_equal(index, found);
                assert_int_equal(ids_root(&ids, index), rank);
                found++;
            }
        }
        assert_int_equal(found, ids.count);
    }
    ids_init(&ids, 300, false);
    assert_int_equal(ids_root(&ids, 1), 100);
    assert_int_equal(ids_root(&ids, 2), 200);
}

/* An ID is taken once, and its bytes serve one index; all go out in order. */
static void test_take(void **state)
{
    (void)state;
    uint8_t id[GPUL_UNIQUE_ID_BYTES] = {0};
    ProtobufCBinaryData list[2];
    Gpul__ProbeIds out = GPUL__PROBE_IDS__INIT;
    ids_init(&ids, 200, false);
    /* All zeros are an ID like any other. */
    assert_int_equal(ids_take(&ids, 1, id), IDS_TAKEN);
    assert_int_equal(ids_take(&ids, 1, id), IDS_REPEATED);
    assert_int_equal(ids_take(&ids, 0, id), IDS_REUSED);
    assert_int_equal(ids.have, 1);
    id[GPUL_UNIQUE_ID_BYTES - 1] = 1;
    assert_int_equal(ids_take(&ids, 1, id), IDS_REPEATED);
    assert_int_equal(ids_take(&ids, 0, id), IDS_TAKEN);
    assert_int_equal(ids.have, 2);
    ids_fill(&out, list, &ids);
    assert_int_equal(out.n_ids, 2);
    assert_int_equal(out.ids[0].len, GPUL_UNIQUE_ID_BYTES);
    assert_memory_equal(out.ids[0].data, id, sizeof(id));
    assert_int_equal(out.ids[1].data[GPUL_UNIQUE_ID_BYTES - 1], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_count),
        cmocka_unit_test(test_roots),
        cmocka_unit_test(test_take),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
