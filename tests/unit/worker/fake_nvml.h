/* SPDX-License-Identifier: Apache-2.0
 *
 * An NVML of the tests' own, which answers what they set.
 */
#ifndef TESTS_FAKE_NVML_H
#define TESTS_FAKE_NVML_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/gpu_nvml.h"

/* What a device answers. */
struct nvml_device {
    const char *uuid;
    int result; /* of every query */
    bool has_slices;
    bool is_slice;
};

struct fake_nvml {
    struct nvml_device *gpus;
    unsigned count;
    int count_result;
    unsigned lost; /* index of a GPU that cannot be opened */
    unsigned processes;
};

extern struct fake_nvml fake_nvml;

/* Of every GPU that has some: two, with an empty place between. */
extern struct nvml_device fake_nvml_slices[2];

/* All of its functions; and those of the driver of 2012, where all optional
 * ones are missing. */
extern const struct nvml_api fake_nvml_api;
extern const struct nvml_api fake_nvml_old_api;

/* These GPUs, none of them lost, two processes on each. */
void fake_nvml_set(struct nvml_device *gpus, unsigned count);

#endif
