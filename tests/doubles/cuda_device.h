/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of the node's devices this process sees: CUDA_VISIBLE_DEVICES holds
 * numbers or UUIDs (or beginnings of UUIDs), and the first entry that names
 * no device ends the list. Source: CUDA programming guide, environment
 * variables; an entry given twice leaves no device. */
#ifndef DOUBLES_CUDA_DEVICE_H
#define DOUBLES_CUDA_DEVICE_H

#include "tests/doubles/scenario.h"
#include "worker/cuda_api.h"

struct devices {
    int count;
    int physical[SCENARIO_GPUS_MAX]; /* by ordinal of this process */
};

void devices_read(struct devices *devices, const struct scenario *scenario,
                  const char *visible);

/* The 16 bytes that a "GPU-..." text stands for. */
struct cuda_uuid device_uuid(const struct scenario_gpu *gpu);

#endif
