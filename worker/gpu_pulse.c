/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/gpu_pulse.h"

#include <stddef.h>

#include "common/clock.h"

/* The time first: whoever sees the call sees no time before it. */
void gpu_pulse_enter(struct gpu_pulse *p, const char *call)
{
    atomic_store(&p->call_ms, gpul_clock_ms());
    atomic_store(&p->call, call);
}

void gpu_pulse_leave(struct gpu_pulse *p)
{
    atomic_store(&p->call, NULL);
}

void gpu_pulse_wait(struct gpu_pulse *p)
{
    atomic_store(&p->wait_ms, gpul_clock_ms());
}

void gpu_pulse_go_on(struct gpu_pulse *p)
{
    atomic_store(&p->step_ms, gpul_clock_ms());
    atomic_store(&p->wait_ms, 0);
}

void gpu_pulse_step(struct gpu_pulse *p)
{
    atomic_store(&p->step_ms, gpul_clock_ms());
    atomic_fetch_add(&p->progress, 1);
}

void gpu_pulse_new_phase(struct gpu_pulse *p)
{
    atomic_store(&p->progress, 0);
}

static uint32_t since(uint64_t then_ms, uint64_t now_ms)
{
    uint64_t ms = then_ms < now_ms ? now_ms - then_ms : 0;
    return ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

void gpu_pulse_look(const struct gpu_pulse *p, struct gpu_pulse_view *view,
                    uint64_t now_ms)
{
    const char *call = atomic_load(&p->call);
    uint32_t call_ms = since(atomic_load(&p->call_ms), now_ms);
    uint64_t wait_ms = atomic_load(&p->wait_ms);
    *view = (struct gpu_pulse_view){.call = "",
                                    .progress = atomic_load(&p->progress)};
    if (call != NULL && call_ms >= GPU_PULSE_INSIDE_MS) {
        view->state = GPUL__PROBE_PHASE__STATE__STATE_INSIDE;
        view->call = call;
        view->since_ms = call_ms;
    } else if (wait_ms != 0) {
        view->state = GPUL__PROBE_PHASE__STATE__STATE_WAITS;
        view->since_ms = since(wait_ms, now_ms);
    } else {
        view->state = GPUL__PROBE_PHASE__STATE__STATE_WORKS;
        view->since_ms = since(atomic_load(&p->step_ms), now_ms);
    }
}
