/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/random_draw.h"

#include "tests/lib/cluster.h"

/* ---- GPUs ---------------------------------------------------------------- */

/* Seldom so many that there are several unique IDs. */
void random_draw_gpus(struct cluster *c)
{
    bool has_many = random_chance(c, 5);
    bool has_none = random_chance(c, 10);
    c->self_test.backend = random_chance(c, 50)
                               ? GPUL__SELF_TEST__BACKEND__BACKEND_NCCL
                               : GPUL__SELF_TEST__BACKEND__BACKEND_AUTO;
    for (uint32_t i = 0; i < c->job.node_count; i++) {
        struct fake_node *node = &c->nodes[i];
        node->gpus = has_many ? 40 : 1 + (uint32_t)random_below(c, 3);
        node->step_ms = 1 + random_below(c, 400);
        node->has_one_id = random_chance(c, 10);
        node->has_no_split = random_chance(c, 10);
        node->finding = random_chance(c, 10) ? "power is capped" : NULL;
        node->setting = random_chance(c, 10) ? "NCCL_DEBUG=WARN" : NULL;
        if (has_none && random_chance(c, 50)) {
            node->gpus = 0;
        }
    }
}

static void draw_probe(struct cluster *c, struct fake_node *node)
{
    static const enum fake_fault faults[] = {
        FAKE_LIES,   FAKE_REPENTS, FAKE_REPEATS, FAKE_HANGS,
        FAKE_SILENT, FAKE_DIES,    FAKE_REMOTE,  FAKE_WRONG,
    };
    struct fake_probe *probe = &node->probes[random_below(c, 3)];
    probe->fault = faults[random_below(c, sizeof(faults) / sizeof(faults[0]))];
    probe->at = 1 + (uint32_t)random_below(c, 4);
    probe->after_ms = random_below(c, 1500);
    probe->state = (Gpul__ProbePhase__State)random_below(c, 6);
    probe->progress = (uint32_t)random_below(c, 3);
}

static void draw_scout(struct cluster *c, struct fake_node *node)
{
    switch (random_below(c, 7)) {
    case 0:
        node->scout_error = "libnccl.so.2 was not found";
        break;
    case 1:
        node->never_facts = true;
        break;
    case 2:
        node->has_twin = node != &c->nodes[0];
        break;
    case 3:
        node->nccl_version = "2.27.3";
        break;
    case 4:
        node->nccl_version = "2.28.9+cuda13.0";
        node->driver_version = random_chance(c, 50) ? 12040 : 13010;
        break;
    case 5:
        node->never_ids = true;
        break;
    default:
        node->reuses_id = true;
        break;
    }
}

void random_draw_gpu_faults(struct cluster *c)
{
    bool is_careless = random_chance(c, 20);
    for (uint32_t i = 0; i < c->job.node_count; i++) {
        c->nodes[i].reuses_id = is_careless;
        if (random_chance(c, 10)) {
            draw_probe(c, &c->nodes[i]);
        }
        if (random_chance(c, 5)) {
            draw_scout(c, &c->nodes[i]);
        }
    }
}

/* ---- hangs --------------------------------------------------------------- */

/* Whatever is said of them, nothing follows but reports: who decides the job
 * is the same. */
void random_draw_stalls(struct cluster *c, struct rank_plan *ranks,
                        size_t count)
{
    static Gpul__Hang hang;
    if (!random_chance(c, 40)) {
        return;
    }
    gpul__hang__init(&hang);
    switch (random_below(c, 5)) {
    case 0:
        hang.watch = GPUL__HANG__WATCH__OFF;
        break;
    case 1:
        hang.watch = GPUL__HANG__WATCH__LEARNED;
        break;
    default:
        hang.watch = GPUL__HANG__WATCH__GIVEN;
        hang.limit_ms = 1000 + (uint32_t)random_below(c, 2000);
    }
    c->job.hang = &hang;
    for (size_t i = 0; i < count; i++) {
        if (random_chance(c, 30)) {
            ranks[i].stall_ms = 1 + random_below(c, 3000);
            ranks[i].stalls_for_ms = 1 + random_below(c, 20000);
        }
    }
}
