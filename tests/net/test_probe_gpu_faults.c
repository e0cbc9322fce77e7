/* SPDX-License-Identifier: Apache-2.0
 *
 * GPU probes with every fault that the doubles can have: what the rank that
 * has it reports, what the others do, and that all are gone in time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "tests/lib/gpustage.h"

enum {
    ABORT_MS = 1500,   /* of probes whose abort hangs */
    NEVER_MS = 600000, /* of all others: no wait of the stage is so long */
};

static struct stage stage;

static int teardown(void **state)
{
    (void)state;
    stage_end(&stage);
    return 0;
}

/* Two nodes of two devices. */
static void start_abort(const char *scenario, uint32_t abort_ms)
{
    const struct stage_spec spec = {.scenario = scenario,
                                    .nodes = 2,
                                    .per_node = 2,
                                    .abort_deadline_ms = abort_ms};
    stage_start(&stage, &spec, false);
}

static void start(const char *scenario)
{
    start_abort(scenario, NEVER_MS);
}

static const Gpul__ProbeResult *result_of(uint32_t rank)
{
    assert_non_null(stage.probes[rank].result);
    return stage.probes[rank].result->probe_result;
}

static void assert_exit(uint32_t rank, int code)
{
    const struct stage_probe *probe = &stage.probes[rank];
    assert_true(probe->is_gone);
    if (!WIFEXITED(probe->status) || WEXITSTATUS(probe->status) != code) {
        fail_msg("rank %u: status %#x, expected exit code %d", rank,
                 (unsigned)probe->status, code);
    }
}

static void assert_error(uint32_t rank, const char *phase, const char *error)
{
    const Gpul__ProbeResult *result = result_of(rank);
    assert_string_equal(result->error, error);
    assert_string_equal(result->phase, phase);
    assert_int_equal(result->probe_rank, rank);
    assert_string_equal(result->device_uuid, stage.probes[rank].uuid);
}

/* Everybody is told to stop: nobody has a result, and all go, long before the
 * bound of an abort. */
static void assert_stops(void)
{
    stage_stop_all(&stage);
    stage_until(&stage, 0, stage_is_gone);
    for (uint32_t i = 0; i < stage.count; i++) {
        assert_exit(i, 0);
        assert_null(stage.probes[i].result);
    }
}

static bool is_in_nccl(const struct stage_probe *probe)
{
    return strstr(probe->text, "waiting in NCCL for all 4 ranks") != NULL;
}

static bool is_in_all_reduce(const struct stage_probe *probe)
{
    return (probe->phases & 1u << GPUL__PROBE_PHASE__PHASE__INIT) != 0 &&
           strcmp(probe->text, "all-reduce of 4096 bytes") == 0;
}

static bool is_in_finalize(const struct stage_probe *probe)
{
    return (probe->phases & 1u << GPUL__PROBE_PHASE__PHASE__COLL) != 0 &&
           strcmp(probe->text, "finalising the communicator") == 0;
}

static bool has_context(const struct stage_probe *probe)
{
    return (probe->phases & 1u << GPUL__PROBE_PHASE__PHASE__CUDA) != 0;
}

/* ---- hangs --------------------------------------------------------------- */

/* A rank that never arrives: all others say that they wait in NCCL, and a
 * stop ends them at once. */
static void test_never_arrives(void **state)
{
    (void)state;
    start("fault rank 2 never-arrives");
    stage_until(&stage, 0, is_in_nccl);
    assert_stops();
}

/* A rank that hangs in init. */
static void test_hang_in_init(void **state)
{
    (void)state;
    start("fault rank 3 hang init");
    stage_until(&stage, 0, is_in_nccl);
    assert_stops();
}

/* A rank that hangs in a collective: everybody says in which, and of which
 * size. */
static void test_hang_in_collective(void **state)
{
    (void)state;
    start("fault rank 1 hang allreduce call 1");
    stage_until(&stage, 0, is_in_all_reduce);
    assert_stops();
}

/* A rank that hangs in finalize; the others have come to their end. */
static void test_hang_in_finalize(void **state)
{
    (void)state;
    start("fault rank 0 hang finalize");
    stage_until(&stage, 1, is_in_finalize);
    stage_until(&stage, 0xe, stage_has_result);
    stage_send_stop(&stage, 0);
    stage_until(&stage, 0, stage_is_gone);
    assert_exit(0, 0);
    assert_null(stage.probes[0].result);
    assert_string_equal(result_of(1)->error, "");
}

