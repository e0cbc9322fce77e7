/* SPDX-License-Identifier: Apache-2.0
 *
 * Every fault that a scenario can order of the double of libnccl: what it
 * does to the rank that has it, and what the others see of it. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/doubles/ranks.h"

enum { SOON_MS = 800, LONG_MS = 20000 };

/* How far a rank came; its exit code. */
enum outcome {
    PASSED = 0,
    STUCK_IN_CALL = 1,
    STUCK_IN_INIT,
    FAILED_IN_INIT,
    STUCK_IN_COLLECTIVE,
    FAILED_IN_COLLECTIVE,
    WRONG_DATA,
    STUCK_IN_END,
    FAILED_IN_END,
};

#define NODES "node local-* gpus 4\n"

/* Do all ranks come to the same trouble? Then none aborts, and so troubles
 * its neighbours anew, before each has seen it. Set before ranks start. */
static bool is_shared;

static int abort_and(struct rank *rank, enum outcome outcome)
{
    if (is_shared)
        rank_barrier(rank);
    (void)rank->doubles.nccl.comm_abort(rank->comm);
    return (int)outcome;
}

/* How long to wait where a fault is; a machine may be slow elsewhere. */
struct patience {
    int init_ms;
    int calls_ms; /* from the second on */
    int end_ms;
};

/* Init, four all-reduces, end: as far as it goes, then an abort. */
static int play(struct rank *rank, struct patience patience)
{
    rank_open(rank);
    if (!rank_init(rank, patience.init_ms))
        return abort_and(rank, STUCK_IN_INIT);
    if (rank->account->result != NCCL_SUCCESS)
        return abort_and(rank, FAILED_IN_INIT);
    uint64_t start = now_ms();
    for (int i = 0; i < 4; i++) {
        int wrong =
            rank_all_reduce(rank, 1500, i == 0 ? LONG_MS : patience.calls_ms);
        rank->account->took_ms = now_ms() - start;
        rank->account->number++;
        if (wrong == 0)
            continue;
        if (wrong > 0) {
            rank->account->result = wrong;
            return abort_and(rank, WRONG_DATA);
        }
        return abort_and(rank, rank->account->result == NCCL_SUCCESS
                                   ? STUCK_IN_COLLECTIVE
                                   : FAILED_IN_COLLECTIVE);
    }
    if (rank->doubles.nccl.comm_finalize(rank->comm) == NCCL_IN_PROGRESS &&
        !rank_settle(rank, patience.end_ms))
        return abort_and(rank, STUCK_IN_END);
    return rank->doubles.nccl.comm_destroy(rank->comm) == NCCL_SUCCESS
               ? PASSED
               : FAILED_IN_END;
}

static int play_long(struct rank *rank)
{
    return play(rank, (struct patience){LONG_MS, LONG_MS, LONG_MS});
}

static int play_init(struct rank *rank)
{
    return play(rank, (struct patience){SOON_MS, LONG_MS, LONG_MS});
}

static int play_calls(struct rank *rank)
{
    return play(rank, (struct patience){LONG_MS, SOON_MS, LONG_MS});
}

static int play_end(struct rank *rank)
{
    return play(rank, (struct patience){LONG_MS, LONG_MS, SOON_MS});
}

/* Four ranks on two nodes. */
static void run(const char *faults, rank_story *story, struct account *accounts)
{
    char scenario[1024];

    (void)snprintf(scenario, sizeof scenario, NODES "%s\n", faults);
    ranks_run(&(struct plan){scenario, 2, 2, 0, story}, accounts);
}

/* The same, with a trouble that no rank is spared. */
static void run_shared(const char *faults, rank_story *story,
                       struct account *accounts)
{
    is_shared = true;
    run(faults, story, accounts);
    is_shared = false;
}

