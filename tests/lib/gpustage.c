/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/gpustage.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/buf.h"
#include "common/clock.h"
#include "proto/limits.h"
#include "proto/message.h"

/* ---- frames to a probe --------------------------------------------------- */

static void send_frame(struct stage_probe *probe, Gpul__Frame *frame)
{
    struct gpul_buf out;
    struct gpul_error err;
    gpul_buf_init(&out, GPUL_FRAME_BYTES_MAX + GPUL_FRAME_PREFIX_BYTES);
    frame->epoch = STAGE_EPOCH;
    frame->generation = STAGE_GENERATION;
    assert_int_equal(gpul_message_encode(&out, frame, &err), 0);
    for (size_t done = 0; probe->fd >= 0 && done < out.used;) {
        ssize_t n =
            send(probe->fd, out.data + done, out.used - done, MSG_NOSIGNAL);
        if (n < 0) { /* it has ended: that is for the test to see */
            break;
        }
        done += (size_t)n;
    }
    gpul_buf_release(&out);
}

static void send_begin(struct stage *stage, uint32_t rank)
{
    static Gpul__Sweep tiny = GPUL__SWEEP__INIT;
    const struct stage_spec *spec = &stage->spec;
    tiny.bytes_min = 4096;
    tiny.bytes_max = 65536;
    tiny.factor = 4;
    char library[4096];
    char interface[] = "lo";
    snprintf(library, sizeof(library), "%s",
             spec->nccl_library != NULL ? spec->nccl_library : "");
    Gpul__SelfTest test = GPUL__SELF_TEST__INIT;
    test.level = spec->level != 0 ? spec->level : GPUL__SELF_TEST__LEVEL__QUICK;
    test.backend = GPUL__SELF_TEST__BACKEND__BACKEND_NCCL;
    test.listen_deadline_ms = spec->listen_deadline_ms != 0
                                  ? spec->listen_deadline_ms
                                  : STAGE_PATIENCE_MS;
    test.run_deadline_ms =
        spec->run_deadline_ms != 0 ? spec->run_deadline_ms : STAGE_PATIENCE_MS;
    test.nccl_library = library;
    test.sweep = spec->sweep != NULL ? spec->sweep : &tiny;
    Gpul__ProbeBegin begin = GPUL__PROBE_BEGIN__INIT;
    begin.first_rank = rank;
    begin.rank_count = 1;
    begin.world_size = stage->count;
    begin.id_count = spec->id_count != 0 ? spec->id_count : 1;
    begin.self_test = &test;
    begin.device_uuid = stage->probes[rank].uuid;
    begin.device_index = rank % spec->per_node;
    begin.abort_deadline_ms =
        spec->abort_deadline_ms != 0 ? spec->abort_deadline_ms : 10000;
    begin.node_count = spec->nodes;
    begin.ranks_per_node = spec->per_node;
    begin.interface = interface;
    if (spec->sweeps_nodes) {
        begin.node_first_rank = rank - rank % spec->per_node;
        begin.node_rank_count = spec->per_node;
    }
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_PROBE_BEGIN;
    frame.probe_begin = &begin;
    send_frame(&stage->probes[rank], &frame);
}

static void send_start(struct stage *stage, uint32_t node)
{
    char address[] = "127.0.0.1";
    char library[4096];
    snprintf(library, sizeof(library), "%s",
             stage->spec.nccl_library != NULL ? stage->spec.nccl_library : "");
    Gpul__ProbeStart start = GPUL__PROBE_START__INIT;
    start.level = GPUL__SELF_TEST__LEVEL__QUICK;
    start.node_rank = node;
    start.node_count = stage->spec.nodes;
    start.address = address;
    start.deadline_ms = STAGE_PATIENCE_MS;
    start.backend = GPUL__SELF_TEST__BACKEND__BACKEND_NCCL;
    start.nccl_library = library;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_PROBE_START;
    frame.probe_start = &start;
    send_frame(&stage->probes[node], &frame);
}

void stage_send_stop(struct stage *stage, uint32_t rank)
{
    Gpul__Stop stop = GPUL__STOP__INIT;
    stop.signal = SIGTERM;
    stop.grace_ms = 1000;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_STOP;
    frame.stop = &stop;
    send_frame(&stage->probes[rank], &frame);
}

void stage_stop_all(struct stage *stage)
{
    for (uint32_t i = 0; i < stage->count; i++) {
        stage_send_stop(stage, i);
    }
}

/* ---- processes ----------------------------------------------------------- */

void stage_uuid(char out[STAGE_UUID_BYTES], uint32_t node, uint32_t gpu)
{
    snprintf(out, STAGE_UUID_BYTES, "GPU-00000000-0000-0000-%04x-%012x", node,
             gpu);
}

/* The test's own lines follow: nodes and UUIDs come first, since the doubles
 * read a fault of a GPU only after the GPU. */
