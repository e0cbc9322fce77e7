/* SPDX-License-Identifier: Apache-2.0
 *
 * How the end of a probe is told, whichever is known first: that its process
 * has ended, or what is wrong with its channel. The probe is this program.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/limits.h"
#include "tests/lib/memory.h"
#include "worker/prober.h"

enum { CHANNEL_FD = 3, WAIT_MS = 120000 };

/* ---- the probe ----------------------------------------------------------- */

static void say(const void *bytes, size_t n)
{
    if (write(CHANNEL_FD, bytes, n) != (ssize_t)n) {
        _exit(9);
    }
}

static void say_result(void)
{
    struct gpul_buf out;
    char phase[] = "coll";
    Gpul__ProbeResult result = GPUL__PROBE_RESULT__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    result.phase = phase;
    frame.body_case = GPUL__FRAME__BODY_PROBE_RESULT;
    frame.probe_result = &result;
    gpul_buf_init(&out, GPUL_PROBE_FACTS_BYTES_MAX);
    if (gpul_message_encode(&out, &frame, NULL) != 0) {
        _exit(9);
    }
    say(out.data, out.used);
    gpul_buf_release(&out);
}

/* What it does is in the command that it is told of. */
static int be_probe(const char *deeds)
{
    static const char nonsense[] = "GET / HTTP/1.1\r\n\r\n";
    if (strstr(deeds, "nonsense") != NULL) {
        say(nonsense, sizeof(nonsense) - 1);
    } else if (strstr(deeds, "result") != NULL) {
        say_result();
    }
    if (strstr(deeds, "abort") != NULL) {
        abort();
    }
    while (strstr(deeds, "stay") != NULL) {
        pause();
    }
    return strstr(deeds, "fail") != NULL ? 125 : 0;
}

/* ---- its agent ----------------------------------------------------------- */

struct bench {
    uv_loop_t loop;
    uv_timer_t bound;
    struct prober prober;
    unsigned results;
    char how[PROBER_HOW_BYTES]; /* "": it has not ended yet */
};

static void on_event(void *arg, struct agent_event *event)
{
    struct bench *b = arg;
    assert_int_equal(event->type, AGENT_EVENT_PROBE_MESSAGE);
    b->results++;
}

static void on_ended(void *arg, uint32_t probe, const char *how,
                     bool is_abandoned)
{
    struct bench *b = arg;
    assert_int_equal(probe, 0);
    assert_false(is_abandoned);
    assert_string_equal(b->how, "");
    snprintf(b->how, sizeof(b->how), "%s", how);
}

static void on_bound(uv_timer_t *timer)
{
    (void)timer;
    fail_msg("the loop waits for ever");
}

static void open_bench(struct bench *b)
{
    static const struct prober_handlers handlers = {
        .on_event = on_event,
        .on_ended = on_ended,
    };
    memset(b, 0, sizeof(*b));
    assert_int_equal(uv_loop_init(&b->loop), 0);
    uv_timer_init(&b->loop, &b->bound);
    uv_timer_start(&b->bound, on_bound, WAIT_MS, 0);
    prober_init(&b->prober, &b->loop, &handlers, b);
}

static void start(struct bench *b, const char *deeds)
{
    const struct prober_start how = {.command = deeds};
    open_bench(b);
    assert_int_equal(prober_start(&b->prober, &how, NULL), 0);
}

static bool is_silent(const struct bench *b)
{
    return b->prober.processes[0].channel == NULL;
}

static void run_until_silent(struct bench *b)
{
    while (!is_silent(b)) {
        uv_run(&b->loop, UV_RUN_ONCE);
    }
}

static void reap(struct bench *b)
{
    int status;
    pid_t pid = b->prober.processes[0].pid;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(prober_reap(&b->prober, pid, status));
}

/* It has ended, and nobody has waited for it yet. */
static void await_zombie(const struct bench *b)
{
    siginfo_t info;
    id_t pid = (id_t)b->prober.processes[0].pid;
    assert_int_equal(waitid(P_PID, pid, &info, WEXITED | WNOWAIT), 0);
}

