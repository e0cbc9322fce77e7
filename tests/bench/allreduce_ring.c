/* SPDX-License-Identifier: Apache-2.0
 *
 * allreduce_ring RANKS ELEMENTS ITERATIONS: the self-test's own all-reduce
 * between RANKS processes over loopback. Prints, for each timed iteration,
 * the time of its slowest rank in nanoseconds. allreduce_mpi.c does the same
 * with MPI; tests/bench/allreduce sets them side by side.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/bench/pin.h"
#include "worker/sweep.h"

enum { RANKS_MAX = 64, DEADLINE_MS = 300000 };

static struct ringlink links[RANKS_MAX];
static uint16_t ports[RANKS_MAX];

/* One row for each rank, written by it and read by the parent. */
static uint64_t (*times_ns)[MEASURE_ITERATIONS_MAX];

static int fail(const char *what, const struct gpul_error *err)
{
    fprintf(stderr, "allreduce_ring: %s: %s\n", what, err->text);
    return 1;
}

static int run_rank(uint32_t rank, uint32_t n, const struct measure_plan *plan)
{
    struct gpul_error err;
    struct sweep_result *result = malloc(sizeof(*result));
    uint64_t deadline_ms = gpul_clock_ms() + DEADLINE_MS;
    pin_to_core(rank, n);
    if (ringlink_connect(&links[rank], "127.0.0.1", ports[(rank + 1) % n],
                         deadline_ms, &err) != 0) {
        return fail("connect", &err);
    }
    if (sweep_run(result, &links[rank], plan, deadline_ms, NULL, NULL, &err) !=
        0) {
        return fail("run", &err);
    }
    for (size_t i = 0; i < result->row_count; i++) {
        times_ns[rank][i] = result->rows[i].stats.median_ns;
    }
    return result->wrong_elements != 0;
}

/* Every iteration is a step of its own, to get at its time. */
static void make_plan(struct measure_plan *plan, uint64_t count,
                      uint32_t iterations)
{
    plan->step_count = iterations;
    for (uint32_t i = 0; i < iterations; i++) {
        plan->steps[i] = (struct measure_step){count, i == 0 ? 2 : 0, 1};
    }
}

static int wait_ranks(uint32_t n)
{
    int failed = 0;
    for (uint32_t rank = 0; rank < n; rank++) {
        int status = 0;
        wait(&status);
        failed |= status != 0;
    }
    return failed;
}

static void print_slowest(uint32_t n, uint32_t iterations)
{
    for (uint32_t i = 0; i < iterations; i++) {
        uint64_t slowest = 0;
        for (uint32_t rank = 0; rank < n; rank++) {
            if (times_ns[rank][i] > slowest) {
                slowest = times_ns[rank][i];
            }
        }
        printf("%" PRIu64 "\n", slowest);
    }
}

int main(int argc, char **argv)
{
    uint32_t n = argc == 4 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
    uint64_t count = argc == 4 ? strtoull(argv[2], NULL, 10) : 0;
    uint32_t iterations = argc == 4 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;
    if (n < 2 || n > RANKS_MAX || count == 0 || iterations == 0 ||
        iterations > MEASURE_STEPS_MAX) {
        fprintf(stderr, "usage: allreduce_ring RANKS ELEMENTS ITERATIONS\n");
        return 2;
    }
    times_ns = mmap(NULL, n * sizeof(*times_ns), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct measure_plan plan;
    make_plan(&plan, count, iterations);
    for (uint32_t rank = 0; rank < n; rank++) {
        struct ringlink_place place = {
            .rank = rank,
            .node_count = n,
            .generation = 1,
            .token = (uint64_t)getpid(),
        };
        struct gpul_error err;
        ringlink_init(&links[rank], &place, -1);
        if (ringlink_listen(&links[rank], "127.0.0.1", &ports[rank], &err) !=
            0) {
            return fail("listen", &err);
        }
    }
    for (uint32_t rank = 0; rank < n; rank++) {
        if (fork() == 0) {
            _exit(run_rank(rank, n, &plan));
        }
    }
    if (wait_ranks(n) != 0) {
        return 1;
    }
    print_slowest(n, iterations);
    return 0;
}
