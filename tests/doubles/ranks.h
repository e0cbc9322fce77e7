/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes as ranks: what the tests of the doubles run their stories on.
 * Each rank is a forked child with the environment of its node, opens the
 * doubles by dlopen as the product does, plays its part under a deadline and
 * leaves an account in memory shared with the test.
 */
#ifndef DOUBLES_RANKS_H
#define DOUBLES_RANKS_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/cuda_api.h"
#include "worker/nccl_api.h"
#include "worker/nvml_api.h"

enum {
    RANKS_MAX = 64,
    RANKS_IDS_MAX = 8,
    RANKS_PATIENCE_MS = 120000, /* then a child is killed and the test fails */
    RANKS_TEXT = 512
};

struct doubles {
    struct cuda_api cuda;
    struct nccl_api nccl;
    struct nvml_api nvml;
};

/* What a rank tells about itself; zero to begin with. */
struct account {
    int result;            /* of the call that the story is about */
    char text[RANKS_TEXT]; /* the last error then */
    uint64_t took_ms;
    uint64_t number; /* whatever the story wants to say besides */
    int exit_code;   /* of the process; -signal when one ended it */
};

struct ranks;

struct rank {
    struct ranks *ranks;
    struct account *account;
    int rank;
    int count;
    int local_rank;
    struct doubles doubles;
    struct nccl_comm *comm;
    struct cuda_stream *stream;
    bool has_made_ids;
};

/* A story. What it returns is the exit code of the rank's process. */
typedef int rank_story(struct rank *rank);

struct plan {
    const char *scenario; /* the text of the file; NULL: no file */
    int nodes;            /* local-0, local-1, ... */
    int per_node;
    int ids; /* unique IDs; 0 stands for 1 */
    rank_story *story;
};

/* Runs the story on every rank and waits for all of them. Asserts that each
 * ended by itself within RANKS_PATIENCE_MS. `accounts` has room for nodes *
 * per_node. */
void ranks_run(const struct plan *plan, struct account *accounts);

/* --- For stories; all functions bounded by `patience_ms` ----------------- */

/* Opens the doubles. `missing` (of RANKS_TEXT) names the first required
 * symbol that is not there: false. */
bool doubles_open(struct doubles *doubles, char *missing);

/* Opens, makes a context on device `local_rank`, and a stream. */
void rank_open(struct rank *rank);

/* The IDs of the plan: made once, by the first rank of each share, and then
 * known to all. */
struct nccl_unique_id *rank_ids(struct rank *rank);

/* Makes a communicator without blocking; false when it is still in progress
 * after the patience. The result is in the account. */
bool rank_init(struct rank *rank, int patience_ms);

/* Polls until no call is in progress: false when one is after all. */
bool rank_settle(struct rank *rank, int patience_ms);

/* Polls the stream, and the communicator for an error meanwhile. */
bool rank_finish(struct rank *rank, int patience_ms);

/* An all-reduce of `count` int32 elements, element i of rank r being r + i:
 * how many elements of the sum are wrong, or -1 with the account filled. */
int rank_all_reduce(struct rank *rank, size_t count, int patience_ms);

/* Finalizes and destroys: the result. */
int rank_close(struct rank *rank, int patience_ms);

/* Every rank comes here, then all go on. */
void rank_barrier(struct rank *rank);

/* Notes a result with the last error. */
void rank_note(struct rank *rank, int result);

/* In a story: what must hold, or the rank's process ends with 98 and a line
 * on stderr. (cmocka's assertions are for the process that runs the test.) */
#define CHECK(condition)                                                       \
    do {                                                                       \
        if (!(condition))                                                      \
            check_failed(__FILE__, __LINE__, #condition);                      \
    } while (0)
__attribute__((noreturn)) void check_failed(const char *file, int line,
                                            const char *what);

/* Runs a story on one rank of node local-0 and asserts that it ends with 0. */
void story_run(const char *scenario, rank_story *story);

uint64_t now_ms(void);
void pause_ms(int ms);

#endif
