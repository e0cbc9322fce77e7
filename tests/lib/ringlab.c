/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "common/clock.h"
#include "tests/lib/ringlab.h"

void ringlab_init(struct ringlab *lab, uint32_t n)
{
    lab->n = n;
    for (uint32_t rank = 0; rank < n; rank++) {
        struct ringlab_place *place = &lab->places[rank];
        *place = (struct ringlab_place){
            .lab = lab,
            .rank = rank,
            .deadline_ms = gpul_clock_ms() + RINGLAB_DEADLINE_MS,
        };
        const struct ringlink_place at = {
            .rank = rank,
            .node_count = n,
            .generation = 3,
            .token = UINT64_C(0x0123456789abcdef),
        };
        ringlink_init(&place->link, &at, -1);
        assert_int_equal(ringlink_listen(&place->link, "127.0.0.1",
                                         &place->port, &place->err),
                         0);
    }
}

void ringlab_release(struct ringlab *lab)
{
    for (uint32_t rank = 0; rank < lab->n; rank++) {
        ringlink_release(&lab->places[rank].link);
    }
}

static void *run_place(void *arg)
{
    struct ringlab_place *place = arg;
    place->lab->body(place);
    return NULL;
}

void ringlab_run(struct ringlab *lab, ringlab_body_fn body, void *arg)
{
    pthread_t threads[RINGLAB_RANKS_MAX];
    lab->body = body;
    lab->arg = arg;
    for (uint32_t rank = 0; rank < lab->n; rank++) {
        assert_int_equal(
            pthread_create(&threads[rank], NULL, run_place, &lab->places[rank]),
            0);
    }
    for (uint32_t rank = 0; rank < lab->n; rank++) {
        pthread_join(threads[rank], NULL);
    }
}

void ringlab_connect(struct ringlab_place *place)
{
    const struct ringlab *lab = place->lab;
    uint16_t right = lab->places[(place->rank + 1) % lab->n].port;
    place->status = ringlink_connect(&place->link, "127.0.0.1", right,
                                     place->deadline_ms, &place->err);
}

void ringlab_assert_ok(const struct ringlab *lab)
{
    for (uint32_t rank = 0; rank < lab->n; rank++) {
        if (lab->places[rank].status != 0) {
            print_error("rank %u: %s\n", rank, lab->places[rank].err.text);
        }
        assert_int_equal(lab->places[rank].status, 0);
    }
}
