/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPU libraries of this machine, opened and named, and the devices that
 * the ranks will see. For a probe, never for the agent: opening NCCL and
 * starting the driver costs milliseconds to seconds and may crash. Edge.
 *
 * NVIDIA's libraries come first; AMD's are tried where the CUDA driver does
 * not exist. No context is made on any device.
 */
#ifndef WORKER_GPU_FACTS_H
#define WORKER_GPU_FACTS_H

#include "common/error.h"
#include "worker/cuda_api.h"
#include "worker/gpu_device.h"
#include "worker/gpu_pulse.h"
#include "worker/gpu_symbols.h"
#include "worker/library.h"
#include "worker/nccl_api.h"
#include "worker/nvml_api.h"

enum { GPU_VERSION_BYTES = 80 };

/* Usable if and only if `error` is empty. */
struct gpu_library {
    struct library file;
    /* "2.28.9", with "+cuda13.0" where it says so; "": not known. */
    char version[GPU_VERSION_BYTES];
    uint32_t version_code; /* 22809, CUDA 13000; 0: not known */
    char error[GPUL_ERROR_TEXT_BYTES];
};

struct gpu_facts_request {
    const char *nccl_path;          /* --nccl-lib, or NULL */
    const char *command;            /* argv[0] of the ranks, or NULL */
    const char *const *environment; /* of the ranks, NULL-terminated */
    bool has_amd; /* GPUs of AMD, none of NVIDIA: HIP's absence is the fact */
    struct gpu_pulse *pulse; /* has the call that it is inside, or NULL */
};

struct gpu_facts {
    enum gpu_maker maker;
    struct gpu_library nccl;
    struct gpu_library cuda; /* or HIP */
    struct gpu_library nvml;
    struct nccl_api nccl_api;
    struct cuda_api cuda_api;
    struct nvml_api nvml_api;
    char driver_version[GPU_VERSION_BYTES]; /* of the kernel driver */
    /* What the ranks will see, in CUDA_VISIBLE_DEVICES' order. */
    struct gpu_device devices[GPU_DEVICES_MAX];
    size_t device_count;
    bool has_no_device;           /* the driver says so */
    char refused[GPU_TEXT_BYTES]; /* entry of that variable without device */
    char error[GPUL_ERROR_TEXT_BYTES]; /* why no device is there; "": some */
};

/* Large: keep it on the heap. What is missing is told inside: only GPUL_ENOMEM
 * and GPUL_ELIMIT (see library_search) are errors. */
int gpu_facts_read(struct gpu_facts *out, const struct gpu_facts_request *in,
                   struct gpul_error *err);

/* Is one of the libraries a double of our tests? */
bool gpu_facts_are_simulated(const struct gpu_facts *facts);

/* Ends NVML and closes it. NCCL and the driver stay open: both may have
 * threads, and the process is short-lived. */
void gpu_facts_release(struct gpu_facts *facts);

#endif
