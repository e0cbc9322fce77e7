/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker as a program, in the hands of a coordinator that the test plays.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "desk.h"
#include "proto/limits.h"

static int reset(void **state)
{
    (void)state;
    desk_edit_job = NULL;
    return 0;
}

/* All exits of `ranks` ranks, then Idle with nothing unclean. */
static void expect_clean_end(struct desk *d, uint32_t ranks)
{
    for (uint32_t seen = 0; seen < ranks;) {
        Gpul__Frame *frame = desk_expect(d, GPUL__FRAME__BODY_EXITS);
        for (size_t i = 0; i < frame->exits->n_exits; i++) {
            assert_int_equal(frame->exits->exits[i]->code, 0);
            assert_int_equal(frame->exits->exits[i]->signal, 0);
            assert_int_equal(frame->exits->exits[i]->exec_errno, 0);
            assert_string_equal(frame->exits->exits[i]->log, "");
        }
        seen += (uint32_t)frame->exits->n_exits;
        gpul_message_release(frame);
    }
    Gpul__Frame *idle = desk_expect(d, GPUL__FRAME__BODY_IDLE);
    assert_int_equal(idle->idle->n_unclean, 0);
    gpul_message_release(idle);
}

/* A job of two ranks: output, exits, idle, and no file left behind. */
static void test_run(void **state)
{
    (void)state;
    struct desk d;
    char path[200];
    desk_open(&d);
    desk_prepare(&d, 2, "echo rank $RANK of $WORLD_SIZE; echo oops >&2");
    desk_launch(&d, 1);
    expect_clean_end(&d, 2);
    assert_non_null(strstr(desk_output(&d, 0), "rank 0 of 2\n"));
    assert_non_null(strstr(desk_output(&d, 0), "rank 1 of 2\n"));
    assert_string_equal(desk_output(&d, 1), "oops\noops\n");
    snprintf(path, sizeof(path), "%s/test-job/attempt-1/rank-1.out", d.log_dir);
    assert_int_equal(access(path, R_OK), 0);
    desk_finish(&d, false);
    snprintf(path, sizeof(path), "%s/test-job", d.log_dir);
    assert_int_equal(access(path, F_OK), -1);
    desk_close(&d, 0, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_run, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
