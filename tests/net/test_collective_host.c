/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "tests/lib/ringlab.h"
#include "worker/collective_host.h"
#include "worker/pattern.h"

/* ---- right sums ---------------------------------------------------------- */

struct sums {
    const uint64_t *counts;
    size_t n;
};

static void check_count(struct ringlab_place *place, struct collective_host *c,
                        uint64_t count)
{
    struct pattern_verdict verdict;
    /* One element more than is asked for: it must stay as it is. */
    float *data = malloc((count + 1) * sizeof(float));
    pattern_fill(data, count, place->rank);
    data[count] = -7;
    place->status = collective_host_allreduce(c, data, count,
                                              place->deadline_ms, &place->err);
    pattern_check(&verdict, data, count, place->lab->n);
    if (place->status == 0 &&
        (verdict.wrong_elements != 0 || data[count] != -7)) {
        place->status = gpul_fail(&place->err, GPUL_EPROTO,
                                  "%llu of %llu elements are wrong",
                                  (unsigned long long)verdict.wrong_elements,
                                  (unsigned long long)count);
    }
    free(data);
}

static void sum_all(struct ringlab_place *place)
{
    const struct sums *sums = place->lab->arg;
    struct collective_host c;
    ringlab_connect(place);
    if (place->status != 0) {
        return;
    }
    place->status = collective_host_init(&c, &place->link, &place->err);
    for (size_t i = 0; place->status == 0 && i < sums->n; i++) {
        check_count(place, &c, sums->counts[i]);
    }
    if (place->status == 0) {
        place->status =
            collective_host_barrier(&c, place->deadline_ms, &place->err);
    }
    collective_host_release(&c);
}

static void assert_sums(uint32_t n, const uint64_t *counts, size_t count_total)
{
    struct ringlab lab;
    struct sums sums = {counts, count_total};
    ringlab_init(&lab, n);
    ringlab_run(&lab, sum_all, &sums);
    ringlab_assert_ok(&lab);
    ringlab_release(&lab);
}

/* Every rank gets the exact sum at every element: 2 to 16 ranks; nothing,
 * fewer elements than ranks, odd counts, and counts around whole pieces. */
static void test_sums(void **state)
{
    (void)state;
    static const uint64_t counts[] = {0,     1,     2,     3,      5,      8,
                                      15,    16,    17,    1009,   4095,   4097,
                                      65535, 65537, 99991, 131073, 1000003};
    static const uint32_t ranks[] = {2, 3, 4, 7, 16};
    for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
        assert_sums(ranks[i], counts, sizeof(counts) / sizeof(counts[0]));
    }
}

/* Several blocks of full pieces: pieces wait for each other only by the
 * plan, so none may overtake. */
static void test_sums_of_many_blocks(void **state)
{
    (void)state;
    static const uint64_t counts[] = {4 << 20, (4 << 20) + 1, 3333333};
    assert_sums(2, counts, 3);
    assert_sums(5, counts, 3);
}

/* 64 ranks: 126 hops a block. */
static void test_sums_of_64_ranks(void **state)
{
    (void)state;
    static const uint64_t counts[] = {1, 63, 65, 300007};
    assert_sums(64, counts, 4);
}

/* ---- failures ------------------------------------------------------------ */

struct failing {
    uint32_t silent_rank; /* connects, and does no more */
    int closes;           /* it even hangs up */
    uint64_t deadline_ms; /* of the others' all-reduce */
};

static void reduce_some(struct ringlab_place *place)
{
    const struct failing *f = place->lab->arg;
    enum { COUNT = 8 << 20 };
    struct collective_host c;
    if (place->rank == f->silent_rank) {
        if (f->closes) {
            ringlink_release(&place->link);
        }
        return;
    }
    float *data = calloc(COUNT, sizeof(float));
    collective_host_init(&c, &place->link, &place->err);
    place->status =
        collective_host_allreduce(&c, data, COUNT, f->deadline_ms, &place->err);
    collective_host_release(&c);
    free(data);
    /* As a probe does when it ends: its neighbours learn of it. */
    ringlink_release(&place->link);
}

/* When a rank dies all others end, long before the deadline, and whoever
 * noticed it first names it. */
static void test_neighbour_dies(void **state)
{
    (void)state;
    struct ringlab lab;
    struct failing f = {1, 1, gpul_clock_ms() + RINGLAB_DEADLINE_MS};
    int named = 0;
    ringlab_init(&lab, 4);
    ringlab_run(&lab, ringlab_connect, NULL);
    ringlab_assert_ok(&lab);
    ringlab_run(&lab, reduce_some, &f);
    assert_true(gpul_clock_ms() < f.deadline_ms - RINGLAB_DEADLINE_MS / 2);
    for (uint32_t rank = 0; rank < 4; rank++) {
        struct ringlab_place *place = &lab.places[rank];
        if (rank == f.silent_rank) {
            continue;
        }
        assert_int_not_equal(place->status, 0);
        assert_int_not_equal(place->status, GPUL_ETIMEOUT);
        assert_non_null(strstr(place->err.text, " neighbour (node rank "));
        named += strstr(place->err.text, "(node rank 1, 127.0.0.1:") != NULL;
    }
    assert_in_range(named, 1, 2);
    ringlab_release(&lab);
}

/* A rank that is there and does nothing: the deadline ends the others, with
 * how far they got and with whom. */
static void test_neighbour_hangs(void **state)
{
    (void)state;
    struct ringlab lab;
    ringlab_init(&lab, 2);
    ringlab_run(&lab, ringlab_connect, NULL);
    ringlab_assert_ok(&lab);
    struct failing f = {1, 0, gpul_clock_ms() + 150};
    ringlab_run(&lab, reduce_some, &f);
    assert_int_equal(lab.places[0].status, GPUL_ETIMEOUT);
    const char *text = lab.places[0].err.text;
    const char *start = "deadline reached; 0 bytes received from left "
                        "neighbour (node rank 1, 127.0.0.1:";
    assert_memory_equal(text, start, strlen(start));
    char end[256];
    snprintf(end, sizeof(end),
             " bytes sent to right neighbour (node rank 1, 127.0.0.1:%u)",
             lab.places[1].port);
    assert_string_equal(text + strlen(text) - strlen(end), end);
    ringlab_release(&lab);
}

/* When the agent goes, the all-reduce is off at once. */
static void test_agent_goes(void **state)
{
    (void)state;
    int agent[2];
    struct ringlab lab;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, agent), 0);
    ringlab_init(&lab, 2);
    ringlab_run(&lab, ringlab_connect, NULL);
    ringlab_assert_ok(&lab);
    lab.places[0].link.watch_fd = agent[0];
    close(agent[1]);
    struct failing f = {1, 0, gpul_clock_ms() + RINGLAB_DEADLINE_MS};
    ringlab_run(&lab, reduce_some, &f);
    assert_int_equal(lab.places[0].status, GPUL_ECLOSED);
    assert_string_equal(lab.places[0].err.text, "the agent has gone");
    close(agent[0]);
    ringlab_release(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_sums_of_many_blocks),
        cmocka_unit_test(test_sums_of_64_ranks),
        cmocka_unit_test(test_neighbour_dies),
        cmocka_unit_test(test_neighbour_hangs),
        cmocka_unit_test(test_agent_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
