/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/clockskew.h"

/* b - a; false beyond 64 bits. */
static bool subtract(int64_t *out, int64_t b, int64_t a)
{
    return !__builtin_sub_overflow(b, a, out);
}

static bool subtract_forward(int64_t *out, int64_t b, int64_t a)
{
    return subtract(out, b, a) && *out >= 0;
}

bool clockskew_add(struct clockskew *c, const struct clockskew_exchange *e)
{
    int64_t wait;
    int64_t stay;
    int64_t there;
    int64_t back;
    if (!subtract_forward(&wait, e->t3_ns, e->t0_ns) ||
        !subtract_forward(&stay, e->t2_ns, e->t1_ns) || stay > wait ||
        !subtract(&there, e->t1_ns, e->t0_ns) ||
        !subtract(&back, e->t2_ns, e->t3_ns)) {
        return false;
    }
    /* Halved before they are added, which cannot overflow. */
    int64_t offset = there / 2 + back / 2 + (there % 2 + back % 2) / 2;
    c->kept[c->next].offset_ns = offset;
    c->kept[c->next].delay_ns = wait - stay;
    c->kept[c->next].at_ns = e->t3_ns;
    c->next = (c->next + 1) % CLOCKSKEW_KEPT;
    c->count += c->count < CLOCKSKEW_KEPT;
    return true;
}

/* However far apart: the distance of two numbers of 64 bits has 64 bits. */
static uint64_t distance(int64_t a, int64_t b)
{
    return a < b ? (uint64_t)b - (uint64_t)a : (uint64_t)a - (uint64_t)b;
}

bool clockskew_estimate(struct clockskew_estimate *out,
                        const struct clockskew *c, int64_t now_ns)
{
    for (uint32_t i = 0; i < c->count; i++) {
        uint64_t drift = distance(now_ns, c->kept[i].at_ns) /
                         (1000000 / CLOCKSKEW_DRIFT_PPM);
        uint64_t bound = ((uint64_t)c->kept[i].delay_ns + 1) / 2 + drift;
        if (i == 0 || bound < out->uncertainty_ns) {
            out->offset_ns = c->kept[i].offset_ns;
            out->uncertainty_ns = bound;
        }
    }
    return c->count > 0;
}
