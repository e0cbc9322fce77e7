/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/text.h"
#include "worker/evidence.h"

#define TEXT(literal) (literal), sizeof(literal) - 1

/* ---- the last lines ------------------------------------------------------ */

static void test_tail(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        bool is_cut;
        const char *expected;
    } cases[] = {
        {TEXT("one\ntwo\n"), false, "one\ntwo"},
        {TEXT("no end"), false, "no end"},
        {TEXT(""), false, ""},
        {TEXT("\n\n \n"), false, ""},
        {TEXT("rest of a line\nwhole\n"), true, "whole"},
        {TEXT("abcdefgh"), true, "...defgh"},
        {TEXT("abcdefgh\n"), true, "...defgh"},
        {TEXT("ab"), true, "..."},
        /* What a terminal would show of a progress bar, and of CR LF. */
        {TEXT("10%\r20%\r30%\n"), false, "30%"},
        {TEXT("10%\r"), false, "10%"},
        {TEXT("dos\r\nfile\r\n"), false, "dos\nfile"},
        {TEXT("kept\n1\r2\r3"), false, "kept\n3"},
        /* Colours, titles, moves of the cursor. */
        {TEXT("\033[1;31mred\033[0m"), false, "red"},
        {TEXT("\033]0;title\atext"), false, "text"},
        {TEXT("\033]0;title\033\\text"), false, "text"},
        {TEXT("\033(Bascii"), false, "ascii"},
        {TEXT("\033cbye"), false, "bye"},
        {TEXT("cut off \033["), false, "cut off"},
        {TEXT("cut off \033"), false, "cut off"},
        {TEXT("\033]never ends\nnext"), false, "\nnext"},
        /* What is no text. */
        {TEXT("a\0b\x07"), false, "a?b?"},
        {TEXT("\xff\xfe caf\xc3\xa9 \xc3"), false, "?? caf\xc3\xa9 ?"},
        {TEXT("\xc2\x9b"
              "31m"),
         false, "??31m"},
        {TEXT("xyz\x80\x80rest"), true, "...rest"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char out[GPUL_TAIL_BYTES_MAX + 1];
        size_t n =
            evidence_tail(out, cases[i].bytes, cases[i].n, cases[i].is_cut);
        assert_string_equal(out, cases[i].expected);
        assert_int_equal(n, strlen(out));
    }
}

/* Whatever the bytes, the result fits and may be sent. */
static void test_tail_of_anything(void **state)
{
    (void)state;
    static char bytes[3 * GPUL_TAIL_BYTES_MAX];
    char out[GPUL_TAIL_BYTES_MAX + 1];
    uint32_t seed = 7;
    for (int round = 0; round < 2000; round++) {
        size_t n = (size_t)(seed % sizeof(bytes));
        for (size_t i = 0; i < n; i++) {
            static const char some[] = "\033[]\r\n\\m;a\xc3\xa9\xff\x80";
            seed = seed * 1664525u + 1013904223u;
            bytes[i] = round % 2 == 0 ? some[(seed >> 16) % (sizeof(some) - 1)]
                                      : (char)(seed >> 16 & 0xff);
        }
        size_t used = evidence_tail(out, bytes, n, round % 3 == 0);
        assert_in_range(used, 0, GPUL_TAIL_BYTES_MAX);
        assert_int_equal(used, strlen(out));
        assert_true(gpul_text_is_valid(out, GPUL_TEXT_LINES));
    }
}

/* The first line of more than fits is left out, so that lines are whole. */
static void test_tail_is_bounded(void **state)
{
    (void)state;
    static char bytes[2 * GPUL_TAIL_BYTES_MAX];
    char out[GPUL_TAIL_BYTES_MAX + 1];
    memset(bytes, 'x', sizeof(bytes));
    size_t n = evidence_tail(out, bytes, sizeof(bytes), false);
    assert_int_equal(n, GPUL_TAIL_BYTES_MAX);
    assert_memory_equal(out, "...xxx", 6);
    memcpy(bytes + sizeof(bytes) - 9, "\nthe last", 9);
    n = evidence_tail(out, bytes, sizeof(bytes), false);
    assert_string_equal(out, "the last");
    assert_int_equal(n, 8);
}

/* ---- NCCL ---------------------------------------------------------------- */

static const char talk[] =
    "step 1\n"
    "box:7:9 [0] NCCL INFO Channel 00\n"
    "box:7:9 [0] \033[31msocket.cc:484 NCCL WARN connection closed\033[0m\r\n"
    "unrelated\n"
    "box:7:9 [0] \033[31msocket.cc:484 NCCL WARN connection closed\033[0m\r\n"
    "ncclRemoteError: a remote process exited\n"
    "Last error:\n"
    "NET/Socket : peer is gone\n"
    "more\n"
    "Last error:";

static void assert_found(const struct evidence_nccl *e)
{
    assert_int_equal(e->count, 3);
    assert_string_equal(
        e->found[0], "box:7:9 [0] socket.cc:484 NCCL WARN connection closed");
    assert_string_equal(e->found[1],
                        "ncclRemoteError: a remote process exited");
    assert_string_equal(e->found[2], "NET/Socket : peer is gone");
}

/* Its complaints are found, each once, however the bytes are cut. */
static void test_nccl(void **state)
{
    (void)state;
    size_t n = sizeof(talk) - 1;
    for (size_t first = 0; first <= n; first++) {
        for (size_t piece = 1; piece < 40; piece += 13) {
            struct evidence_nccl e = {0};
            evidence_nccl_take(&e, 0, talk, first);
            for (size_t at = first; at < n; at += piece) {
                evidence_nccl_take(&e, 0, talk + at,
                                   n - at < piece ? n - at : piece);
            }
            evidence_nccl_end(&e);
            assert_found(&e);
            evidence_nccl_release(&e);
        }
    }
}

