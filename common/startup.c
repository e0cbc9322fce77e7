/* SPDX-License-Identifier: Apache-2.0 */
#include "common/startup.h"

#include <signal.h>

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