static void expect(const struct account *accounts, int rank, int exit_code,
                   int result, const char *text)
{
    if (accounts[rank].exit_code != exit_code)
        print_message("rank %d: %s\n", rank, accounts[rank].text);
    assert_int_equal(accounts[rank].exit_code, exit_code);
    if (exit_code >= 0)
        assert_int_equal(accounts[rank].result, result);
    if (text && !strstr(accounts[rank].text, text))
        fail_msg("rank %d: \"%s\" has no \"%s\"", rank, accounts[rank].text,
                 text);
}

static void *init_thread(void *argument)
{
    struct rank *rank = argument;

    (void)rank_init(rank, LONG_MS);
    atomic_store((_Atomic uint64_t *)&rank->account->number, 1);
    return NULL;
}

/* Rank 2 calls in a thread of its own, whose call does not come back. */
static int play_never(struct rank *rank)
{
    pthread_t thread;

    if (rank->rank != 2)
        return play_init(rank);
    rank_open(rank);
    if (pthread_create(&thread, NULL, init_thread, rank) != 0 ||
        pthread_detach(thread) != 0)
        return 99;
    rank_barrier(rank); /* with the others, who have waited */
    return atomic_load((_Atomic uint64_t *)&rank->account->number) == 0
               ? STUCK_IN_CALL
               : PASSED;
}

/* A rank that never arrives stays in its call, and leaves all the others in
 * progress, without an error, until they abort. */
static void test_never_arrives(void **state)
{
    struct account accounts[4];

    (void)state;
    run_shared("fault rank 2 never-arrives", play_never, accounts);
    for (int i = 0; i < 4; i++)
        if (i == 2)
            assert_int_equal(accounts[i].exit_code, STUCK_IN_CALL);
        else
            expect(accounts, i, STUCK_IN_INIT, NCCL_IN_PROGRESS, NULL);
}

/* A late rank makes all late, and nothing else. */
static void test_late(void **state)
{
    struct account accounts[4];

    (void)state;
    run("fault rank 1 late 300ms at init\n"
        "fault rank 1 late 400ms at allreduce call 3",
        play_long, accounts);
    for (int i = 0; i < 4; i++) {
        expect(accounts, i, PASSED, NCCL_SUCCESS, NULL);
        assert_true(accounts[i].took_ms >= 400);
    }
}

/* A rank that hangs in init has checked in, and still nobody gets on. */
static void test_hang_init(void **state)
{
    struct account accounts[4];

    (void)state;
    run_shared("fault rank 0 hang init", play_init, accounts);
    for (int i = 0; i < 4; i++)
        expect(accounts, i, STUCK_IN_INIT, NCCL_IN_PROGRESS, NULL);
}

/* A hang in a collective is seen by no error: streams are just not done. */
static void test_hang_collective(void **state)
{
    struct account accounts[4];

    (void)state;
    run_shared("fault rank 3 hang collective call 2", play_calls, accounts);
    for (int i = 0; i < 4; i++) {
        expect(accounts, i, STUCK_IN_COLLECTIVE, NCCL_SUCCESS, NULL);
        assert_int_equal(accounts[i].number, 2);
    }
}

/* Beside a collective that is stuck: does another stream do what it is given?
 * The answer is the account's number. */
static int play_echo(struct rank *rank)
{
    const struct cuda_api *cuda = &rank->doubles.cuda;
    struct cuda_stream *stream;
    struct cuda_event *event;

    rank_open(rank);
    CHECK(rank_init(rank, LONG_MS));
    CHECK(cuda->stream_create(&stream, CUDA_STREAM_NON_BLOCKING) == 0);
    CHECK(cuda->event_create(&event, CUDA_EVENT_DISABLE_TIMING) == 0);
    CHECK(rank_all_reduce(rank, 1500, SOON_MS) == -1);
    CHECK(cuda->event_record(event, stream) == 0);
    uint64_t end = now_ms() + SOON_MS;
    while (cuda->event_query(event) == CUDA_RESULT_NOT_READY && now_ms() < end)
        pause_ms(1);
    rank->account->number = cuda->event_query(event) == CUDA_RESULT_SUCCESS;
    return abort_and(rank, STUCK_IN_COLLECTIVE);
}

