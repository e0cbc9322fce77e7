/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the thread is that calls a GPU's libraries, for another thread to
 * read: it waits, it is in a call that does not come back, or it works on
 * the host. So a probe can tell that it waits for others from that others
 * wait for it. Edge, for its clock.
 *
 * The calling thread brackets each call and each wait, and counts the steps
 * of a phase as it begins them; none of it blocks or fails.
 */
#ifndef WORKER_GPU_PULSE_H
#define WORKER_GPU_PULSE_H

#include <stdatomic.h>
#include <stdint.h>

#include "gpulaunch.pb-c.h"

/* A call that lasts so long is one that it is inside, not one in passing. */
enum { GPU_PULSE_INSIDE_MS = 500 };

struct gpu_pulse {
    atomic_uint progress;       /* steps begun in this phase */
    _Atomic(const char *) call; /* of a library, constant; NULL: in none */
    atomic_ullong call_ms;      /* when that began */
    atomic_ullong wait_ms;      /* when the wait began; 0: it does not wait */
    atomic_ullong step_ms;      /* when the last step began */
};

/* ---- for the calling thread ---------------------------------------------- */

void gpu_pulse_enter(struct gpu_pulse *p, const char *call);
void gpu_pulse_leave(struct gpu_pulse *p);
void gpu_pulse_wait(struct gpu_pulse *p);
void gpu_pulse_go_on(struct gpu_pulse *p);
void gpu_pulse_step(struct gpu_pulse *p);
void gpu_pulse_new_phase(struct gpu_pulse *p);

/* ---- for another --------------------------------------------------------- */

struct gpu_pulse_view {
    Gpul__ProbePhase__State state; /* WAITS, WORKS or INSIDE */
    const char *call;              /* INSIDE, else "" */
    uint32_t since_ms;
    uint32_t progress;
};

void gpu_pulse_look(const struct gpu_pulse *p, struct gpu_pulse_view *view,
                    uint64_t now_ms);

#endif
