/* SPDX-License-Identifier: Apache-2.0
 *
 * The double of libnccl when all is well: ranks meet, and every operation
 * does what it is for. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/doubles/ranks.h"

#define NODES "node local-* gpus 8 context 1MiB\n"

enum { LONG_MS = 20000, COUNT = 1001 };

static void run(int nodes, int per_node, int ids, rank_story *story)
{
    struct account accounts[RANKS_MAX];

    ranks_run(&(struct plan){NODES, nodes, per_node, ids, story}, accounts);
    for (int i = 0; i < nodes * per_node; i++)
        assert_int_equal(accounts[i].exit_code, 0);
}

static void meet(struct rank *rank)
{
    rank_open(rank);
    CHECK(rank_init(rank, LONG_MS));
    CHECK(rank->account->result == NCCL_SUCCESS);
}

static int part(struct rank *rank)
{
    return rank_close(rank, LONG_MS);
}

/* --- All-reduce --------------------------------------------------------- */

static int all_is_well(struct rank *rank)
{
    int value;

    meet(rank);
    for (size_t count = 0; count < 3000; count += 331)
        CHECK(rank_all_reduce(rank, count, LONG_MS) == 0);
    CHECK(rank->doubles.nccl.comm_count(rank->comm, &value) == 0);
    CHECK(value == rank->count);
    CHECK(rank->doubles.nccl.comm_user_rank(rank->comm, &value) == 0);
    CHECK(value == rank->rank);
    CHECK(rank->doubles.nccl.comm_cu_device(rank->comm, &value) == 0);
    CHECK(value == rank->local_rank);
    return part(rank);
}

/* Four nodes of two devices meet, sum right at odd sizes, and part. */
static void test_four_by_two(void **state)
{
    (void)state;
    run(4, 2, 0, all_is_well);
}

/* One rank is a ring too. */
static void test_one_rank(void **state)
{
    (void)state;
    run(1, 1, 0, all_is_well);
}

/* Ranks are shared out over several IDs, evenly or not, up to one each. */
static void test_several_ids(void **state)
{
    (void)state;
    run(1, 5, 3, all_is_well);
    run(2, 2, 2, all_is_well);
    run(1, 3, 3, all_is_well);
}

/* --- The other operations ------------------------------------------------ */

/* Two device buffers of `count` floats; the first holds rank * 100 + i. */
struct buffers {
    void *send;
    void *receive;
    float *host;
    size_t count;
};

static void buffers_open(struct rank *rank, struct buffers *buffers,
                         size_t count)
{
    struct cuda_api *cuda = &rank->doubles.cuda;
    cuda_address send, receive;

    buffers->count = count;
    buffers->host = calloc(count, sizeof(float));
    for (size_t i = 0; i < count; i++)
        buffers->host[i] = (float)(rank->rank * 100) + (float)i;
    CHECK(cuda->mem_alloc(&send, count * sizeof(float)) == 0);
    CHECK(cuda->mem_alloc(&receive, count * sizeof(float)) == 0);
    CHECK(cuda->memcpy_h_to_d(send, buffers->host, count * sizeof(float)) == 0);
    buffers->send = (void *)(uintptr_t)send;
    buffers->receive = (void *)(uintptr_t)receive;
}

/* Waits for the operation, then brings what was received to the host. */
static void buffers_fetch(struct rank *rank, struct buffers *buffers,
                          int result)
{
    CHECK(result == NCCL_SUCCESS || result == NCCL_IN_PROGRESS);
    CHECK(rank_settle(rank, LONG_MS) && rank_finish(rank, LONG_MS));
    CHECK(rank->doubles.cuda.memcpy_d_to_h(
              buffers->host, (cuda_address)(uintptr_t)buffers->receive,
              buffers->count * sizeof(float)) == 0);
}

static void buffers_close(struct rank *rank, struct buffers *buffers)
{
    CHECK(rank->doubles.cuda.mem_free((cuda_address)(uintptr_t)buffers->send) ==
          0);
    CHECK(rank->doubles.cuda.mem_free(
              (cuda_address)(uintptr_t)buffers->receive) == 0);
    free(buffers->host);
}

static bool is_near(float a, float b)
{
    return a - b < 0.01f && b - a < 0.01f;
}