/* An abort that hangs is waited for as long as was said, and not longer. */
static void test_hang_in_abort(void **state)
{
    (void)state;
    start_abort("fault rank 1 hang allreduce call 1\nfault rank 2 hang abort",
                ABORT_MS);
    stage_until(&stage, 0, is_in_all_reduce);
    uint64_t start_ms = gpul_clock_ms();
    assert_stops();
    assert_true(stage.probes[2].gone_ms - start_ms >= ABORT_MS);
}

/* A driver that hangs before there is a context: the probe has nothing to
 * abort, and goes. */
static void test_hang_in_driver(void **state)
{
    (void)state;
    start("fault node local-1 gpu 0 hang context");
    stage_until(&stage, 0xb, has_context);
    assert_stops();
}

/* A root that hangs while it makes the ID: nobody has one. */
static void test_hang_in_uid(void **state)
{
    (void)state;
    start("fault node local-0 hang uid");
    stage_until(&stage, 0, has_context);
    assert_stops();
    assert_null(stage.probes[0].id);
}

/* Nobody says Stop: 5 s after its deadline a probe ends by itself, with the
 * phase and what it did. */
static void test_own_deadline(void **state)
{
    (void)state;
    const struct stage_spec spec = {.scenario = "fault rank 1 never-arrives",
                                    .nodes = 2,
                                    .per_node = 1,
                                    .listen_deadline_ms = 1};
    stage_start(&stage, &spec, false);
    stage_until(&stage, 0, stage_is_gone);
    for (uint32_t i = 0; i < 2; i++) {
        assert_error(i, "init",
                     "deadline reached: setting up the communicator: waiting "
                     "in NCCL for all 2 ranks");
        assert_true(result_of(i)->is_simulated);
        assert_exit(i, 0);
    }
}

/* The agents go: so do the probes, in the middle of whatever they do. */
static void test_agent_goes(void **state)
{
    (void)state;
    start("fault rank 2 never-arrives");
    stage_until(&stage, 0, is_in_nccl);
    for (uint32_t i = 0; i < stage.count; i++) {
        close(stage.probes[i].fd);
        stage.probes[i].fd = -1;
    }
    stage_until(&stage, 0, stage_is_gone);
    for (uint32_t i = 0; i < stage.count; i++) {
        assert_exit(i, 125);
    }
}

/* ---- errors -------------------------------------------------------------- */

/* NCCL refuses a collective: code, text, collective and size come from the
 * rank that has it, at once; its end is another's remote error. */
static void test_code_in_collective(void **state)
{
    (void)state;
    start("fault rank 1 code 3 at allreduce call 2");
    stage_until(&stage, 2, stage_is_gone);
    assert_error(1, "coll",
                 "all-reduce of 4096 bytes: ncclAllReduce: internal error - "
                 "please report this issue to the NCCL developers (NCCL error "
                 "3)");
    assert_non_null(
        strstr(result_of(1)->library_error, "the scenario orders code 3"));
    assert_false(result_of(1)->is_remote);
    assert_exit(1, 0);
    stage_stop_all(&stage);
    stage_until(&stage, 0, stage_is_gone);
    for (uint32_t i = 0; i < stage.count; i++) {
        assert_exit(i, 0);
        if (i != 1 && stage.probes[i].result != NULL) {
            assert_true(result_of(i)->is_remote);
            assert_string_equal(result_of(i)->phase, "coll");
        }
    }
}

/* A code that no header knows is told as the number that it is. */
static void test_unknown_code(void **state)
{
    (void)state;
    start("fault rank 0 code 77 at allreduce call 1");
    stage_until(&stage, 1, stage_is_gone);
    assert_error(0, "coll",
                 "all-reduce of 4096 bytes: ncclAllReduce: unknown result "
                 "code (NCCL error 77)");
    stage_stop_all(&stage);
    stage_until(&stage, 0, stage_is_gone);
}

/* A system error in init: phase init, while the others wait. */
static void test_code_in_init(void **state)
{
    (void)state;
    start("fault rank 3 code 2 at init");
    stage_until(&stage, 8, stage_is_gone);
    assert_error(3, "init",
                 "ncclCommInitRankConfig: unhandled system error (run with "
                 "NCCL_DEBUG=INFO for details) (NCCL error 2)");
    stage_until(&stage, 7, is_in_nccl);
    stage_stop_all(&stage);
    stage_until(&stage, 0, stage_is_gone);
}

/* A rank crashes in a collective: no result of it, and remote errors of its
 * neighbours, who say so themselves. */
