/* SPDX-License-Identifier: Apache-2.0
 *
 * The children of this process. A program that has become their subreaper
 * finds here whatever the processes below it leave behind. Nothing here
 * allocates. Edge.
 */
#ifndef GPUL_COMMON_CHILDREN_H
#define GPUL_COMMON_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Children that one look takes in; the rest turns up in the next. */
enum { GPUL_CHILDREN_MAX = 8192 };

/* Become the parent of every orphan below. */
void gpul_children_adopt(void);

/* The children, dead ones included, at most `most` of them, from the list
 * that the kernel keeps; where it keeps none (it needs CONFIG_PROC_CHILDREN),
 * by a scan of all processes, which costs milliseconds on a full host. */
size_t gpul_children_find(pid_t *pids, size_t most);
size_t gpul_children_scan(pid_t *pids, size_t most);

/* Call `each` for every process that /proc shows; false: it cannot be read.
 */
bool gpul_processes_each(void (*each)(void *arg, pid_t pid), void *arg);

#endif
