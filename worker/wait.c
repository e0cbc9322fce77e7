/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/wait.h"

#include <errno.h>
#include <limits.h>

#include "common/clock.h"

int wait_any(struct pollfd *fds, size_t n, uint64_t deadline_ms,
             struct gpul_error *err)
{
    for (;;) {
        uint64_t now_ms = gpul_clock_ms();
        if (now_ms >= deadline_ms) {
            return gpul_fail(err, GPUL_ETIMEOUT, "deadline reached");
        }
        uint64_t left_ms = deadline_ms - now_ms;
        int ready = poll(fds, n, left_ms > INT_MAX ? INT_MAX : (int)left_ms);
        if (ready > 0) {
            return 0;
        }
        if (ready < 0 && errno != EINTR) {
            return gpul_fail_errno(err, errno, "poll");
        }
    }
}

int wait_watched(struct pollfd *fds, size_t n, uint64_t deadline_ms,
                 struct gpul_error *err)
{
    int status = wait_any(fds, n, deadline_ms, err);
    if (status == 0 && fds[0].revents != 0) {
        return gpul_fail(err, GPUL_ECLOSED, "the agent has gone");
    }
    return status;
}