static void test_crash(void **state)
{
    (void)state;
    start("fault rank 2 signal SEGV at allreduce call 2");
    stage_until(&stage, 4, stage_is_gone);
    assert_true(WIFSIGNALED(stage.probes[2].status));
    assert_int_equal(WTERMSIG(stage.probes[2].status), SIGSEGV);
    assert_null(stage.probes[2].result);
    stage_until(&stage, 8, stage_is_gone);
    assert_true(result_of(3)->is_remote);
    assert_string_equal(result_of(3)->phase, "coll");
    assert_non_null(strstr(result_of(3)->library_error,
                           "Connection closed by remote peer"));
    stage_stop_all(&stage);
    stage_until(&stage, 0, stage_is_gone);
}

/* The root dies when it has given its ID: nobody can set up, and a stop ends
 * them. */
static bool is_alone(const struct stage_probe *probe)
{
    return stage_has_result(probe) || is_in_nccl(probe);
}

static void test_root_dies(void **state)
{
    (void)state;
    start("fault node local-0 signal KILL at uid after 100ms\n"
          "fault rank 3 late 500ms at init");
    stage_until(&stage, 1, stage_is_gone);
    assert_true(WIFSIGNALED(stage.probes[0].status));
    assert_non_null(stage.probes[0].id);
    stage_until(&stage, 0xe, is_alone);
    stage_stop_all(&stage);
    stage_until(&stage, 0, stage_is_gone);
    for (uint32_t i = 1; i < 4; i++) {
        assert_exit(i, 0);
        if (stage.probes[i].result != NULL) {
            assert_true(result_of(i)->is_remote);
            assert_string_equal(result_of(i)->phase, "init");
        }
    }
}

/* Two ranks on one device: NCCL's own words. */
static void test_same_device(void **state)
{
    (void)state;
    const struct stage_spec spec = {
        .scenario = "", .nodes = 1, .per_node = 2, .shares_devices = true};
    stage_start(&stage, &spec, false);
    stage_until(&stage, 0, stage_is_gone);
    for (uint32_t i = 0; i < 2; i++) {
        assert_error(i, "init",
                     "ncclCommInitRankConfig: invalid usage (run with "
                     "NCCL_DEBUG=WARN for details) (NCCL error 5)");
        assert_non_null(
            strstr(result_of(i)->library_error, "Duplicate GPU detected"));
    }
}

/* A device that is not there: named, with what hides it. */
static void test_no_such_device(void **state)
{
    (void)state;
    const struct stage_spec spec = {.scenario = "gpu local-0 0 uuid "
                                                "GPU-00000000-0000-0000-0000-"
                                                "000000000009\n",
                                    .nodes = 1,
                                    .per_node = 2};
    stage_start(&stage, &spec, false);
    stage_until(&stage, 1, stage_is_gone);
    assert_error(0, "cuda",
                 "device GPU-00000000-0000-0000-0000-000000000000 is not "
                 "among the 2 that CUDA shows (CUDA_VISIBLE_DEVICES is not "
                 "set)");
    stage_stop_all(&stage);
    stage_until(&stage, 0, stage_is_gone);
}

/* The driver fails: its words, its number and its name. */
static void test_driver_error(void **state)
{
    (void)state;
    start("fault node local-1 gpu 1 code 2 at context");
    stage_until(&stage, 8, stage_is_gone);
    assert_error(3, "cuda",
                 "context of the device: out of memory (CUDA error 2, "
                 "CUDA_ERROR_OUT_OF_MEMORY)");
    assert_string_equal(result_of(3)->library_error, "");
    stage_stop_all(&stage);
    stage_until(&stage, 0, stage_is_gone);
}

/* A library without a symbol that is needed. */
static void test_missing_symbol(void **state)
{
    (void)state;
    start("fault node local-1 missing-symbol ncclAllReduce");
    stage_until(&stage, 0xc, stage_is_gone);
    for (uint32_t i = 2; i < 4; i++) {
        assert_string_equal(result_of(i)->phase, "cuda");
        assert_non_null(strstr(result_of(i)->error, "ncclAllReduce"));
    }
    stage_stop_all(&stage);
    stage_until(&stage, 0, stage_is_gone);
}

/* Several IDs for a library that takes one. */
static void test_no_scalable_init(void **state)
{
    (void)state;
    const struct stage_spec spec = {
        .scenario = "fault missing-symbol ncclCommInitRankScalable",
        .nodes = 2,
        .per_node = 1,
        .id_count = 2};
    stage_start(&stage, &spec, false);
    stage_until(&stage, 0, stage_is_gone);
    assert_error(1, "init",
                 "2 unique IDs, but this NCCL has no "
                 "ncclCommInitRankScalable");
}

/* ---- data ---------------------------------------------------------------- */

