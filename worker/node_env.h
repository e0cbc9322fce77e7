/* SPDX-License-Identifier: Apache-2.0
 *
 * The environment of a process that looks at this node: that of its agent, and
 * the node's name, as probes and ranks have it. Edge.
 */
#ifndef WORKER_NODE_ENV_H
#define WORKER_NODE_ENV_H

#include "proto/limits.h"

enum { NODE_ENV_BYTES = GPUL_NAME_BYTES_MAX + 32 };

/* To be freed; the strings are not its own: `node` gets one of them. NULL:
 * without memory. */
char **node_env_make(char node[NODE_ENV_BYTES], const char *node_name);

#endif
