/* SPDX-License-Identifier: Apache-2.0
 *
 * How a communicator of the double begins, or does not: IDs and their roots,
 * versions, devices. */
#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/doubles/ranks.h"

#define NODES "node local-* gpus 4\n"

enum { SOON_MS = 800, LONG_MS = 20000 };

static void run(const char *scenario, int nodes, int per_node,
                rank_story *story, struct account *accounts)
{
    ranks_run(&(struct plan){scenario, nodes, per_node, 0, story}, accounts);
}

/* Init only; what it came to is in the account. */
static int init_only(struct rank *rank)
{
    rank_open(rank);
    bool is_settled = rank_init(rank, LONG_MS);
    rank_barrier(rank);
    CHECK(rank->doubles.nccl.comm_abort(rank->comm) == NCCL_SUCCESS);
    return !is_settled;
}

/* --- IDs ---------------------------------------------------------------- */

static int id_names_a_listener(struct rank *rank)
{
    struct nccl_unique_id id, other;
    struct sockaddr_in address;
    char missing[RANKS_TEXT];

    CHECK(doubles_open(&rank->doubles, missing));
    CHECK(rank->doubles.nccl.get_unique_id(&id) == NCCL_SUCCESS);
    CHECK(rank->doubles.nccl.get_unique_id(&other) == NCCL_SUCCESS);
    CHECK(memcmp(id.internal, other.internal, sizeof id.internal) != 0);
    memcpy(&address, id.internal + 8, sizeof address);
    CHECK(address.sin_family == AF_INET);
    CHECK(ntohl(address.sin_addr.s_addr) == INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    return close(fd);
}

/* An ID, made without a device, names an address where somebody listens. */
static void test_id_names_a_listener(void **state)
{
    (void)state;
    story_run(NULL, id_names_a_listener);
}

static int interface_of_id(struct rank *rank)
{
    struct nccl_unique_id id;
    char missing[RANKS_TEXT];

    CHECK(doubles_open(&rank->doubles, missing));
    (void)setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
    CHECK(rank->doubles.nccl.get_unique_id(&id) == NCCL_SUCCESS);
    (void)setenv("NCCL_SOCKET_IFNAME", "=nosuch0,nosuch1", 1);
    CHECK(rank->doubles.nccl.get_unique_id(&id) == NCCL_INVALID_USAGE);
    CHECK(strcmp(rank->doubles.nccl.get_last_error(NULL),
                 "Bootstrap : no socket interface found") == 0);
    return 0;
}

/* NCCL_SOCKET_IFNAME chooses; nothing that fits is wrong usage. */
static void test_interface_of_id(void **state)
{
    (void)state;
    story_run(NULL, interface_of_id);
}

static int uid_faults(struct rank *rank)
{
    struct nccl_unique_id id;
    char missing[RANKS_TEXT];

    CHECK(doubles_open(&rank->doubles, missing));
    CHECK(rank->doubles.nccl.get_unique_id(&id) == NCCL_SUCCESS);
    return rank->doubles.nccl.get_unique_id(&id) != NCCL_SYSTEM_ERROR;
}

/* An ID may not come. */
static void test_uid_faults(void **state)
{
    (void)state;
    story_run(NODES "fault node local-0 code 2 at uid call 2", uid_faults);
}

/* Rank 0 gives its ID and is gone before anybody checks in. */
static int root_dies(struct rank *rank)
{
    (void)setenv("NCCL_SOCKET_RETRY_CNT", "3", 1);
    (void)setenv("NCCL_SOCKET_RETRY_SLEEP_MSEC", "10", 1);
    rank_open(rank);
    rank->account->number = (uint64_t)getpid();
    (void)rank_ids(rank);
    if (rank->rank == 0)
        (void)kill(getpid(), SIGKILL);
    pid_t root = (pid_t)(rank->account - rank->rank)->number;
    uint64_t end = now_ms() + LONG_MS;
    while (kill(root, 0) == 0 && now_ms() < end)
        pause_ms(1);
    bool is_settled = rank_init(rank, LONG_MS);
    CHECK(rank->doubles.nccl.comm_abort(rank->comm) == NCCL_SUCCESS);
    return !is_settled;
}

/* Who checks in at a root that is gone is refused, tries again as often as it
 * is told, and fails. */
static void test_root_dies(void **state)
{
    struct account accounts[3];

    (void)state;
    run(NODES, 1, 3, root_dies, accounts);
    for (int i = 1; i < 3; i++) {
        assert_int_equal(accounts[i].exit_code, 0);
        assert_int_equal(accounts[i].result, NCCL_REMOTE_ERROR);
        assert_non_null(
            strstr(accounts[i].text,
                   "returned Connection refused, exceeded error retry count "
                   "after 4 attempts"));
        assert_true(accounts[i].took_ms >= 10 + 20 + 30);
    }
}

/* Waits in init for a while, then gives up. */
static int give_up_soon(struct rank *rank)
{
    rank_open(rank);
    bool is_settled = rank_init(rank, SOON_MS);
    CHECK(rank->doubles.nccl.comm_abort(rank->comm) == NCCL_SUCCESS);
    return is_settled;
}

/* A root that dies when others have checked in: nobody tells them. */
static void test_root_dies_later(void **state)
{
    struct account accounts[2];

    (void)state;
    run(NODES "fault rank 0 late 9m at init\n"
              "fault node local-0 signal KILL at uid after 400ms",
        2, 1, give_up_soon, accounts);
    assert_int_equal(accounts[0].exit_code, -SIGKILL);
    assert_int_equal(accounts[1].exit_code, 0);
    assert_int_equal(accounts[1].result, NCCL_IN_PROGRESS);
}

static int id_twice(struct rank *rank)
{
    struct nccl_config config = nccl_config_nonblocking();
    struct nccl_comm *first;

    (void)setenv("NCCL_SOCKET_RETRY_CNT", "2", 1);
    (void)setenv("NCCL_SOCKET_RETRY_SLEEP_MSEC", "5", 1);
    rank_open(rank);
    CHECK(rank_init(rank, LONG_MS) && rank->account->result == 0);
    first = rank->comm;
    rank_barrier(rank);
    CHECK(rank->doubles.nccl.comm_init_rank_config(
              &rank->comm, rank->count, rank_ids(rank)[0], rank->rank,
              &config) == NCCL_IN_PROGRESS);
    CHECK(rank_settle(rank, LONG_MS));
    CHECK(rank->account->result == NCCL_REMOTE_ERROR);
    rank_barrier(rank);
    CHECK(rank->doubles.nccl.comm_abort(rank->comm) == NCCL_SUCCESS);
    rank->comm = first;
    return rank_close(rank, LONG_MS);
}

/* An ID has served when its communicator stands; nobody answers any more. */
static void test_id_twice(void **state)
{
    struct account accounts[2];

    (void)state;
    run(NODES, 1, 2, id_twice, accounts);
    assert_int_equal(accounts[0].exit_code, 0);
    assert_int_equal(accounts[1].exit_code, 0);
}

static int rank_twice(struct rank *rank)
{
    rank_open(rank);
    (void)rank_ids(rank);
    rank->rank = rank->rank == 2 ? 1 : rank->rank; /* there is no rank 2 */
    bool is_settled = rank_init(rank, SOON_MS);
    rank_barrier(rank);
    CHECK(rank->doubles.nccl.comm_abort(rank->comm) == NCCL_SUCCESS);
    return is_settled;
}

/* Two processes with one rank: the root gives up, and all are left waiting. */
static void test_rank_twice(void **state)
{
    struct account accounts[3];

    (void)state;
    run(NODES, 1, 3, rank_twice, accounts);
    for (int i = 0; i < 3; i++)
        assert_int_equal(accounts[i].exit_code, 0);
}

/* --- Versions and devices ------------------------------------------------ */

/* Another version on one node is found by every rank. */
static void test_versions(void **state)
{
    struct account accounts[4];

    (void)state;
    run(NODES "node local-1 nccl 22705", 2, 2, init_only, accounts);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(accounts[i].exit_code, 0);
        assert_int_equal(accounts[i].result, NCCL_INVALID_USAGE);
    }
    assert_string_equal(accounts[1].text,
                        "Mismatched NCCL version detected : rank 2 version "
                        "22705 rank 1 version 22809");
    assert_string_equal(accounts[3].text,
                        "Mismatched NCCL version detected : rank 0 version "
                        "22809 rank 3 version 22705");
}

