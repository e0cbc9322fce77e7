/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/gpu_call.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "proto/text.h"

/* A wait looks at once, then less and less often. */
enum {
    NAP_NS_MIN = 20 * 1000,
    NAP_NS_MAX = 1000 * 1000,
    NAPS_PER_WORD = 1000, /* about a second */
};

struct wait {
    long nap_ns;
    unsigned naps;
};

int gpu_cuda_check(struct gpu *g, const char *what, int result,
                   struct gpul_error *err)
{
    const char *name = NULL;
    const char *text = NULL;
    gpu_pulse_leave(&g->pulse);
    if (result == CUDA_RESULT_SUCCESS) {
        return 0;
    }
    if (g->cuda->get_error_name(result, &name) != 0 || name == NULL ||
        g->cuda->get_error_string(result, &text) != 0 || text == NULL) {
        return gpul_fail(err, GPUL_ESYS, "%s: CUDA error %d", what, result);
    }
    return gpul_fail(err, GPUL_ESYS, "%s: %s (CUDA error %d, %s)", what, text,
                     result, name);
}

/* ---- NCCL ---------------------------------------------------------------- */

/* NCCL's last error, without the line ends that it may begin and end with;
 * "" if there is none. */
static void read_words(struct gpu *g, char words[GPU_WORDS_BYTES])
{
    const char *text = NULL;
    words[0] = 0;
    if (g->nccl->get_last_error != NULL) {
        text = GPU_CALL(g, "ncclGetLastError",
                        nccl->get_last_error(atomic_load(&g->comm)));
        gpu_pulse_leave(&g->pulse);
    }
    if (text == NULL) {
        return;
    }
    text += strspn(text, " \n\t");
    snprintf(words, GPU_WORDS_BYTES, "%s", text);
    gpul_text_clean(words, GPU_WORDS_BYTES - 1);
    size_t n = strlen(words);
    while (n > 0 && strchr(" \n\t", words[n - 1]) != NULL) {
        words[--n] = 0;
    }
}

static void wait_nap(struct gpu *g, struct wait *wait)
{
    char words[GPU_WORDS_BYTES];
    struct timespec time = {.tv_nsec = wait->nap_ns};
    nanosleep(&time, NULL);
    wait->nap_ns *= 2;
    if (wait->nap_ns > NAP_NS_MAX) {
        wait->nap_ns = NAP_NS_MAX;
    }
    if (++wait->naps % NAPS_PER_WORD == 0 && g->on_words != NULL) {
        read_words(g, words);
        if (words[0] != 0) {
            g->on_words(g->arg, words);
        }
    }
}

/* NCCL has no code for a connection that broke during the bootstrap. */
static bool tells_of_a_peer(const char *words)
{
    static const char *const signs[] = {"closed by remote peer",
                                        "Connection reset",
                                        "Connection refused", "Broken pipe"};
    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
        if (strcasestr(words, signs[i]) != NULL) {
            return true;
        }
    }
    return false;
}

static int nccl_fail(struct gpu *g, const char *call, int result,
                     struct gpul_error *err)
{
    const char *text = g->nccl->get_error_string(result);
    if (g->words[0] == 0) {
        read_words(g, g->words);
    }
    g->is_remote = result == NCCL_REMOTE_ERROR || tells_of_a_peer(g->words);
    return gpul_fail(err, GPUL_ESYS, "%s: %s (NCCL error %d)", call,
                     text != NULL ? text : "no text", result);
}

static int stopped(const char *what, struct gpul_error *err)
{
    return gpul_fail(err, GPUL_ECLOSED, "%s: stopped", what);
}

/* An error that came up in the meantime, or what is still in progress. */
static int async_result(struct gpu *g, int *result, struct gpul_error *err)
{
    struct nccl_comm *comm = atomic_load(&g->comm);
    *result = NCCL_SUCCESS;
    if (comm == NULL) {
        return 0;
    }
    int rc = GPU_CALL(g, "ncclCommGetAsyncError",
                      nccl->comm_get_async_error(comm, result));
    gpu_pulse_leave(&g->pulse);
    return rc == NCCL_SUCCESS ? 0
                              : nccl_fail(g, "ncclCommGetAsyncError", rc, err);
}

/* Until it is no longer "in progress". */
static int wait_result(struct gpu *g, const char *call, int *result,
                       struct gpul_error *err)
{
    struct wait wait = {.nap_ns = NAP_NS_MIN};
    int status = 0;
    gpu_pulse_wait(&g->pulse);
    while (*result == NCCL_IN_PROGRESS && status == 0) {
        if (atomic_load(&g->stop)) {
            return stopped(call, err);
        }
        wait_nap(g, &wait);
        status = async_result(g, result, err);
    }
    gpu_pulse_go_on(&g->pulse);
    return status;
}

int gpu_nccl_check(struct gpu *g, const char *call, int result,
                   struct gpul_error *err)
{
    gpu_pulse_leave(&g->pulse);
    if (result == NCCL_IN_PROGRESS) {
        int status = wait_result(g, call, &result, err);
        if (status != 0) {
            return status;
        }
    }
    return result == NCCL_SUCCESS ? 0 : nccl_fail(g, call, result, err);
}

/* ---- waiting for the device ---------------------------------------------- */

static int wait_event(struct gpu *g, const char *what, struct cuda_event *event,
                      struct gpul_error *err)
{
    struct wait wait = {.nap_ns = NAP_NS_MIN};
    for (;;) {
        int result = GPU_CALL(g, "cuEventQuery", cuda->event_query(event));
        gpu_pulse_leave(&g->pulse);
        if (result != CUDA_RESULT_NOT_READY) {
            return gpu_cuda_check(g, what, result, err);
        }
        int status = async_result(g, &result, err);
        if (status != 0) {
            return status;
        }
        if (result != NCCL_SUCCESS && result != NCCL_IN_PROGRESS) {
            return nccl_fail(g, what, result, err);
        }
        if (atomic_load(&g->stop)) {
            return stopped(what, err);
        }
        wait_nap(g, &wait);
    }
}

int gpu_event_wait(struct gpu *g, const char *what, struct cuda_event *event,
                   struct gpul_error *err)
{
    gpu_pulse_wait(&g->pulse);
    int status = wait_event(g, what, event, err);
    gpu_pulse_go_on(&g->pulse);
    return status;
}

int gpu_stream_wait(struct gpu *g, const char *what, struct gpul_error *err)
{
    int status = gpu_cuda_check(
        g, what,
        GPU_CALL(g, "cuEventRecord", cuda->event_record(g->event, g->stream)),
        err);
    return status == 0 ? gpu_event_wait(g, what, g->event, err) : status;
}
