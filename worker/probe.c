/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/probe.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "worker/probe_channel.h"
#include "worker/probe_host.h"

enum {
    AGENT_FD = 3,
    EXIT_TOLD = 0,
    EXIT_NOT_TOLD = 125,
};

static const uint64_t first_frames =
    GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_PROBE_START);

/* From the first frame to the last. An error means: nobody was told. */
static int serve(struct probe_channel *channel, sweep_fault_fn fault, void *arg,
                 struct gpul_error *err)
{
    Gpul__Frame *first = NULL;
    int status =
        probe_channel_read(channel, &first, first_frames,
                           gpul_clock_ms() + PROBE_CHANNEL_DEADLINE_MS, err);
    if (status != 0) {
        return gpul_wrap(err, status, "waiting for ProbeStart");
    }
    channel->epoch = first->epoch;
    channel->generation = first->generation;
    status = probe_host_serve(channel, first->probe_start, fault, arg, err);
    gpul_message_release(first);
    return status;
}

int probe_run(int agent_fd, sweep_fault_fn fault, void *arg)
{
    struct gpul_error err;
    struct probe_channel channel;
    probe_channel_init(&channel, agent_fd);
    int status = serve(&channel, fault, arg, &err);
    if (status != 0 && status != GPUL_ECLOSED) {
        fprintf(stderr, "gpulaunch-worker probe: %s\n", err.text);
    }
    probe_channel_release(&channel);
    return status == 0 ? EXIT_TOLD : EXIT_NOT_TOLD;
}

int probe_main(void)
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
    /* The agent may be killed while we are in the middle of a piece. If it
     * is gone already, its end of descriptor 3 is closed. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return probe_run(AGENT_FD, NULL, NULL);
}
