/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/outcome.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct node node = {.name = "node7"};

static Gpul__Exit fate_of(uint32_t rank, uint32_t code, uint32_t signal,
                          uint32_t exec_errno)
{
    Gpul__Exit fate = GPUL__EXIT__INIT;
    fate.rank = rank;
    fate.code = code;
    fate.signal = signal;
    fate.exec_errno = exec_errno;
    return fate;
}

static Gpul__Evidence evidence_of(char *tail, char **warnings, size_t n)
{
    Gpul__Evidence e = GPUL__EVIDENCE__INIT;
    static uint8_t file[GPUL_ERROR_FILE_BYTES_MAX];
    e.tail = tail;
    e.nccl_warnings = warnings;
    e.n_nccl_warnings = n;
    e.error_file.data = file;
    e.error_file.len = sizeof(file);
    e.error_file_bytes = 99;
    return e;
}

/* Every fate of a rank has its exit code, and none but 0 has 0. */
static void test_codes(void **state)
{
    (void)state;
    static const struct {
        uint32_t code, signal, exec_errno, expected;
    } table[] = {
        {1, 0, 0, 1},    {7, 0, 0, 7},    {255, 0, 0, 255}, {256, 0, 0, 1},
        {0, 9, 0, 137},  {0, 11, 0, 139}, {0, 64, 0, 192},  {0, 128, 0, 128},
        {0, 0, 2, 127},  {0, 0, 13, 126}, {0, 0, 8, 126},   {0, 0, 7, 126},
        {0, 0, 24, 125}, {0, 0, 23, 125}, {0, 0, 11, 125},  {0, 0, 12, 125},
        {3, 15, 2, 127},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        Gpul__Exit fate =
            fate_of(0, table[i].code, table[i].signal, table[i].exec_errno);
        assert_true(exit_is_failure(&fate));
        assert_int_equal(exit_code(&fate), table[i].expected);
    }
    Gpul__Exit good = fate_of(0, 0, 0, 0);
    assert_false(exit_is_failure(&good));
}

/* The sentence names rank, node, host, cause and log. */
static void test_sentences(void **state)
{
    (void)state;
    static const struct {
        uint32_t code, signal, exec_errno;
        const char *reason, *text;
    } table[] = {
        {7, 0, 0, "rank_failed",
         "rank 1 on node node7 (h) exited with code 7; its log: /l/r"},
        {0, 15, 0, "rank_signaled",
         "rank 1 on node node7 (h) was ended by signal 15 (SIGTERM); its log: "
         "/l/r"},
        {0, 50, 0, "rank_signaled",
         "rank 1 on node node7 (h) was ended by signal 50; its log: /l/r"},
        {0, 0, 2, "exec_failed",
         "rank 1 on node node7 (h) could not start: x: none; its log: /l/r"},
    };
    node.hostname = wire_text("h");
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct outcome o;
        Gpul__JobEnd end = GPUL__JOB_END__INIT;
        Gpul__Exit fate =
            fate_of(1, table[i].code, table[i].signal, table[i].exec_errno);
        fate.text = wire_text(table[i].exec_errno != 0 ? "x: none" : "");
        fate.log = wire_text("/l/r");
        outcome_init(&o);
        assert_true(outcome_rank_failed(&o, &node, &fate, 5));
        outcome_fill(&o, &end);
        assert_string_equal(end.reason, table[i].reason);
        assert_string_equal(end.text, table[i].text);
        assert_string_equal(end.node_name, "node7");
        assert_string_equal(end.hostname, "h");
        assert_string_equal(end.log, "/l/r");
        assert_true(end.has_rank && end.rank == 1);
        outcome_release(&o);
    }
}

