/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPUs that ranks would use, as NVML tells them: "gpu". No CUDA context is
 * made; the files of the driver are survey_nvidia.c's.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/gpu_nvml.h"
#include "worker/gpu_visible.h"
#include "worker/nvml_open.h"
#include "worker/survey_themes.h"

enum { FINDINGS_MAX = 64 };

struct gpus {
    struct gpu_device devices[GPU_DEVICES_MAX];
    size_t count;
    struct gpu_choice choice;
};

/* What a finding says that was not found. */
static bool is_unknown(const char *finding)
{
    return strncmp(finding, "nothing can be read", 19) == 0 ||
           strncmp(finding, "could not be read", 17) == 0 ||
           strncmp(finding, "memory in use cannot be seen", 28) == 0;
}

static void say_findings(struct survey *s, const struct gpu_device *d,
                         size_t *number)
{
    char findings[GPU_FINDINGS_MAX][GPU_FINDING_BYTES];
    size_t count = gpu_device_findings(findings, d);
    for (size_t i = 0; i < count && *number < FINDINGS_MAX; i++) {
        char key[32];
        const char *name = d->bus_id[0] != 0 ? d->bus_id : d->uuid;
        snprintf(key, sizeof(key), "gpu.finding.%zu", (*number)++);
        if (is_unknown(findings[i])) {
            survey_unknown(s, key, "%s: %s", name, findings[i]);
        } else {
            survey_say(s, key, "%s (GPU %s)", findings[i], name);
        }
    }
}

/* "on" or "off" of the switch, "unknown". */
static const char *switch_of(const struct gpu_device *d, enum gpu_number n)
{
    uint64_t value;
    return !gpu_device_get(d, n, &value) ? "unknown" : value ? "on" : "off";
}

static void add_words(struct survey_list *list, const char *text)
{
    char word[GPU_TEXT_BYTES];
    snprintf(word, sizeof(word), "%s", text[0] != 0 ? text : "unknown");
    for (char *at = word; *at != 0; at++) {
        *at = *at == ' ' ? '_' : *at;
    }
    survey_list_add(list, "%s", word);
}

static void say_memory(struct survey *s, const struct gpus *g)
{
    uint64_t total = 0;
    struct survey_list sizes = {""};
    for (size_t i = 0; i < g->choice.count; i++) {
        uint64_t bytes;
        if (!gpu_device_get(&g->devices[g->choice.picks[i]], GPU_MEMORY,
                            &bytes)) {
            survey_unknown(s, "gpu.memory", "NVML tells none of a GPU");
            survey_unknown(s, "gpu.memories", "NVML tells none of a GPU");
            return;
        }
        total += bytes;
        survey_list_add(&sizes, "%" PRIu64, bytes);
    }
    if (total == 0) {
        survey_say(s, "gpu.memory", "none");
    } else {
        survey_say_number(s, "gpu.memory", total);
    }
    survey_say(s, "gpu.memories", "%s", survey_list_text(&sizes));
}

static void say_gpus(struct survey *s, const struct gpus *g)
{
    struct survey_list models = {""}, ecc = {""}, mig = {""};
    size_t findings = 0;
    for (size_t i = 0; i < g->choice.count; i++) {
        const struct gpu_device *d = &g->devices[g->choice.picks[i]];
        add_words(&models, d->model);
        survey_list_add(&ecc, "%s", switch_of(d, GPU_ECC_ON));
        survey_list_add(&mig, "%s", switch_of(d, GPU_MIG_ON));
        say_findings(s, d, &findings);
    }
    survey_say_number(s, "gpu.count", g->choice.count);
    survey_say(s, "gpu.models", "%s", survey_list_text(&models));
    say_memory(s, g);
    survey_say(s, "gpu.ecc", "%s", survey_list_text(&ecc));
    survey_say(s, "gpu.mig", "%s", survey_list_text(&mig));
    if (g->choice.refused[0] != 0) {
        survey_say(s, "gpu.refused", "%s", g->choice.refused);
    }
}

static void say_unknown(struct survey *s, const char *why)
{
    static const char *const keys[] = {"gpu.count",  "gpu.models",
                                       "gpu.memory", "gpu.memories",
                                       "gpu.ecc",    "gpu.mig"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        survey_unknown(s, keys[i], "%s", why);
    }
}

/* Returns whether there are GPUs to be told of; a machine without a driver has
 * none. */
static bool read_gpus(struct gpus *g, const struct nvml_api *api,
                      struct survey *s)
{
    struct gpul_error err = {0};
    int result = api->init();
    if (result == NVML_RESULT_DRIVER_NOT_LOADED) {
        return true;
    }
    if (result != NVML_RESULT_SUCCESS) {
        char text[GPU_TEXT_BYTES];
        snprintf(text, sizeof(text), "NVML: %s", api->error_string(result));
        say_unknown(s, text);
        return false;
    }
    if (gpu_nvml_read(g->devices, &g->count, api, &err) != 0) {
        say_unknown(s, err.text);
        return false;
    }
    return true;
}

void survey_gpu(struct survey *s, const struct survey_request *r)
{
    static const char *const empty[] = {NULL};
    const char *const *environment =
        r->environment != NULL ? r->environment : empty;
    struct library lib = {0};
    struct nvml_api api;
    struct gpul_error err = {0};
    struct gpus *g = calloc(1, sizeof(*g));
    if (g == NULL) {
        return;
    }
    int rc = nvml_open(&lib, &api, environment, &err);
    bool is_read = rc == GPUL_ENOTFOUND;
    if (rc == 0) {
        if (lib.is_simulated) {
            survey_say(s, "gpu.simulated", "yes");
        }
        is_read = read_gpus(g, &api, s);
    } else if (rc != GPUL_ENOTFOUND) {
        say_unknown(s, err.text);
    }
    if (is_read) {
        gpu_visible_choose(&g->choice, g->devices, g->count,
                           gpu_visible_value(environment));
        say_gpus(s, g);
    }
    free(g);
}