/* One flipped bit: that rank tells it at once, to the bit, in phase coll and
 * before any hang that would come later. */
static void test_flip(void **state)
{
    (void)state;
    Gpul__Sweep sweep = GPUL__SWEEP__INIT;
    sweep.bytes_min = 8192;
    sweep.bytes_max = 8192;
    sweep.iterations = 2;
    sweep.warmup = 2; /* one */
    const struct stage_spec spec = {
        /* a warm-up, two timed ones, and the check */
        .scenario = "fault rank 3 flip element 1000 bit 3 call 4\n"
                    "fault rank 3 hang finalize",
        .nodes = 2,
        .per_node = 2,
        .sweep = &sweep};
    stage_start(&stage, &spec, false);
    stage_until(&stage, 8, stage_is_gone);
    assert_error(3, "coll", "wrong data in all-reduce of 8192 bytes");
    assert_int_equal(result_of(3)->n_rows, 1);
    assert_int_equal(result_of(3)->wrong_elements, 1);
    assert_int_equal(result_of(3)->rows[0]->wrong_elements, 1);
    assert_false(result_of(3)->is_remote);
    assert_int_equal(result_of(3)->first_wrong_offset, 1000);
    assert_int_equal(result_of(3)->first_wrong_bytes, 8192);
    assert_int_equal(result_of(3)->first_wrong_bit, 3);
    assert_int_equal(result_of(3)->first_wrong_collective,
                     GPUL__COLLECTIVE__COLLECTIVE_ALL_REDUCE);
    stage_stop_all(&stage);
    stage_until(&stage, 0, stage_is_gone);
}

/* A late rank and slow links are no error, and the time shows: that it was
 * late in the call of the one that was, and to all that its own data comes back
 * to it over four links. The others may have been later than it. */
static void test_late_and_slow(void **state)
{
    (void)state;
    start("link latency 2ms bandwidth 1GB/s\n"
          "fault rank 2 slow 3x\n"
          "fault rank 1 late 300ms at allreduce call 3");
    stage_until(&stage, 0, stage_is_gone);
    for (uint32_t i = 0; i < 4; i++) {
        assert_string_equal(result_of(i)->error, "");
        assert_int_equal(result_of(i)->wrong_elements, 0);
        assert_true(result_of(i)->rows[0]->median_ns >= 8 * 1000000);
        assert_exit(i, 0);
    }
    assert_true(result_of(1)->rows[0]->max_ns >= 300 * 1000000);
}

/* ---- the agent's own faults ---------------------------------------------- */

/* IDs that are not as many as were announced: told, and nothing is set up. */
static void test_wrong_ids(void **state)
{
    (void)state;
    const struct stage_spec spec = {.scenario = "",
                                    .nodes = 1,
                                    .per_node = 2,
                                    .id_count = 2,
                                    .relay_count = 1};
    stage_start(&stage, &spec, false);
    stage_until(&stage, 1, stage_has_result);
    assert_error(0, "uid", "1 unique IDs came, 2 were announced");
    stage_stop_all(&stage);
    stage_until(&stage, 0, stage_is_gone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_never_arrives, teardown),
        cmocka_unit_test_teardown(test_hang_in_init, teardown),
        cmocka_unit_test_teardown(test_hang_in_collective, teardown),
        cmocka_unit_test_teardown(test_hang_in_finalize, teardown),
        cmocka_unit_test_teardown(test_hang_in_abort, teardown),
        cmocka_unit_test_teardown(test_hang_in_driver, teardown),
        cmocka_unit_test_teardown(test_hang_in_uid, teardown),
        cmocka_unit_test_teardown(test_own_deadline, teardown),
        cmocka_unit_test_teardown(test_agent_goes, teardown),
        cmocka_unit_test_teardown(test_code_in_collective, teardown),
        cmocka_unit_test_teardown(test_unknown_code, teardown),
        cmocka_unit_test_teardown(test_code_in_init, teardown),
        cmocka_unit_test_teardown(test_crash, teardown),
        cmocka_unit_test_teardown(test_root_dies, teardown),
        cmocka_unit_test_teardown(test_same_device, teardown),
        cmocka_unit_test_teardown(test_no_such_device, teardown),
        cmocka_unit_test_teardown(test_driver_error, teardown),
        cmocka_unit_test_teardown(test_missing_symbol, teardown),
        cmocka_unit_test_teardown(test_no_scalable_init, teardown),
        cmocka_unit_test_teardown(test_flip, teardown),
        cmocka_unit_test_teardown(test_late_and_slow, teardown),
        cmocka_unit_test_teardown(test_wrong_ids, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