/* The first decision stays; what comes later is only recorded. */
static void test_first_wins(void **state)
{
    (void)state;
    struct outcome o;
    Gpul__JobEnd end = GPUL__JOB_END__INIT;
    Gpul__Exit first = fate_of(2, 7, 0, 0);
    Gpul__Exit second = fate_of(3, 0, 15, 0);
    outcome_init(&o);
    assert_true(outcome_rank_failed(&o, &node, &first, 5));
    assert_false(outcome_rank_failed(&o, &node, &second, 5));
    assert_false(outcome_decide(&o, 75, "node_lost", NULL, "too late"));
    outcome_fill(&o, &end);
    assert_int_equal(end.exit_code, 7);
    assert_int_equal(end.n_exits, 2);
    assert_int_equal(end.exits[1]->rank, 3);
    outcome_release(&o);
}

/* What is recorded holds nothing of the frame that it came with. */
static void test_holds_nothing(void **state)
{
    (void)state;
    char text[] = "text", log[] = "/l/r", metric[] = "7";
    struct outcome o;
    Gpul__JobEnd end = GPUL__JOB_END__INIT;
    Gpul__Exit fate = fate_of(2, 7, 0, 0);
    fate.text = text;
    fate.log = log;
    fate.metric = metric;
    outcome_init(&o);
    assert_true(outcome_rank_failed(&o, &node, &fate, 5));
    text[0] = log[0] = metric[0] = '#';
    outcome_fill(&o, &end);
    assert_string_equal(end.exits[0]->text, "text");
    assert_string_equal(end.exits[0]->log, "/l/r");
    assert_string_equal(end.exits[0]->metric, "");
    outcome_release(&o);
}

/* After success the ends of stopped ranks are nothing to report. */
static void test_after_success(void **state)
{
    (void)state;
    struct outcome o;
    Gpul__JobEnd end = GPUL__JOB_END__INIT;
    Gpul__Exit stopped = fate_of(3, 0, 15, 0);
    outcome_init(&o);
    assert_true(outcome_decide(&o, 0, "success", NULL, "all is well"));
    assert_false(outcome_rank_failed(&o, &node, &stopped, 5));
    outcome_fill(&o, &end);
    assert_int_equal(end.exit_code, 0);
    assert_int_equal(end.n_exits, 0);
    assert_false(end.has_rank);
    assert_string_equal(end.node_name, "");
    outcome_release(&o);
}

/* Whatever is recorded, the JobEnd can be sent: records are bounded in count
 * and size, and long lines are cut. */
static void test_bounds(void **state)
{
    (void)state;
    static char text[GPUL_TEXT_BYTES_MAX + 1];
    static char log[GPUL_PATH_BYTES_MAX + 1];
    struct outcome o;
    struct gpul_buf bytes;
    Gpul__JobEnd end = GPUL__JOB_END__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    static char tail[GPUL_TAIL_BYTES_MAX + 1];
    static char warning[GPUL_NCCL_WARNING_BYTES_MAX + 1];
    char *warnings[GPUL_NCCL_WARNINGS_MAX];
    memset(tail, 't', sizeof(tail) - 1);
    memset(warning, 'w', sizeof(warning) - 1);
    for (size_t i = 0; i < COUNT(warnings); i++) {
        warnings[i] = warning;
    }
    memset(text, 't', sizeof(text) - 1);
    memset(log, 'l', sizeof(log) - 1);
    outcome_init(&o);
    for (uint32_t i = 0; i < 1000; i++) {
        Gpul__Exit fate = fate_of(i, 1, 0, 0);
        fate.text = text;
        fate.log = log;
        Gpul__Evidence e = evidence_of(tail, warnings, COUNT(warnings));
        fate.evidence = &e;
        outcome_rank_failed(&o, &node, &fate, 5);
        outcome_add_unclean(&o, &node, text);
    }
    outcome_fill(&o, &end);
    assert_in_range(end.n_exits, 30, GPUL_JOB_END_EXITS_MAX);
    assert_int_equal(end.n_unclean, GPUL_UNCLEAN_MAX);
    assert_int_equal(strlen(end.unclean[0]), GPUL_UNCLEAN_BYTES_MAX);
    frame.body_case = GPUL__FRAME__BODY_JOB_END;
    frame.job_end = &end;
    gpul_buf_init(&bytes, GPUL_JOB_END_BYTES_MAX);
    assert_int_equal(gpul_message_encode(&bytes, &frame, NULL), 0);
    gpul_buf_release(&bytes);
    outcome_release(&o);
}

