/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker as a program: what it says of the GPUs of ranks that make no
 * step, by the double of NVML.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "desk.h"
#include "worker/procstat.h"
#include "worker/rankstate.h"

#define SPINS "(busy at low power, as while NCCL waits for another rank)"
#define REAL_DRIVER "/dev/nvidiactl"

static char scenario[64]; /* its path, which marks our processes too */

static void write_scenario(const char *text)
{
    FILE *file = fopen(scenario, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static int setup(void **state)
{
    (void)state;
    snprintf(scenario, sizeof(scenario), "/tmp/gpul-gpus-%d", getpid());
    setenv("GPULAUNCH_DOUBLE_SCENARIO", scenario, 1);
    setenv("LD_LIBRARY_PATH", GPUL_TEST_DOUBLES, 1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(scenario);
    return 0;
}

/* ---- the process that asks NVML ------------------------------------------ */

static bool has_text(const char *pid, const char *file, const char *text,
                     size_t n)
{
    static char bytes[64 << 10];
    char path[300];
    snprintf(path, sizeof(path), "/proc/%s/%s", pid, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t have = fd >= 0 ? read(fd, bytes, sizeof(bytes)) : -1;
    if (fd >= 0) {
        close(fd);
    }
    return have > 0 && memmem(bytes, (size_t)have, text, n) != NULL;
}

static pid_t find_asker(void)
{
    static const char command[] = "gpulaunch-worker\0gpus";
    DIR *proc = opendir("/proc");
    pid_t found = 0;
    for (struct dirent *e; (e = readdir(proc)) != NULL;) {
        if (e->d_name[0] > '0' && e->d_name[0] <= '9' &&
            has_text(e->d_name, "cmdline", command, sizeof(command)) &&
            has_text(e->d_name, "environ", scenario, strlen(scenario))) {
            found = (pid_t)atoi(e->d_name);
        }
    }
    closedir(proc);
    return found;
}

static void await_asker(bool is_there)
{
    uint64_t end_ms = gpul_clock_ms() + DESK_PATIENCE_MS;
    while ((find_asker() != 0) != is_there) {
        assert_true(gpul_clock_ms() < end_ms);
        usleep(10000);
    }
}

/* ---- a job that hangs ---------------------------------------------------- */

static const char *visible; /* CUDA_VISIBLE_DEVICES of the job, or NULL */

static void edit_job(Gpul__Job *job)
{
    static Gpul__Hang hang;
    gpul__hang__init(&hang);
    hang.watch = GPUL__HANG__WATCH__GIVEN;
    hang.limit_ms = 1000;
    job->hang = &hang;
}

static void begin(struct desk *d, uint32_t ranks, const char *script)
{
    if (visible != NULL) {
        setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    } else {
        unsetenv("CUDA_VISIBLE_DEVICES");
    }
    desk_open(d);
    desk_edit_job = edit_job;
    desk_prepare(d, ranks, script);
    desk_edit_job = NULL;
    desk_launch(d, 1);
}

/* A rank that ends may be told first. */
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

static void end(struct desk *d)
{
    desk_stop(d, SIGTERM, 300);
    expect(d, GPUL__FRAME__BODY_EXITS);
    expect(d, GPUL__FRAME__BODY_IDLE);
    desk_finish(d, false);
    desk_close(d, 0, NULL);
    await_asker(false);
}

/* The rows may come in several frames: those of rank 0 count. */
static void expect_text(struct desk *d, const char *text)
{
    bool is_told = false;
    while (!is_told) {
        Gpul__Frame *frame = desk_expect(d, GPUL__FRAME__BODY_STALL);
        for (size_t i = 0; i < frame->stall->n_rows; i++) {
            const Gpul__StallRow *row = frame->stall->rows[i];
            if (row->rank == 0) {
                assert_string_equal(row->text, text);
                assert_string_equal(row->state, "S");
                is_told = true;
            }
        }
        gpul_message_release(frame);
    }
}

static void check(const char *text)
{
    struct desk d;
    begin(&d, 1, "exec sleep 600");
    expect_text(&d, text);
    end(&d);
}

/* ---- what NVML says ------------------------------------------------------ */

/* A GPU that spins, among those that the rank may use, and as the only one. */
static void test_spins(void **state)
{
    (void)state;
    write_scenario("node node-0 gpus 2 utilization 100 power 120\n"
                   "gpu node-0 0 utilization 0 power 70\n");
    check("SIMULATED: the 2 GPUs that it may use: GPU 0 is idle, GPU 1 "
          "spins " SPINS);
    visible = "1";
    check("SIMULATED: its GPU spins " SPINS);
    visible = "";
    check("");
    visible = NULL;
}

/* Below its first process, the rank has one that is on GPU 1: that is its own
 * where pids are those that the driver speaks of. */
static void test_process(void **state)
{
    (void)state;
    struct desk d;
    char script[300];
    snprintf(script, sizeof(script),
             "sleep 600 & (echo node node-0 gpus 2 utilization 100 power 120;"
             "echo gpu node-0 1 process $! used 1GiB power 650) >%s; wait",
             scenario);
    begin(&d, 1, script);
    expect_text(&d, procstat_is_first_namespace()
                        ? "SIMULATED: its GPU works (busy at high power)"
                        : "SIMULATED: the 2 GPUs that it may use: GPU 1 works "
                          "(busy at high power), GPU 0 spins " SPINS);
    end(&d);
}

/* ---- what may be wrong with it ------------------------------------------- */

/* The report comes after the bound, and the process is gone. */
static void test_hangs(void **state)
{
    (void)state;
    struct desk d;
    write_scenario("node node-0 gpus 1\nfault hang facts\n");
    begin(&d, 1, "exec sleep 600");
    await_asker(true);
    expect_text(&d, "SIMULATED: GPU state unknown: NVML did not answer within "
                    "5 s");
    await_asker(false);
    end(&d);
}

/* Nothing waits for it when the ranks end meanwhile, nor when the worker does.
 */
static void test_ranks_end_meanwhile(void **state)
{
    (void)state;
    struct desk d;
    write_scenario("node node-0 gpus 1\nfault hang facts\n");
    begin(&d, 1, "exec sleep 600");
    await_asker(true);
    desk_stop(&d, SIGTERM, 300);
    desk_expect_exits(&d, 1, &(struct desk_exit){.rank = 0});
    desk_expect_idle(&d, 0);
    await_asker(false);
    desk_finish(&d, false);
    desk_close(&d, 0, NULL);
}

/* It dies with the agent that asked, and the next agent asks again. A rank
 * whose beats another agent has read is SILENT. */
static void test_agent_dies(void **state)
{
    (void)state;
    struct desk d;
    struct rankstate_look look;
    char error[512];
    pid_t asker, agent = 0;
    write_scenario("node node-0 gpus 1\nfault hang facts\n");
    begin(&d, 1, "exec sleep 600");
    await_asker(true);
    asker = find_asker();
    assert_int_equal(rankstate_look_take(&look, NULL), 0);
    for (size_t i = 0; i < look.count; i++) {
        agent = look.list[i].pid == asker ? look.list[i].parent : agent;
    }
    rankstate_look_release(&look);
    assert_true(agent > 1);
    assert_int_equal(kill(agent, SIGKILL), 0);
    desk_edit_job = edit_job;
    desk_attach(&d, 1, "exec sleep 600");
    desk_edit_job = NULL;
    await_asker(false);
    write_scenario("node node-0 gpus 1\n");
    desk_launch(&d, 1);
    expect_text(&d, "SIMULATED: its GPU is idle");
    desk_stop(&d, SIGTERM, 300);
    expect(&d, GPUL__FRAME__BODY_EXITS);
    expect(&d, GPUL__FRAME__BODY_IDLE);
    desk_finish(&d, false);
    desk_close(&d, 0, error);
}

static void test_crashes(void **state)
{
    (void)state;
    write_scenario("node node-0 gpus 1\nfault signal SEGV at facts\n");
    check("SIMULATED: GPU state unknown: the process that asked NVML ended "
          "without an answer");
}

static void test_errors(void **state)
{
    (void)state;
    write_scenario("node node-0 gpus 1 nvml-init 18\n");
    check("SIMULATED: GPU state unknown: NVML: Driver/library version "
          "mismatch");
    write_scenario("node node-0 gpus 2 utilization 100 power 120\n"
                   "gpu node-0 1 lost on\n");
    check("SIMULATED: the 2 GPUs that it may use: GPU 1 is in an unknown "
          "state, GPU 0 spins " SPINS);
}

/* Without a driver, or without NVML, there is nothing to say. */
static void test_nothing(void **state)
{
    (void)state;
    write_scenario("node other gpus 1\n");
    check("");
    setenv("LD_LIBRARY_PATH", "/nonexistent", 1);
    if (access(REAL_DRIVER, F_OK) != 0) {
        check("");
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_spins),      TEST(test_process),
        TEST(test_hangs),      TEST(test_ranks_end_meanwhile),
        TEST(test_agent_dies), TEST(test_crashes),
        TEST(test_errors),     TEST(test_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
