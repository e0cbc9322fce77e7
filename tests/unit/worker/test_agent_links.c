/* SPDX-License-Identifier: Apache-2.0
 *
 * An agent while addresses are proved: docs/links.md.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <signal.h>
#include <string.h>

#include <cmocka.h>

#include "agent_play.h"

static void to_ready(struct play *p)
{
    play_open(p);
    play_to_member(p);
    assert_string_equal(play_job(p, GPUL__JOB__MODE__RUN), "");
    assert_string_equal(play_assign(p), "lease_ports");
    assert_string_equal(play_ports(p, 20000), "send(ready:20000)");
}

/* What was opened stays open until the roster is here, and no longer. */
static void test_until_roster(void **state)
{
    (void)state;
    struct play p;
    to_ready(&p);
    assert_string_equal(play_link_start(&p), "open_links 77");
    assert_string_equal(play_link_peers(&p), "dial_links 10.0.0.[1-2]");
    assert_string_equal(play_roster(&p), "close_links");
    assert_string_equal(play_launch(&p), "start_ranks");
    play_close(&p);
}

static void test_until_stop(void **state)
{
    (void)state;
    struct play p;
    to_ready(&p);
    assert_string_equal(play_link_start(&p), "open_links 77");
    assert_string_equal(play_stop(&p, SIGTERM, 100), "close_links send(idle)");
    assert_string_equal(play_assign(&p), "lease_ports");
    assert_string_equal(play_ports(&p, 20000), "send(ready:20000)");
    assert_string_equal(play_link_start(&p), "open_links 77");
    play_close(&p);
}

/* However it leaves. */
static void test_until_end(void **state)
{
    (void)state;
    struct play p;
    to_ready(&p);
    play_link_start(&p);
    assert_non_null(
        strstr(play_event(&p, AGENT_EVENT_LOST, "reset"), "close_links"));
    assert_true(p.has_left);
    play_close(&p);
    to_ready(&p);
    play_link_start(&p);
    assert_non_null(strstr(play_signal(&p, SIGTERM), "close_links"));
    assert_true(p.has_left);
    play_close(&p);
}

/* Out of turn: before Ready, twice, behind the roster, a page of nothing. */
static void test_out_of_turn(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_member(&p);
    play_job(&p, GPUL__JOB__MODE__RUN);
    play_assign(&p);
    assert_non_null(strstr(play_link_start(&p), "link_start out of place"));
    play_close(&p);
    to_ready(&p);
    assert_non_null(strstr(play_link_peers(&p), "link_peers out of place"));
    play_close(&p);
    to_ready(&p);
    play_link_start(&p);
    assert_non_null(strstr(play_link_start(&p), "link_start out of place"));
    play_close(&p);
    to_ready(&p);
    play_roster(&p);
    assert_non_null(strstr(play_link_start(&p), "link_start out of place"));
    play_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_until_roster),
        cmocka_unit_test(test_until_stop),
        cmocka_unit_test(test_until_end),
        cmocka_unit_test(test_out_of_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
