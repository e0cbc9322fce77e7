/* SPDX-License-Identifier: Apache-2.0
 *
 * The double of libnccl when all is well: ranks meet, and every operation
 * does what it is for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/doubles/ranks.h"

#define FOUR_BY_TWO "node local-* gpus 2\n"

static int all_is_well(struct rank *rank)
{
    int wrong = 0;

    rank_open(rank);
    if (!rank_init(rank, 10000) || rank->account->result != NCCL_SUCCESS)
        return 1;
    for (size_t count = 0; count < 3000 && wrong == 0; count += 331)
        wrong = rank_all_reduce(rank, count, 10000);
    return wrong != 0 || rank_close(rank, 10000) != NCCL_SUCCESS;
}

/* Four nodes of two devices meet, sum right at odd sizes, and part. */
static void test_four_by_two(void **state)
{
    struct account accounts[8];

    (void)state;
    ranks_run(&(struct plan){FOUR_BY_TWO, 4, 2, 0, all_is_well}, accounts);
    for (int i = 0; i < 8; i++)
        assert_int_equal(accounts[i].exit_code, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_four_by_two),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
