/* SPDX-License-Identifier: Apache-2.0
 *
 * Real pipes: what the test is to their readers, the ranks are elsewhere.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/limits.h"
#include "worker/input.h"

enum { READERS = 2, TURNS_MAX = 100000, PIECE = 32 << 10 };

struct stage {
    uv_loop_t loop;
    struct input *input;
    int ends[READERS]; /* the ranks' */
    uint64_t credit;
    uint32_t closings;
    uint32_t closed; /* pipes, of which the keeper is told; a bit each */
};

static void on_frame(void *arg, Gpul__Frame *frame)
{
    struct stage *s = arg;
    assert_int_equal(frame->body_case, GPUL__FRAME__BODY_INPUT_CREDIT);
    s->credit += frame->input_credit->bytes;
    s->closings += frame->input_credit->is_closed ? 1 : 0;
}

static void on_close(void *arg, uint32_t local_rank)
{
    struct stage *s = arg;
    assert_int_equal(s->closed >> local_rank & 1, 0);
    s->closed |= 1u << local_rank;
}

static void turn(struct stage *s)
{
    uv_run(&s->loop, UV_RUN_NOWAIT);
}

static void set_up(struct stage *s)
{
    *s = (struct stage){.ends = {-1, -1}};
    assert_int_equal(uv_loop_init(&s->loop), 0);
    assert_int_equal(input_create(&s->input, &s->loop, on_frame, s, NULL), 0);
    input_tell_closed(s->input, on_close, s);
}

static void start(struct stage *s, uint32_t generation, uint32_t readers)
{
    Gpul__InputTarget target = GPUL__INPUT_TARGET__INIT;
    Gpul__Job job = GPUL__JOB__INIT;
    target.is_all = readers > 1;
    target.rank = target.is_all ? 0 : 4;
    job.input_target = readers > 0 ? &target : NULL;
    assert_int_equal(input_begin(s->input, generation, &job, 4, READERS, NULL),
                     0);
    for (uint32_t i = 0; i < readers; i++) {
        int ends[2];
        assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
        s->ends[i] = ends[0];
        input_add(s->input, i, ends[1]);
    }
    input_started(s->input);
}

static void put(struct stage *s, const void *data, size_t n, bool is_end)
{
    Gpul__Input input = GPUL__INPUT__INIT;
    union {
        const void *data;
        uint8_t *bytes;
    } u = {data};
    input.data.data = u.bytes;
    input.data.len = n;
    input.is_end = is_end;
    assert_int_equal(input_put(s->input, 1, &input, NULL), 0);
}

static void tear_down(struct stage *s)
{
    input_destroy(s->input);
    for (int i = 0; i < READERS; i++) {
        if (s->ends[i] >= 0) {
            close(s->ends[i]);
        }
    }
    uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->loop), 0);
}

/* Read until `n` bytes are there, or the end; returns how many. */
static size_t read_all(struct stage *s, int reader, uint8_t *bytes, size_t n)
{
    size_t used = 0;
    for (int i = 0; i < TURNS_MAX && used < n; i++) {
        ssize_t done = read(s->ends[reader], bytes + used, n - used);
        if (done == 0) {
            return used;
        }
        used += done > 0 ? (size_t)done : 0;
        turn(s);
    }
    return used;
}

static bool is_at_end(struct stage *s, int reader)
{
    char byte;
    for (int i = 0; i < TURNS_MAX; i++) {
        ssize_t done = read(s->ends[reader], &byte, 1);
        if (done >= 0) {
            return done == 0;
        }
        turn(s);
    }
    return false;
}

/* Both get all of it, the slow one sets the pace, and the end closes. */
static void test_two(void **state)
{
    (void)state;
    enum { TOTAL = 512 << 10 };
    struct stage s;
    static uint8_t data[TOTAL], got[TOTAL];
    for (size_t i = 0; i < TOTAL; i++) {
        data[i] = (uint8_t)(i * 31 + i / 251);
    }
    set_up(&s);
    start(&s, 1, READERS);
    for (size_t at = 0; at < TOTAL; at += PIECE) {
        put(&s, data + at, PIECE, false);
    }
    put(&s, NULL, 0, true);
    assert_int_equal(read_all(&s, 0, got, TOTAL), TOTAL);
    assert_memory_equal(got, data, TOTAL);
    assert_true(is_at_end(&s, 0));
    assert_true(s.credit < TOTAL); /* what one pipe takes of itself */
    memset(got, 0, sizeof(got));
    assert_int_equal(read_all(&s, 1, got, TOTAL), TOTAL);
    assert_memory_equal(got, data, TOTAL);
    assert_true(is_at_end(&s, 1));
    turn(&s);
    assert_int_equal(s.credit, TOTAL);
    assert_int_equal(s.closings, 1);
    assert_int_equal(s.closed, 3);
    tear_down(&s);
}

/* A rank that closes its end is noticed though nothing is sent; then the rest
 * is swallowed. */
