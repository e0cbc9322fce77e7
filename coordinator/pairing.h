/* SPDX-License-Identifier: Apache-2.0
 *
 * Who is measured with whom at the same time: schedules for tests between two
 * nodes, and the groups for tests of many. Pure.
 *
 * Participants are 0 .. n-1 in an order that the caller gives a meaning (rank
 * order, so that neighbours are neighbours of the ring that trains). A round
 * is a list of pairs of which no two share a participant: all run at once, and
 * a round costs one test whatever n is. No pair has a == b.
 */
#ifndef COORDINATOR_PAIRING_H
#define COORDINATOR_PAIRING_H

#include <stdbool.h>
#include <stdint.h>

/* So that sums of two participants and counts of pairs have room. */
enum { PAIRING_NODES_MAX = 1 << 20 };

struct pairing_pair {
    uint32_t a;
    uint32_t b;
};

/* Each function writes at most n / 2 pairs to `out` and returns how many; for
 * a round that does not exist, n < 2 or n > PAIRING_NODES_MAX it is 0. */

/* The pairs (i, i+1 mod n) of the ring, in as few rounds as there are:
 * 1 for n = 2; for an even n 2, (0,1)(2,3).. and (1,2)(3,4)..(n-1,0); for an
 * odd n 3, since an odd ring needs three matchings: the last is (n-1,0) alone.
 */
uint32_t pairing_neighbour_rounds(uint32_t n);
uint32_t pairing_neighbours(struct pairing_pair *out, uint32_t n,
                            uint32_t round);

/* Every pair exactly once, in n-1 rounds for an even n and n for an odd one,
 * in which each participant rests once: the circle method (E. Lucas,
 * "Recreations mathematiques", vol. 2, 1883). */
uint32_t pairing_circle_rounds(uint32_t n);
uint32_t pairing_circle(struct pairing_pair *out, uint32_t n, uint32_t round);

/* ---- pairs that depend on what is known ---- */

enum pairing_role {
    PAIRING_RESTS = 0, /* not in this round, or in a pair already */
    PAIRING_ASKS,      /* wants a partner that helps */
    PAIRING_HELPS,     /* known good */
};

/* False for two that shall not meet, as they have met before. */
typedef bool (*pairing_may_fn)(const void *arg, uint32_t a, uint32_t b);

/* A pair for each participant that asks, lowest first, as long as there are
 * partners: the one that helps which lies nearest to the opposite side of the
 * ring, so in another place than its neighbours. `roles` has n entries; those
 * of the pairs become PAIRING_RESTS. In each pair `a` is the one that asks. */
uint32_t pairing_cross(struct pairing_pair *out, uint32_t n, uint8_t *roles,
                       pairing_may_fn may, const void *arg);

/* Pairs among those that do not rest, whatever their roles, about half a ring
 * apart; where it can be at an even distance, since the neighbour rounds join
 * odd with even places only, and so cannot tell that every second is slow. */
uint32_t pairing_far(struct pairing_pair *out, uint32_t n, uint8_t *roles,
                     pairing_may_fn may, const void *arg);

/* ---- groups ---- */

/* Participants first .. first + count - 1. */
struct pairing_group {
    uint32_t first;
    uint32_t count;
};

/* The two halves, of which the first has the odd one. False, and nothing is
 * written, for a group of fewer than four: a half must be two at least. */
bool pairing_halves(struct pairing_group out[2],
                    const struct pairing_group *group);

#endif
