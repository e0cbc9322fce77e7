/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/portplan.h"

#include <assert.h>

#include "common/rng.h"

enum tier {
    TIER_PREFERRED,
    TIER_LOW,       /* below 20000, where services live */
    TIER_EPHEMERAL, /* the kernel hands these out itself */
    TIER_NEVER,
};

enum { PORT_UNPRIVILEGED = 1024, PORT_PREFERRED = 20000 };

/* What torchrun and env:// scripts use when nobody says otherwise; somebody
 * may start one by hand beside the job. */
static const uint32_t customary_ports[] = {29400, 29500};

static enum tier judge(const struct portplan_input *in, uint32_t block)
{
    uint32_t first = block * PORTPLAN_BLOCK_PORTS;
    uint32_t last = first + PORTPLAN_BLOCK_PORTS - 1;
    if (first < PORT_UNPRIVILEGED) {
        return TIER_NEVER;
    }
    if (first <= in->ephemeral_last && last >= in->ephemeral_first) {
        return TIER_EPHEMERAL;
    }
    return first < PORT_PREFERRED ? TIER_LOW : TIER_PREFERRED;
}

static void strike(uint8_t *tiers, const uint32_t *ports, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (ports[i] < 65536) {
            tiers[ports[i] / PORTPLAN_BLOCK_PORTS] = TIER_NEVER;
        }
    }
}

/* A run is as good as the worst of its blocks. */
static enum tier judge_run(const uint8_t *tiers, size_t block_count)
{
    uint8_t worst = TIER_PREFERRED;
    for (size_t i = 0; i < block_count && worst != TIER_NEVER; i++) {
        worst = tiers[i] > worst ? tiers[i] : worst;
    }
    return (enum tier)worst;
}

static void shuffle(uint16_t *ports, size_t count, struct gpul_rng *rng)
{
    for (size_t i = count; i > 1; i--) {
        size_t other = (size_t)gpul_rng_below(rng, i);
        uint16_t port = ports[i - 1];
        ports[i - 1] = ports[other];
        ports[other] = port;
    }
}

/* Append the runs of one tier, in an order of their own. */
static void add_tier(struct portplan *out, enum tier tier, const uint8_t *runs,
                     size_t run_count, struct gpul_rng *rng)
{
    size_t before = out->count;
    for (size_t i = 0; i < run_count; i++) {
        if (runs[i] == tier) {
            out->first_ports[out->count++] =
                (uint16_t)(i * PORTPLAN_BLOCK_PORTS);
        }
    }
    shuffle(out->first_ports + before, out->count - before, rng);
}

void portplan_make(struct portplan *out, const struct portplan_input *in)
{
    assert(in->port_count > 0);
    uint8_t tiers[PORTPLAN_BLOCKS];
    uint8_t runs[PORTPLAN_BLOCKS];
    struct gpul_rng rng;
    size_t length = (in->port_count - 1) / PORTPLAN_BLOCK_PORTS + 1;
    size_t run_count =
        length <= PORTPLAN_BLOCKS ? PORTPLAN_BLOCKS - length + 1 : 0;
    for (uint32_t block = 0; block < PORTPLAN_BLOCKS; block++) {
        tiers[block] = (uint8_t)judge(in, block);
    }
    strike(tiers, customary_ports,
           sizeof(customary_ports) / sizeof(customary_ports[0]));
    strike(tiers, in->avoid_ports, in->avoid_count);
    for (size_t i = 0; i < run_count; i++) {
        runs[i] = (uint8_t)judge_run(tiers + i, length);
    }
    gpul_rng_init(&rng, in->seed);
    out->count = 0;
    add_tier(out, TIER_PREFERRED, runs, run_count, &rng);
    add_tier(out, TIER_LOW, runs, run_count, &rng);
    out->ephemeral_from = out->count;
    add_tier(out, TIER_EPHEMERAL, runs, run_count, &rng);
}

/* FNV-1a of 64 bits, the NUL of each text included. */
static uint64_t hash(uint64_t h, const char *text)
{
    for (;; text++) {
        h = (h ^ (unsigned char)*text) * 0x100000001b3u;
        if (*text == 0) {
            return h;
        }
    }
}

uint64_t portplan_seed(const char *job_id, const char *node_name)
{
    return hash(hash(0xcbf29ce484222325u, job_id), node_name);
}
