/* SPDX-License-Identifier: Apache-2.0
 *
 * What gpulaunch does with each signal that it is sent; docs/operations.md,
 * "Signals". Pure.
 */
#ifndef LAUNCHER_SIGNALPLAN_H
#define LAUNCHER_SIGNALPLAN_H

enum { SIGNALPLAN_MAX = 64 }; /* SIGRTMAX on Linux */

enum signal_use {
    SIGNAL_USE_NONE = 0, /* left as it is */
    SIGNAL_USE_STOP,     /* it ends the job in order */
    SIGNAL_USE_SUSPEND,  /* the ranks stop, and then we */
    SIGNAL_USE_CONTINUE, /* we go on, and so do the ranks */
    SIGNAL_USE_PASS,     /* it is for the ranks, and stops nothing */
};

/* `number` from 1 to SIGNALPLAN_MAX. */
enum signal_use signalplan_use(int number);

#endif
