/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "launcher/failure_text.h"

static char rank_failed[] = "rank_failed";
static char host[] = "box";
static char names[][8] = {"n0", "n1", "n2"};
static char tail[] = "Traceback:\n\tat line 1\nRuntimeError: boom";
static char in_tail[] = "RuntimeError: boom";
static char warning[] = "NCCL WARN peer is gone";
static char *warnings[] = {warning, in_tail};
static char stopped[64];

static Gpul__Member members[3];
static Gpul__Member *member_list[3];
static Gpul__Event page;
static Gpul__Event *pages[] = {&page};
static Gpul__Exit exits[40];
static Gpul__Exit *exit_list[40];
static Gpul__Evidence evidence;
static Gpul__JobEnd end;

/* Three nodes of two ranks, and a first failure of rank 1. */
static struct record stage(void)
{
    page = (Gpul__Event)GPUL__EVENT__INIT;
    end = (Gpul__JobEnd)GPUL__JOB_END__INIT;
    for (uint32_t i = 0; i < 3; i++) {
        members[i] = (Gpul__Member)GPUL__MEMBER__INIT;
        members[i].node_name = names[i];
        members[i].hostname = host;
        members[i].first_rank = 2 * i;
        members[i].rank_count = 2;
        member_list[i] = &members[i];
    }
    page.members = member_list;
    page.n_members = 3;
    for (size_t i = 0; i < sizeof(exits) / sizeof(exits[0]); i++) {
        exits[i] = (Gpul__Exit)GPUL__EXIT__INIT;
        exit_list[i] = &exits[i];
    }
    exits[0].rank = 1;
    exits[0].code = 7;
    exits[0].ran_ms = 3200;
    end.exit_code = 7;
    end.reason = rank_failed;
    end.has_rank = 1;
    end.rank = 1;
    end.exits = exit_list;
    end.n_exits = 1;
    end.stopped_ranks = stopped;
    stopped[0] = 0;
    evidence = (Gpul__Evidence)GPUL__EVIDENCE__INIT;
    return (struct record){.pages = pages, .page_count = 1, .end = &end};
}

static void assert_text(const struct record *r,
                        const struct failure_exception *x, const char *expected)
{
    struct gpul_buf out;
    gpul_buf_init(&out, FAILURE_TEXT_BYTES_MAX);
    assert_int_equal(failure_text(&out, r, x), 0);
    assert_string_equal(gpul_buf_text(&out), expected);
    gpul_buf_release(&out);
}

/* All that there is to say. */
static void test_in_full(void **state)
{
    (void)state;
    struct record r = stage();
    exits[0].pid = 4242;
    exits[0].evidence = &evidence;
    evidence.tail = tail;
    evidence.nccl_warnings = warnings;
    evidence.n_nccl_warnings = 2;
    exits[1].rank = 4;
    exits[1].signal = 6;
    exits[1].after_ms = 40;
    exits[2].rank = 0;
    exits[2].signal = 15;
    exits[2].is_stopped = 1;
    end.n_exits = 3;
    snprintf(stopped, sizeof(stopped), "0,2-3,5");
    end.stopped_count = 4;
    const struct failure_exception x = {
        "RuntimeError", "boom", "train.py:1 in main", "model.py:7 in forward"};
    assert_text(&r, &x,
                "first failure: rank 1 on node n0 (box), pid 4242, exited with "
                "code 7; it had run for 3.2 s\n"
                "  the end of its standard error:\n"
                "  | Traceback:\n"
                "  |     at line 1\n"
                "  | RuntimeError: boom\n"
                "  NCCL: NCCL WARN peer is gone\n"
                "  raised at model.py:7 in forward, from train.py:1 in main\n"
                "then failed: rank 4 on node n2 (box) was ended by signal 6 "
                "(SIGABRT): it aborted itself, 40 ms later\n"
                "stopped after it: 4 ranks: 0 on node n0; 2-3 on node n1; 5 on "
                "node n2\n");
}

/* An exception that the tail does not show. */
static void test_exception(void **state)
{
    (void)state;
    struct record r = stage();
    const struct failure_exception x = {"RuntimeError", "boom", "a.py:1 in f",
                                        "a.py:1 in f"};
    assert_text(&r, &x,
                "first failure: rank 1 on node n0 (box) exited with code 7; it "
                "had run for 3.2 s\n"
                "  exception: RuntimeError: boom\n"
                "  raised at a.py:1 in f\n");
}

