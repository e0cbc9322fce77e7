/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program may not inherit. Edge.
 */
#ifndef GPUL_COMMON_STARTUP_H
#define GPUL_COMMON_STARTUP_H

/* The first call of every main(): no signal blocked, SIGCHLD at its default,
 * SIGPIPE and SIGXFSZ ignored, so that a reader that has gone and a file over
 * its limit are errors of a write. gpul_spawn gives none of it to a child. */
void gpul_startup_signals(void);

#endif
