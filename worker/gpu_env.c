/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/gpu_env.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "proto/text.h"

static bool is_set(const char *const *environment, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; environment[i] != NULL; i++) {
        if (strncmp(environment[i], name, n) == 0 && environment[i][n] == '=') {
            return true;
        }
    }
    return false;
}

static void add(struct gpu_env_addition *out, size_t *count, const char *name,
                const char *prefix, const char *value)
{
    struct gpu_env_addition *a = &out[(*count)++];
    a->name = name;
    snprintf(a->value, sizeof(a->value), "%s%s", prefix, value);
}

size_t gpu_env_additions(struct gpu_env_addition out[GPU_ENV_ADDITIONS_MAX],
                         const char *const *environment, const char *interface,
                         const char *debug_file)
{
    size_t count = 0;
    if (interface[0] != 0 && !is_set(environment, "NCCL_SOCKET_IFNAME")) {
        add(out, &count, "NCCL_SOCKET_IFNAME", "=", interface);
    }
    if (!is_set(environment, "NCCL_IGNORE_NET_MISMATCH")) {
        add(out, &count, "NCCL_IGNORE_NET_MISMATCH", "", "0");
    }
    if (debug_file[0] != 0 && !is_set(environment, "NCCL_DEBUG") &&
        !is_set(environment, "NCCL_DEBUG_FILE")) {
        add(out, &count, "NCCL_DEBUG", "", "INFO");
        add(out, &count, "NCCL_DEBUG_FILE", "", debug_file);
    }
    return count;
}

/* Mostly ours; and whose ever it is, it is not to be shown around. */
static bool is_magic(const char *setting)
{
    static const char name[] = "NCCL_SOCKET_MAGIC=";
    return strncmp(setting, name, sizeof(name) - 1) == 0;
}

size_t gpu_env_settings(char out[GPUL_SETTINGS_MAX][GPU_ENV_SETTING_BYTES],
                        const char *const *environment)
{
    size_t count = 0;
    for (size_t i = 0; environment[i] != NULL && count < GPUL_SETTINGS_MAX;
         i++) {
        if (strncmp(environment[i], "NCCL_", strlen("NCCL_")) != 0 ||
            is_magic(environment[i])) {
            continue;
        }
        char *text = out[count++];
        snprintf(text, GPU_ENV_SETTING_BYTES, "%s", environment[i]);
        gpul_text_clean(text, GPUL_FINDING_BYTES_MAX);
        for (char *c = text; *c != 0; c++) { /* one line, not several */
            *c = *c == '\n' || *c == '\t' ? '?' : *c;
        }
    }
    return count;
}

size_t gpu_env_warnings(const char *out[GPU_ENV_WARNINGS_MAX],
                        const char *const *environment)
{
    static const struct {
        const char *name;
        const char *text;
    } table[GPU_ENV_WARNINGS_MAX] = {
        {"NCCL_COMM_BLOCKING",
         "NCCL_COMM_BLOCKING is set: it makes NCCL wait inside its calls, so "
         "a hang can only be ended by force"},
        {"NCCL_COMM_ID",
         "NCCL_COMM_ID is set: it overrides the addresses of the unique IDs, "
         "and only one communicator at a time can be set up with it"},
        {"NCCL_IB_GID_INDEX",
         "NCCL_IB_GID_INDEX is set: since 2.21 NCCL finds the right entry by "
         "itself, and a fixed one is wrong on nodes that number otherwise"},
    };
    size_t count = 0;
    for (size_t i = 0; i < GPU_ENV_WARNINGS_MAX; i++) {
        if (is_set(environment, table[i].name)) {
            out[count++] = table[i].text;
        }
    }
    return count;
}
