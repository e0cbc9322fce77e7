/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker as a program in a self-test on two GPUs; what its probes do,
 * tests/lib/standin.c says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "desk.h"
#include "proto/limits.h"

enum {
    ABORT_MS = 300,
    KILL_MS = ABORT_MS + 1000,
    SCOUT_MS = 60000,
    NEVER_MS = 600000, /* no wait of a test is so long */
};

/* The plan marks the processes of a test: none of them may be left. */
static char plan[128];

static void set_plan(const char *deeds)
{
    static unsigned count;
    snprintf(plan, sizeof(plan), "%s test-%d-%u", deeds, getpid(), ++count);
    setenv("GPULAUNCH_TEST_PLAN", plan, 1);
}

static void edit_job(Gpul__Job *job)
{
    static char folder[] = "/";
    job->command->working_directory.data = (uint8_t *)folder;
    job->command->working_directory.len = 1;
}

static void open_desk(struct desk *d, const char *deeds)
{
    desk_worker = STANDIN;
    desk_edit_job = edit_job;
    set_plan(deeds);
    desk_open(d);
    desk_prepare(d, 1, "echo trained");
}

/* Everybody is gone; the worker said nothing on its stderr. */
static void close_desk(struct desk *d)
{
    desk_finish(d, true);
    desk_close(d, 0, NULL);
    assert_int_equal(desk_count_processes(plan), 0);
    unsetenv("GPULAUNCH_TEST_PLAN");
}

/* ---- what the coordinator says ------------------------------------------- */

static void start_scout(struct desk *d, uint32_t deadline_ms)
{
    char address[] = "127.0.0.1";
    Gpul__ProbeStart start = GPUL__PROBE_START__INIT;
    start.level = GPUL__SELF_TEST__LEVEL__QUICK;
    start.node_count = 1;
    start.address = address;
    start.deadline_ms = deadline_ms;
    start.backend = GPUL__SELF_TEST__BACKEND__BACKEND_NCCL;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_PROBE_START;
    frame.probe_start = &start;
    desk_send(d, &frame);
}

/* Ranks 0 and 1 of two. */
static void begin_probes(struct desk *d, uint32_t abort_ms)
{
    Gpul__Sweep sweep = GPUL__SWEEP__INIT;
    Gpul__SelfTest test = GPUL__SELF_TEST__INIT;
    test.level = GPUL__SELF_TEST__LEVEL__QUICK;
    test.listen_deadline_ms = 20000;
    test.run_deadline_ms = 20000;
    test.sweep = &sweep;
    Gpul__ProbeBegin begin = GPUL__PROBE_BEGIN__INIT;
    begin.rank_count = 2;
    begin.world_size = 2;
    begin.id_count = 1;
    begin.self_test = &test;
    begin.abort_deadline_ms = abort_ms;
    begin.node_count = 1;
    begin.ranks_per_node = 2;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_PROBE_BEGIN;
    frame.probe_begin = &begin;
    desk_send(d, &frame);
}

static void send_ids(struct desk *d)
{
    static uint8_t bytes[GPUL_UNIQUE_ID_BYTES] = {7};
    ProtobufCBinaryData id = {sizeof(bytes), bytes};
    Gpul__ProbeIds ids = GPUL__PROBE_IDS__INIT;
    ids.ids = &id;
    ids.n_ids = 1;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_PROBE_IDS;
    frame.probe_ids = &ids;
    desk_send(d, &frame);
}

/* ---- what the node says -------------------------------------------------- */

static void expect_facts(struct desk *d, const char *error)
{
    Gpul__Frame *frame = desk_expect(d, GPUL__FRAME__BODY_PROBE_FACTS);
    assert_string_equal(frame->probe_facts->error, error);
    gpul_message_release(frame);
}

/* The next frame that is no phase: of this kind. */
static Gpul__Frame *expect_beside_phases(struct desk *d,
                                         Gpul__Frame__BodyCase kind)
{
    for (;;) {
        Gpul__Frame *frame = desk_expect_any(d);
        if (frame->body_case != GPUL__FRAME__BODY_PROBE_PHASE) {
            assert_int_equal(frame->body_case, kind);
            return frame;
        }
        gpul_message_release(frame);
    }
}

/* A result of either rank; its error is that of `errors` with its number. */
static void expect_result(struct desk *d, const char *const errors[2])
{
    Gpul__Frame *frame =
        expect_beside_phases(d, GPUL__FRAME__BODY_PROBE_RESULT);
    const Gpul__ProbeResult *result = frame->probe_result;
    assert_in_range(result->probe_rank, 0, 1);
    assert_string_equal(result->error, errors[result->probe_rank]);
    assert_string_equal(result->device_uuid,
                        result->probe_rank == 0 ? "GPU-0" : "GPU-1");
    gpul_message_release(frame);
}