/* Ranks 0 and 1 of node local-0 take the same device. Before 2.30 the others
 * wait in vain. */
static int same_device(struct rank *rank)
{
    int version = 0;

    rank->local_rank = rank->rank < 2 ? 0 : rank->local_rank;
    rank_open(rank);
    CHECK(rank->doubles.nccl.get_version(&version) == NCCL_SUCCESS);
    bool is_settled =
        rank_init(rank, rank->rank < 2 || version >= 23000 ? LONG_MS : SOON_MS);
    rank_barrier(rank);
    CHECK(rank->doubles.nccl.comm_abort(rank->comm) == NCCL_SUCCESS);
    return !is_settled;
}

/* Up to 2.29 two ranks that share a device find each other, by bus id, and
 * the others are left waiting. */
static void test_duplicate_device(void **state)
{
    struct account accounts[4];

    (void)state;
    run(NODES "gpu local-0 0 bus 0000:3b:00.0", 2, 2, same_device, accounts);
    assert_int_equal(accounts[0].result, NCCL_INVALID_USAGE);
    assert_string_equal(accounts[0].text,
                        "Duplicate GPU detected : rank 0 and rank 1 both on "
                        "CUDA device 3b000");
    assert_string_equal(accounts[1].text,
                        "Duplicate GPU detected : rank 1 and rank 0 both on "
                        "CUDA device 3b000");
    assert_int_equal(accounts[2].exit_code, 1);
    assert_int_equal(accounts[3].exit_code, 1);
}