static int gather_and_scatter(struct rank *rank)
{
    struct nccl_api *nccl = &rank->doubles.nccl;
    size_t n = (size_t)rank->count, all = n * 7;
    struct buffers b;

    meet(rank);
    buffers_open(rank, &b, all);
    buffers_fetch(rank, &b,
                  nccl->all_gather(b.send, b.receive, 7, NCCL_FLOAT32,
                                   rank->comm, rank->stream));
    for (size_t r = 0; r < n; r++)
        for (size_t i = 0; i < 7; i++)
            CHECK(is_near(b.host[r * 7 + i], (float)(r * 100 + i)));
    buffers_fetch(rank, &b,
                  nccl->reduce_scatter(b.send, b.receive, 7, NCCL_FLOAT32,
                                       NCCL_AVG, rank->comm, rank->stream));
    for (size_t i = 0; i < 7; i++)
        CHECK(is_near(b.host[i], (float)(n - 1) * 50 +
                                     (float)((size_t)rank->rank * 7 + i)));
    for (int root = 0; root < rank->count; root++) {
        buffers_fetch(rank, &b,
                      nccl->broadcast(b.send, b.receive, all, NCCL_FLOAT32,
                                      root, rank->comm, rank->stream));
        CHECK(is_near(b.host[all - 1], (float)(root * 100) + (float)(all - 1)));
    }
    buffers_close(rank, &b);
    return part(rank);
}

/* All-gather, reduce-scatter and broadcast put every element in its place. */
static void test_gather_and_scatter(void **state)
{
    (void)state;
    run(2, 2, 0, gather_and_scatter);
    run(1, 3, 0, gather_and_scatter);
}

static int all_to_all(struct rank *rank)
{
    struct nccl_api *nccl = &rank->doubles.nccl;
    enum { EACH = 9000 }; /* over what a socket holds, for some */
    size_t n = (size_t)rank->count;
    struct buffers b;

    meet(rank);
    buffers_open(rank, &b, n * EACH);
    CHECK(nccl->group_start() == 0);
    for (size_t r = 0; r < n; r++) {
        CHECK(nccl->send((float *)b.send + r * EACH, EACH, NCCL_FLOAT32, (int)r,
                         rank->comm, rank->stream) == NCCL_SUCCESS);
        CHECK(nccl->recv((float *)b.receive + r * EACH, EACH, NCCL_FLOAT32,
                         (int)r, rank->comm, rank->stream) == NCCL_SUCCESS);
    }
    CHECK(rank->doubles.cuda.stream_query(rank->stream) == 0);
    buffers_fetch(rank, &b, nccl->group_end());
    for (size_t r = 0; r < n; r++)
        for (size_t i = 0; i < EACH; i += 97)
            CHECK(is_near(b.host[r * EACH + i],
                          (float)(r * 100 + (size_t)rank->rank * EACH + i)));
    buffers_close(rank, &b);
    return part(rank);
}

/* A group of sends and receives with everybody, oneself included, is an
 * all-to-all; nothing begins before the group ends. */
static void test_all_to_all(void **state)
{
    (void)state;
    run(2, 3, 0, all_to_all);
}

static int send_and_receive(struct rank *rank)
{
    struct nccl_api *nccl = &rank->doubles.nccl;
    struct buffers b;

    meet(rank);
    buffers_open(rank, &b, COUNT);
    for (int round = 0; round < 3; round++) {
        int result = rank->rank == 0
                         ? nccl->send(b.send, COUNT, NCCL_FLOAT32, 1,
                                      rank->comm, rank->stream)
                         : nccl->recv(b.receive, COUNT, NCCL_FLOAT32, 0,
                                      rank->comm, rank->stream);
        buffers_fetch(rank, &b, result);
    }
    CHECK(rank->rank == 0 || is_near(b.host[COUNT - 1], COUNT - 1));
    buffers_close(rank, &b);
    return part(rank);
}

/* A send goes to the rank that receives, again and again. */
static void test_send_and_receive(void **state)
{
    (void)state;
    run(2, 1, 0, send_and_receive);
}

/* --- Order --------------------------------------------------------------- */

static int stream_order(struct rank *rank)
{
    struct cuda_api *cuda = &rank->doubles.cuda;
    struct nccl_api *nccl = &rank->doubles.nccl;
    uint32_t sums[COUNT];
    cuda_address device;
    int result;

    meet(rank);
    CHECK(cuda->mem_alloc(&device, sizeof sums) == 0);
    void *data = (void *)(uintptr_t)device;
    CHECK(cuda->memset_d32_async(device, 1, COUNT, rank->stream) == 0);
    for (int round = 0; round < 3; round++) { /* 1, n, n * n, n * n * n */
        result = nccl->all_reduce(data, data, COUNT, NCCL_UINT32, NCCL_SUM,
                                  rank->comm, rank->stream);
        CHECK(result == NCCL_SUCCESS || result == NCCL_IN_PROGRESS);
        CHECK(rank_settle(rank, LONG_MS));
    }
    CHECK(cuda->memcpy_d_to_h_async(sums, device, sizeof sums, rank->stream) ==
          0);
    CHECK(rank_finish(rank, LONG_MS));
    unsigned n = (unsigned)rank->count;
    for (size_t i = 0; i < COUNT; i++)
        CHECK(sums[i] == n * n * n);
    return part(rank);
}

/* Fills, reductions and copies of one stream happen one after the other. */
static void test_stream_order(void **state)
{
    (void)state;
    run(1, 3, 0, stream_order);
}

/* --- Groups -------------------------------------------------------------- */

