/* SPDX-License-Identifier: Apache-2.0
 *
 * Looked for once. */
#include "tests/doubles/nccl_cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "tests/doubles/nccl_wire.h"

static struct nccl_cuda cuda;
static const char *problem; /* NULL: found */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A function's address, by way of memcpy since ISO C has no cast for it. */
static void find(void *library, const char *name, void *into)
{
    void *symbol = dlsym(library, name);

    if (!symbol)
        problem = "libcuda.so.1 is not the double that this one needs";
    memcpy(into, &symbol, sizeof symbol);
}

static void load(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    if (!library) {
        problem = "Failed to open libcuda.so.1";
        return;
    }
    find(library, "gpulaunch_double_device", &cuda.device);
    find(library, "gpulaunch_double_memory", &cuda.memory);
    find(library, "gpulaunch_double_stream", &cuda.stream);
    find(library, "gpulaunch_double_launch", &cuda.launch);
    find(library, "gpulaunch_double_halt", &cuda.halt);
    find(library, "cuGetErrorString", &cuda.get_error_string);
}

const struct nccl_cuda *nccl_cuda(void)
{
    (void)pthread_once(&once, load);
    if (!problem)
        return &cuda;
    (void)nccl_fail(NCCL_UNHANDLED_CUDA_ERROR, "%s", problem);
    return NULL;
}

int nccl_cuda_result(int status)
{
    const char *text = NULL;

    if (status == 0)
        return NCCL_SUCCESS;
    (void)cuda.get_error_string(status, &text);
    return nccl_fail(NCCL_UNHANDLED_CUDA_ERROR, "Cuda failure %d '%s'", status,
                     text ? text : "unrecognized error code");
}