static void expect_idle(struct desk *d)
{
    Gpul__Frame *frame = expect_beside_phases(d, GPUL__FRAME__BODY_IDLE);
    assert_int_equal(frame->idle->n_unclean, 0);
    gpul_message_release(frame);
}

/* Both probes have a context, and the root has told its ID. */
static void go_to_ids(struct desk *d, uint32_t abort_ms)
{
    start_scout(d, SCOUT_MS);
    expect_facts(d, "");
    begin_probes(d, abort_ms);
    int seen = 0;
    while (seen < 3) {
        Gpul__Frame *frame = desk_expect_any(d);
        assert_true(frame->body_case == GPUL__FRAME__BODY_PROBE_ID ||
                    frame->body_case == GPUL__FRAME__BODY_PROBE_PHASE);
        seen++;
        gpul_message_release(frame);
    }
}

static void read_log(const struct desk *d, const char *name, char *text,
                     size_t bytes)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/test-job/self-test/%s", d->log_dir, name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    text[fread(text, 1, bytes - 1, f)] = 0;
    fclose(f);
}

static void launch_and_end(struct desk *d)
{
    desk_launch(d, 1);
    desk_expect_exits(d, 1, NULL);
    desk_expect_idle(d, 0);
    assert_string_equal(desk_output(d, 0), "trained\n");
}

/* ---- stories ------------------------------------------------------------- */

/* From the scout to the ranks. Probes have the environment of a rank, the
 * node's interface and the command; what they write is in files. */
static void test_pass(void **state)
{
    (void)state;
    static const char *const good[] = {"", ""};
    struct desk d;
    char text[1024], expected[1024];
    struct stat st;
    setenv("NCCL_ALGO", "Ring", 1);
    setenv("PMI_RANK", "3", 1);
    open_desk(&d, "");
    go_to_ids(&d, ABORT_MS);
    send_ids(&d);
    expect_result(&d, good);
    expect_result(&d, good);
    launch_and_end(&d);
    read_log(&d, "rank-1.log", text, sizeof(text));
    snprintf(expected, sizeof(expected),
             "command=sh\nfolder=/\ndevice=1 GPU-1\ninterface=lo\n"
             "debug_file=/proc/self/fd/4\n"
             "GPULAUNCH_NODE_NAME=node-0\nCUDA_VISIBLE_DEVICES=(unset)\n"
             "NCCL_ALGO=Ring\nPMI_RANK=(unset)\n");
    assert_string_equal(text, expected);
    read_log(&d, "rank-1.nccl", text, sizeof(text));
    assert_string_equal(text, "what NCCL says\n");
    snprintf(expected, sizeof(expected), "%s/test-job/self-test/rank-0.nccl",
             d.log_dir);
    assert_int_equal(stat(expected, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    close_desk(&d);
    unsetenv("NCCL_ALGO");
    unsetenv("PMI_RANK");
}

/* After a success without --log-dir nothing of it is left on disk. */
static void test_files_go(void **state)
{
    (void)state;
    static const char *const good[] = {"", ""};
    struct desk d;
    char path[200];
    open_desk(&d, "");
    go_to_ids(&d, ABORT_MS);
    send_ids(&d);
    expect_result(&d, good);
    expect_result(&d, good);
    launch_and_end(&d);
    desk_finish(&d, false);
    snprintf(path, sizeof(path), "%s/test-job", d.log_dir);
    assert_int_equal(access(path, F_OK), -1);
    desk_close(&d, 0, NULL);
}

/* A probe that dies, whichever way: told with the way, with what it wrote
 * last, and where the rest of that is. The other one is told to stop, or
 * killed. */
static void test_deaths(void **state)
{
    (void)state;
    static const struct {
        const char *plan;
        const char *error;
    } table[] = {
        {"1:crash", "it was ended by signal 11 (SIGSEGV); the last "
                    "that it wrote is \"free(): invalid pointer\""},
        {"1:exit", "it ended with exit code 9; the last that it wrote is "
                   "\"PMI_RANK=(unset)\""},
        {"1:nonsense", "it was killed: unknown message from a probe; the last "
                       "that it wrote is \"PMI_RANK=(unset)\""},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        char error[400], both[64];
        const char *const errors[] = {"", error};
        struct desk d;
        snprintf(both, sizeof(both), "0:deaf %s", table[i].plan);
        open_desk(&d, both);
        snprintf(error, sizeof(error),
                 "%s; its log is %s/test-job/self-test/rank-1.log",
                 table[i].error, d.log_dir);
        go_to_ids(&d, ABORT_MS);
        send_ids(&d);
        expect_result(&d, errors);
        uint64_t start_ms = gpul_clock_ms();
        desk_stop(&d, SIGTERM, NEVER_MS); /* the grace is for ranks */
        expect_idle(&d);
        assert_true(gpul_clock_ms() - start_ms >= KILL_MS);
        close_desk(&d);
    }
}

/* An error is told while its probe is still alive. */
static void test_error(void **state)
{
    (void)state;
    static const char *const errors[] = {"", "no memory"};
    struct desk d;
    open_desk(&d, "0:deaf 1:error");
    go_to_ids(&d, ABORT_MS);
    send_ids(&d);
    expect_result(&d, errors);
    assert_int_equal(desk_count_processes(plan), 4); /* keeper, agent, both */
    desk_stop(&d, SIGKILL, 0);
    expect_idle(&d);
    close_desk(&d);
}

/* Stop while the IDs are waited for: probes that hear it leave, though they
 * would not be killed for long. */
static void test_stop(void **state)
{
    (void)state;
    struct desk d;
    open_desk(&d, "");
    go_to_ids(&d, NEVER_MS);
    desk_stop(&d, SIGTERM, NEVER_MS);
    expect_idle(&d);
    close_desk(&d);
}

/* A scout that hangs is killed 2 s after its deadline, one that crashes is
 * told with its last words; the job may go on. */
static void test_scout(void **state)
{
    (void)state;
    char error[400];
    struct desk d;
    open_desk(&d, "scout:hang");
    start_scout(&d, 100);
    expect_facts(&d, "the process that looks at the GPUs failed: it did not "
                     "end in time and was killed");
    launch_and_end(&d);
    close_desk(&d);
    open_desk(&d, "scout:crash");
    start_scout(&d, SCOUT_MS);
    snprintf(error, sizeof(error),
             "the process that looks at the GPUs failed: it was ended by "
             "signal 6 (SIGABRT); the last that it wrote is \"libcuda: bad "
             "magic\"; its log is %s/test-job/self-test/scout-*.log",
             d.log_dir);
    expect_facts(&d, error);
    desk_stop(&d, SIGTERM, 0);
    expect_idle(&d);
    close_desk(&d);
}

/* A probe that writes without end fills no disk and holds nobody up. */
static void test_flood(void **state)
{
    (void)state;
    static const char *const good[] = {"", ""};
    struct desk d;
    char path[200];
    struct stat st;
    open_desk(&d, "1:flood");
    go_to_ids(&d, ABORT_MS);
    send_ids(&d);
    expect_result(&d, good);
    expect_result(&d, good);
    snprintf(path, sizeof(path), "%s/test-job/self-test/rank-1.log", d.log_dir);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 1 << 20);
    desk_stop(&d, SIGTERM, 0);
    expect_idle(&d);
    close_desk(&d);
}

/* The command waits until the devices' memory is as free as before: 100 MiB
 * were in use, then 3000 and 700, then 600. */
static void test_memory(void **state)
{
    (void)state;
    static const char *const good[] = {"", ""};
    struct desk d;
    char path[200];
    struct stat st;
    snprintf(path, sizeof(path), "/tmp/gpul-memory-%d", getpid());
    setenv("GPULAUNCH_TEST_MEMORY", path, 1);
    open_desk(&d, "");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("100\n3000\n700\n600\n", f);
    fclose(f);
    go_to_ids(&d, ABORT_MS);
    send_ids(&d);
    expect_result(&d, good);
    expect_result(&d, good);
    launch_and_end(&d);
    assert_string_equal(gpul_buf_text(&d.notices), "");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 0); /* it has looked four times */
    close_desk(&d);
    unlink(path);
    unsetenv("GPULAUNCH_TEST_MEMORY");
}

