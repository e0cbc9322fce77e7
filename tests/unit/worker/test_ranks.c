/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks that the keeper holds from an agent before us. The rest of them is
 * tested with a whole worker: tests/net/test_worker*.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include <cmocka.h>

#include "worker/ranks.h"

enum { GENERATION = 3, RANKS = 2 };

static struct stage {
    uv_loop_t loop;
    int keeper; /* its end */
    struct keeperlink *link;
    struct ranklogs logs;
    struct output *output;
    struct input *input;
    struct hangwatch *watch;
    struct ranks *ranks;
} s;

static void ignore_mail(void *arg, struct keeper_mail *mail)
{
    (void)arg;
    keeperwire_close_fds(mail);
}

static void ignore(void *arg)
{
    (void)arg;
}

static void ignore_frame(void *arg, Gpul__Frame *frame)
{
    (void)arg;
    (void)frame;
}

static void ignore_rank(void *arg, uint32_t local_rank)
{
    (void)arg;
    (void)local_rank;
}

static void ignore_text(void *arg, const char *text)
{
    (void)arg;
    (void)text;
}

/* An agent that has read STATE: two ranks run. */
static void open_stage(void)
{
    static const struct keeperlink_handlers on_keeper = {ignore_mail, ignore,
                                                         ignore};
    static const struct output_handlers on_output = {ignore_frame, ignore_rank,
                                                     ignore_text, ignore};
    const struct keeper_packet held = {
        .type = KEEPER_STATE, .generation = GENERATION, .rank_count = RANKS};
    int ends[2];
    memset(&s, 0, sizeof(s));
    assert_int_equal(uv_loop_init(&s.loop), 0);
    assert_int_equal(
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    s.keeper = ends[0];
    assert_int_equal(
        keeperlink_open(&s.link, &s.loop, ends[1], &on_keeper, NULL, NULL), 0);
    ranklogs_init(&s.logs);
    assert_int_equal(
        output_create(&s.output, &s.loop, &s.logs, &on_output, NULL, NULL), 0);
    assert_int_equal(input_create(&s.input, &s.loop, ignore_frame, NULL, NULL),
                     0);
    const struct hangwatch_config config = {s.output, "node"};
    assert_int_equal(
        hangwatch_create(&s.watch, &s.loop, &config, ignore_frame, NULL, NULL),
        0);
    const struct ranks_streams streams = {s.input, s.output, &s.logs, s.watch};
    assert_int_equal(ranks_create(&s.ranks, s.link, &streams, NULL), 0);
    assert_int_equal(ranks_hold(s.ranks, &held, NULL), 0);
}

static void close_stage(void)
{
    ranks_destroy(s.ranks);
    hangwatch_destroy(s.watch);
    output_destroy(s.output);
    input_destroy(s.input);
    ranklogs_release(&s.logs);
    keeperlink_close(s.link);
    uv_run(&s.loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s.loop), 0);
    close(s.keeper);
}

/* RANK of one that reads input, with so many of its three descriptors. */
static void say_rank(uint32_t slot, size_t fd_count)
{
    struct keeper_mail mail = {
        .packet = {.type = KEEPER_RANK,
                   .slot = slot,
                   .pid = 1000 + (int32_t)slot,
                   .kept_fds = 3,
                   .has_input = true},
        .fd_count = fd_count,
    };
    for (size_t i = 0; i < fd_count; i++) {
        mail.fds[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
        assert_true(mail.fds[i] >= 0);
    }
    ranks_take_mail(s.ranks, &mail);
}

/* A table of descriptors that is full must not leave a rank with pipes that
 * nobody serves: it would wait for ever. */
static void test_held_without_pipes(void **state)
{
    (void)state;
    struct gpul_error err = {0};
    Gpul__Job job = GPUL__JOB__INIT;
    struct launch launch = {.rank_count = RANKS};
    const struct ranks_begin begin = {.job = &job, .generation = GENERATION};
    open_stage();
    say_rank(0, 3);
    say_rank(1, 0);
    assert_true(ranks_are_held(s.ranks, GENERATION));
    assert_int_equal(ranks_start(s.ranks, &launch, &begin, &err), GPUL_ELIMIT);
    assert_string_equal(err.text,
                        "its new agent cannot take over the pipes of 1 rank: "
                        "too many open files; raise ulimit -n");
    close_stage();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_held_without_pipes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