/* The two streams do not mix, and a last line needs no end. */
static void test_nccl_streams(void **state)
{
    (void)state;
    struct evidence_nccl e = {0};
    evidence_nccl_take(&e, 0, TEXT("a NCCL "));
    evidence_nccl_take(&e, 1, TEXT("WARN b\nc NCCL WARN d"));
    evidence_nccl_take(&e, 0, TEXT("INFO\n"));
    assert_int_equal(e.count, 0);
    evidence_nccl_end(&e);
    assert_int_equal(e.count, 1);
    assert_string_equal(e.found[0], "c NCCL WARN d");
    evidence_nccl_release(&e);
}

/* Only the first few, each cut; a line of any length costs no more. */
static void test_nccl_is_bounded(void **state)
{
    (void)state;
    struct evidence_nccl e = {0};
    static char line[1 << 20];
    memset(line, 'x', sizeof(line));
    evidence_nccl_take(&e, 0, TEXT("NCCL WARN "));
    evidence_nccl_take(&e, 0, line, sizeof(line));
    for (int i = 0; i < 100; i++) {
        char text[] = "\nNCCL WARN 00";
        text[sizeof(text) - 3] = (char)('0' + i / 10);
        text[sizeof(text) - 2] = (char)('0' + i % 10);
        evidence_nccl_take(&e, 0, text, sizeof(text) - 1);
    }
    evidence_nccl_end(&e);
    assert_int_equal(e.count, GPUL_NCCL_WARNINGS_MAX);
    assert_int_equal(strlen(e.found[0]), GPUL_NCCL_WARNING_BYTES_MAX);
    assert_string_equal(e.found[1], "NCCL WARN 00");
    assert_string_equal(e.found[7], "NCCL WARN 06");
    evidence_nccl_release(&e);
}

/* ---- the kernel's log ---------------------------------------------------- */

/* Both of its records name the pid; others say nothing. */
static void test_oom_record(void **state)
{
    (void)state;
    static const char by_memcg[] =
        "6,1,2,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),"
        "cpuset=/,mems_allowed=0,oom_memcg=/x,task_memcg=/x,task=python,"
        "pid=412,uid=0";
    static const char killed[] =
        "3,1,2,-;Memory cgroup out of memory: Killed process 412 (python) "
        "total-vm:9kB";
    assert_int_equal(evidence_oom_pid(TEXT(by_memcg)), 412);
    assert_int_equal(evidence_oom_pid(TEXT(killed)), 412);
    assert_int_equal(evidence_oom_pid(TEXT("6,1,2,-;eth0: pid=412,")), 0);
    assert_int_equal(evidence_oom_pid(TEXT("3,1,2,-;Killed process 4")), 0);
    assert_int_equal(
        evidence_oom_pid(TEXT("3,1,2,-;Killed process 99999999999 (x)")), 0);
    assert_int_equal(evidence_oom_pid(TEXT("6,1,2,-;oom-kill:task=x")), 0);
    assert_int_equal(evidence_oom_pid("", 0), 0);
}

/* The log says who was killed, the counter only that somebody was; what would
 * not have been seen is unknown. */
static void test_memory(void **state)
{
    (void)state;
    enum { KILLED = 1, COUNTED = 2, COUNTER = 4, IN_LOG = 8, WHOLE = 16 };
    static const struct {
        unsigned known;
        Gpul__Exit__OutOfMemory verdict;
    } cases[] = {
        {0, GPUL__EXIT__OUT_OF_MEMORY__UNKNOWN},
        {COUNTER | WHOLE, GPUL__EXIT__OUT_OF_MEMORY__UNKNOWN},
        {COUNTER | COUNTED, GPUL__EXIT__OUT_OF_MEMORY__CGROUP},
        {COUNTER | COUNTED | WHOLE, GPUL__EXIT__OUT_OF_MEMORY__CGROUP},
        {KILLED, GPUL__EXIT__OUT_OF_MEMORY__UNKNOWN},
        {KILLED | COUNTER, GPUL__EXIT__OUT_OF_MEMORY__NO},
        {KILLED | WHOLE, GPUL__EXIT__OUT_OF_MEMORY__NO},
        {KILLED | COUNTER | COUNTED, GPUL__EXIT__OUT_OF_MEMORY__CGROUP},
        {KILLED | COUNTER | COUNTED | IN_LOG,
         GPUL__EXIT__OUT_OF_MEMORY__KERNEL},
        /* Of another node, in the same cgroup. */
        {KILLED | COUNTER | COUNTED | WHOLE, GPUL__EXIT__OUT_OF_MEMORY__NO},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct evidence_memory m = {
            .is_killed = (cases[i].known & KILLED) != 0,
            .has_counted = (cases[i].known & COUNTED) != 0,
            .has_counter = (cases[i].known & COUNTER) != 0,
            .is_in_log = (cases[i].known & IN_LOG) != 0,
            .is_log_whole = (cases[i].known & WHOLE) != 0,
        };
        assert_int_equal(evidence_judge_memory(&m), cases[i].verdict);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tail),
        cmocka_unit_test(test_tail_of_anything),
        cmocka_unit_test(test_tail_is_bounded),
        cmocka_unit_test(test_nccl),
        cmocka_unit_test(test_nccl_streams),
        cmocka_unit_test(test_nccl_is_bounded),
        cmocka_unit_test(test_oom_record),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
