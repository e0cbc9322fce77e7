/* SPDX-License-Identifier: Apache-2.0
 *
 * The process that calls NVML: see worker/gpuwatch.h. It does not shut NVML
 * down, which would be one more call to hang in; its end does that.
 */
#include <stdio.h>
#include <stdlib.h>

#include "common/writeall.h"
#include "worker/gpu_look.h"
#include "worker/gpu_nvml.h"
#include "worker/gpuwatch.h"
#include "worker/nvml_open.h"
#include "worker/procstat.h"

extern char **environ;

/* What is written first, to say that there is an NVML. */
enum { FIRST_BYTES = 1 };
_Static_assert(offsetof(struct gpu_look, is_simulated) == 0, "written first");

/* A driver that is not loaded is a machine without GPUs. */
static void read_gpus(struct gpu_look *look, const struct nvml_api *api)
{
    struct gpul_error err = {0};
    size_t count = 0;
    int result = api->init();
    if (result == NVML_RESULT_DRIVER_NOT_LOADED) {
        return;
    }
    if (result != NVML_RESULT_SUCCESS) {
        snprintf(look->error, sizeof(look->error), "NVML: %s",
                 api->error_string(result));
        return;
    }
    if (gpu_nvml_read(look->devices, &count, api, &err) != 0) {
        snprintf(look->error, sizeof(look->error), "%s", err.text);
    }
    look->count = (uint32_t)count;
}

/* Elsewhere they are numbers of other processes than ours. */
static void drop_pids(struct gpu_look *look)
{
    for (uint32_t i = 0; i < look->count; i++) {
        look->devices[i].pid_count = 0;
    }
}

int gpuwatch_main(void)
{
    struct library lib = {0};
    struct nvml_api api;
    struct gpul_error err = {0};
    struct gpu_look *look = calloc(1, sizeof(*look));
    int rc = look != NULL
                 ? nvml_open(&lib, &api, (const char *const *)environ, &err)
                 : GPUL_ENOMEM;
    if (rc != 0 && rc != GPUL_EINVAL) {
        free(look);
        return rc == GPUL_ENOTFOUND ? 0 : 1;
    }
    look->is_simulated = lib.is_simulated;
    int why = gpul_write_all(GPUWATCH_FD, look, FIRST_BYTES);
    if (rc == 0) {
        read_gpus(look, &api);
    } else {
        snprintf(look->error, sizeof(look->error), "%s", err.text);
    }
    if (!procstat_is_first_namespace()) {
        drop_pids(look);
    }
    if (why == 0) {
        why = gpul_write_all(GPUWATCH_FD, (const char *)look + FIRST_BYTES,
                             sizeof(*look) - FIRST_BYTES);
    }
    free(look);
    return why == 0 ? 0 : 1;
}
