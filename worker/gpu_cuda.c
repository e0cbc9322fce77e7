/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/gpu_cuda.h"

#include <stdio.h>
#include <string.h>

void gpu_cuda_error(char *out, size_t bytes, const struct cuda_api *api,
                    int result)
{
    const char *name = NULL;
    const char *text = NULL;
    if (api->get_error_name(result, &name) != CUDA_RESULT_SUCCESS ||
        name == NULL) {
        snprintf(out, bytes, "error %d", result);
        return;
    }
    if (api->get_error_string(result, &text) != CUDA_RESULT_SUCCESS ||
        text == NULL) {
        text = "without explanation";
    }
    snprintf(out, bytes, "%s: %s", name, text);
}

void gpu_cuda_uuid_text(char *out, const struct cuda_uuid *uuid,
                        enum gpu_maker maker, bool is_slice)
{
    if (maker == GPU_AMD) { /* 16 characters already */
        snprintf(out, GPU_TEXT_BYTES, "GPU-%.16s", uuid->bytes);
        return;
    }
    size_t n = (size_t)snprintf(out, GPU_TEXT_BYTES, is_slice ? "MIG" : "GPU");
    for (size_t i = 0; i < sizeof(uuid->bytes); i++) {
        bool is_dashed = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
        n += (size_t)snprintf(out + n, GPU_TEXT_BYTES - n, "%s%02x",
                              is_dashed ? "-" : "",
                              (unsigned char)uuid->bytes[i]);
    }
}

/* The second version of the call answers with the slice's own UUID. */
static void read_uuid(struct gpu_device *out, const struct cuda_api *api,
                      enum gpu_maker maker, int device)
{
    struct cuda_uuid uuid;
    struct cuda_uuid own;
    if (api->device_get_uuid(&uuid, device) != CUDA_RESULT_SUCCESS) {
        return;
    }
    out->is_slice =
        api->device_get_uuid_v2 != NULL &&
        api->device_get_uuid_v2(&own, device) == CUDA_RESULT_SUCCESS &&
        memcmp(&own, &uuid, sizeof(uuid)) != 0;
    gpu_cuda_uuid_text(out->uuid, out->is_slice ? &own : &uuid, maker,
                       out->is_slice);
}

static void read_attribute(struct gpu_device *out, const struct cuda_api *api,
                           int device, int attribute, enum gpu_number n)
{
    int value = 0;
    if (api->device_get_attribute != NULL &&
        api->device_get_attribute(&value, attribute, device) ==
            CUDA_RESULT_SUCCESS &&
        value >= 0) {
        gpu_device_set(out, n, (uint64_t)value);
    }
}

static void read_device(struct gpu_device *out, const struct cuda_api *api,
                        enum gpu_maker maker, int device)
{
    read_uuid(out, api, maker, device);
    if (api->device_get_name(out->model, sizeof(out->model), device) !=
        CUDA_RESULT_SUCCESS) {
        out->model[0] = 0;
    }
    if (api->device_get_pci_bus_id(out->bus_id, sizeof(out->bus_id), device) !=
        CUDA_RESULT_SUCCESS) {
        out->bus_id[0] = 0;
    }
    size_t bytes = 0;
    if (api->device_total_mem(&bytes, device) == CUDA_RESULT_SUCCESS) {
        gpu_device_set(out, GPU_MEMORY, bytes);
    }
    read_attribute(out, api, device, CUDA_ATTRIBUTE_ECC_ENABLED, GPU_ECC_ON);
    read_attribute(out, api, device, CUDA_ATTRIBUTE_COMPUTE_MODE,
                   GPU_COMPUTE_MODE);
}

int gpu_cuda_read(struct gpu_device out[GPU_DEVICES_MAX], size_t *count,
                  const struct cuda_api *api, enum gpu_maker maker,
                  struct gpul_error *err)
{
    int devices = 0;
    *count = 0;
    int rc = api->device_get_count(&devices);
    if (rc != CUDA_RESULT_SUCCESS) {
        char text[GPU_TEXT_BYTES];
        gpu_cuda_error(text, sizeof(text), api, rc);
        return gpul_fail(err, GPUL_ESYS, "cannot count the GPUs: %s", text);
    }
    for (int i = 0; i < devices && *count < GPU_DEVICES_MAX; i++) {
        struct gpu_device *gpu = &out[(*count)++];
        *gpu = (struct gpu_device){.index = (uint32_t)i};
        int device = 0;
        rc = api->device_get(&device, i);
        if (rc != CUDA_RESULT_SUCCESS) {
            gpu_cuda_error(gpu->error, sizeof(gpu->error), api, rc);
            continue;
        }
        read_device(gpu, api, maker, device);
    }
    return 0;
}
