/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/phase.h"

#include <assert.h>

#define BIT(phase) (1u << PHASE_##phase)
/* To begin anew, or for good. */
#define STOPS (BIT(RESTARTING) | BIT(DRAINING))
/* What may follow once every address stands. */
#define TESTS                                                                  \
    (BIT(PAIRING) | BIT(LISTENING) | BIT(FACTS) | BIT(REPORTING) | BIT(RUNNING))
#define ON_GPUS "self-test phase "

static const struct {
    const char *name;
    unsigned successors;
} table[PHASE_COUNT] = {
    [PHASE_START] = {"start", BIT(GATHERING) | BIT(DONE)},
    [PHASE_GATHERING] = {"gathering", BIT(ASSIGNING) | BIT(DONE)},
    [PHASE_ASSIGNING] = {"assigning", BIT(SURVEY) | BIT(LINKS) | TESTS | STOPS},
    [PHASE_SURVEY] = {"asking the nodes for their facts",
                      BIT(LINKS) | TESTS | STOPS},
    [PHASE_LINKS] = {"opening its addresses", BIT(DIALING) | STOPS},
    [PHASE_DIALING] = {"dialling the others", TESTS | STOPS},
    [PHASE_PAIRING] = {"measuring pairs of nodes",
                       (TESTS & ~BIT(PAIRING)) | STOPS},
    [PHASE_FACTS] = {ON_GPUS "facts",
                     BIT(CUDA) | BIT(LISTENING) | BIT(RUNNING) | STOPS},
    [PHASE_CUDA] = {ON_GPUS "cuda", BIT(UID) | STOPS},
    [PHASE_UID] = {ON_GPUS "uid", BIT(INIT) | STOPS},
    [PHASE_INIT] = {ON_GPUS "init", BIT(COLL) | STOPS},
    [PHASE_COLL] = {ON_GPUS "coll", BIT(END) | STOPS},
    [PHASE_END] = {ON_GPUS "end", BIT(RUNNING) | STOPS},
    [PHASE_LISTENING] = {"listening", BIT(PROBING) | STOPS},
    [PHASE_PROBING] = {"probing", BIT(RUNNING) | STOPS},
    [PHASE_REPORTING] = {"reporting", BIT(DRAINING)},
    [PHASE_RUNNING] = {"running", STOPS},
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

const char *phase_short_name(enum phase phase)
{
    assert(phase_is_on_gpus(phase));
    return phase_name(phase) + sizeof(ON_GPUS) - 1;
}

bool phase_is_on_gpus(enum phase phase)
{
    return phase >= PHASE_FACTS && phase <= PHASE_END;
}

bool phase_waits_for_probes(enum phase phase)
{
    return phase_is_on_gpus(phase) && phase != PHASE_FACTS;
}

bool phase_is_forming(enum phase phase)
{
    return phase >= PHASE_ASSIGNING && phase <= PHASE_PROBING;
}

bool phase_may_follow(enum phase from, enum phase to)
{
    assert(from < PHASE_COUNT && to < PHASE_COUNT);
    return (table[from].successors & (1u << to)) != 0;
}
