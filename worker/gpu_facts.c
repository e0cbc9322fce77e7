/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/gpu_facts.h"

#include <stdio.h>
#include <string.h>

#include "worker/gpu_cuda.h"
#include "worker/gpu_nvml.h"
#include "worker/gpu_visible.h"
#include "worker/library_find.h"
#include "worker/nccl_build.h"

/* Names of files and, for the wheels of Python, their folder. */
struct place {
    const char *const *names;
    const char *wheel;
};

static const struct place nccl_places[] = {
    [GPU_NVIDIA] = {(const char *const[]){"libnccl.so.2", NULL},
                    "nvidia/nccl/lib"},
    [GPU_AMD] = {(const char *const[]){"librccl.so.1", "librccl.so", NULL},
                 "torch/lib"},
};
static const struct place cuda_places[] = {
    [GPU_NVIDIA] = {(const char *const[]){"libcuda.so.1", NULL}, NULL},
    [GPU_AMD] = {(const char *const[]){"libamdhip64.so.7", "libamdhip64.so.6",
                                       "libamdhip64.so.5", "libamdhip64.so",
                                       NULL},
                 NULL},
};
static const struct place nvml_place = {
    (const char *const[]){"libnvidia-ml.so.1", NULL}, NULL};

/* ---- where it is ----------------------------------------------------------
 */

/* Until the next one, or until it works on the host again. */
static void enter(const struct gpu_facts_request *in, const char *call)
{
    if (in->pulse != NULL) {
        gpu_pulse_enter(in->pulse, call);
    }
}

static void leave(const struct gpu_facts_request *in)
{
    if (in->pulse != NULL) {
        gpu_pulse_leave(in->pulse);
        gpu_pulse_step(in->pulse);
    }
}

/* ---- the libraries ------------------------------------------------------ */

/* Returns 0 also where the library cannot be used: lib->error says why. */
static int open_library(struct gpu_library *lib, void *api,
                        const struct library_table *table,
                        const struct place *place, const char *chosen,
                        const struct gpu_facts_request *in,
                        struct gpul_error *err)
{
    const struct library_search search = {
        .names = place->names,
        .wheel = place->wheel,
        .chosen = chosen,
        .environment = in->environment,
    };
    struct library_candidates candidates;
    *lib = (struct gpu_library){0};
    int rc = library_find(&candidates, &search, in->command, err);
    if (rc != 0) {
        return rc;
    }
    struct gpul_error reason = {0};
    enter(in, place->names[0]); /* what it does when it is loaded */
    if (library_open(&lib->file, api, table,
                     (const char *const *)candidates.paths, candidates.count,
                     &reason) != 0) {
        snprintf(lib->error, sizeof(lib->error), "%s", reason.text);
    }
    leave(in);
    library_candidates_release(&candidates);
    return 0;
}

static int open_nccl(struct gpu_facts *f, const struct gpu_facts_request *in,
                     struct gpul_error *err)
{
    struct gpu_library *lib = &f->nccl;
    int version = 0;
    int rc = open_library(lib, &f->nccl_api, gpu_symbols_nccl(f->maker),
                          &nccl_places[f->maker], in->nccl_path, in, err);
    if (rc != 0 || lib->error[0] != 0) {
        return rc;
    }
    enter(in, "ncclGetVersion");
    int result = f->nccl_api.get_version(&version);
    leave(in);
    if (result != NCCL_SUCCESS || version <= 0) {
        return rc;
    }
    lib->version_code = (uint32_t)version;
    /* Two digits for the minor number since 2.9. */
    int major = version >= 10000 ? version / 10000 : version / 1000;
    snprintf(lib->version, sizeof(lib->version), "%d.%d.%d", major,
             version / 100 % (version >= 10000 ? 100 : 10), version % 100);
    if (f->maker == GPU_NVIDIA) {
        char build[NCCL_BUILD_BYTES];
        nccl_build_read(build, lib->file.path, lib->version);
        strncat(lib->version, build,
                sizeof(lib->version) - strlen(lib->version) - 1);
    }
    return 0;
}

