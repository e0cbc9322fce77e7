/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPUs of this machine and the processors near each, as the kernel tells
 * of them in /proc and /sys: no library of a GPU is loaded. Edge.
 *
 * GPUs are numbered in the order of their bus, as CUDA does where they are of
 * one model; a container's are those whose device nodes it has. MIG slices
 * cannot be told apart here.
 */
#ifndef WORKER_GPUPLACES_H
#define WORKER_GPUPLACES_H

#include <stdbool.h>
#include <stddef.h>

#include "worker/binding.h"
#include "worker/gpu_device.h"

struct gpuplaces {
    /* For gpu_visible_choose: index, uuid and bus_id are set. */
    struct gpu_device devices[GPU_DEVICES_MAX];
    struct binding_gpu gpus[GPU_DEVICES_MAX];
    size_t count;
    bool has_one_node; /* the machine has one NUMA node, or tells of none */
};

/* `root` stands before every path: "" in the program, a folder in tests. What
 * cannot be read is left out, or has no place. */
void gpuplaces_read(struct gpuplaces *out, const char *root);

#endif