/* Splits rank->comm: true when it is done. */
static bool split(struct rank *rank, int color, int key, struct nccl_comm **out)
{
    *out = rank->comm; /* that is to be overwritten */
    int result =
        rank->doubles.nccl.comm_split(rank->comm, color, key, out, NULL);
    CHECK(result == NCCL_IN_PROGRESS || result == NCCL_SUCCESS);
    return rank_settle(rank, LONG_MS) && *out != rank->comm;
}

static int split_by_node(struct rank *rank)
{
    struct nccl_comm *whole, *own;
    int node = rank->rank / 3, value;

    meet(rank);
    CHECK(split(rank, node, -rank->local_rank, &own));
    CHECK(rank->doubles.nccl.comm_count(own, &value) == 0 && value == 3);
    CHECK(rank->doubles.nccl.comm_user_rank(own, &value) == 0);
    CHECK(value == 2 - rank->local_rank);
    whole = rank->comm;
    struct rank within = *rank;
    within.comm = own;
    within.rank = value;
    within.count = 3;
    CHECK(rank_all_reduce(&within, COUNT, LONG_MS) == 0);
    CHECK(rank_close(&within, LONG_MS) == 0);
    rank->comm = whole;
    CHECK(rank_all_reduce(rank, COUNT, LONG_MS) == 0);
    return part(rank);
}

/* Ranks of one colour have a communicator of their own, in the order of their
 * keys; the whole one goes on. */
static void test_split(void **state)
{
    (void)state;
    run(2, 3, 0, split_by_node);
}

static int split_without_color(struct rank *rank)
{
    struct nccl_comm *own;
    bool joins = rank->rank > 0;

    meet(rank);
    CHECK(split(rank, joins ? 7 : NCCL_NO_COLOR, 0, &own));
    CHECK((own != NULL) == joins);
    if (joins) {
        struct rank within = *rank;
        within.comm = own;
        CHECK(rank_close(&within, LONG_MS) == 0);
    }
    return part(rank);
}

/* A rank without a colour takes part and gets none. */
static void test_split_without_color(void **state)
{
    (void)state;
    run(1, 3, 0, split_without_color);
}

/* --- Many ---------------------------------------------------------------- */

enum { MANY = 300, IDS = 3 };

static struct doubles many;
static struct nccl_unique_id many_ids[IDS];
static atomic_int many_right;

/* What one thread of many does: all that a rank does. */
static void *many_run(void *argument)
{
    int index = *(int *)argument;
    struct account account = {0};
    struct rank rank = {
        .account = &account, .rank = index, .count = MANY, .doubles = many};
    struct nccl_config config = nccl_config_nonblocking();
    struct cuda_context *context;

    if (many.cuda.device_primary_ctx_retain(&context, index) == 0 &&
        many.cuda.ctx_set_current(context) == 0 &&
        many.cuda.stream_create(&rank.stream, CUDA_STREAM_NON_BLOCKING) == 0 &&
        many.nccl.comm_init_rank_scalable(&rank.comm, MANY, index, IDS,
                                          many_ids,
                                          &config) == NCCL_IN_PROGRESS &&
        rank_settle(&rank, 60000) && account.result == NCCL_SUCCESS &&
        rank_all_reduce(&rank, 500, 60000) == 0 &&
        rank_close(&rank, 60000) == 0)
        (void)atomic_fetch_add(&many_right, 1);
    (void)many.cuda.stream_destroy(rank.stream);
    return NULL;
}

static int three_hundred(struct rank *rank)
{
    pthread_t threads[MANY];
    int indices[MANY];
    char missing[RANKS_TEXT];

    (void)rank;
    CHECK(doubles_open(&many, missing));
    CHECK(many.cuda.init(0) == 0);
    for (int i = 0; i < IDS; i++)
        CHECK(many.nccl.get_unique_id(&many_ids[i]) == 0);
    for (int i = 0; i < MANY; i++) {
        indices[i] = i;
        CHECK(pthread_create(&threads[i], NULL, many_run, &indices[i]) == 0);
    }
    for (int i = 0; i < MANY; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(atomic_load(&many_right) == MANY);
    return 0;
}

/* Three hundred ranks, threads of one process, meet over three IDs. */
static void test_three_hundred_ranks(void **state)
{
    struct account account;

    (void)state;
    ranks_run(
        &(struct plan){"node * gpus 300 context 1MiB", 1, 1, 0, three_hundred},
        &account);
    assert_int_equal(account.exit_code, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_four_by_two),
        cmocka_unit_test(test_one_rank),
        cmocka_unit_test(test_several_ids),
        cmocka_unit_test(test_gather_and_scatter),
        cmocka_unit_test(test_all_to_all),
        cmocka_unit_test(test_send_and_receive),
        cmocka_unit_test(test_stream_order),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_split_without_color),
        cmocka_unit_test(test_three_hundred_ranks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
