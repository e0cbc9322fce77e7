/* SPDX-License-Identifier: Apache-2.0
 *
 * Which calls of the double are refused, and which wait: arguments, buffers,
 * calls that come too early, NCCL_COMM_BLOCKING. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/doubles/ranks.h"

#define NODES "node local-* gpus 4\n"

enum { LONG_MS = 20000 };

/* Does an init with these arguments fail with this text? */
static void refused(struct rank *rank, int count, int ids, int self,
                    const char *text)
{
    struct nccl_config config = nccl_config_nonblocking();
    struct nccl_comm *comm = NULL;
    struct nccl_unique_id id[2] = {{{0}}, {{0}}};

    CHECK(rank->doubles.nccl.comm_init_rank_scalable(
              &comm, count, self, ids, id, &config) == NCCL_INVALID_ARGUMENT);
    CHECK(!comm);
    CHECK(strcmp(rank->doubles.nccl.get_last_error(NULL), text) == 0);
}

static int arguments(struct rank *rank)
{
    struct nccl_api *nccl = &rank->doubles.nccl;
    struct nccl_config config = nccl_config_nonblocking();
    cuda_address device;
    int value;

    rank_open(rank);
    refused(rank, 4, 0, 0,
            "improper usage of ncclCommInitRank: nId = 0, nranks=4");
    refused(rank, 1, 2, 0,
            "improper usage of ncclCommInitRank: nId = 2, nranks=1");
    refused(rank, 4, 1, 4, "Invalid rank requested : 4/4");
    refused(rank, 4, 1, -1, "Invalid rank requested : -1/4");
    CHECK(nccl->comm_init_rank_config(NULL, 1, rank_ids(rank)[0], 0, &config) ==
          NCCL_INVALID_ARGUMENT);
    CHECK(strcmp(nccl->get_last_error(NULL),
                 "CommInitRank : newcomm argument is NULL") == 0);
    CHECK(nccl->group_end() == NCCL_INVALID_USAGE);
    CHECK(rank_init(rank, LONG_MS) && rank->account->result == 0);
    CHECK(rank->doubles.cuda.mem_alloc(&device, 16) == 0);
    void *data = (void *)(uintptr_t)device;
    CHECK(nccl->broadcast(data, data, 4, NCCL_INT32, 1, rank->comm,
                          rank->stream) == NCCL_INVALID_ARGUMENT);
    CHECK(strcmp(nccl->get_last_error(NULL),
                 "Broadcast : invalid root 1 (root should be in the 0..1 "
                 "range)") == 0);
    CHECK(nccl->comm_get_async_error(rank->comm, &value) == 0);
    CHECK(value == NCCL_INVALID_ARGUMENT); /* the communicator is done for */
    CHECK(nccl->comm_abort(rank->comm) == NCCL_SUCCESS);
    CHECK(nccl->comm_abort(NULL) == NCCL_SUCCESS);
    CHECK(nccl->comm_get_async_error(NULL, &value) == NCCL_INVALID_ARGUMENT);
    return rank->doubles.cuda.mem_free(device);
}

/* What NCCL refuses is refused in its words, and leaves no communicator. */
static void test_arguments(void **state)
{
    (void)state;
    story_run(NODES, arguments);
}

static int buffers(struct rank *rank)
{
    struct nccl_api *nccl = &rank->doubles.nccl;
    cuda_address device;
    int host[4] = {0};

    rank_open(rank);
    CHECK(rank_init(rank, LONG_MS) && rank->account->result == 0);
    CHECK(rank->doubles.cuda.mem_alloc(&device, 16) == 0);
    void *data = (void *)(uintptr_t)device;
    CHECK(nccl->all_reduce(host, data, 4, NCCL_INT32, NCCL_SUM, rank->comm,
                           rank->stream) == NCCL_INVALID_ARGUMENT);
    CHECK(strstr(nccl->get_last_error(NULL), "AllReduce : sendbuff 0x"));
    CHECK(strstr(nccl->get_last_error(NULL), "is not a valid pointer"));
    CHECK(nccl->comm_abort(rank->comm) == NCCL_SUCCESS);
    return rank->doubles.cuda.mem_free(device);
}

/* A buffer that is not device memory is refused. */
static void test_buffers(void **state)
{
    (void)state;
    story_run(NODES, buffers);
}

static int too_early(struct rank *rank)
{
    static const char text[] = "Attempt to use communicator before the "
                               "previous operation returned ncclSuccess";
    struct nccl_api *nccl = &rank->doubles.nccl;
    int count;

    rank_open(rank);
    CHECK(!rank_init(rank, 1) && rank->account->result == NCCL_IN_PROGRESS);
    CHECK(nccl->comm_count(rank->comm, &count) == NCCL_INVALID_ARGUMENT);
    CHECK(strcmp(nccl->get_last_error(NULL), text) == 0);
    CHECK(nccl->comm_destroy(rank->comm) == NCCL_INVALID_ARGUMENT);
    return nccl->comm_abort(rank->comm);
}

/* Before an init has ended only polling and an abort are allowed. */
static void test_too_early(void **state)
{
    (void)state;
    story_run(NODES "fault hang init", too_early);
}

static int blocking(struct rank *rank)
{
    struct nccl_config config = nccl_config_nonblocking();

    (void)setenv("NCCL_COMM_BLOCKING", "1", 1);
    rank_open(rank);
    CHECK(rank->doubles.nccl.comm_init_rank_config(
              &rank->comm, rank->count, rank_ids(rank)[0], rank->rank,
              &config) == NCCL_SUCCESS);
    CHECK(rank_all_reduce(rank, 100, LONG_MS) == 0);
    CHECK(rank->doubles.nccl.comm_finalize(rank->comm) == NCCL_SUCCESS);
    CHECK(rank->doubles.nccl.comm_finalize(rank->comm) ==
          NCCL_INVALID_ARGUMENT);
    return rank->doubles.nccl.comm_destroy(rank->comm);
}

/* NCCL_COMM_BLOCKING=1 makes calls wait, whatever the program asked for. */
static void test_blocking(void **state)
{
    struct account accounts[3];

    (void)state;
    ranks_run(&(struct plan){NODES, 1, 3, 0, blocking}, accounts);
    for (int i = 0; i < 3; i++)
        assert_int_equal(accounts[i].exit_code, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_buffers),
        cmocka_unit_test(test_too_early),
        cmocka_unit_test(test_blocking),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
