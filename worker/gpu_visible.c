/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/gpu_visible.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    const char *text;
    size_t bytes;
};

/* The place of the GPU with this number, or `count`. */
static size_t by_index(const struct gpu_device *devices, size_t count,
                       const struct entry *e)
{
    if (e->bytes > 9) {
        return count; /* more digits than any index has */
    }
    unsigned long index = strtoul(e->text, NULL, 10);
    for (size_t i = 0; i < count; i++) {
        if (!devices[i].is_slice && devices[i].index == index) {
            return i;
        }
    }
    return count;
}

/* The place of the only device whose UUID begins so, or `count`. */
static size_t by_uuid(const struct gpu_device *devices, size_t count,
                      const struct entry *e)
{
    size_t found = count;
    for (size_t i = 0; i < count; i++) {
        if (strncmp(devices[i].uuid, e->text, e->bytes) == 0) {
            if (found != count) {
                return count;
            }
            found = i;
        }
    }
    return found;
}

static size_t find(const struct gpu_device *devices, size_t count,
                   const struct entry *e)
{
    size_t digits = 0;
    while (digits < e->bytes && isdigit((unsigned char)e->text[digits])) {
        digits++;
    }
    if (e->bytes == 0) {
        return count;
    }
    return digits == e->bytes ? by_index(devices, count, e)
                              : by_uuid(devices, count, e);
}

static struct entry next_entry(const char **rest)
{
    const char *text = *rest + strspn(*rest, " ");
    size_t bytes = strcspn(text, ",");
    *rest = text[bytes] == ',' ? text + bytes + 1 : NULL;
    while (bytes > 0 && text[bytes - 1] == ' ') {
        bytes--;
    }
    return (struct entry){text, bytes};
}

static bool is_picked(const struct gpu_choice *c, size_t place)
{
    for (size_t i = 0; i < c->count; i++) {
        if (c->picks[i] == place) {
            return true;
        }
    }
    return false;
}

static void refuse(struct gpu_choice *c, const struct entry *e)
{
    size_t n =
        e->bytes < sizeof(c->refused) ? e->bytes : sizeof(c->refused) - 1;
    memcpy(c->refused, e->text, n);
    c->refused[n] = 0;
}

const char *gpu_visible_value(const char *const *environment)
{
    static const char name[] = "CUDA_VISIBLE_DEVICES=";
    for (; *environment != NULL; environment++) {
        if (strncmp(*environment, name, strlen(name)) == 0) {
            return *environment + strlen(name);
        }
    }
    return NULL;
}

void gpu_visible_choose(struct gpu_choice *out,
                        const struct gpu_device *devices, size_t count,
                        const char *value)
{
    *out = (struct gpu_choice){0};
    if (value == NULL) {
        for (size_t i = 0; i < count; i++) {
            if (!devices[i].is_slice) {
                out->picks[out->count++] = i;
            }
        }
        return;
    }
    /* Empty and "-1" are the usual ways to say "none". */
    while (value != NULL && value[0] != 0 && value[0] != '-') {
        struct entry e = next_entry(&value);
        size_t place = find(devices, count, &e);
        if (place == count || is_picked(out, place)) {
            refuse(out, &e);
            return;
        }
        out->picks[out->count++] = place;
    }
}