/* From 2.30 on every rank finds them, by UUID. */
static void test_duplicate_device_2_30(void **state)
{
    struct account accounts[4];

    (void)state;
    run(NODES "node * nccl 23007", 2, 2, same_device, accounts);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(accounts[i].result, NCCL_INVALID_USAGE);
        assert_string_equal(accounts[i].text,
                            "Multiple Ranks are using the same GPU/Partition. "
                            "Set NCCL_MULTI_RANK_GPU_ENABLE=1 to enable this "
                            "configuration.");
    }
}

static int same_device_allowed(struct rank *rank)
{
    (void)setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
    return same_device(rank) || rank->account->result != NCCL_SUCCESS;
}

/* ... unless that is asked for; before 2.30 it cannot be. */
static void test_duplicate_device_allowed(void **state)
{
    struct account accounts[4];

    (void)state;
    run(NODES "node * nccl 23007", 2, 2, same_device_allowed, accounts);
    for (int i = 0; i < 4; i++)
        assert_int_equal(accounts[i].exit_code, 0);
    run(NODES, 2, 2, same_device_allowed, accounts);
    assert_int_equal(accounts[0].exit_code, 1);
}

static void *init_elsewhere(void *argument)
{
    struct rank *rank = argument;
    struct nccl_config config = nccl_config_nonblocking();
    int device = -1;

    CHECK(rank->doubles.nccl.comm_init_rank_config(
              &rank->comm, 1, rank_ids(rank)[0], 0, &config) ==
          NCCL_IN_PROGRESS);
    CHECK(rank_settle(rank, LONG_MS));
    CHECK(rank->doubles.nccl.comm_cu_device(rank->comm, &device) == 0);
    rank->account->number = (uint64_t)device;
    return NULL;
}

static int device_of_a_thread(struct rank *rank)
{
    pthread_t thread;

    rank->local_rank = 2;
    rank_open(rank);
    CHECK(pthread_create(&thread, NULL, init_elsewhere, rank) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(rank->account->number == 0);
    return rank_close(rank, LONG_MS);
}

/* A thread that has chosen no context uses device 0, whatever another thread
 * has chosen. */
static void test_device_of_a_thread(void **state)
{
    (void)state;
    story_run(NODES, device_of_a_thread);
}

static int no_device(struct rank *rank)
{
    struct nccl_config config = nccl_config_nonblocking();
    struct nccl_comm *comm = (void *)rank;
    struct nccl_unique_id id;
    char missing[RANKS_TEXT];

    CHECK(doubles_open(&rank->doubles, missing));
    CHECK(rank->doubles.nccl.get_unique_id(&id) == NCCL_SUCCESS);
    CHECK(rank->doubles.nccl.comm_init_rank_config(&comm, 1, id, 0, &config) ==
          NCCL_UNHANDLED_CUDA_ERROR);
    CHECK(!comm);
    CHECK(strcmp(rank->doubles.nccl.get_last_error(NULL),
                 "Cuda failure 100 'no CUDA-capable device is detected'") == 0);
    return 0;
}

/* A communicator needs a device. */
static void test_no_device(void **state)
{
    (void)state;
    story_run(NULL, no_device);
}

/* A rank that fails once all have met tells nobody, and an abort ends it. */
static void test_connect_faults(void **state)
{
    struct account accounts[3];

    (void)state;
    run(NODES "fault rank 1 code 2 at connect\nfault rank 0 late 300ms at "
              "connect\nfault rank 2 code 3 at connect\n"
              "fault rank 0 code 6 at connect",
        1, 3, init_only, accounts);
    assert_int_equal(accounts[0].result, NCCL_REMOTE_ERROR);
    assert_true(accounts[0].took_ms >= 300);
    assert_int_equal(accounts[1].result, NCCL_SYSTEM_ERROR);
    assert_int_equal(accounts[2].result, NCCL_INTERNAL_ERROR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_id_names_a_listener),
        cmocka_unit_test(test_interface_of_id),
        cmocka_unit_test(test_uid_faults),
        cmocka_unit_test(test_root_dies),
        cmocka_unit_test(test_root_dies_later),
        cmocka_unit_test(test_id_twice),
        cmocka_unit_test(test_rank_twice),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_duplicate_device),
        cmocka_unit_test(test_duplicate_device_2_30),
        cmocka_unit_test(test_duplicate_device_allowed),
        cmocka_unit_test(test_device_of_a_thread),
        cmocka_unit_test(test_no_device),
        cmocka_unit_test(test_connect_faults),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
