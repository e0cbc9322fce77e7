/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/surveys.h"

#include <stdlib.h>

#include "common/error.h"

int surveys_init(struct surveys *s, uint32_t count)
{
    *s = (struct surveys){.nodes = calloc(count, sizeof(*s->nodes))};
    if (s->nodes == NULL) {
        return GPUL_ENOMEM;
    }
    s->count = count;
    return 0;
}

void surveys_release(struct surveys *s)
{
    free(s->nodes);
    *s = (struct surveys){0};
}

bool surveys_ping(struct surveys *s, uint32_t node_rank, uint64_t now_ns,
                  Gpul__ClockPing *out)
{
    struct survey_node *node = &s->nodes[node_rank];
    if (node->exchange_count == SURVEYS_PINGS) {
        return false;
    }
    node->exchanges[node->exchange_count].t0_ns = now_ns;
    gpul__clock_ping__init(out);
    out->sequence = node->exchange_count;
    out->sent_ns = now_ns;
    return true;
}

bool surveys_pong(struct surveys *s, uint32_t node_rank,
                  const Gpul__ClockPong *pong, uint64_t now_ns)
{
    struct survey_node *node = &s->nodes[node_rank];
    if (node->exchange_count == SURVEYS_PINGS ||
        pong->sequence != node->exchange_count) {
        return false;
    }
    struct survey_exchange *e = &node->exchanges[node->exchange_count];
    if (pong->ping_sent_ns != e->t0_ns) {
        return false;
    }
    e->t1_ns = pong->received_ns;
    e->t2_ns = pong->sent_ns;
    e->t3_ns = now_ns;
    node->exchange_count++;
    return true;
}

bool surveys_is_whole(const struct surveys *s, uint32_t node_rank)
{
    const struct survey_node *node = &s->nodes[node_rank];
    return node->has_facts && node->exchange_count == SURVEYS_PINGS;
}
