/* SPDX-License-Identifier: Apache-2.0
 *
 * The working thread of a probe on a GPU: everything that calls CUDA and
 * NCCL, from opening the libraries to the end of the communicator. Edge.
 *
 * Happy path, each step a phase of docs/gpu-self-test.md:
 *   cuda   open the libraries, choose the device, make a context
 *   uid    make a unique ID, if our rank is a root; wait for all IDs
 *   init   the communicator
 *   coll   the sweep; then, if all are asked to, one within each node
 *   end    finalise, destroy, give the device back
 *
 * Failure modes: any of it fails, and then it is over at once, nothing given
 * back; or a call never returns. The controlling thread (worker/probe_gpu.h)
 * keeps the deadlines; it ends the process, and this thread with it.
 *
 * What it has to say stands in `struct probe_work`, under its lock; a byte
 * on `wake_fd` tells the controlling thread to look.
 */
#ifndef WORKER_PROBE_WORK_H
#define WORKER_PROBE_WORK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "gpulaunch.pb-c.h"
#include "worker/collective_nccl.h"
#include "worker/gpu_call.h"
#include "worker/gpu_echo.h"
#include "worker/gpu_facts.h"
#include "worker/unique_id.h"

enum work_phase {
    WORK_CUDA,
    WORK_UID,
    WORK_INIT,
    WORK_COLL,
    WORK_END,
};

/* "cuda", "uid", "init", "coll", "end". */
const char *work_phase_name(enum work_phase phase);

enum { WORK_TEXT_BYTES = 256, WORK_NEWS_MAX = 8 };

/* One thing to tell the agent, in order. */
struct work_news {
    bool is_id; /* else: the phase `done` is behind us */
    Gpul__ProbePhase__Phase done;
    uint32_t id_index;
    struct nccl_unique_id id;
    char address[UNIQUE_ID_ADDRESS_BYTES]; /* that it advertises, or "" */
};

struct probe_work {
    /* Constant while it runs. */
    const Gpul__ProbeBegin *begin;
    const char *command; /* first word of the ranks' command, or NULL */
    int wake_fd;         /* an eventfd */

    /* Under `lock`. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum work_phase phase;
    char doing[WORK_TEXT_BYTES]; /* what it does now, for people */
    char words[GPU_WORDS_BYTES]; /* what NCCL said meanwhile, or "" */
    struct work_news news[WORK_NEWS_MAX];
    size_t news_count;
    struct nccl_unique_id *ids; /* begin->id_count of them; NULL: not here */
    bool is_done;               /* nothing below changes any more */

    /* The working thread's own until it is done; what is atomic, in `gpu`
     * too, may be used by others at any time, and `echo` be asked. */
    struct gpu gpu;
    struct gpu_echo echo;
    struct gpu_facts *facts;
    int device;
    atomic_bool is_simulated;
    struct gpu_plan plan; /* of the sweep that runs or ran last */
    struct collective_result result;
    int status; /* 0, or error.status */
    struct gpul_error error;
};

/* Errors: GPUL_ESYS. `begin` is borrowed until the process ends. */
int probe_work_init(struct probe_work *w, const Gpul__ProbeBegin *begin,
                    const char *command, struct gpul_error *err);
int probe_work_start(struct probe_work *w, pthread_t *thread,
                     struct gpul_error *err);

/* After the thread was joined. */
void probe_work_release(struct probe_work *w);

/* The unique IDs have come; a copy is taken. Errors: GPUL_EPROTO (not as
 * many as announced, or a second time), GPUL_ENOMEM. */
int probe_work_give_ids(struct probe_work *w, const Gpul__ProbeIds *ids,
                        struct gpul_error *err);

/* Every wait of the thread ends; a call that hangs does not. */
void probe_work_stop(struct probe_work *w);

#endif