static void close_bench(struct bench *b, const char *how)
{
    assert_string_equal(b->how, how);
    prober_release(&b->prober);
    uv_close((uv_handle_t *)&b->bound, NULL);
    uv_run(&b->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&b->loop), 0);
}

/* ---- what is told -------------------------------------------------------- */

struct end {
    const char *deeds;
    const char *how;
    unsigned results;
};

static const struct end ends[] = {
    {"result", "it ended without a result", 1}, /* as far as this knows */
    {"nothing", "it ended without a result", 0},
    {"fail", "it ended with exit code 125", 0},
    {"abort", "it was ended by signal 6 (SIGABRT)", 0},
    {"nonsense",
     "it ended without a result; it could not be talked to: unknown message "
     "from a probe",
     0},
    {"nonsense fail",
     "it ended with exit code 125; it could not be talked to: unknown message "
     "from a probe",
     0},
    {"nonsense abort",
     "it was ended by signal 6 (SIGABRT); it could not be talked to: unknown "
     "message from a probe",
     0},
};

/* The process is waited for, then its channel is read to the end. */
static void test_process_first(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        struct bench b;
        start(&b, ends[i].deeds);
        reap(&b);
        assert_string_equal(b.how, "");
        run_until_silent(&b);
        assert_int_equal(b.results, ends[i].results);
        close_bench(&b, ends[i].how);
    }
}

/* The channel is read to its end before the process, which has ended too, is
 * waited for: a kill is too late then. */
static void test_channel_first(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        struct bench b;
        start(&b, ends[i].deeds);
        await_zombie(&b);
        run_until_silent(&b);
        assert_string_equal(b.how, "");
        assert_int_equal(b.results, ends[i].results);
        reap(&b);
        close_bench(&b, ends[i].how);
    }
}

/* One that would live on is killed for it. */
static void test_killed(void **state)
{
    (void)state;
    struct bench b;
    start(&b, "nonsense stay");
    run_until_silent(&b);
    reap(&b);
    close_bench(&b, "it was killed: unknown message from a probe");
}

/* That there was no memory for what it said is not lost, whatever the order. */
static void test_no_memory(void **state)
{
    (void)state;
    for (int order = 0; order < 2; order++) {
        struct bench b;
        start(&b, "result");
        await_zombie(&b);
        if (order == 0) {
            reap(&b);
        }
        memory_fail_at(1);
        run_until_silent(&b);
        if (order == 1) {
            reap(&b);
        }
        assert_int_equal(b.results, 0);
        close_bench(&b, "it ended without a result; it could not be talked "
                        "to: reading: out of memory");
    }
}

/* No memory for what takes its output, its log of NCCL, its words: it is
 * killed, and why is told. */
static void test_unattached(void **state)
{
    (void)state;
    static const char *const hows[] = {
        "it was killed: out of memory for output of a probe",
        "it was killed: out of memory for output of a probe",
        "it was killed: no memory for a connection",
    };
    struct ranklogs logs;
    ranklogs_init(&logs);
    for (size_t i = 0; i < sizeof(hows) / sizeof(hows[0]); i++) {
        struct bench b;
        struct prober_start how = {.command = "stay",
                                   .logs = &logs,
                                   .log_name = "rank-0.log",
                                   .nccl_log_name = "rank-0.nccl"};
        open_bench(&b);
        memory_fail_at(i + 1);
        assert_int_equal(prober_start(&b.prober, &how, NULL), 0);
        reap(&b);
        run_until_silent(&b);
        close_bench(&b, hows[i]);
    }
    ranklogs_release(&logs);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_process_first),
        cmocka_unit_test(test_channel_first),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_unattached),
    };
    if (argc > 2 && strcmp(argv[1], "probe") == 0) {
        return be_probe(argv[2]);
    }
    signal(SIGPIPE, SIG_IGN); /* see proto/transport.h */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