static void read_cuda_version(struct gpu_facts *f)
{
    struct gpu_library *lib = &f->cuda;
    int version = 0;
    if (f->cuda_api.driver_get_version(&version) != CUDA_RESULT_SUCCESS ||
        version <= 0) {
        return;
    }
    lib->version_code = (uint32_t)version;
    if (f->maker == GPU_AMD) { /* 6.0.32830 is 60032830 */
        snprintf(lib->version, sizeof(lib->version), "%d.%d.%d",
                 version / 10000000, version / 100000 % 100, version % 100000);
    } else { /* 13.0 is 13000 */
        snprintf(lib->version, sizeof(lib->version), "%d.%d", version / 1000,
                 version % 1000 / 10);
    }
}

static void start_cuda(struct gpu_facts *f, const struct gpu_facts_request *in)
{
    struct gpu_library *lib = &f->cuda;
    const char *title = gpu_symbols_cuda(f->maker)->title;
    enter(in, f->maker == GPU_AMD ? "hipInit" : "cuInit");
    int result = f->cuda_api.init(0);
    leave(in);
    f->has_no_device = result == CUDA_RESULT_NO_DEVICE;
    if (result == CUDA_RESULT_STUB_LIBRARY ||
        (result != CUDA_RESULT_SUCCESS && library_is_stub(lib->file.path))) {
        snprintf(lib->error, sizeof(lib->error),
                 "%s: %.300s is only a stub for linking, not a driver; take "
                 "its folder out of LD_LIBRARY_PATH and install the driver",
                 title, lib->file.path);
    } else if (result != CUDA_RESULT_SUCCESS) {
        char text[GPUL_ERROR_TEXT_BYTES / 2];
        gpu_cuda_error(text, sizeof(text), &f->cuda_api, result);
        snprintf(lib->error, sizeof(lib->error), "%s: %s", title, text);
    } else {
        read_cuda_version(f);
    }
}

static int open_cuda(struct gpu_facts *f, const struct gpu_facts_request *in,
                     struct gpul_error *err)
{
    int rc = open_library(&f->cuda, &f->cuda_api, gpu_symbols_cuda(f->maker),
                          &cuda_places[f->maker], NULL, in, err);
    if (rc == 0 && f->cuda.error[0] == 0) {
        start_cuda(f, in);
    }
    return rc;
}

static void start_nvml(struct gpu_facts *f, const struct gpu_facts_request *in)
{
    struct gpu_library *lib = &f->nvml;
    enter(in, "nvmlInit");
    int result = f->nvml_api.init();
    leave(in);
    if (result != NVML_RESULT_SUCCESS) {
        snprintf(lib->error, sizeof(lib->error), "NVML: %.300s",
                 f->nvml_api.error_string(result));
        return;
    }
    if (f->nvml_api.system_get_nvml_version(
            lib->version, sizeof(lib->version)) != NVML_RESULT_SUCCESS) {
        lib->version[0] = 0;
    }
    if (f->nvml_api.system_get_driver_version(f->driver_version,
                                              sizeof(f->driver_version)) !=
        NVML_RESULT_SUCCESS) {
        f->driver_version[0] = 0;
    }
}

static int open_nvml(struct gpu_facts *f, const struct gpu_facts_request *in,
                     struct gpul_error *err)
{
    int rc = open_library(&f->nvml, &f->nvml_api, gpu_symbols_nvml(),
                          &nvml_place, NULL, in, err);
    if (rc == 0 && f->nvml.error[0] == 0) {
        start_nvml(f, in);
    }
    return rc;
}

/* AMD's only where NVIDIA's does not exist. Where neither does, the absence
 * of that which the GPUs here need is the fact. */
static int choose_maker(struct gpu_facts *f, const struct gpu_facts_request *in,
                        struct gpul_error *err)
{
    f->maker = GPU_NVIDIA;
    int rc = open_cuda(f, in, err);
    if (rc != 0 || f->cuda.file.handle != NULL) {
        return rc;
    }
    const struct gpu_library nvidia = f->cuda;
    f->maker = GPU_AMD;
    rc = open_cuda(f, in, err);
    if (rc == 0 && f->cuda.file.handle == NULL && !in->has_amd) {
        f->maker = GPU_NVIDIA;
        f->cuda = nvidia;
    }
    return rc;
}

/* ---- the devices -------------------------------------------------------- */

static const char *visible_devices(const struct gpu_facts_request *in)
{
    return in->environment != NULL ? gpu_visible_value(in->environment) : NULL;
}