/* A setting of NCCL that spoils starts is told once the scout starts. */
static void test_warning(void **state)
{
    (void)state;
    struct desk d;
    setenv("NCCL_COMM_ID", "10.0.0.1:7000", 1);
    open_desk(&d, "");
    start_scout(&d, SCOUT_MS);
    expect_facts(&d, "");
    assert_non_null(strstr(gpul_buf_text(&d.notices), "NCCL_COMM_ID is set"));
    desk_stop(&d, SIGTERM, 0);
    expect_idle(&d);
    close_desk(&d);
    unsetenv("NCCL_COMM_ID");
}

/* The worker killed outright takes its probes with it. */
static void test_worker_killed(void **state)
{
    (void)state;
    struct desk d;
    open_desk(&d, "0:deaf 1:deaf");
    go_to_ids(&d, ABORT_MS);
    kill(d.worker, SIGKILL);
    desk_reap(&d, SIGKILL);
    uint64_t deadline_ms = gpul_clock_ms() + DESK_PATIENCE_MS;
    while (desk_count_processes(plan) > 0) {
        assert_true(gpul_clock_ms() < deadline_ms);
    }
    unsetenv("GPULAUNCH_TEST_PLAN");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pass),    cmocka_unit_test(test_files_go),
        cmocka_unit_test(test_deaths),  cmocka_unit_test(test_error),
        cmocka_unit_test(test_stop),    cmocka_unit_test(test_scout),
        cmocka_unit_test(test_flood),   cmocka_unit_test(test_memory),
        cmocka_unit_test(test_warning), cmocka_unit_test(test_worker_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
