/* SPDX-License-Identifier: Apache-2.0 */
#include "common/startup.h"

#include <signal.h>
#include <sys/prctl.h>

static struct rlimit core_limit;
static bool is_private;

/* A caller that blocks SIGCHLD or SIGTERM would make us deaf to them, and one
 * that ignores SIGCHLD would take the children's statuses away. */
void gpul_startup_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    signal(SIGCHLD, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The hard limit stays: without privileges it could not be given back. */
void gpul_startup_private(void)
{
    struct rlimit none;
    if (is_private || getrlimit(RLIMIT_CORE, &core_limit) != 0) {
        return;
    }
    is_private = true;
    none = core_limit;
    none.rlim_cur = 0;
    (void)setrlimit(RLIMIT_CORE, &none);
#ifndef GPUL_STAYS_DUMPABLE
    prctl(PR_SET_DUMPABLE, 0);
#endif
}

bool gpul_startup_core_limit(struct rlimit *limit)
{
    *limit = core_limit;
    return is_private;
}