/* Nothing, where the last line says it all. */
static void test_nothing_to_add(void **state)
{
    (void)state;
    struct record r = stage();
    page.n_members = 1;
    members[0].rank_count = 1; /* its output is on the screen */
    assert_text(&r, NULL, "");
    r = stage(); /* it was silent, and all others are well */
    assert_text(&r, NULL, "");
    r = stage();
    end.exit_code = 0;
    assert_text(&r, NULL, "");
    r = stage();
    end.reason = (char[]){"canceled"};
    assert_text(&r, NULL, "");
    r = stage();
    exits[0].exec_errno = 2; /* as of all other ranks */
    exits[1] = exits[0];
    exits[1].rank = 3;
    end.n_exits = 2;
    assert_text(&r, NULL, "");
    r = stage();
    end.has_rank = 0;
    end.n_exits = 0;
    assert_text(&r, NULL, "");
    r = stage();
    r.page_count = 0;
    assert_text(&r, NULL, "");
}

/* A lost node is no rank: the last line tells of it. */
static void test_node_lost(void **state)
{
    (void)state;
    struct record r = stage();
    end.reason = (char[]){"node_lost"};
    end.has_rank = 0;
    exits[0].signal = 15;
    exits[0].is_stopped = 1;
    snprintf(stopped, sizeof(stopped), "1-5");
    end.stopped_count = 5;
    assert_text(&r, NULL,
                "stopped after it: 5 ranks: 1 on node n0; 2-3 on node n1; 4-5 "
                "on node n2\n");
}

/* Many ranks that fail alike are one line. */
static void test_folded(void **state)
{
    (void)state;
    struct record r = stage();
    for (uint32_t i = 1; i < 6; i++) {
        exits[i].rank = 6 - i;
        exits[i].code = i == 3 ? 5 : 7;
        exits[i].after_ms = 10 * i;
    }
    end.n_exits = 6;
    assert_text(&r, NULL,
                "first failure: rank 1 on node n0 (box) exited with code 7; it "
                "had run for 3.2 s\n"
                "then failed: ranks 1-2,4-5 each exited with code 7, 10 ms "
                "later\n"
                "then failed: rank 3 on node n1 (box) exited with code 5, 30 "
                "ms later\n");
}

/* Ten causes at most, however many there are. */
static void test_many_causes(void **state)
{
    (void)state;
    struct record r = stage();
    for (uint32_t i = 1; i < 40; i++) {
        exits[i].rank = i + 1;
        exits[i].code = i;
    }
    end.n_exits = 40;
    struct gpul_buf out;
    gpul_buf_init(&out, FAILURE_TEXT_BYTES_MAX);
    assert_int_equal(failure_text(&out, &r, NULL), 0);
    const char *text = gpul_buf_text(&out);
    assert_non_null(strstr(text, "then failed: more, in 29 other ways\n"));
    assert_null(strstr(text, "code 11,"));
    gpul_buf_release(&out);
}

/* The last 20 lines of a tail; a long one is cut between two characters. */
static void test_long_tail(void **state)
{
    (void)state;
    static char long_tail[4096];
    struct record r = stage();
    exits[0].evidence = &evidence;
    evidence.tail = long_tail;
    size_t n = 0;
    for (int i = 0; i < 30; i++) {
        n += (size_t)snprintf(long_tail + n, sizeof(long_tail) - n, "line %d\n",
                              i);
    }
    n += (size_t)snprintf(long_tail + n, sizeof(long_tail) - n, "%0399d", 0);
    snprintf(long_tail + n, sizeof(long_tail) - n, "\xc3\xa9 rest");
    struct gpul_buf out;
    gpul_buf_init(&out, FAILURE_TEXT_BYTES_MAX);
    assert_int_equal(failure_text(&out, &r, NULL), 0);
    const char *text = gpul_buf_text(&out);
    assert_null(strstr(text, "| line 10\n"));
    assert_non_null(strstr(text, "| line 11\n"));
    assert_non_null(strstr(text, "| line 29\n"));
    assert_non_null(strstr(text, "0000...\n"));
    gpul_buf_release(&out);
}

/* Out of memory: how much it had. */
static void test_memory(void **state)
{
    (void)state;
    struct record r = stage();
    exits[0].code = 0;
    exits[0].signal = 9;
    exits[0].out_of_memory = GPUL__EXIT__OUT_OF_MEMORY__CGROUP;
    exits[0].rss_bytes = 31u << 20;
    assert_text(&r, NULL,
                "first failure: rank 1 on node n0 (box) was ended by signal 9 "
                "(SIGKILL): out of memory, as its cgroup's counter says; it "
                "had run for 3.2 s\n"
                "  its memory was 31 MiB at most\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_full),
        cmocka_unit_test(test_exception),
        cmocka_unit_test(test_nothing_to_add),
        cmocka_unit_test(test_node_lost),
        cmocka_unit_test(test_folded),
        cmocka_unit_test(test_many_causes),
        cmocka_unit_test(test_long_tail),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