static void test_closed_by_rank(void **state)
{
    (void)state;
    struct stage s;
    set_up(&s);
    start(&s, 1, 1);
    turn(&s);
    assert_int_equal(s.closings, 0);
    close(s.ends[0]);
    s.ends[0] = -1;
    for (int i = 0; i < TURNS_MAX && s.closings == 0; i++) {
        turn(&s);
    }
    assert_int_equal(s.closings, 1);
    put(&s, "abc", 3, false);
    put(&s, NULL, 0, true);
    assert_int_equal(s.closings, 1);
    assert_int_equal(s.credit, 0);
    assert_int_equal(s.closed, 1);
    tear_down(&s);
}

/* In the middle of a write. */
static void test_broken(void **state)
{
    (void)state;
    struct stage s;
    static uint8_t data[PIECE];
    set_up(&s);
    start(&s, 1, READERS);
    for (int i = 0; i < 4; i++) {
        put(&s, data, PIECE, false); /* more than a pipe holds */
    }
    close(s.ends[1]);
    s.ends[1] = -1;
    static uint8_t got[4 * PIECE];
    assert_int_equal(read_all(&s, 0, got, sizeof(got)), sizeof(got));
    for (int i = 0; i < TURNS_MAX && s.credit < sizeof(got); i++) {
        turn(&s);
    }
    assert_int_equal(s.credit, sizeof(got));
    assert_int_equal(s.closings, 0);
    assert_int_equal(s.closed, 2);
    input_ended(s.input, 0);
    assert_int_equal(s.closings, 1);
    assert_int_equal(s.closed, 3);
    tear_down(&s);
}

/* Bytes that come before the ranks; ranks of another generation have none of
 * them. */
static void test_early(void **state)
{
    (void)state;
    struct stage s;
    uint8_t got[8];
    set_up(&s);
    put(&s, "early", 5, true);
    start(&s, 1, 1);
    assert_int_equal(read_all(&s, 0, got, sizeof(got)), 5);
    assert_memory_equal(got, "early", 5);
    input_finish(s.input);
    assert_int_equal(s.closings, 1);
    close(s.ends[0]);
    assert_int_equal(s.closed, 1);
    s.closed = 0;
    put(&s, "late", 4, false);
    start(&s, 2, 1);
    input_finish(s.input);
    assert_int_equal(read_all(&s, 0, got, sizeof(got)), 0);
    tear_down(&s);
}

/* An agent that ends without the end of the input closes nothing for good: the
 * next one, which has the same pipe from the keeper, goes on. */
static void test_next_agent(void **state)
{
    (void)state;
    struct stage s;
    uint8_t got[8];
    set_up(&s);
    start(&s, 1, 1);
    put(&s, "one", 3, false);
    int end = s.ends[0];
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", end);
    int kept = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    assert_true(kept >= 0);
    s.ends[0] = -1;
    tear_down(&s);
    assert_int_equal(s.closed, 0);

    Gpul__InputTarget target = GPUL__INPUT_TARGET__INIT;
    Gpul__Job job = GPUL__JOB__INIT;
    set_up(&s);
    s.ends[0] = end;
    put(&s, "two", 3, false);
    target.rank = 4;
    job.input_target = &target;
    assert_int_equal(input_begin(s.input, 1, &job, 4, READERS, NULL), 0);
    input_add(s.input, 0, kept);
    input_started(s.input);
    put(&s, NULL, 0, true);
    assert_int_equal(read_all(&s, 0, got, sizeof(got)), 6);
    assert_memory_equal(got, "onetwo", 6);
    assert_int_equal(s.credit, 3);
    assert_int_equal(s.closings, 1);
    assert_int_equal(s.closed, 1);
    tear_down(&s);
}

/* It is told at once where the input was at its end, or nobody read it. */
static void test_next_agent_without(void **state)
{
    (void)state;
    struct stage s;
    Gpul__InputTarget target = GPUL__INPUT_TARGET__INIT;
    Gpul__Job job = GPUL__JOB__INIT;
    set_up(&s);
    target.rank = 4;
    job.input_target = &target;
    assert_int_equal(input_begin(s.input, 1, &job, 4, READERS, NULL), 0);
    input_started(s.input);
    assert_int_equal(s.closings, 1);
    put(&s, NULL, 0, true);
    assert_int_equal(s.closed, 0);
    tear_down(&s);
}

/* Where no rank is to read, nothing is said. */
static void test_unwanted(void **state)
{
    (void)state;
    struct stage s;
    set_up(&s);
    start(&s, 1, 0);
    input_ended(s.input, 0);
    input_finish(s.input);
    assert_int_equal(s.closings, 0);
    tear_down(&s);
}

/* Whose input it is. */
static void test_target(void **state)
{
    (void)state;
    Gpul__Job job = GPUL__JOB__INIT;
    Gpul__InputTarget target = GPUL__INPUT_TARGET__INIT;
    assert_false(input_is_for(&job, 0));
    job.input_target = &target;
    assert_true(input_is_for(&job, 0));
    assert_false(input_is_for(&job, 1));
    target.is_all = true;
    assert_true(input_is_for(&job, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two),
        cmocka_unit_test(test_closed_by_rank),
        cmocka_unit_test(test_broken),
        cmocka_unit_test(test_early),
        cmocka_unit_test(test_unwanted),
        cmocka_unit_test(test_target),
        cmocka_unit_test(test_next_agent),
        cmocka_unit_test(test_next_agent_without),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
