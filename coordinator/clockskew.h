/* SPDX-License-Identifier: Apache-2.0
 *
 * How far the clock of a node is from ours, from questions and answers that
 * carry four times. Pure.
 *
 *     t0 we send (our clock)       t1 it receives (its clock)
 *     t3 we receive (our clock)    t2 it sends    (its clock)
 *
 *     offset = ((t1 - t0) + (t2 - t3)) / 2     delay = (t3 - t0) - (t2 - t1)
 *
 * The true offset is within half the delay of this one, however the delay is
 * shared by the two ways; so of several exchanges the one of the least delay
 * is believed, not an average (RFC 5905, sections 8 and 10; D. Mills,
 * "Internet Time Synchronization", 1991). With age the bound grows by the
 * most that two clocks drift apart.
 *
 * Times are nanoseconds of any two clocks, of which none may jump while
 * exchanges are kept; offsets of thousands of seconds are ordinary.
 */
#ifndef COORDINATOR_CLOCKSKEW_H
#define COORDINATOR_CLOCKSKEW_H

#include <stdbool.h>
#include <stdint.h>

enum {
    CLOCKSKEW_KEPT = 8, /* exchanges; a newer one replaces the oldest */
    /* Two free-running crystals of 50 ppm each, in parts per million. Clocks
     * that NTP steers stay within a third of it. */
    CLOCKSKEW_DRIFT_PPM = 100,
};

struct clockskew_exchange {
    int64_t t0_ns;
    int64_t t1_ns;
    int64_t t2_ns;
    int64_t t3_ns;
};

struct clockskew {
    struct {
        int64_t offset_ns;
        int64_t delay_ns;
        int64_t at_ns; /* t3 */
    } kept[CLOCKSKEW_KEPT];
    uint32_t count; /* kept */
    uint32_t next;  /* the place of the next one */
};

/* Its clock shows `offset_ns` more than ours, give or take `uncertainty_ns`;
 * so t of its clock is t - offset_ns of ours. */
struct clockskew_estimate {
    int64_t offset_ns;
    uint64_t uncertainty_ns;
};

/* An all-zero one is empty. False, and nothing is kept, for times that cannot
 * be: an answer before its question, a stay there that is longer than our
 * wait, numbers beyond 64 bits. */
bool clockskew_add(struct clockskew *c, const struct clockskew_exchange *e);

/* At `now_ns` of our clock. False: no exchange was accepted, so nothing is
 * known. */
bool clockskew_estimate(struct clockskew_estimate *out,
                        const struct clockskew *c, int64_t now_ns);

#endif
