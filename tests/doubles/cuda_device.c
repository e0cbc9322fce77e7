/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices of a process, in the order that CUDA_VISIBLE_DEVICES gives. */
#include "tests/doubles/cuda_device.h"

#include <stdlib.h>
#include <string.h>

/* The device that an entry of the list names, or -1. */
static int entry_device(const struct scenario *scenario, const char *entry,
                        size_t length)
{
    char *end;
    long number = strtol(entry, &end, 10);

    if (length > 0 && end == entry + length)
        return number >= 0 && (uint64_t)number < scenario->gpu_count
                   ? (int)number
                   : -1;
    for (uint64_t i = 0; length > 4 && i < scenario->gpu_count; i++)
        if (strncmp(scenario->gpus[i].uuid, entry, length) == 0)
            return (int)i;
    return -1;
}

static bool has(const struct devices *devices, int physical)
{
    for (int i = 0; i < devices->count; i++)
        if (devices->physical[i] == physical)
            return true;
    return false;
}

void devices_read(struct devices *devices, const struct scenario *scenario,
                  const char *visible)
{
    devices->count = 0;
    if (!visible) {
        for (; (uint64_t)devices->count < scenario->gpu_count; devices->count++)
            devices->physical[devices->count] = devices->count;
        return;
    }
    while (*visible) {
        size_t length = strcspn(visible, ",");
        int physical = entry_device(scenario, visible, length);
        if (physical < 0)
            return;
        if (has(devices, physical)) {
            devices->count = 0;
            return;
        }
        devices->physical[devices->count++] = physical;
        visible += length + (visible[length] == ',');
    }
}

static unsigned digit(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

struct cuda_uuid device_uuid(const struct scenario_gpu *gpu)
{
    struct cuda_uuid uuid = {{0}};
    const char *at = gpu->uuid + strlen("GPU-");

    for (size_t i = 0; i < sizeof uuid.bytes; i++) {
        at += *at == '-';
        uuid.bytes[i] = (char)(digit(at[0]) << 4 | digit(at[1]));
        at += 2;
    }
    return uuid;
}
