/* SPDX-License-Identifier: Apache-2.0
 *
 * A list of allocations. */
#include "tests/doubles/cuda_memory.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/doubles/records.h"

/* No address of a process has this bit. */
#define DEVICE_BIT (1ull << 62)

enum { STALE_BYTES = 1 << 20 };

struct allocation {
    struct allocation *next;
    cuda_address address;
    void *host; /* the same without the bit */
    size_t bytes;
    unsigned gpu;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct allocation *allocations; /* guarded by lock */

int memory_alloc(unsigned gpu, size_t bytes, cuda_address *address)
{
    struct allocation *allocation;

    *address = 0;
    if (bytes == 0)
        return CUDA_INVALID_VALUE;
    if (bytes > INT64_MAX || records_take(gpu, (int64_t)bytes) != 0)
        return CUDA_RESULT_OUT_OF_MEMORY;
    allocation = malloc(sizeof *allocation);
    void *memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (!allocation || !memory) {
        free(allocation);
        free(memory);
        (void)records_take(gpu, -(int64_t)bytes);
        return CUDA_RESULT_OUT_OF_MEMORY;
    }
    /* Fresh device memory holds anything, only not what one hopes for. */
    memset(memory, 0xa5, bytes < STALE_BYTES ? bytes : STALE_BYTES);
    *address = (cuda_address)(uintptr_t)memory | DEVICE_BIT;
    (void)pthread_mutex_lock(&lock);
    *allocation =
        (struct allocation){allocations, *address, memory, bytes, gpu};
    allocations = allocation;
    (void)pthread_mutex_unlock(&lock);
    return CUDA_RESULT_SUCCESS;
}

static void allocation_end(struct allocation *allocation)
{
    (void)records_take(allocation->gpu, -(int64_t)allocation->bytes);
    free(allocation->host);
    free(allocation);
}

int memory_free(cuda_address address)
{
    struct allocation *found = NULL;

    if (address == 0) /* as free(3) */
        return CUDA_RESULT_SUCCESS;
    (void)pthread_mutex_lock(&lock);
    for (struct allocation **at = &allocations; *at; at = &(*at)->next)
        if ((*at)->address == address) {
            found = *at;
            *at = found->next;
            break;
        }
    (void)pthread_mutex_unlock(&lock);
    if (!found)
        return CUDA_INVALID_VALUE;
    allocation_end(found);
    return CUDA_RESULT_SUCCESS;
}

void memory_free_all(unsigned gpu)
{
    struct allocation *ended = NULL;

    (void)pthread_mutex_lock(&lock);
    for (struct allocation **at = &allocations; *at;) {
        struct allocation *allocation = *at;
        if (allocation->gpu != gpu) {
            at = &allocation->next;
            continue;
        }
        *at = allocation->next;
        allocation->next = ended;
        ended = allocation;
    }
    (void)pthread_mutex_unlock(&lock);
    while (ended) {
        struct allocation *next = ended->next;
        allocation_end(ended);
        ended = next;
    }
}

void *memory_host(cuda_address address, size_t bytes)
{
    void *host = NULL;

    (void)pthread_mutex_lock(&lock);
    for (struct allocation *at = allocations; at && !host; at = at->next)
        if (address >= at->address && bytes <= at->bytes &&
            address - at->address <= at->bytes - bytes)
            host = (char *)at->host + (address - at->address);
    (void)pthread_mutex_unlock(&lock);
    return host;
}
