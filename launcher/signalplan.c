/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/signalplan.h"

#include <signal.h>

/* Of the C library's own threads. */
enum { CANCEL_SIGNAL = 32, SETXID_SIGNAL = 33 };

enum signal_use signalplan_use(int number)
{
    switch (number) {
    case SIGINT:
    case SIGTERM:
    case SIGHUP:
        return SIGNAL_USE_STOP;
    case SIGTSTP:
        return SIGNAL_USE_SUSPEND;
    case SIGCONT:
        return SIGNAL_USE_CONTINUE;
    case SIGKILL: /* cannot be caught */
    case SIGSTOP:
    case SIGCHLD: /* tell of our own children, files and faults */
    case SIGPIPE:
    case SIGURG:
    case SIGXFSZ:
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGABRT:
    case SIGSYS:
    case SIGTRAP:
    case SIGTTIN: /* are between us and our terminal */
    case SIGTTOU:
    case CANCEL_SIGNAL:
    case SETXID_SIGNAL:
        return SIGNAL_USE_NONE;
    default:
        return SIGNAL_USE_PASS;
    }
}
