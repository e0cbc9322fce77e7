/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program may not inherit, and what others may not see of it. Edge.
 */
#ifndef GPUL_COMMON_STARTUP_H
#define GPUL_COMMON_STARTUP_H

#include <stdbool.h>
#include <sys/resource.h>

/* The first call of every main(): no signal blocked, SIGCHLD at its default,
 * SIGPIPE and SIGXFSZ ignored, so that a reader that has gone and a file over
 * its limit are errors of a write. gpul_spawn gives none of it to a child. */
void gpul_startup_signals(void);

/* The next, of a program that will hold a secret or a key: it leaves no core
 * file, and its memory and environment are nobody's but root's to read
 * (PR_SET_DUMPABLE 0, which a fork keeps and an exec ends). A child of
 * gpul_spawn has the limit of core files back that this program came with.
 *
 * Not so with a sanitizer (GPUL_STAYS_DUMPABLE): the search for leaks has to
 * ptrace its own process, which a process that cannot be dumped forbids. */
void gpul_startup_private(void);

/* What RLIMIT_CORE was before gpul_startup_private; false: it was not called.
 */
bool gpul_startup_core_limit(struct rlimit *limit);

#endif
