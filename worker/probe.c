/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/probe.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "worker/probe_channel.h"
#include "worker/probe_gpu.h"
#include "worker/probe_host.h"
#include "worker/probe_pairs.h"
#include "worker/probe_scout.h"
#include "worker/probe_survey.h"

enum {
    AGENT_FD = 3,
    EXIT_TOLD = 0,
    EXIT_NOT_TOLD = 125,
};

struct probe {
    struct probe_channel channel;
    const char *command;
    sweep_fault_fn fault;
    void *fault_arg;
    bool has_gpu_libraries;
};

static int serve_start(struct probe *p, const Gpul__ProbeStart *start,
                       struct gpul_error *err)
{
    if (start->backend == GPUL__SELF_TEST__BACKEND__BACKEND_NCCL) {
        p->has_gpu_libraries = true;
        return probe_scout_serve(&p->channel, start, p->command, err);
    }
    return probe_host_serve(&p->channel, start, p->fault, p->fault_arg, err);
}

/* From the first frame to the last. An error means: nobody was told. */
static int serve(struct probe *p, struct gpul_error *err)
{
    static const uint64_t allowed =
        GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_PROBE_START) |
        GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_PROBE_BEGIN) |
        GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_PAIR_START) |
        GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_SURVEY_START);
    Gpul__Frame *first = NULL;
    int status =
        probe_channel_read(&p->channel, &first, allowed,
                           gpul_clock_ms() + PROBE_CHANNEL_DEADLINE_MS, err);
    if (status != 0) {
        return gpul_wrap(err, status, "waiting for the first frame");
    }
    p->channel.epoch = first->epoch;
    p->channel.generation = first->generation;
    if (first->body_case == GPUL__FRAME__BODY_PROBE_START) {
        status = serve_start(p, first->probe_start, err);
        if (!p->has_gpu_libraries) { /* a thread that hangs reads it */
            gpul_message_release(first);
        }
        return status;
    }
    if (first->body_case == GPUL__FRAME__BODY_PAIR_START) {
        status = probe_pairs_serve(&p->channel, first->pair_start, err);
        gpul_message_release(first);
        return status;
    }
    if (first->body_case == GPUL__FRAME__BODY_SURVEY_START) {
        status = probe_survey_serve(&p->channel, first->survey_start, err);
        gpul_message_release(first);
        return status;
    }
    /* A thread that hangs goes on reading the frame. */
    p->has_gpu_libraries = true;
    return probe_gpu_serve(&p->channel, first->probe_begin, p->command, err);
}

int probe_run(int agent_fd, const char *command, sweep_fault_fn fault,
              void *arg)
{
    struct gpul_error err;
    struct probe p = {.command = command, .fault = fault, .fault_arg = arg};
    probe_channel_init(&p.channel, agent_fd);
    int status = serve(&p, &err);
    if (status != 0 && status != GPUL_ECLOSED) {
        fprintf(stderr, "gpulaunch-worker probe: %s\n", err.text);
    }
    int code = status == 0 ? EXIT_TOLD : EXIT_NOT_TOLD;
    if (p.has_gpu_libraries) {
        /* What those do at an orderly exit may wait for a device that
         * hangs, or for threads of theirs that do. */
        _exit(code);
    }
    probe_channel_release(&p.channel);
    return code;
}

int probe_main(const char *command)
{
    int type;
    socklen_t bytes = sizeof(type);
    if (getsockopt(AGENT_FD, SOL_SOCKET, SO_TYPE, &type, &bytes) != 0) {
        fprintf(stderr,
                "gpulaunch-worker probe: descriptor %d is not a "
                "socket; an agent starts this, not a user\n",
                AGENT_FD);
        return EXIT_NOT_TOLD;
    }
    /* A helper that a library starts would keep the channel open. */
    if (fcntl(AGENT_FD, F_SETFD, FD_CLOEXEC) != 0) {
        perror("gpulaunch-worker probe: descriptor 3");
        return EXIT_NOT_TOLD;
    }
    /* The agent may be killed while we are in the middle of a piece. If it
     * is gone already, its end of descriptor 3 is closed. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return probe_run(AGENT_FD, command, NULL, NULL);
}
