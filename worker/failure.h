/* SPDX-License-Identifier: Apache-2.0
 *
 * Why a rank failed, told from what it left behind. Pure.
 */
#ifndef WORKER_FAILURE_H
#define WORKER_FAILURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* A rank that ran longer than this did not fail for want of its port. */
    FAILURE_EARLY_MS = 60000,
};

/* What is known when a rank has ended. */
struct failure_end {
    uint64_t ran_ms;
    bool is_success;  /* exit status 0 */
    const char *tail; /* last bytes of stderr, any bytes */
    size_t tail_bytes;
    const uint16_t *ports; /* that the rank was given */
    size_t port_count;
    bool is_port_taken; /* one of them cannot be bound now */
};

/* Did the rank end because a port it was given was taken? Only if it failed
 * early, its last words say that an address is in use (as the C library,
 * Go, Java, Node or Python say it), and either one of its ports is taken
 * now or its last words have one of them as a number. */
bool failure_is_bind_error(const struct failure_end *end);

#endif
