/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/cause.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#include "common/signals.h"

/* gpulaunch's own SIGKILL is no news: it comes after a first failure. */
static const char *who_killed(const Gpul__Exit *fate)
{
    switch (fate->out_of_memory) {
    case GPUL__EXIT__OUT_OF_MEMORY__CGROUP:
        return "out of memory, as its cgroup's counter says";
    case GPUL__EXIT__OUT_OF_MEMORY__KERNEL:
        return "out of memory, as the kernel's log says";
    case GPUL__EXIT__OUT_OF_MEMORY__NO:
        return "killed by somebody outside the job, not for want of memory";
    default:
        return "killed by somebody outside the job, or by the kernel for want "
               "of memory";
    }
}

static const char *meaning(const Gpul__Exit *fate)
{
    if (fate->is_stopped) {
        return NULL;
    }
    return fate->signal == SIGKILL ? who_killed(fate)
                                   : gpul_signal_meaning(fate->signal);
}

const char *gpul_exit_cause(char out[GPUL_CAUSE_BYTES], const Gpul__Exit *fate)
{
    if (fate->exec_errno != 0) {
        snprintf(out, GPUL_CAUSE_BYTES, "could not start: %s", fate->text);
    } else if (fate->signal != 0) {
        char name[GPUL_SIGNAL_TEXT_BYTES];
        const char *why = meaning(fate);
        snprintf(out, GPUL_CAUSE_BYTES, "was ended by %s%s%s",
                 gpul_format_signal(name, fate->signal),
                 why != NULL ? ": " : "", why != NULL ? why : "");
    } else {
        bool has_lost_one =
            fate->out_of_memory == GPUL__EXIT__OUT_OF_MEMORY__CGROUP &&
            !fate->is_stopped;
        snprintf(out, GPUL_CAUSE_BYTES, "exited with code %u%s%s%s", fate->code,
                 fate->text[0] != 0 ? ": " : "", fate->text,
                 has_lost_one ? "; a process in its cgroup was killed for want "
                                "of memory"
                              : "");
    }
    return out;
}