static void write_scenario(struct stage *stage)
{
    const struct stage_spec *spec = &stage->spec;
    char path[128];
    snprintf(stage->folder, sizeof(stage->folder), "/tmp/gpustage-XXXXXX");
    assert_non_null(mkdtemp(stage->folder));
    snprintf(path, sizeof(path), "%s/scenario", stage->folder);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fprintf(file, "node local-* gpus %u\n", spec->per_node);
    for (uint32_t i = 0; i < spec->nodes * spec->per_node; i++) {
        char uuid[STAGE_UUID_BYTES];
        stage_uuid(uuid, i / spec->per_node, i % spec->per_node);
        fprintf(file, "gpu local-%u %u uuid %s\n", i / spec->per_node,
                i % spec->per_node, uuid);
    }
    fprintf(file, "%s\n", spec->scenario);
    assert_int_equal(fclose(file), 0);
}

static void run_worker(const struct stage *stage, uint32_t node, int channel)
{
    char path[128];
    char name[32];
    if (stage->spec.scenario != NULL) {
        snprintf(path, sizeof(path), "%s/scenario", stage->folder);
        snprintf(name, sizeof(name), "local-%u", node);
        setenv("GPULAUNCH_DOUBLE_SCENARIO", path, 1);
        setenv("GPULAUNCH_DOUBLE_NODE", name, 1);
        setenv("LD_LIBRARY_PATH", GPUL_TEST_DOUBLES, 1);
    }
    if (dup2(channel, 3) != 3) {
        _exit(126);
    }
    close_range(4, ~0u, 0);
    execl(GPUL_TEST_WORKER, "gpulaunch-worker", "probe", NULL);
    _exit(127);
}

static void probe_start(struct stage *stage, uint32_t rank, uint32_t node)
{
    struct stage_probe *probe = &stage->probes[rank];
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair),
                     0);
    fflush(NULL);
    probe->pid = fork();
    assert_true(probe->pid >= 0);
    if (probe->pid == 0) {
        /* Not on descriptor 3 itself, where close-on-exec would stay. */
        int channel = fcntl(pair[1], F_DUPFD, 10);
        run_worker(stage, node, channel);
    }
    close(pair[1]);
    probe->fd = pair[0];
    probe->pid_fd = (int)syscall(SYS_pidfd_open, probe->pid, 0);
    assert_true(probe->pid_fd >= 0);
    gpul_deframer_init(&probe->in, GPUL_PEER_PROBE);
}

void stage_start(struct stage *stage, const struct stage_spec *spec,
                 bool is_scout)
{
    *stage = (struct stage){.spec = *spec};
    stage->count = is_scout ? spec->nodes : spec->nodes * spec->per_node;
    if (spec->count != 0) {
        stage->count = spec->count;
    }
    assert_true(stage->count <= STAGE_PROBES_MAX);
    if (spec->scenario != NULL) {
        write_scenario(stage);
    }
    for (uint32_t i = 0; i < stage->count; i++) {
        uint32_t node = is_scout ? i : i / spec->per_node;
        if (!is_scout && spec->uuids != NULL) {
            snprintf(stage->probes[i].uuid, STAGE_UUID_BYTES, "%s",
                     spec->uuids[i % spec->per_node]);
        } else if (!is_scout && !spec->has_no_uuids) {
            stage_uuid(stage->probes[i].uuid, node,
                       spec->shares_devices ? 0 : i % spec->per_node);
        }
        probe_start(stage, i, node);
        if (is_scout) {
            send_start(stage, i);
        } else {
            send_begin(stage, i);
        }
    }
}

/* ---- frames from a probe ------------------------------------------------- */

static void take_phase(struct stage_probe *probe, const Gpul__ProbePhase *phase)
{
    probe->phases |= 1u << phase->phase;
    probe->told_count++;
    snprintf(probe->text, sizeof(probe->text), "%s", phase->text);
    snprintf(probe->call, sizeof(probe->call), "%s", phase->call);
    probe->state = phase->state;
    probe->since_ms = phase->since_ms;
    probe->progress = phase->progress;
}

/* Each of these comes once, or the test fails. */
static void keep(Gpul__Frame **place, Gpul__Frame *frame)
{
    assert_null(*place);
    *place = frame;
}

static void take_frame(struct stage_probe *probe, Gpul__Frame *frame)
{
    assert_int_equal(frame->epoch, STAGE_EPOCH);
    assert_int_equal(frame->generation, STAGE_GENERATION);
    assert_null(probe->result); /* it is the last */
    switch (frame->body_case) {
    case GPUL__FRAME__BODY_PROBE_PHASE:
        take_phase(probe, frame->probe_phase);
        gpul_message_release(frame);
        break;
    case GPUL__FRAME__BODY_PROBE_ID:
        keep(&probe->id, frame);
        break;
    case GPUL__FRAME__BODY_PROBE_FACTS:
        keep(&probe->facts, frame);
        break;
    case GPUL__FRAME__BODY_PROBE_RESULT:
        keep(&probe->result, frame);
        break;
    default:
        fail_msg("a probe sent a frame of type %d", (int)frame->body_case);
    }
}