/* A device that hangs does nothing else either; one whose transfer is stalled,
 * or that waits for another, does. */
static void test_hang_or_stall(void **state)
{
    struct account accounts[4];

    (void)state;
    run_shared("fault rank 3 hang collective", play_echo, accounts);
    for (int i = 0; i < 4; i++) {
        expect(accounts, i, STUCK_IN_COLLECTIVE, NCCL_SUCCESS, NULL);
        assert_int_equal(accounts[i].number, i != 3);
    }
    run_shared("fault rank 3 stall collective", play_echo, accounts);
    for (int i = 0; i < 4; i++) {
        expect(accounts, i, STUCK_IN_COLLECTIVE, NCCL_SUCCESS, NULL);
        assert_int_equal(accounts[i].number, 1);
    }
}

/* A hang in finalize keeps the rank that has it in progress. */
static void test_hang_finalize(void **state)
{
    struct account accounts[4];

    (void)state;
    run("fault hang finalize", play_end, accounts);
    for (int i = 0; i < 4; i++)
        expect(accounts, i, STUCK_IN_END, NCCL_IN_PROGRESS, NULL);
    run("fault rank 1 late 300ms at finalize", play_long, accounts);
    for (int i = 0; i < 4; i++)
        expect(accounts, i, PASSED, NCCL_SUCCESS, NULL);
}

static void *abort_thread(void *argument)
{
    struct rank *rank = argument;

    (void)rank->doubles.nccl.comm_abort(rank->comm);
    atomic_store((_Atomic uint64_t *)&rank->account->number, 1);
    return NULL;
}

/* Aborts in a thread of its own: 1 when that does not come back, as that of
 * rank 2 does not. */
static int play_abort(struct rank *rank)
{
    pthread_t thread;

    rank_open(rank);
    if (!rank_init(rank, LONG_MS) || rank->account->result != NCCL_SUCCESS)
        return 99;
    rank_barrier(rank);
    if (pthread_create(&thread, NULL, abort_thread, rank) != 0 ||
        pthread_detach(thread) != 0)
        return 99;
    uint64_t end = now_ms() + (rank->rank == 2 ? SOON_MS : LONG_MS);
    while (atomic_load((_Atomic uint64_t *)&rank->account->number) == 0 &&
           now_ms() < end)
        pause_ms(1);
    return atomic_load((_Atomic uint64_t *)&rank->account->number) == 0;
}

/* An abort that hangs never comes back; only the process can be ended. */
static void test_hang_abort(void **state)
{
    struct account accounts[4];

    (void)state;
    run("fault rank 2 hang abort", play_abort, accounts);
    for (int i = 0; i < 4; i++)
        assert_int_equal(accounts[i].exit_code, i == 2);
}

/* A code at the second call: returned there, and waited for by the rest. */
static void test_code(void **state)
{
    struct account accounts[4];

    (void)state;
    run("fault rank 1 code 3 at allreduce call 2", play_calls, accounts);
    expect(accounts, 1, FAILED_IN_COLLECTIVE, NCCL_INTERNAL_ERROR,
           "the scenario orders code 3");
    assert_int_equal(accounts[1].number, 2);
    assert_int_equal(accounts[0].number, 2);
    assert_int_not_equal(accounts[0].exit_code, PASSED);
}

/* A code in init ends only that rank's init. */
static void test_code_in_init(void **state)
{
    struct account accounts[4];

    (void)state;
    run("fault rank 3 code 2 at init", play_init, accounts);
    expect(accounts, 3, FAILED_IN_INIT, NCCL_SYSTEM_ERROR,
           "the scenario orders code 2");
    expect(accounts, 0, STUCK_IN_INIT, NCCL_IN_PROGRESS, NULL);
}

/* A code that no header knows is passed on as the number that it is. */
static void test_unknown_code(void **state)
{
    struct account accounts[4];

    (void)state;
    run("fault code 77 at allreduce", play_long, accounts);
    expect(accounts, 0, FAILED_IN_COLLECTIVE, 77, NULL);
}

