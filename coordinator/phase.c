/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/phase.h"

#include <assert.h>

#define BIT(phase) (1u << PHASE_##phase)

static const struct {
    const char *name;
    unsigned successors;
} table[PHASE_COUNT] = {
    [PHASE_START] = {"start", BIT(GATHERING) | BIT(DONE)},
    [PHASE_GATHERING] = {"gathering", BIT(ASSIGNING) | BIT(DONE)},
    [PHASE_ASSIGNING] = {"assigning", BIT(LISTENING) | BIT(REPORTING) |
                                          BIT(RUNNING) | BIT(DRAINING)},
    [PHASE_LISTENING] = {"listening", BIT(PROBING) | BIT(DRAINING)},
    [PHASE_PROBING] = {"probing", BIT(RUNNING) | BIT(DRAINING)},
    [PHASE_REPORTING] = {"reporting", BIT(DRAINING)},
    [PHASE_RUNNING] = {"running", BIT(RESTARTING) | BIT(DRAINING)},
    [PHASE_RESTARTING] = {"restarting", BIT(ASSIGNING) | BIT(DRAINING)},
    [PHASE_DRAINING] = {"draining", BIT(DONE)},
    [PHASE_DONE] = {"done", BIT(OVER)},
    [PHASE_OVER] = {"over", 0},
};

const char *phase_name(enum phase phase)
{
    assert(phase < PHASE_COUNT);
    return table[phase].name;
}

bool phase_may_follow(enum phase from, enum phase to)
{
    assert(from < PHASE_COUNT && to < PHASE_COUNT);
    return (table[from].successors & (1u << to)) != 0;
}
