/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker as a program: ranks that make no step.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "desk.h"
#include "proto/limits.h"

enum { LIMIT_MS = 4000, HEARTBEATS_A_LIMIT = LIMIT_MS / 200 };

static void watch(Gpul__Job *job)
{
    static Gpul__Hang hang;
    gpul__hang__init(&hang);
    hang.watch = GPUL__HANG__WATCH__GIVEN;
    hang.limit_ms = LIMIT_MS;
    job->hang = &hang;
}

static bool has_window(const struct desk *d)
{
    return d->output_bytes >= GPUL_OUTPUT_WINDOW_BYTES_MAX;
}

/* A rank that ends stalls no more, which may be told first. */
static void expect(struct desk *d, Gpul__Frame__BodyCase kind)
{
    Gpul__Frame *frame = desk_expect_any(d);
    while (frame->body_case == GPUL__FRAME__BODY_STALL) {
        gpul_message_release(frame);
        frame = desk_expect_any(d);
    }
    assert_int_equal(frame->body_case, kind);
    gpul_message_release(frame);
}

/* A rank that waits for its output to be read does not hang; once it is read
 * and there is no more of it, it does. The desk takes no Stall while it waits
 * for heartbeats. */
static void test_no_credit(void **state)
{
    (void)state;
    struct desk d;
    desk_open(&d);
    d.gives_credit = false;
    desk_edit_job = watch;
    desk_prepare(&d, 1, "head -c 3145728 /dev/zero; exec sleep 600");
    desk_edit_job = NULL;
    desk_launch(&d, 1);
    desk_until(&d, has_window);
    desk_await_heartbeats(&d, 2 * HEARTBEATS_A_LIMIT);
    assert_int_equal(d.output_bytes, GPUL_OUTPUT_WINDOW_BYTES_MAX);
    d.gives_credit = true;
    desk_credit(&d, d.uncredited);
    d.uncredited = 0;
    Gpul__Frame *frame = desk_expect(&d, GPUL__FRAME__BODY_STALL);
    assert_int_equal(d.output_bytes, 3145728);
    assert_int_equal(frame->stall->n_rows, 1);
    const Gpul__StallRow *row = frame->stall->rows[0];
    assert_int_equal(row->kind, GPUL__STALL_ROW__KIND__SILENT);
    assert_true(row->silence_ms >= LIMIT_MS);
    gpul_message_release(frame);
    desk_stop(&d, SIGTERM, 300);
    expect(&d, GPUL__FRAME__BODY_EXITS);
    expect(&d, GPUL__FRAME__BODY_IDLE);
    desk_finish(&d, false);
    desk_close(&d, 0, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_credit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