/* A crash before the root knows of the rank: the rest waits for ever. */
static void test_signal_in_init(void **state)
{
    struct account accounts[4];

    (void)state;
    run("fault rank 2 signal SEGV at init", play_init, accounts);
    expect(accounts, 2, -SIGSEGV, 0, NULL);
    expect(accounts, 0, STUCK_IN_INIT, NCCL_IN_PROGRESS, NULL);
    expect(accounts, 3, STUCK_IN_INIT, NCCL_IN_PROGRESS, NULL);
}

/* A crash in a collective is a remote error for its neighbours. */
static void test_signal_in_collective(void **state)
{
    struct account accounts[4];

    (void)state;
    run("fault rank 2 signal KILL at allreduce call 2", play_long, accounts);
    expect(accounts, 2, -SIGKILL, 0, NULL);
    expect(accounts, 3, FAILED_IN_COLLECTIVE, NCCL_REMOTE_ERROR,
           "Connection closed by remote peer 127.0.0.1<");
}

/* One bit of one element of one call on one rank; all else is right. */
static void test_flip(void **state)
{
    struct account accounts[4];

    (void)state;
    run("fault rank 3 flip element 1000 bit 3 call 4", play_long, accounts);
    expect(accounts, 3, WRONG_DATA, 1, NULL);
    assert_int_equal(accounts[3].number, 4);
    for (int i = 0; i < 3; i++)
        assert_int_equal(accounts[i].number, 4);
}

/* A slow rank takes as many times the links' time, and all wait for it: six
 * steps of 5 ms for each of four calls, times four. */
static void test_slow(void **state)
{
    struct account accounts[4];

    (void)state;
    run("link latency 5ms bandwidth 10GB/s", play_long, accounts);
    assert_true(accounts[0].took_ms >= 4 * 6 * 5);
    run("link latency 5ms bandwidth 10GB/s\nfault rank 2 slow 4x", play_long,
        accounts);
    for (int i = 0; i < 4; i++) {
        expect(accounts, i, PASSED, NCCL_SUCCESS, NULL);
        assert_true(accounts[i].took_ms >= 4 * 6 * 5 * 3);
    }
}

static int ask_symbols(struct rank *rank)
{
    bool is_whole = doubles_open(&rank->doubles, rank->account->text);

    rank->account->number =
        is_whole && rank->doubles.nccl.comm_init_rank_scalable != NULL;
    return is_whole ? 0 : 1;
}

/* A library of which symbols are missing, as old ones are. */
static void test_missing_symbol(void **state)
{
    struct account accounts[4];

    (void)state;
    run("fault node local-0 missing-symbol ncclCommInitRankScalable\n"
        "fault node local-1 missing-symbol ncclCommAbort",
        ask_symbols, accounts);
    assert_int_equal(accounts[0].exit_code, 0); /* it is optional */
    assert_int_equal(accounts[0].number, 0);
    assert_int_equal(accounts[2].exit_code, 1);
    assert_string_equal(accounts[2].text, "ncclCommAbort");
}

/* A scenario that hides what there never was ends the process. */
static void test_missing_symbol_unknown(void **state)
{
    struct account accounts[4];

    (void)state;
    run("fault missing-symbol ncclNoSuchThing", ask_symbols, accounts);
    assert_int_equal(accounts[0].exit_code, -SIGABRT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_never_arrives),
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_hang_init),
        cmocka_unit_test(test_hang_collective),
        cmocka_unit_test(test_hang_or_stall),
        cmocka_unit_test(test_hang_finalize),
        cmocka_unit_test(test_hang_abort),
        cmocka_unit_test(test_code),
        cmocka_unit_test(test_code_in_init),
        cmocka_unit_test(test_unknown_code),
        cmocka_unit_test(test_signal_in_init),
        cmocka_unit_test(test_signal_in_collective),
        cmocka_unit_test(test_flip),
        cmocka_unit_test(test_slow),
        cmocka_unit_test(test_missing_symbol),
        cmocka_unit_test(test_missing_symbol_unknown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