/* The driver's own words for a list that names a device twice, or none, are
 * "no device". Without NVML it is not known which entry it is. */
static void explain_no_device(struct gpu_facts *f, const char *visible)
{
    char words[GPUL_ERROR_TEXT_BYTES];
    if (!f->has_no_device || visible == NULL) {
        return;
    }
    memcpy(words, f->cuda.error, sizeof(words));
    if (f->refused[0] != 0) {
        snprintf(f->cuda.error, sizeof(f->cuda.error),
                 "%.150s; in CUDA_VISIBLE_DEVICES=%.100s \"%.95s\" names no "
                 "device, or one that it has named before",
                 words, visible, f->refused);
    } else {
        snprintf(f->cuda.error, sizeof(f->cuda.error),
                 "%.150s; CUDA_VISIBLE_DEVICES is \"%.200s\"", words, visible);
    }
}

/* Keep what the ranks will see. */
static void choose_visible(struct gpu_facts *f, const char *visible)
{
    struct gpu_device all[GPU_DEVICES_MAX];
    struct gpu_choice choice;
    size_t gpus = f->device_count;
    memcpy(all, f->devices, sizeof(all));
    gpu_visible_choose(&choice, all, gpus, visible);
    for (size_t i = 0; i < choice.count; i++) {
        f->devices[i] = all[choice.picks[i]];
    }
    f->device_count = choice.count;
    memcpy(f->refused, choice.refused, sizeof(f->refused));
    if (choice.count == 0 && gpus > 0) {
        snprintf(f->error, sizeof(f->error),
                 "CUDA_VISIBLE_DEVICES=%.200s leaves none of %zu GPUs%s%s%s",
                 visible != NULL ? visible : "", gpus,
                 f->refused[0] != 0 ? ": there is no \"" : "", f->refused,
                 f->refused[0] != 0 ? "\"" : "");
    }
}

static void read_devices(struct gpu_facts *f,
                         const struct gpu_facts_request *in)
{
    struct gpul_error reason = {0};
    int rc = GPUL_ENOTFOUND;
    if (f->nvml.file.handle != NULL && f->nvml.error[0] == 0) {
        enter(in, "NVML's queries");
        rc = gpu_nvml_read(f->devices, &f->device_count, &f->nvml_api, &reason);
        leave(in);
        if (rc == 0) {
            choose_visible(f, visible_devices(in));
        }
    }
    explain_no_device(f, visible_devices(in));
    /* The driver has applied CUDA_VISIBLE_DEVICES by itself. */
    if (rc != 0 && f->cuda.error[0] == 0) {
        enter(in, "the driver's queries");
        rc = gpu_cuda_read(f->devices, &f->device_count, &f->cuda_api, f->maker,
                           &reason);
        leave(in);
    }
    if (f->device_count > 0 || f->error[0] != 0) {
        return;
    }
    if (f->cuda.error[0] != 0) {
        snprintf(f->error, sizeof(f->error), "%s", f->cuda.error);
    } else {
        snprintf(f->error, sizeof(f->error), "%s",
                 rc != 0 ? reason.text : "the driver sees no GPU");
    }
}

int gpu_facts_read(struct gpu_facts *out, const struct gpu_facts_request *in,
                   struct gpul_error *err)
{
    memset(out, 0, sizeof(*out));
    int rc = choose_maker(out, in, err);
    if (rc == 0) {
        rc = open_nccl(out, in, err);
    }
    if (rc == 0 && out->maker == GPU_NVIDIA) {
        rc = open_nvml(out, in, err);
    }
    if (rc != 0) {
        gpu_facts_release(out);
        return rc;
    }
    read_devices(out, in);
    return 0;
}

bool gpu_facts_are_simulated(const struct gpu_facts *facts)
{
    return facts->nccl.file.is_simulated || facts->cuda.file.is_simulated ||
           facts->nvml.file.is_simulated;
}

void gpu_facts_release(struct gpu_facts *facts)
{
    if (facts->nvml.file.handle != NULL) {
        if (facts->nvml.error[0] == 0) {
            facts->nvml_api.shutdown();
        }
        library_close(&facts->nvml.file);
    }
    memset(facts, 0, sizeof(*facts));
}
