/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/pairing.h"

static bool is_valid(uint32_t n)
{
    return n >= 2 && n <= PAIRING_NODES_MAX;
}

/* ---- the ring ---- */

uint32_t pairing_neighbour_rounds(uint32_t n)
{
    if (!is_valid(n)) {
        return 0;
    }
    return n == 2 ? 1 : 2 + n % 2;
}

uint32_t pairing_neighbours(struct pairing_pair *out, uint32_t n,
                            uint32_t round)
{
    uint32_t count = 0;
    if (round >= pairing_neighbour_rounds(n)) {
        return 0;
    }
    if (round == 2) { /* what an odd ring has left */
        out[0] = (struct pairing_pair){.a = n - 1, .b = 0};
        return 1;
    }
    for (uint32_t i = round; i + 1 < n; i += 2) {
        out[count++] = (struct pairing_pair){.a = i, .b = i + 1};
    }
    if (round == 1 && n % 2 == 0) {
        out[count++] = (struct pairing_pair){.a = n - 1, .b = 0};
    }
    return count;
}

/* ---- all pairs ---- */

uint32_t pairing_circle_rounds(uint32_t n)
{
    return is_valid(n) ? n - 1 + n % 2 : 0;
}

uint32_t pairing_circle(struct pairing_pair *out, uint32_t n, uint32_t round)
{
    uint32_t places = pairing_circle_rounds(n); /* on the circle: odd */
    uint32_t count = 0;
    if (round >= places) {
        return 0;
    }
    /* An even n has its last one in the middle, facing the one at `round`,
     * who rests for an odd n. */
    if (places < n) {
        out[count++] = (struct pairing_pair){.a = round, .b = n - 1};
    }
    for (uint32_t k = 1; k <= places / 2; k++) {
        out[count++] = (struct pairing_pair){
            .a = (round + k) % places,
            .b = (round + places - k) % places,
        };
    }
    return count;
}

/* ---- pairs that depend on what is known ---- */

struct choice {
    uint32_t n;
    uint8_t *roles;
    pairing_may_fn may;
    const void *arg;
    uint32_t distance; /* at which the search begins */
    bool takes_any;    /* not those that help alone */
};

static bool suits(const struct choice *c, uint32_t a, uint32_t b)
{
    uint8_t role = c->roles[b];
    return (role == PAIRING_HELPS || (c->takes_any && role == PAIRING_ASKS)) &&
           c->may(c->arg, a, b);
}

/* The partner whose distance along the ring is nearest to the wanted one; of
 * two the further. Returns n if there is none. */
static uint32_t find_partner(const struct choice *c, uint32_t a)
{
    for (uint32_t step = 0; step < c->n; step++) {
        uint32_t further = c->distance + step;
        if (further < c->n && suits(c, a, (a + further) % c->n)) {
            return (a + further) % c->n;
        }
        if (step > 0 && step < c->distance &&
            suits(c, a, (a + c->distance - step) % c->n)) {
            return (a + c->distance - step) % c->n;
        }
    }
    return c->n;
}

static uint32_t choose(struct pairing_pair *out, const struct choice *c)
{
    uint32_t count = 0;
    uint32_t left = 0; /* that may still be somebody's partner */
    for (uint32_t i = 0; i < c->n; i++) {
        left += c->takes_any ? c->roles[i] != PAIRING_RESTS
                             : c->roles[i] == PAIRING_HELPS;
    }
    for (uint32_t a = 0; a < c->n && left > 0; a++) {
        if (c->roles[a] == PAIRING_RESTS ||
            (!c->takes_any && c->roles[a] != PAIRING_ASKS)) {
            continue;
        }
        uint32_t b = find_partner(c, a);
        if (b == c->n) {
            continue;
        }
        out[count++] = (struct pairing_pair){.a = a, .b = b};
        c->roles[a] = PAIRING_RESTS;
        c->roles[b] = PAIRING_RESTS;
        left -= c->takes_any ? 2 : 1;
    }
    return count;
}

uint32_t pairing_cross(struct pairing_pair *out, uint32_t n, uint8_t *roles,
                       pairing_may_fn may, const void *arg)
{
    struct choice c = {.n = n, .roles = roles, .may = may, .arg = arg};
    if (!is_valid(n)) {
        return 0;
    }
    c.distance = n / 2;
    return choose(out, &c);
}

uint32_t pairing_far(struct pairing_pair *out, uint32_t n, uint8_t *roles,
                     pairing_may_fn may, const void *arg)
{
    struct choice c = {.n = n, .roles = roles, .may = may, .arg = arg};
    if (!is_valid(n)) {
        return 0;
    }
    c.distance = n < 4 ? 1 : n / 2 - n / 2 % 2;
    c.takes_any = true;
    return choose(out, &c);
}

/* ---- groups ---- */

bool pairing_halves(struct pairing_group out[2],
                    const struct pairing_group *group)
{
    uint32_t second = group->count / 2;
    if (group->count < 4) {
        return false;
    }
    out[0].first = group->first;
    out[0].count = group->count - second;
    out[1].first = group->first + out[0].count;
    out[1].count = second;
    return true;
}
