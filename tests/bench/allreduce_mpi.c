/* SPDX-License-Identifier: Apache-2.0
 *
 * allreduce_mpi ELEMENTS ITERATIONS, under mpirun: what allreduce_ring does,
 * with MPI_Allreduce, by the same rules: the same core for a rank, the
 * buffer rewritten before and checked after every iteration, a barrier in
 * front, the time of the slowest rank.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <mpi.h>

#include "tests/bench/pin.h"
#include "worker/pattern.h"

enum { WARMUPS = 2 };

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int main(int argc, char **argv)
{
    int rank;
    int n;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    int count = argc == 3 ? atoi(argv[1]) : 0;
    int iterations = argc == 3 ? atoi(argv[2]) : 0;
    float *data = malloc((size_t)count * sizeof(float));
    if (count <= 0 || iterations <= 0 || data == NULL) {
        fprintf(stderr, "usage: allreduce_mpi ELEMENTS ITERATIONS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    pin_to_core((unsigned)rank, (unsigned)n);
    for (int i = 0; i < WARMUPS + iterations; i++) {
        struct pattern_verdict verdict;
        pattern_fill(data, (uint64_t)count, (uint32_t)rank);
        MPI_Barrier(MPI_COMM_WORLD);
        uint64_t own_ns = now_ns();
        MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_FLOAT, MPI_SUM,
                      MPI_COMM_WORLD);
        own_ns = now_ns() - own_ns;
        pattern_check(&verdict, data, (uint64_t)count, (uint32_t)n);
        if (verdict.wrong_elements != 0) {
            fprintf(stderr, "allreduce_mpi: wrong sums\n");
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        uint64_t slowest_ns;
        MPI_Reduce(&own_ns, &slowest_ns, 1, MPI_UINT64_T, MPI_MAX, 0,
                   MPI_COMM_WORLD);
        if (rank == 0 && i >= WARMUPS) {
            printf("%" PRIu64 "\n", slowest_ns);
            fflush(stdout); /* MPI_Finalize may hang; this was measured */
        }
    }
    free(data);
    MPI_Finalize();
    return 0;
}