/* The first failures keep what they left behind, in copies. */
static void test_evidence(void **state)
{
    (void)state;
    struct outcome o;
    Gpul__JobEnd end = GPUL__JOB_END__INIT;
    char tail[] = "boom", one[] = "NCCL WARN a", two[] = "NCCL WARN b";
    char *warnings[] = {one, two};
    Gpul__Evidence e = evidence_of(tail, warnings, 2);
    outcome_init(&o);
    for (uint32_t i = 0; i < GPUL_EVIDENCES_MAX + 2; i++) {
        Gpul__Exit fate = fate_of(i, 1, 0, 0);
        fate.evidence = &e;
        outcome_rank_failed(&o, &node, &fate, 100 + i);
    }
    memset(tail, 'x', strlen(tail));
    memset(one, 'x', strlen(one));
    outcome_fill(&o, &end);
    assert_int_equal(end.n_exits, GPUL_EVIDENCES_MAX + 2);
    for (size_t i = 0; i < end.n_exits; i++) {
        const Gpul__Evidence *kept = end.exits[i]->evidence;
        assert_int_equal(end.exits[i]->after_ms, i);
        assert_true((kept != NULL) == (i < GPUL_EVIDENCES_MAX));
        if (kept != NULL) {
            assert_string_equal(kept->tail, "boom");
            assert_int_equal(kept->n_nccl_warnings, 2);
            assert_string_equal(kept->nccl_warnings[0], "NCCL WARN a");
            assert_int_equal(kept->error_file.len, GPUL_ERROR_FILE_BYTES_MAX);
            assert_int_equal(kept->error_file_bytes, 99);
        }
    }
    outcome_release(&o);
}

/* Ranks that were stopped are marked, have nothing left behind, and leave
 * room for failures; what a node says of that itself does not count. */
static void test_stopped(void **state)
{
    (void)state;
    struct outcome o;
    Gpul__JobEnd end = GPUL__JOB_END__INIT;
    char tail[] = "terminated";
    Gpul__Evidence e = evidence_of(tail, NULL, 0);
    Gpul__Exit first = fate_of(0, 7, 0, 0);
    first.is_stopped = 1;
    first.after_ms = 12345;
    outcome_init(&o);
    outcome_rank_failed(&o, &node, &first, 100);
    for (uint32_t i = 1; i < 200; i++) {
        Gpul__Exit fate = fate_of(i, 0, 15, 0);
        fate.evidence = &e;
        outcome_rank_stopped(&o, &fate, 110);
    }
    Gpul__Exit last = fate_of(200, 9, 0, 0);
    outcome_rank_failed(&o, &node, &last, 120);
    outcome_fill(&o, &end);
    assert_int_equal(end.n_exits, 2 + OUTCOME_STOPPED_MAX);
    assert_false(end.exits[0]->is_stopped);
    assert_int_equal(end.exits[0]->after_ms, 0);
    assert_true(end.exits[1]->is_stopped);
    assert_null(end.exits[1]->evidence);
    assert_int_equal(end.exits[1]->after_ms, 10);
    assert_int_equal(end.exits[end.n_exits - 1]->rank, 200);
    outcome_release(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codes),
        cmocka_unit_test(test_sentences),
        cmocka_unit_test(test_first_wins),
        cmocka_unit_test(test_holds_nothing),
        cmocka_unit_test(test_after_success),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_evidence),
        cmocka_unit_test(test_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