static void take_frames(struct stage_probe *probe)
{
    struct gpul_error err;
    const uint8_t *body;
    size_t n;
    int status;
    while ((status = gpul_deframer_next(&probe->in, &body, &n, &err)) == 1) {
        Gpul__Frame *frame;
        if (gpul_message_decode(&frame, body, n, GPUL_PEER_PROBE, &err) != 0) {
            fail_msg("%s", err.text);
        }
        take_frame(probe, frame);
    }
    assert_int_equal(status, 0);
}

static void read_probe(struct stage_probe *probe)
{
    uint8_t bytes[4096];
    struct gpul_error err;
    ssize_t n = recv(probe->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n <= 0) {
        close(probe->fd);
        probe->fd = -1;
        return;
    }
    assert_int_equal(gpul_deframer_feed(&probe->in, bytes, (size_t)n, &err), 0);
    take_frames(probe);
}

static void reap_probe(struct stage_probe *probe)
{
    assert_int_equal(waitpid(probe->pid, &probe->status, 0), probe->pid);
    probe->is_gone = true;
    probe->gone_ms = gpul_clock_ms();
}

/* ---- the loop ------------------------------------------------------------ */

static void relay_ids(struct stage *stage)
{
    uint32_t id_count = stage->spec.id_count != 0 ? stage->spec.id_count : 1;
    ProtobufCBinaryData ids[8];
    uint32_t have = 0;
    assert_true(id_count <= 8);
    for (uint32_t i = 0; i < stage->count; i++) {
        if (stage->probes[i].id != NULL) {
            const Gpul__ProbeId *id = stage->probes[i].id->probe_id;
            assert_true(id->index < id_count);
            ids[id->index] = id->id;
            have++;
        }
    }
    if (have < id_count || stage->has_relayed) {
        return;
    }
    Gpul__ProbeIds message = GPUL__PROBE_IDS__INIT;
    uint32_t relay_count = stage->spec.relay_count;
    message.n_ids = relay_count != 0 ? relay_count : id_count;
    message.ids = ids;
    for (uint32_t i = 0; i < stage->count; i++) {
        Gpul__Frame frame = GPUL__FRAME__INIT;
        frame.body_case = GPUL__FRAME__BODY_PROBE_IDS;
        frame.probe_ids = &message;
        send_frame(&stage->probes[i], &frame);
    }
    stage->has_relayed = true;
}

static bool holds(const struct stage *stage, uint64_t ranks,
                  stage_condition is_it)
{
    for (uint32_t i = 0; i < stage->count; i++) {
        bool is_asked = ranks == 0 || (i < 64 && (ranks >> i & 1) != 0);
        if (is_asked && !is_it(&stage->probes[i])) {
            return false;
        }
    }
    return true;
}

static void wait_some(struct stage *stage, uint64_t deadline_ms)
{
    static struct pollfd fds[2 * STAGE_PROBES_MAX];
    for (uint32_t i = 0; i < stage->count; i++) {
        const struct stage_probe *probe = &stage->probes[i];
        fds[2 * i] = (struct pollfd){.fd = probe->fd, .events = POLLIN};
        fds[2 * i + 1] = (struct pollfd){
            .fd = probe->is_gone ? -1 : probe->pid_fd, .events = POLLIN};
    }
    uint64_t now_ms = gpul_clock_ms();
    if (now_ms >= deadline_ms ||
        poll(fds, 2 * stage->count, (int)(deadline_ms - now_ms)) <= 0) {
        fail_msg("after %d ms it has not come to that", STAGE_PATIENCE_MS);
    }
    for (uint32_t i = 0; i < stage->count; i++) {
        if (fds[2 * i].revents != 0) {
            read_probe(&stage->probes[i]);
        } else if (fds[2 * i + 1].revents != 0) {
            reap_probe(&stage->probes[i]);
        }
    }
}

void stage_until(struct stage *stage, uint64_t ranks, stage_condition is_it)
{
    uint64_t deadline_ms = gpul_clock_ms() + STAGE_PATIENCE_MS;
    while (!holds(stage, ranks, is_it)) {
        wait_some(stage, deadline_ms);
        relay_ids(stage);
    }
}

bool stage_has_result(const struct stage_probe *probe)
{
    return probe->result != NULL;
}

bool stage_is_gone(const struct stage_probe *probe)
{
    return probe->is_gone && probe->fd < 0;
}

static void probe_end(struct stage_probe *probe)
{
    if (!probe->is_gone) {
        kill(probe->pid, SIGKILL);
        waitpid(probe->pid, NULL, 0);
    }
    if (probe->fd >= 0) {
        close(probe->fd);
    }
    close(probe->pid_fd);
    gpul_deframer_release(&probe->in);
    gpul_message_release(probe->id);
    gpul_message_release(probe->facts);
    gpul_message_release(probe->result);
}

void stage_end(struct stage *stage)
{
    for (uint32_t i = 0; i < stage->count; i++) {
        if (stage->probes[i].pid > 0) {
            probe_end(&stage->probes[i]);
        }
    }
    if (stage->folder[0] != 0) {
        char command[128];
        snprintf(command, sizeof(command), "rm -rf %s", stage->folder);
        assert_int_equal(system(command), 0);
    }
    *stage = (struct stage){0};
}
