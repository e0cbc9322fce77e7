/* SPDX-License-Identifier: Apache-2.0
 *
 * A machine as folders: what Linux and NVIDIA's driver tell of processors, NUMA
 * nodes and GPUs in /sys and /proc, under a root of the test's own.
 */
#ifndef TESTS_FAKEHOST_H
#define TESTS_FAKEHOST_H

#include <stdint.h>

enum { FAKEHOST_ROOT_BYTES = 64 };

/* Make the folder; `root` gets its path. */
void fakehost_make(char root[FAKEHOST_ROOT_BYTES]);
void fakehost_remove(const char *root);

/* Write a file and the folders above it. */
void fakehost_put(const char *root, const char *path, const char *text);

/* `packages` sockets, each one NUMA node, of so many cores with two threads:
 * processor i is the first thread of core i. */
void fakehost_put_processors(const char *root, uint32_t packages,
                             uint32_t cores);

/* A GPU as the driver and the kernel show it. */
void fakehost_put_gpu(const char *root, const char *bus_id, uint32_t minor,
                      const char *uuid, const char *cpus, int numa_node);

#endif
