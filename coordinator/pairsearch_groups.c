/* SPDX-License-Identifier: Apache-2.0
 *
 * All pairs are good, and the whole is slow: halves of it, then halves of
 * every half that is slow, until those are good or too small. All groups of
 * a round run at once.
 */
#include <string.h>

#include "coordinator/pairsearch_inside.h"

static bool is_slow(const struct pairsearch *s, double rate)
{
    return rate > 0 && rate < s->config.whole_floor_bytes_per_s;
}

/* The smallest that is known to be slow. */
static void add_slow(struct pairsearch *s, const struct pairsearch_split *split,
                     bool are_halves_known)
{
    s->slow_groups[s->slow_group_count++] = (struct pairsearch_group){
        .members = split->group,
        .bytes_per_s = split->rate,
        .are_halves_known = are_halves_known,
    };
}

static void add_split(struct pairsearch *s, const struct pairing_group *group,
                      double rate)
{
    struct pairsearch_split split = {.group = *group, .rate = rate};
    struct pairing_group halves[2];
    if (pairing_halves(halves, group)) {
        s->splits[s->split_count++] = split;
    } else {
        add_slow(s, &split, false);
    }
}

bool pairsearch_plan_groups(struct pairsearch *s)
{
    struct pairing_group all = {.first = 0, .count = s->node_count};
    if (s->groups_count == 0 && is_slow(s, s->config.whole_bytes_per_s) &&
        !pairsearch_has_found(s)) {
        add_split(s, &all, s->config.whole_bytes_per_s);
    }
    s->group_count = 0;
    for (uint32_t i = 0; i < s->split_count; i++) {
        pairing_halves(&s->groups[s->group_count], &s->splits[i].group);
        s->group_count += 2;
    }
    memset(s->group_cells, 0, s->group_count * sizeof(*s->group_cells));
    s->kind = PAIRSEARCH_GROUPS;
    return s->group_count > 0;
}

/* Halves 2i and 2i + 1 are those of split i. */
void pairsearch_finish_groups(struct pairsearch *s)
{
    for (uint32_t i = 0; i < s->split_count; i++) {
        double first = s->group_cells[2 * i].rate;
        double second = s->group_cells[2 * i + 1].rate;
        if (!is_slow(s, first) && !is_slow(s, second)) {
            add_slow(s, &s->splits[i], first > 0 && second > 0);
        }
    }
    s->split_count = 0;
    for (uint32_t i = 0; i < s->group_count; i++) {
        if (is_slow(s, s->group_cells[i].rate)) {
            add_split(s, &s->groups[i], s->group_cells[i].rate);
        }
    }
}
